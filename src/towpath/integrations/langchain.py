"""langchain's callbacks, tracing and ambient config around a run.

langchain hands a config down by a context variable. `AMBIENT` stands in it
while nodes run and answers with the config of whatever task runs there, so
that a model called in a node finds the run's callbacks, tags and metadata at
no cost to runs that never ask.

A run that somebody listens to gets a `Bridge`. It tells the listeners of the
graph's run, of each attempt at a node and of each path function, in the shape
that langchain gives its own chains. What is told blocking and what is awaited
differ only in the manager; nothing here decides how nodes run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import aclosing, contextmanager
from contextvars import Context
from functools import cache
from typing import Any, Final, cast

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.globals import get_debug
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import var_child_runnable_config

from towpath.call.attempt import Call
from towpath.call.scope import RunScope, TaskContext
from towpath.constants import CONF
from towpath.context import current
from towpath.errors import GraphInterrupt
from towpath.integrations.events import EventTap, ToolTap
from towpath.integrations.messages import MessageTap, without_taps
from towpath.integrations.parts import PartRuns, parts_of, show_stream
from towpath.kernel.commands import Program
from towpath.kernel.run import Outcome
from towpath.plan.arguments import named
from towpath.step.children import Child
from towpath.step.tasks import Task
from towpath.types import Command

LIMIT_UNASKED: Final = 25
"""The recursion limit that langchain puts into every config of its own."""
SHOWN: Final = ("thread_id", "assistant_id", "graph_id", "task_id", "run_id")
"""The keys of `configurable` that traces show."""
TRACING: Final = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)


if not issubclass(Command, ToolOutputMixin):
    # Tools may return a command then, and it stays one.
    Command.__bases__ = (ToolOutputMixin, *Command.__bases__)


class AmbientConfig(Mapping[str, Any]):
    """The config of the task that runs where it is read; one for all tasks."""

    def now(self) -> Mapping[str, Any]:
        task = current.get()
        return {} if task is None else cast("Mapping[str, Any]", task.config)

    def __getitem__(self, key: str) -> Any:
        return self.now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.now())

    def __len__(self) -> int:
        return len(self.now())

    def copy(self) -> dict[str, Any]:
        return dict(self.now())


AMBIENT: Final = AmbientConfig()


def surrounding() -> dict[str, Any]:
    """What the langchain runnable around a call gives to a graph called in it."""
    config = var_child_runnable_config.get()
    if config is AMBIENT:
        # A task of ours, whose config the call takes over in any case; only the
        # callbacks are those of the attempt.
        local = getattr(current.get(), "local", None)
        return {} if local is None else {"callbacks": local.callbacks}
    if not config:
        return {}
    keys = ("callbacks", "tags", "metadata", CONF, "max_concurrency")
    found = {key: config.get(key) for key in keys if config.get(key)}
    limit = config.get("recursion_limit", LIMIT_UNASKED)
    if limit != LIMIT_UNASKED:
        found["recursion_limit"] = limit
    return found


def trace(scope: RunScope) -> Bridge | None:
    """Give the run langchain's ambient config, and a bridge if anybody listens."""
    scope.ambient = ((var_child_runnable_config, AMBIENT),)
    hears = bool(scope.heard & {"messages", "tools"})
    callbacks = scope.config.get("callbacks")
    if callbacks:
        # Taps of runs further out: this run has its own, or nobody hears it.
        callbacks = without_taps(callbacks)
        scope.config = {**scope.config, "callbacks": callbacks}
    if not (callbacks or hears or traced_anyway()):
        return None
    return Bridge(scope, callbacks, *taps(scope))


def taps(scope: RunScope) -> tuple[MessageTap | None, ToolTap | None]:
    """What hears models and tools for those who stream the run."""
    kind = EventTap if scope.message_events else MessageTap
    return (
        kind(scope, outer_tap()) if "messages" in scope.heard else None,
        ToolTap(scope) if "tools" in scope.heard else None,
    )


def outer_tap() -> MessageTap | None:
    """The tap of the run around, if that hears what runs in its nodes."""
    task = current.get()
    if not isinstance(task, TaskContext) or task.scope.trace is None:
        return None
    inner = "messages" in task.scope.inner_modes
    return cast("MessageTap | None", task.scope.trace.tap) if inner else None


def traced_anyway() -> bool:
    """Whether langchain adds listeners of its own accord."""
    return get_debug() or switched_on() or asked_here()


def asked_here() -> bool:
    """Whether a `with` around the call adds a listener, as `collect_runs` does.

    The modules are those that such a `with` has loaded.
    """
    hooks = sys.modules.get("langchain_core.tracers.context")
    if hooks is not None:
        if hooks.tracing_v2_callback_var.get() is not None:
            return True
        for hook in hooks._configure_hooks:  # noqa: SLF001 - nothing public tells
            listener = hook[0].get()
            if listener is not None and not getattr(listener, "ignore_chain", False):
                return True
    # Asked for in public, it takes 20 times as long.
    smith = sys.modules.get("langsmith._internal._context")
    enabled = getattr(smith, "_TRACING_ENABLED", None)
    return enabled is not None and bool(enabled.get())


def trace_headers() -> dict[str, str]:
    """What lets a trace that goes on here go on at a server."""
    from langsmith import get_current_run_tree

    tree = get_current_run_tree()
    return {} if tree is None else dict(tree.to_headers())


@cache
def switched_on() -> bool:
    """Whether the environment asks for tracing; read once, as langsmith does."""
    return any(os.environ.get(name, "").lower() == "true" for name in TRACING)


class Traced:
    """What a bridge keeps for one attempt: its run, and what its calls inherit."""

    __slots__ = ("callbacks", "run")

    def __init__(self, run: Any) -> None:
        self.run = run
        self.callbacks = run.get_child("seq:step:1")


class Bridge:
    """Tells langchain's listeners what one run does."""

    def __init__(
        self,
        scope: RunScope,
        callbacks: Any,
        tap: MessageTap | None,
        tools: ToolTap | None,
    ) -> None:
        self.scope = scope
        self.callbacks = callbacks
        self.tap = tap
        self.taps = [each for each in (tap, tools) if each is not None]
        self.run: Any = None
        around = var_child_runnable_config.get() or {}
        conf = scope.config.get(CONF) or {}
        self.metadata = {
            **(around.get("metadata") or {}),
            **{key: conf[key] for key in SHOWN if isinstance(conf.get(key), str | int)},
            **(scope.config.get("metadata") or {}),
            "ls_integration": "langgraph",
        }
        if around is AMBIENT:
            self.metadata.setdefault("checkpoint_ns", around[CONF]["checkpoint_ns"])

    # -- the run --------------------------------------------------------------

    def watched(self, program: Program[Outcome], scope: RunScope) -> Program[Outcome]:
        """The program of the run; langchain has no word for what it does."""
        del scope
        return program

    def drive(
        self, steps: Generator[Any, None, Outcome]
    ) -> Generator[Any, None, Outcome]:
        """Pass on a run's chunks; tell of its start and its end."""
        self.run = self.opened(CallbackManager)
        try:
            outcome = yield from steps
        except BaseException as error:
            self.run.on_chain_error(error)
            raise
        self.end(outcome)
        return outcome

    async def adrive(
        self, steps: AsyncGenerator[Any, None], outcome: list[Outcome]
    ) -> AsyncGenerator[Any, None]:
        """Async twin of `drive`."""
        self.run = await self.opened(AsyncCallbackManager)
        try:
            async with aclosing(steps):
                async for chunk in steps:
                    yield chunk
        except BaseException as error:
            await self.run.on_chain_error(error)
            raise
        await self.end(outcome[0])

    def opened(self, kind: type[CallbackManager | AsyncCallbackManager]) -> Any:
        """Start the graph's run; what an async manager returns is awaited."""
        config = self.scope.config
        manager = kind.configure(
            inheritable_callbacks=self.callbacks,
            inheritable_tags=config.get("tags"),
            inheritable_metadata=self.metadata,
        )
        for tap in self.taps:
            manager.add_handler(tap)
        name = config.get("run_name") or self.scope.plan.name
        given = self.scope.req.input
        return manager.on_chain_start(
            None,
            given,
            name=name,
            run_id=config.get("run_id"),
        )

    def end(self, outcome: Outcome) -> Any:
        """Tell of the run's end; what an async manager returns is awaited.

        A nested run that stopped on a question raises it in the task around.
        """
        if outcome.status != "done" and self.scope.req.nested:
            return self.run.on_chain_error(GraphInterrupt(outcome.interrupts))
        return self.run.on_chain_end(outcome.value)

    # -- attempts -------------------------------------------------------------

    def enter(self, task: Task, context: TaskContext, variables: Context) -> None:
        """Tell that a node starts; a listener's error is the task's failure."""
        del variables  # listeners are told where the driver runs
        try:
            if told(task):
                context.local = Traced(self.start(task))
        except BaseException as error:
            task.error = error

    async def aenter(
        self, task: Task, context: TaskContext, variables: Context
    ) -> None:
        """Async twin of `enter`."""
        del variables
        try:
            if told(task):
                context.local = Traced(await self.start(task))
        except BaseException as error:
            task.error = error

    def leave(self, task: Task, context: TaskContext) -> None:
        """Tell how the attempt ended."""
        try:
            if context.local is not None:
                self.left(task, context)
        except BaseException as error:
            spoil(task, error)

    async def aleave(self, task: Task, context: TaskContext) -> None:
        """Async twin of `leave`."""
        try:
            if context.local is not None:
                await self.left(task, context)
        except BaseException as error:
            spoil(task, error)

    def start(self, task: Task) -> Any:
        """Start a node's run; what an async manager returns is awaited."""
        if isinstance(task, Child):
            manager = child(task.caller.traced.run, "seq:step:1")
        else:
            manager = child(self.run, f"graph:step:{task.origin.step}")
        manager.add_metadata({**facts(task), **task.spec.metadata})
        tags = task.spec.tags
        if tags:
            manager.add_tags(list(tags))
        given = task.input
        if isinstance(task, Child) and task.spec.action is not None:
            given = named(task.spec.action, given)
        if task.spec.trace is not None and task.spec.trace.process_inputs is not None:
            given = task.spec.trace.process_inputs(given)
        return manager.on_chain_start(None, given, name=task.name)

    def left(self, task: Task, context: TaskContext) -> Any:
        """Tell of an attempt's end; what an async manager returns is awaited."""
        run = context.local.run
        if task.halted:
            return run.on_chain_error(GraphInterrupt(task.interrupts))
        if task.error is not None:
            return run.on_chain_error(task.error)
        if self.tap is not None and not task.abandoned:
            metadata = {**self.metadata, **task.spec.metadata, **facts(task)}
            self.tap.returned(task, metadata)
        output = context.output
        if task.spec.trace is not None and task.spec.trace.process_outputs is not None:
            output = task.spec.trace.process_outputs(output)
        show_stream(run, output)
        return run.on_chain_end(output)

    # -- what is called -------------------------------------------------------

    def node(self, call: Call, task: Task, context: TaskContext) -> Call:
        """Make the parts of a runnable that is a node runs below the node's."""
        action = task.spec.action
        if context.local is None or action is None or action.graph is not None:
            return call
        if isinstance(action.target, Runnable):
            shown = PartRuns(parts_of(action), context)
            call.call, call.acall = shown.blocking, shown.awaited
            call.kwargs = {}
        return call

    def branch(self, call: Call, task: Task, context: TaskContext, index: int) -> Call:
        """Make the call of a path function a run of its own below its node's."""
        path = task.spec.branches[index].path.target
        if context.local is None or hasattr(path, "invoke"):
            return call  # a runnable tells of itself, or was asked not to
        first = 1 + len(parts_of(task.spec.action))
        tag = f"seq:step:{first + len(task.spec.edges) + index + 1}"
        shown = BranchRun(call, context, tag)
        if call.call is not None:
            call.call = shown.blocking
            call.brief = False  # those who listen may take their time
        if call.acall is not None:
            call.acall = shown.awaited
        return call


class BranchRun:
    """One call of a path function, told of as a run."""

    def __init__(self, call: Call, context: TaskContext, tag: str) -> None:
        self.name = call.name
        self.call, self.acall = call.call, call.acall
        self.context = context
        self.tag = tag

    def blocking(self, view: Any, **injected: Any) -> Any:
        """Call it; in an async run the listeners are told from this thread."""
        assert self.call is not None
        parent = self.context.local.run
        parent = parent.get_sync() if hasattr(parent, "get_sync") else parent
        run = child(parent, self.tag).on_chain_start(None, view, name=self.name)
        try:
            with self.below(run):
                answer = self.call(view, **injected)
        except BaseException as error:
            run.on_chain_error(error)
            raise
        run.on_chain_end(answer)
        return answer

    async def awaited(self, view: Any, **injected: Any) -> Any:
        """Async twin of `blocking`."""
        assert self.acall is not None
        manager = child(self.context.local.run, self.tag)
        run = await manager.on_chain_start(None, view, name=self.name)
        try:
            with self.below(run):
                answer = await cast("Awaitable[Any]", self.acall(view, **injected))
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(answer)
        return answer

    @contextmanager
    def below(self, run: Any) -> Iterator[None]:
        """Let what is called meanwhile belong to the path function's run."""
        config = self.context.config
        before = config.get("callbacks")
        config["callbacks"] = run.get_child()
        try:
            yield
        finally:
            config["callbacks"] = before


def child(run: Any, tag: str) -> Any:
    """A manager for what runs below a run; its own tag comes first."""
    manager = run.get_child()
    manager.tags.insert(0, tag)
    return manager


def told(task: Task) -> bool:
    """Whether traces show a task: the entry only where it decides something.

    A step is part of its node, and of a call inside a node they show what it calls.
    """
    if isinstance(task, Child):
        return not task.spec.hidden and task.caller.traced is not None
    return not task.spec.hidden or bool(task.spec.branches)


def facts(task: Task) -> dict[str, Any]:
    """What traces say of a task."""
    return {
        "langgraph_step": task.origin.step,
        "langgraph_node": task.name,
        "langgraph_triggers": task.triggers,
        "langgraph_path": task.path,
        "langgraph_checkpoint_ns": task.ns,
    }


def spoil(task: Task, error: BaseException) -> None:
    """A listener that raises on purpose fails what it listens to."""
    if task.error is None:
        task.error, task.writes, task.halted = error, [], False
