"""What user code sees of the run around it.

`RunScope` belongs to one run, `TaskContext` to one attempt of one task; the
latter is what `towpath.context.current` holds while a node runs. Configs,
runtimes and ids are made when something asks for them, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from itertools import count
from time import monotonic
from typing import Any

from towpath.call.children import Arguments, check_name, digest_of, in_line, start, step
from towpath.constants import (
    CONF,
    CONFIG_KEY_READ,
    CONFIG_KEY_READ_STATE,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SEND,
    CONFIG_KEY_TASK_ID,
    MISSING,
    PREVIOUS,
    PUSH,
)
from towpath.context import RunnableConfig
from towpath.errors import GraphInterrupt, NoCheckpointerError, refuse_answer
from towpath.kernel.request import NOTHING_EARLY, Request
from towpath.plan import NOTHING, NodeSpec, Plan, Scratchpad
from towpath.plan.arguments import spread
from towpath.policies import RetryPolicy
from towpath.runtime import ExecutionInfo, Runtime
from towpath.schema import answer_schema, check_answer
from towpath.step.children import Child, returned
from towpath.step.isolate import isolate
from towpath.step.prepare import read
from towpath.step.tasks import Task, keyed_id, question_of
from towpath.step.writes import fresh_values
from towpath.types import Interrupt
from towpath.warnings import warn_user


class RunScope:
    """What all tasks of one run share.

    `emit` takes chunks from any thread; `heard` are the modes that somebody
    listens to, `live` says that chunks must get out while nodes still run, and
    `alone` that nothing has to happen beside a lone task without a time limit.
    """

    # Class attributes are the defaults: most runs never set most of these.
    context: Any = None
    live = False
    inner_modes: frozenset[str] = frozenset()
    """The modes in which runs inside this one are heard."""
    message_events = False
    """Whether messages are told as the events of a model, not as pieces."""
    base: Context | None = None
    ambient: tuple[tuple[ContextVar[Any], Any], ...] = ()
    closed = False
    handed_down: Mapping[str, Any] | None = None
    """What of the config goes to runs inside this one, once one has asked."""
    backlog: Any = None
    """What waits to be stored; nested runs share it, so that what is stored is
    always the beginning of what was said to be."""
    outer: RunScope | None = None
    drivers: Any = None
    """Who drives runs inside this one; None: the drivers of the process."""
    trace: Any = None
    driver: Any = None
    """Who drives the run, while somebody does."""

    def __init__(
        self,
        plan: Plan,
        req: Request,
        config: Mapping[str, Any],
        *,
        store: Any = None,
    ) -> None:
        self.plan = plan
        self.req = req
        self.config = config
        self.store = store
        self.alone = req.step_timeout is None
        self.emit = req.emit
        self.heard = req.modes
        self.run_id = config.get("run_id")
        self.debug = plan.debug
        self.bare = not plan.debug

    def listen(self, *, live: bool, inner: frozenset[str]) -> None:
        """Note how somebody listens: while nodes still run, to runs inside."""
        self.live = live
        self.alone = self.alone and not live
        self.inner_modes = inner

    def hang_under(self, outer: RunScope) -> None:
        """Take over what the run around this one has, and this one does not."""
        self.outer = outer
        self.drivers = outer.drivers
        self.inner_modes |= outer.inner_modes
        self.message_events |= outer.message_events
        if self.context is None:
            self.context = outer.context
        if self.store is None:
            self.store = outer.store

    def begin(self) -> None:
        """Keep the caller's context: a copy of it is what nodes run in."""
        self.base = copy_context()
        for variable, value in self.ambient:
            self.base.run(variable.set, value)

    def abandoned(self) -> bool:
        """Whether a run around this one has been closed by its caller."""
        outer = self.outer
        while outer is not None:
            if outer.closed:
                return True
            outer = outer.outer
        return False


class TaskContext:
    """The ambient task: one attempt of one node, as user code sees it.

    Making it begins the attempt.
    """

    question: GraphInterrupt | None = None
    refused: NoCheckpointerError | None = None
    """An error the node may catch, but not undo."""
    local: Any = None
    """Whatever a tracing bridge keeps for the attempt."""
    output: Any = None
    """What the node returned, for traces."""
    apart: Context | None = None
    """The contextvars as they were before the node ran: its branches see those."""
    pushed: list[tuple[str, Any]] | None = None
    """What the node wrote before it returned."""
    _config: RunnableConfig | None = None
    _runtime: Runtime[Any] | None = None

    def __init__(self, scope: RunScope, task: Task) -> None:
        self.scope = scope
        self.task = task
        if task.timeout is not None or task.spec.retry:
            task.start_clock(monotonic())
        task.attempt += 1
        if task.asked:
            task.asked = 0

    def set_apart(self, variables: Context) -> None:
        """Keep the contextvars for the branches, if there are any."""
        if self.task.spec.branches:
            self.apart = variables.copy()

    def ask(self, value: Any, response_schema: Any, key: str | None = None) -> Any:
        """Return the answer to a question, the next or that of the key, or park."""
        task, req = self.task, self.scope.req
        if req.saver is None and self.scope.plan.semantics.unsaved_prompts == "error":
            self.refused = NoCheckpointerError(
                f"node `{task.name}` called interrupt(), but the graph has no "
                "checkpointer, so nobody could answer",
                hint="compile(checkpointer=InMemorySaver()) or a durable one",
            )
            raise self.refused
        if self.question is not None:
            raise self.question
        if key is not None:
            # Kept by its id with the thread, until the step is over.
            own = keyed_id(task.ns, key)
            if own in req.answers:
                return checked(response_schema, req.answers[own], own)
            raise self.asked(Interrupt(value, own, key=key), response_schema)
        index = task.asked
        task.asked += 1
        if index < len(task.answers):
            return check_answer(response_schema, task.answers[index])
        own = question_of(task, index)
        early = NOTHING_EARLY if isinstance(task, Child) else req.early
        answer = req.answers[own] if own in req.answers else next(early, MISSING)
        if answer is MISSING:
            raise self.asked(Interrupt(value, own), response_schema)
        taken = checked(response_schema, answer, own)
        task.answers = (*task.answers, answer)
        return taken

    def asked(self, question: Interrupt[Any], response_schema: Any) -> GraphInterrupt:
        """Note a question, and return what is to be raised for it."""
        question.response_schema = answer_schema(response_schema)
        self.park(GraphInterrupt((question,)))
        assert self.question is not None
        return self.question

    def call(
        self, spec: NodeSpec, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Start a task beside this one; return its future."""
        given = (tuple(args), dict(kwargs))
        return start(self, spec, self.mark("", given), given)

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        retry: tuple[RetryPolicy, ...] = (),
    ) -> Any:
        """Call a function whose result is recorded at once; return that."""
        check_name("step", name)
        action = spread(function, name, fills=False)
        spec = NodeSpec(
            name, action, (), NOTHING, retry=retry, hidden=True, emit=returned
        )
        given = (tuple(args), dict(kwargs))
        return step(self, spec, f"step:{self.mark(name, given)}:{name}", given)

    def mark(self, kind: str, given: Arguments) -> int | str:
        """What tells a call from this attempt's others, in every attempt.

        In the task's own line of code that is how many of its kind came before.
        In threads and asyncio tasks that it started, what comes before what is
        chance, so it is what the call was given, as far as that can be told.
        """
        if in_line(self):
            return self.number(kind)
        digest = digest_of(given)
        return f"{digest}:{self.number(f'{kind}:{digest}')}"

    def number(self, name: str) -> int:
        """How often this attempt has asked for this; threads may ask at once."""
        counts: dict[str, Iterator[int]] = self.__dict__.setdefault("counts", {})
        return next(counts.setdefault(name, count()))

    @property
    def idempotency_key(self) -> str:
        """What stays the same when this runs again, and differs for all else."""
        return self.task.id

    def park(self, question: GraphInterrupt) -> None:
        """Note that a question was asked: it stays asked, whoever catches it."""
        self.question = question

    @property
    def writer(self) -> Callable[[Any], None]:
        """Sends its argument to listeners of the `custom` stream."""
        return self.write

    def write(self, chunk: Any) -> None:
        self.beat_auto()
        if "custom" in self.scope.heard and not self.task.abandoned:
            self.scope.emit((self.scope.req.path, "custom", chunk))

    def tell_message(self, part: Any) -> None:
        """Send a part of a message to listeners of the `messages` stream.

        The events of models are others' to make: nothing is told among those.
        """
        self.beat_auto()
        scope = self.scope
        silent = self.task.abandoned or scope.message_events
        if "messages" in scope.heard and not silent:
            told = (part, dict(self.config["metadata"]))
            scope.emit((scope.req.path, "messages", told))

    def push(self, writes: Sequence[tuple[str, Any]]) -> None:
        """Write to the state before the node returns; it counts when it does."""
        if self.pushed is None:
            self.pushed = []
        self.pushed.extend(writes)

    def read(self, select: str | Sequence[str], fresh: bool = False) -> Any:
        """Read keys of the state; `fresh` with what was pushed meanwhile."""
        scope = self.scope
        assert scope.req.state is not None
        writes = (self.pushed or ()) if fresh else ()
        values = fresh_values(scope.plan, scope.req.state, writes)
        if isinstance(select, str):
            return values.get(select)
        return {key: values[key] for key in select if key in values}

    def read_state(self) -> Any:
        """What the node would be given, had nothing been sent to it."""
        plan, state = self.scope.plan, self.scope.req.state
        assert state is not None
        pad = Scratchpad(self.task.origin.step, self.scope.req.stop)
        return read(plan, state.values, self.task.spec.view, pad, state.containers)

    def heartbeat(self) -> None:
        """Tell that the task is alive; puts off its idle timeout."""
        self.task.beat = monotonic()

    def beat_auto(self) -> None:
        limit = self.task.timeout
        if limit is not None and limit.refresh_on == "auto":
            self.task.beat = monotonic()

    @property
    def store(self) -> Any:
        return self.scope.store

    @property
    def runtime(self) -> Runtime[Any]:
        if self._runtime is None:
            scope = self.scope
            self._runtime = Runtime(
                context=scope.context,
                store=scope.store,
                stream_writer=self.write,
                heartbeat=self.heartbeat,
                previous=self.previous,
                execution_info=self.execution_info(),
                control=scope.req.control,
            )
        return self._runtime

    @property
    def has_runtime(self) -> bool:
        """Whether anything of this attempt has asked for its runtime."""
        return self._runtime is not None

    @property
    def previous(self) -> Any:
        """What an entrypoint kept for its next run; a copy of the caller's own."""
        state = self.scope.req.state
        return None if state is None else isolate(state.values.get(PREVIOUS))

    def execution_info(self) -> ExecutionInfo:
        scope, task = self.scope, self.task
        return ExecutionInfo(
            checkpoint_id=task.origin.checkpoint_id,
            checkpoint_ns=task.ns,
            task_id=task.id,
            thread_id=scope.req.thread_id,
            run_id=None if scope.run_id is None else str(scope.run_id),
            node_attempt=max(task.attempt, 1),
            node_first_attempt_time=task.first_at or None,
        )

    @property
    def config(self) -> RunnableConfig:
        """The run's config with what tells of this task added to it."""
        if self._config is None:
            self._config = self.make_config()
        return self._config

    def make_config(self) -> RunnableConfig:
        scope, task = self.scope, self.task
        # Code that hands callbacks on looks for them, also where there are none.
        config: dict[str, Any] = {"callbacks": None, **scope.config}
        config.pop("run_id", None)
        config.pop("run_name", None)
        config["metadata"] = {
            **(config.get("metadata") or {}),
            **task.spec.metadata,
            "langgraph_step": task.origin.step,
            "langgraph_node": task.name,
            "langgraph_triggers": task.triggers,
            "langgraph_path": task.path,
            "langgraph_checkpoint_ns": task.ns,
        }
        if scope.req.ns:
            config["metadata"].setdefault("checkpoint_ns", scope.req.ns)
        configurable = dict(config.get(CONF) or {})
        if scope.req.thread_id is not None:
            configurable["thread_id"] = scope.req.thread_id
        configurable["checkpoint_ns"] = task.ns
        configurable["checkpoint_id"] = None
        configurable[CONFIG_KEY_TASK_ID] = task.id
        configurable[CONFIG_KEY_RUNTIME] = self.runtime
        configurable[CONFIG_KEY_SEND] = self.push
        configurable[CONFIG_KEY_READ] = StateReader(self)
        if task.path[0] == PUSH:
            configurable[CONFIG_KEY_READ_STATE] = self.read_state
        config[CONF] = configurable
        if tags := [*config.get("tags", ()), *task.spec.tags]:
            config["tags"] = tags
        if (traced := self.traced) is not None:
            config["callbacks"] = traced.callbacks
        return config  # type: ignore[return-value] # built key by key

    @property
    def traced(self) -> Any:
        """What a tracing bridge keeps for this, or for what called it as a step."""
        if self.local is None and isinstance(self.task, Child):
            return self.task.caller.traced
        return self.local

    def injected(self, what: str) -> Any:
        """The value for an injected parameter."""
        if what == "config":
            return self.config
        if what == "runtime":
            return self.runtime
        if what == "store":
            return self.scope.store
        if what == "writer":
            return self.write
        if what == "error":
            return self.task.failure
        return self.previous

    def warn_swallowed(self) -> None:
        """Name the code that caught a question which has been asked all the same."""
        where = swallowed_at(self.question)
        warn_user(
            f"node `{self.task.name}` caught the interrupt it raised ({where}); "
            "the task waits for the answer all the same. Let GraphInterrupt pass, "
            "for example with `except GraphBubbleUp: raise` before `except "
            "Exception`.",
            RuntimeWarning,
        )


class StateReader:
    """Reads the state, as `TaskContext.read`.

    Tool nodes of other packages find the keys in `args[1]`, where the peer's
    own reader has its channels.
    """

    __slots__ = ("task",)

    def __init__(self, task: TaskContext) -> None:
        self.task = task

    def __call__(self, select: str | Sequence[str], fresh: bool = False) -> Any:
        return self.task.read(select, fresh)

    @property
    def args(self) -> tuple[None, Mapping[str, Any], Mapping[str, Any]]:
        plan = self.task.scope.plan
        return None, plan.channels, plan.managed


def checked(schema: Any, answer: Any, question: str) -> Any:
    """An answer in the form that its question asks for."""
    try:
        return check_answer(schema, answer)
    except ValueError as error:
        refuse_answer(error, question)
        raise


def swallowed_at(question: BaseException | None) -> str:
    """Where the outermost frame stands that an interrupt got through to."""
    trace = question.__traceback__ if question is not None else None
    if trace is None:
        return "place unknown"
    code = trace.tb_frame.f_code
    return f"in {code.co_name}, {code.co_filename}:{trace.tb_lineno}"


__all__ = ["RunScope", "TaskContext"]
