"""One run as spans: the run, its supersteps, their tasks and attempts.

A run is a program that yields commands and is told what came of them, so that
what is worth telling of it can be read off as these pass. Only an attempt is
told where it happens, in the thread or asyncio task that runs the node: its
span becomes the current one there, so that whatever the node's code opens,
a graph it calls included, hangs under it. Everywhere else parents are named:
nothing becomes current in the code of whoever calls the graph.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextvars import Context as Variables
from itertools import chain
from time import perf_counter, time_ns
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from towpath.call.scope import RunScope, TaskContext
from towpath.integrations.otel.ends import (
    CANCELLED,
    DONE,
    End,
    ending,
    show,
    task_end,
    text,
)
from towpath.integrations.otel.guard import harmless
from towpath.integrations.otel.names import (
    AGENT,
    ATTEMPT,
    CONVERSATION,
    INPUT,
    INTERRUPT,
    INTERRUPT_ID,
    INTERRUPT_VALUE,
    INVOKE_AGENT,
    NAMESPACE,
    OPERATION,
    OUTPUT,
    RESUMED,
    STEP,
    STEP_CACHED,
    STEP_TASKS,
    TASK,
    TASK_ID,
)
from towpath.integrations.otel.storage import Commit, ToldSaver, Work
from towpath.integrations.otel.telemetry import Telemetry
from towpath.kernel.commands import (
    Cancelled,
    Expired,
    Fetch,
    Finish,
    Fork,
    Launch,
    Persist,
    Program,
    Recall,
    Record,
    Wait,
    overheard,
)
from towpath.kernel.run import Outcome
from towpath.kernel.settle import timeout_error
from towpath.kernel.start import by_task
from towpath.step.children import Child
from towpath.step.interrupts import open_questions
from towpath.step.tasks import Task
from towpath.types import Command, Interrupt

TRACEPARENT: Final = "traceparent"
"""The key of a checkpoint's metadata that names the run which stored it."""
W3C: Final = TraceContextTextMapPropagator()
STORING: Final = (Persist, Record, Fetch, Fork, Finish)


class StepSpan:
    """A superstep that goes on."""

    __slots__ = ("began", "cached", "context", "number", "span", "tasks")

    def __init__(self, number: int, span: Span, context: Context) -> None:
        self.number = number
        self.span = span
        self.context = context
        self.began = perf_counter()
        self.cached = 0
        self.tasks: dict[str, TaskSpan] = {}


class TaskSpan:
    """A task that was launched. Whether an attempt was its last is seen later."""

    __slots__ = ("context", "end", "end_ns", "queued", "span")

    def __init__(self, span: Span, context: Context) -> None:
        self.span = span
        self.context = context
        self.queued = False
        self.end = CANCELLED
        self.end_ns: int | None = None


class AttemptSpan:
    """An attempt that goes on."""

    __slots__ = ("began", "span", "task")

    def __init__(self, span: Span, task: TaskSpan) -> None:
        self.span = span
        self.task = task
        self.began = perf_counter()


class RunWatch:
    """Tells OpenTelemetry what one run does; hands on to another tracing bridge."""

    def __init__(self, telemetry: Telemetry, scope: RunScope, bridge: Any) -> None:
        self.telemetry = telemetry
        self.req = scope.req  # not the scope, which has this: that would be a cycle
        self.bridge = bridge
        self.tap = None if bridge is None else bridge.tap
        self.labels = {AGENT: scope.plan.name}
        self.span: Span = INVALID_SPAN
        self.context: Context | None = None
        self.began = 0.0
        self.step: StepSpan | None = None
        self.attempts: dict[Task, AttemptSpan] = {}
        self.commits: list[Commit] = []
        self.stopped: BaseException | None = None
        self.ended = False
        self.open: Mapping[str, Collection[str]] = {}
        """The questions that tasks of the thread wait for: their ids, by task id."""
        self.begun = self.copied = False
        """Whether a checkpoint was read; whether it is that of a copied thread."""
        self.shown: set[int] = set()
        """The ids of errors that an attempt has shown."""

    # -- the program ----------------------------------------------------------

    def watched(self, program: Program[Outcome], scope: RunScope) -> Program[Outcome]:
        """The same program, of which is told what passes."""
        self.begin(scope.base)
        try:
            outcome = yield from overheard(program, self.before, self.after)
        except BaseException as error:
            self.fail(error)
            raise
        self.finish(outcome)
        return outcome

    @harmless
    def begin(self, variables: Variables | None) -> None:
        """The run starts: under whatever is current for its caller.

        `variables` are those that tasks start from.
        """
        req, telemetry, name = self.req, self.telemetry, self.labels[AGENT]
        self.began = perf_counter()
        telemetry.meters.active.add(1, self.labels)
        facts: dict[str, Any] = {OPERATION: INVOKE_AGENT, **self.labels}
        if req.thread_id is not None:
            facts[CONVERSATION] = req.thread_id
        if req.ns:
            facts[NAMESPACE] = req.ns
        if telemetry.record_content:
            facts[INPUT] = text(req.input)
        self.span = telemetry.tracer.start_span(
            f"{INVOKE_AGENT} {name}", attributes=facts
        )
        self.context = trace.set_span_in_context(self.span)
        if variables is not None:
            variables.run(contexts.attach, self.context)
            hear_models(telemetry, variables)
        if req.saver is not None and not req.nested:
            carrier: dict[str, str] = {}
            W3C.inject(carrier, self.context)
            if TRACEPARENT in carrier:
                own = {TRACEPARENT: carrier[TRACEPARENT]}
                req.metadata = {**req.metadata, **own}

    @harmless
    def before(self, command: Any) -> None:
        """The program wants something."""
        step, state = self.step, self.req.state
        if step is not None and state is not None and state.step != step.number:
            self.step_over(DONE)
        if isinstance(command, Launch):
            self.launched(command.tasks)
        elif isinstance(command, Recall):
            self.current_step()
        elif isinstance(command, STORING):
            self.stored(command)

    @harmless
    def after(self, command: Any, reply: Any) -> None:
        """A command was obeyed."""
        if isinstance(command, Launch | Wait):
            for event in reply:
                if isinstance(event, Task):
                    self.returned(event)
                elif isinstance(event, Expired):
                    self.expired(event)
                elif isinstance(event, Cancelled):
                    self.stopped = event.error
        elif isinstance(command, Recall) and self.step is not None:
            self.step.cached += len(reply)
        elif isinstance(command, Fetch):
            self.fetched(reply)
        elif isinstance(command, Fork):
            self.copied = True
            self.span.set_attribute(CONVERSATION, reply)

    def stored(self, command: Any) -> None:
        """A saver is to do something: under a span, a commit under one of its own."""
        around = self.context if self.step is None else self.step.context
        if around is None or (isinstance(command, Persist) and command.how == "hold"):
            return
        if not isinstance(command, Persist):
            work = Work(around)
        else:
            work = Commit(self.telemetry, command, around, self.labels)
            self.commits = [each for each in self.commits if not each.over]
            self.commits.append(work)
            if command.metadata["source"] != "loop":
                self.now_open({})  # what waited on the thread is given up
        command.saver = ToldSaver(command.saver, work)

    def fetched(self, saved: Any) -> None:
        """A checkpoint was read; the last one read has what is open on the thread."""
        req = self.req
        if saved is None or req.nested:
            return
        if not self.copied:
            asked = open_questions(by_task(saved.pending_writes or ()))
            self.open = {task: ids_of(several) for task, several in asked.items()}
        again, self.begun = self.begun, True
        if again or not (req.input is None or isinstance(req.input, Command)):
            return
        parked = trace.get_current_span(W3C.extract(saved.metadata, context=Context()))
        if parked.get_span_context().is_valid:
            self.span.add_link(parked.get_span_context(), {RESUMED: True})

    @harmless
    def finish(self, outcome: Outcome) -> None:
        """The run has come to its end, or it waits."""
        asked = outcome.interrupts
        self.step_over(End("interrupt") if outcome.status == "interrupt" else DONE)
        self.tell_questions(self.span, asked)
        if self.telemetry.record_content:
            self.span.set_attribute(OUTPUT, text(outcome.value))
        self.now_open({"": ids_of(asked)})
        self.over(End(outcome.status))

    @harmless
    def fail(self, error: BaseException) -> None:
        """The run ends by an error, or because its caller wants no more of it."""
        end = ending(error, self.stopped)
        self.step_over(end)
        if end.error is not None and id(end.error) not in self.shown:
            self.tell_error(self.span, end.error)
        self.over(end)

    def over(self, end: End) -> None:
        """End the run's span, and what was left of it."""
        self.ended = True
        meters = self.telemetry.meters
        for commit in self.commits:
            commit.end(end.error)
        show(self.span, end, details=self.telemetry.record_errors)
        self.span.end()
        meters.active.add(-1, self.labels)
        meters.runs.record(perf_counter() - self.began, {**self.labels, **end.facts})

    # -- questions ------------------------------------------------------------

    def returned(self, task: Task) -> None:
        """A task came back: it has its answers, or waits for others."""
        if task.halted or (task.error is None and task.id in self.open):
            self.now_open({**self.open, task.id: ids_of(task.interrupts)})

    def now_open(self, asked: Mapping[str, Collection[str]]) -> None:
        """Count how many questions more wait now; a task's are its parent's, too."""
        if self.req.saver is None or self.req.nested:
            return  # nobody can answer them, or they are those of the run around
        before, self.open = set(chain(*self.open.values())), asked
        more = len(set(chain(*asked.values()))) - len(before)
        if more:
            self.telemetry.meters.waiting.add(more, self.labels)

    # -- supersteps -----------------------------------------------------------

    def current_step(self) -> StepSpan:
        """The superstep that goes on, which may only have begun."""
        if self.step is None:
            state = self.req.state
            assert state is not None
            span = self.telemetry.tracer.start_span(
                "superstep", self.context, attributes={**self.labels, STEP: state.step}
            )
            around = trace.set_span_in_context(span, self.context)
            self.step = StepSpan(state.step, span, around)
        return self.step

    def step_over(self, end: End) -> None:
        """A superstep has ended, and with it what is known of its tasks."""
        step, self.step, state = self.step, None, self.req.state
        if step is None:
            return
        if state is not None and state.step != step.number:
            end = DONE  # what ends the run came after it
            self.now_open({})
        for task in list(self.attempts):
            self.end_attempt(task, CANCELLED)
        for entry in list(step.tasks.values()):  # a thread may still add to them
            self.started(entry)
            show(entry.span, entry.end, details=self.telemetry.record_errors)
            entry.span.end(entry.end_ns)
        step.span.set_attribute(STEP_TASKS, len(step.tasks) + step.cached)
        if step.cached:
            step.span.set_attribute(STEP_CACHED, step.cached)
        show(step.span, end, details=self.telemetry.record_errors)
        step.span.end()
        labels = {**self.labels, **end.facts}
        self.telemetry.meters.steps.record(perf_counter() - step.began, labels)

    # -- tasks ----------------------------------------------------------------

    def launched(self, tasks: Sequence[Task]) -> None:
        """Tasks are to be started, for the first time or again."""
        several = [task for task in tasks if is_told(task)]
        if not several:
            return
        for task in several:
            self.task_span(task).queued = True
        self.telemetry.meters.queued.add(len(several), self.labels)

    def task_span(self, task: Task) -> TaskSpan:
        """What is kept of a task, made when it is first heard of."""
        step = self.current_step()
        entry = step.tasks.get(task.id)
        if entry is None:
            around = step.context
            if isinstance(task, Child):
                around = task.ctx.run(contexts.get_current)
            facts: dict[str, str | int] = {
                TASK: task.name,
                TASK_ID: task.id,
                STEP: step.number,
            }
            span = self.telemetry.tracer.start_span(
                f"task {task.name}", around, attributes={**self.labels, **facts}
            )
            entry = TaskSpan(span, trace.set_span_in_context(span, around))
            step.tasks[task.id] = entry
        return entry

    def started(self, entry: TaskSpan) -> None:
        """A task waits no more."""
        if entry.queued:
            entry.queued = False
            self.telemetry.meters.queued.add(-1, self.labels)

    def expired(self, event: Expired) -> None:
        """A task's time limit has passed: its attempt is over, whatever it does."""
        if event.task is not None:
            error = timeout_error(event.task, event)
            self.end_attempt(event.task, End("failed", error))

    # -- attempts -------------------------------------------------------------

    @harmless
    def begin_attempt(self, task: Task, variables: Variables) -> None:
        """An attempt starts, here; `variables` are those its node runs with."""
        if not is_told(task) or self.is_late(task):
            return
        entry = self.task_span(task)
        self.started(entry)
        facts: dict[str, str | int] = {TASK: task.name, ATTEMPT: task.attempt}
        if self.telemetry.record_content:
            facts[INPUT] = text(task.input)
        span = self.telemetry.tracer.start_span(
            f"attempt {task.name}",
            entry.context,
            attributes={**self.labels, **facts},
        )
        self.attempts[task] = AttemptSpan(span, entry)
        variables.run(contexts.attach, trace.set_span_in_context(span, entry.context))

    def is_late(self, task: Task) -> bool:
        """Whether a task's step is over: a thread that was given up goes on."""
        state = self.req.state
        return self.ended or state is None or state.step != task.origin.step

    @harmless
    def leave_attempt(self, task: Task, context: TaskContext) -> None:
        """An attempt has ended; one that was given up ended before."""
        attempt = self.attempts.get(task)
        if attempt is None:
            return
        if task.halted:
            self.tell_questions(attempt.span, task.interrupts)
        elif self.telemetry.record_content and task.error is None:
            attempt.span.set_attribute(OUTPUT, text(context.output))
        self.end_attempt(task, task_end(task))

    def end_attempt(self, task: Task, end: End) -> None:
        attempt = self.attempts.pop(task, None)
        if attempt is None:
            return
        if end.error is not None:
            self.shown.add(id(end.error))
            self.tell_error(attempt.span, end.error)
        attempt.task.end, attempt.task.end_ns = end, time_ns()
        show(attempt.span, end, details=self.telemetry.record_errors)
        attempt.span.end(attempt.task.end_ns)
        self.telemetry.meters.attempts.record(
            perf_counter() - attempt.began,
            {**self.labels, TASK: task.name, **end.facts},
        )

    @harmless
    def tell_error(self, span: Span, error: BaseException) -> None:
        if self.telemetry.record_errors:
            span.record_exception(error)

    def tell_questions(self, span: Span, asked: Sequence[Interrupt[Any]]) -> None:
        """Tell which answers something waits for; what is asked only if it may be."""
        for question in asked:
            facts = {INTERRUPT_ID: question.id}
            if self.telemetry.record_content:
                facts[INTERRUPT_VALUE] = text(question.value)
            span.add_event(INTERRUPT, facts)

    # -- what a tracing bridge offers -----------------------------------------

    def drive(
        self, steps: Generator[Any, None, Outcome]
    ) -> Generator[Any, None, Outcome]:
        return steps if self.bridge is None else self.bridge.drive(steps)

    def adrive(
        self, steps: AsyncGenerator[Any, None], outcome: list[Outcome]
    ) -> AsyncGenerator[Any, None]:
        return steps if self.bridge is None else self.bridge.adrive(steps, outcome)

    def enter(self, task: Task, context: TaskContext, variables: Variables) -> None:
        self.begin_attempt(task, variables)
        if self.bridge is not None:
            self.bridge.enter(task, context, variables)

    async def aenter(
        self, task: Task, context: TaskContext, variables: Variables
    ) -> None:
        self.begin_attempt(task, variables)
        if self.bridge is not None:
            await self.bridge.aenter(task, context, variables)

    def leave(self, task: Task, context: TaskContext) -> None:
        if self.bridge is not None:
            self.bridge.leave(task, context)
        self.leave_attempt(task, context)

    async def aleave(self, task: Task, context: TaskContext) -> None:
        if self.bridge is not None:
            await self.bridge.aleave(task, context)
        self.leave_attempt(task, context)

    def node(self, call: Any, task: Task, context: TaskContext) -> Any:
        return call if self.bridge is None else self.bridge.node(call, task, context)

    def branch(self, call: Any, task: Task, context: TaskContext, index: int) -> Any:
        if self.bridge is None:
            return call
        return self.bridge.branch(call, task, context, index)


def hear_models(telemetry: Telemetry, variables: Variables) -> None:
    """Hear langchain's models and tools there, if the program has loaded that."""
    if telemetry.models is None and "langchain_core" in sys.modules:
        from towpath.integrations.otel.models import ModelSpans

        telemetry.models = ModelSpans(telemetry)
    if telemetry.models is not None:
        variables.run(telemetry.models.listen)


def ids_of(asked: Sequence[Interrupt[Any]]) -> frozenset[str]:
    return frozenset(question.id for question in asked)


def is_told(task: Task) -> bool:
    """Whether a task runs code of the user's: the entry need not."""
    return task.spec.action is not None or bool(task.spec.branches)
