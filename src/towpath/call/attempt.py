"""One attempt of one node, as a generator of calls.

`attempt` yields each call into user code and is sent the result; it turns
whatever happens into the task's outcome. `run_blocking` makes the calls in
this thread, `run_async` awaits them in the running loop. Both enter the same
copied context, so that `interrupt()` and its kind work alike in either.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from random import random
from time import monotonic
from typing import Any, Final

from towpath.call.mutation import Watch, check_assigned, check_lengths
from towpath.call.notes import annotate
from towpath.call.scope import RunScope, TaskContext
from towpath.constants import END, MISSING, PULL
from towpath.context import current
from towpath.errors import (
    ColourError,
    GraphBubbleUp,
    GraphInterrupt,
    NodeCancelledError,
    ParentCommand,
)
from towpath.plan import Action, BranchSpec, Scratchpad, View, action_of
from towpath.step.children import Child
from towpath.step.prepare import read
from towpath.step.project import update_of
from towpath.step.tasks import Task, Write
from towpath.step.writes import (
    branch_writes,
    keyed,
    looked_ahead,
    merged,
    overlaid,
    updates_of,
)
from towpath.types import Command, Send

Hop = Callable[[Callable[[], Any]], Awaitable[Any]]
EXHAUSTED: Final = object()
# Results of these types are updates; only others might be runnables themselves.
PLAIN: Final = frozenset({dict, type(None), list, tuple, str, int, bool, Command})


class Call:
    """One call into user code: which action, with what, and with whose variables.

    `variables` are the contextvars it is made with, if not those of the attempt.
    """

    __slots__ = ("acall", "args", "brief", "call", "kwargs", "name", "variables")

    def __init__(
        self, action: Action, arg: Any, context: TaskContext, *, brief: bool = False
    ) -> None:
        self.name = action.name
        self.brief = brief
        self.call = action.call
        self.acall = action.acall
        self.args = (arg,)
        self.kwargs: dict[str, Any] = {}
        self.variables: Context | None = None
        if action.inject:
            self.kwargs = {n: context.injected(what) for n, what in action.inject}


class Next:
    """The next item of a generator node; `EXHAUSTED` when there is none."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items


Attempt = Generator[Call | Next, Any, None]


def attempt(scope: RunScope, task: Task, context: TaskContext) -> Attempt:
    """Run the task's node and its branches; leave the outcome on the task."""
    spec = task.spec
    try:
        if task.error is not None:
            raise task.error  # noqa: TRY301 - reading the input failed
        given = task.output is not MISSING
        output = task.output if given else (yield from node_call(scope, task, context))
        context.output = output
        if spec.action is not None and spec.action.yields and not given:
            context.output = writes = yield from drain(scope, task, output)
        else:
            writes = node_writes(scope, task, context, output)
        task.writes = writes  # a branch that asks a question leaves it so
        own = tuple(writes)
        for index, branch in enumerate(spec.branches):
            view = branch_view(scope, task, own, branch.view)
            call = Call(branch.path, view, context, brief=branch.brief)
            if context.apart is not None:
                call.variables = context.apart.copy()
            if scope.trace is not None:
                call = scope.trace.branch(call, task, context, index)
            answer = yield call
            writes.extend(branch_writes(scope.plan, spec, branch, answer))
        writes.extend(spec.edges)
    except BaseException as error:
        caught(task, context, error)
    if context.question is not None or context.refused is not None:
        swallowed(task, context)


def simple_attempt(scope: RunScope, task: Task) -> Task:
    """The same for a blocking function whose branches are such as well.

    Most nodes are, and most of what a superstep costs would otherwise be the
    generators of the general form.
    """
    spec = task.spec
    context = TaskContext(scope, task)
    ctx = entered(scope, context)
    try:
        if task.error is not None:
            raise task.error  # noqa: TRY301 - reading the input failed
        output = task.input
        if spec.action is not None:
            try:
                call = spec.call
                if spec.action.inject:
                    call = filled(spec.action, call, context)
                output = ctx.run(call, output)
            except ParentCommand as error:
                output = for_here(scope, error)
            if type(output) not in PLAIN:
                refuse_async(output, task.name)
                if is_runnable(output):
                    output = ctx.run(output.invoke, task.input)
        task.writes = writes = node_writes(scope, task, context, output)
        if spec.branches:
            own = tuple(writes)
            for branch in spec.branches:
                view = branch_view(scope, task, own, branch.view)
                path: Any = branch.path.call
                if branch.path.inject:
                    path = filled(branch.path, path, context)
                # A brief one looks at no contextvars.
                apart = ctx if branch.brief else entered(scope, context)
                answer = apart.run(path, view)
                writes.extend(branch_writes(scope.plan, spec, branch, answer))
        writes.extend(spec.edges)
    except BaseException as error:
        caught(task, context, error)
    if context.question is not None or context.refused is not None:
        swallowed(task, context)
    return task


def filled(action: Any, call: Any, context: TaskContext) -> Any:
    """One of the action's callables with what is injected filled in."""
    return partial(call, **{n: context.injected(what) for n, what in action.inject})


def caught(task: Task, context: TaskContext, error: BaseException) -> None:
    """What was raised is the outcome: a question, or a failure."""
    if isinstance(error, GraphInterrupt):
        question = context.question or error
        task.interrupts = tuple(question.args[0])
        task.halted = True
        context.question = None
    elif isinstance(error, asyncio.CancelledError) and not in_loop():
        own = NodeCancelledError(task.name)
        own.__cause__ = error
        fail(context, own)
    else:
        fail(context, error)


def in_loop() -> bool:
    """Whether an event loop runs here, which could cancel what it runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def swallowed(task: Task, context: TaskContext) -> None:
    """The node went on after it had asked; its question stands all the same."""
    if context.refused is not None:
        if task.error is not context.refused:
            fail(context, context.refused)
        return
    assert context.question is not None
    context.warn_swallowed()
    task.interrupts = tuple(context.question.args[0])
    task.halted = True
    task.error, task.writes = None, []


def node_call(
    scope: RunScope, task: Task, context: TaskContext
) -> Generator[Call | Next, Any, Any]:
    """Call the node and return what it gave; the entry gives its input."""
    action = task.spec.action
    if action is None:
        return task.input
    watch = Watch(scope.plan, task) if scope.debug else None
    call = Call(action, task.input, context)
    if scope.trace is not None:
        call = scope.trace.node(call, task, context)
    try:
        output = yield call
    except ParentCommand as error:
        if isinstance(task, Child):
            raise
        output = for_here(scope, error)
    if isinstance(task, Child):
        return output  # whatever it is: it goes back to the caller
    if type(output) not in PLAIN and is_runnable(output):
        output = yield Call(action_of(output, task.name), task.input, context)
    if watch is not None:
        watch.check(output)
    return output


def node_writes(
    scope: RunScope, task: Task, context: TaskContext, output: Any
) -> list[Write]:
    """What the node's result and what it pushed on the way write."""
    plan, state = scope.plan, scope.req.state
    if state is not None and state.containers and task.path[0] == PULL:
        check_lengths(state, task, output)
    if output is None and state is not None and task.path[0] == PULL:
        check_assigned(plan, state, task)
    writes = updates_of(plan, task.spec, output)
    if context.pushed is not None:
        writes[:0] = keyed(plan, task.spec, context.pushed)
    return writes


def drain(scope: RunScope, task: Task, items: Any) -> Generator[Next, Any, list[Write]]:
    """Take what a generator node yields: told at once, folded at the end."""
    writes: list[Write] = []
    while True:
        item = yield Next(items)
        if item is EXHAUSTED:
            return merged(scope.plan, writes)
        part = updates_of(scope.plan, task.spec, item)
        writes.extend(part)
        if "updates" in scope.heard and not task.abandoned:
            update = update_of(part, scope.req.keys)
            scope.emit((scope.req.path, "updates", {task.name: update}))


def branch_view(
    scope: RunScope, task: Task, writes: tuple[Write, ...], view: View
) -> Any:
    """What a path function sees: the step's state with the node's writes in it."""
    plan, state = scope.plan, scope.req.state
    assert state is not None
    ahead = looked_ahead(plan, state, writes)
    values = overlaid(state.values, ahead)
    pad = Scratchpad(task.origin.step, scope.req.stop) if plan.managed else None
    containers = state.containers
    if containers:
        containers = containers.difference(ahead)
    return read(plan, values, view, pad, containers, mine=True)


def for_here(scope: RunScope, error: ParentCommand) -> Command[Any]:
    """Take a subgraph's command for its parent, or pass it further up.

    It is for the nearest graph above that has the nodes it goes to.
    """
    command: Command[Any] = error.args[0]
    goto = command.goto
    targets = [goto] if isinstance(goto, str | Send) else list(goto)
    names = [t.node if isinstance(t, Send) else t for t in targets]
    nodes = scope.plan.nodes
    if scope.req.nested and any(n not in nodes and n != END for n in names):
        raise error
    return Command(update=command.update, goto=command.goto)


def is_runnable(output: Any) -> bool:
    return (
        not isinstance(output, type)
        and hasattr(output, "invoke")
        and hasattr(output, "ainvoke")
    )


def fail(context: TaskContext, error: BaseException) -> None:
    """Keep an error as the task's outcome, and say on it where it came from."""
    give_up(context.task, error)
    if not isinstance(error, GraphBubbleUp):
        # Users' exceptions may refuse notes; that must not hide them.
        with suppress(Exception):
            annotate(context, error)


def give_up(task: Task, error: BaseException) -> None:
    """Let an error be a task's outcome."""
    task.error = error
    task.writes = []
    task.failed_at = monotonic()
    task.jitter = random()  # noqa: S311 - spreads retries, guards nothing


def entered(scope: RunScope, context: TaskContext) -> Context:
    """A context of this attempt's own, with the task set in it."""
    base = context.task.ctx or scope.base
    ctx = copy_context() if base is None else base.copy()
    ctx.run(current.set, context)
    return ctx


def run_blocking(scope: RunScope, task: Task) -> Task:
    """Run an attempt in this thread."""
    if task.spec.simple and scope.bare and task.output is MISSING:
        return simple_attempt(scope, task)
    context = TaskContext(scope, task)
    ctx = entered(scope, context)
    if scope.trace is not None:
        scope.trace.enter(task, context, ctx)
    context.set_apart(ctx)
    steps = attempt(scope, task, context)
    try:
        call = next(steps)
        while True:
            try:
                value = blocking(call, ctx)
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration:
        pass
    if scope.trace is not None:
        scope.trace.leave(task, context)
    return task


def blocking(call: Call | Next, ctx: Context) -> Any:
    """Make one call, or take one item, in this thread."""
    if isinstance(call, Call):
        if call.call is None:
            raise wrong_colour(call.name)
        if call.variables is not None:
            ctx = call.variables
        value = ctx.run(call.call, *call.args, **call.kwargs)
        if type(value) not in PLAIN:
            refuse_async(value, call.name)
        return value
    return ctx.run(next_item, call.items)


def refuse_async(value: Any, name: str) -> None:
    """A blocking run cannot await what a function returned."""
    if isinstance(value, Coroutine):
        value.close()
        raise wrong_colour(name)


def next_item(items: Any) -> Any:
    """The next update of a generator; what it returns counts as the last."""
    try:
        return next(items)
    except StopIteration as stop:
        # An exhausted generator asked once more returns None, which ends it.
        return EXHAUSTED if stop.value is None else stop.value


def wrong_colour(name: str) -> ColourError:
    return ColourError(
        f"`{name}` is async, and this is a blocking run",
        hint="use ainvoke, astream or another async method of the graph",
    )


async def run_async(scope: RunScope, task: Task, hop: Hop) -> Task:
    """Run an attempt in the running loop; blocking calls go through `hop`."""
    context = TaskContext(scope, task)
    ctx = entered(scope, context)
    if scope.trace is not None:
        await scope.trace.aenter(task, context, ctx)
    context.set_apart(ctx)
    steps = attempt(scope, task, context)
    try:
        call = next(steps)
        while True:
            try:
                value = await awaiting(call, ctx, hop)
            except BaseException as error:
                call = steps.throw(cancelled_by_node(scope, task, error))
            else:
                call = steps.send(value)
    except StopIteration:
        pass
    if task.spec.apart:
        await absorb_cancellation(task)
    if scope.trace is not None:
        await scope.trace.aleave(task, context)
    return task


def is_direct(scope: RunScope, task: Task) -> bool:
    """Whether `direct_attempt` is the whole of this attempt."""
    return task.spec.direct and scope.bare and task.output is MISSING


async def direct_attempt(
    scope: RunScope, task: Task, context: TaskContext, ctx: Context | None = None
) -> Task:
    """The same for an async function whose branches are such as well.

    It is awaited in `ctx`; without one, the asyncio task that runs this has the
    attempt's own context.
    """
    spec = task.spec
    try:
        if task.error is not None:
            raise task.error  # noqa: TRY301 - reading the input failed
        try:
            call = spec.acall
            if spec.action.inject:  # type: ignore[union-attr]  # it has one
                call = filled(spec.action, call, context)
            if ctx is None:
                output = await call(task.input)
            else:
                output = await in_context(ctx, ctx.run(call, task.input))
        except ParentCommand as error:
            output = for_here(scope, error)
        if type(output) not in PLAIN and is_runnable(output):
            inner = copy_context() if ctx is None else ctx.copy()
            output = await in_context(inner, inner.run(output.ainvoke, task.input))
        task.writes = writes = node_writes(scope, task, context, output)
        if spec.branches:
            own = tuple(writes)
            for branch in spec.branches:
                view = branch_view(scope, task, own, branch.view)
                path = path_in_loop(branch, context)
                if branch.brief:  # which looks at no contextvars
                    answer = path(view) if ctx is None else ctx.run(path, view)
                else:
                    apart = entered(scope, context)
                    answer = await in_context(apart, apart.run(path, view))
                writes.extend(branch_writes(scope.plan, spec, branch, answer))
        writes.extend(spec.edges)
    except BaseException as error:
        caught(task, context, cancelled_by_node(scope, task, error))
    if context.question is not None or context.refused is not None:
        swallowed(task, context)
    return task


def path_in_loop(branch: BranchSpec, context: TaskContext) -> Any:
    """The path function as an event loop calls it."""
    path = branch.path.call if branch.brief else branch.path.acall
    return filled(branch.path, path, context) if branch.path.inject else path


def cancelled_by_node(
    scope: RunScope, task: Task, error: BaseException
) -> BaseException:
    """Tell a node that cancelled itself from a run that is being cancelled.

    Nobody but the driver cancels the asyncio task that a node has of its own.
    """
    if isinstance(error, asyncio.CancelledError):
        running = asyncio.current_task()
        if running is None or task.abandoned or task.stopped:
            return error
        if not running.cancelling() or is_nodes_own(scope, running):
            return by_itself(task, error)
    return error


def is_nodes_own(scope: RunScope, running: asyncio.Task[Any]) -> bool:
    """Whether this is a node's own asyncio task, in a run that is not cancelled."""
    own = None if scope.driver is None else scope.driver.own
    return own is not None and own is not running and not own.cancelling()


def by_itself(task: Task, error: BaseException) -> NodeCancelledError:
    """What is raised for a node that cancelled itself, or was cancelled by its own."""
    own = NodeCancelledError(task.name)
    own.__cause__ = error
    return own


async def absorb_cancellation(task: Task) -> None:
    """Let a node that cancelled its asyncio task at its end have cancelled itself."""
    try:
        await asyncio.sleep(0)  # what has not arrived yet does so here
    except asyncio.CancelledError as error:
        if not task.stopped and task.error is None and not task.halted:
            give_up(task, by_itself(task, error))


async def awaiting(call: Call | Next, ctx: Context, hop: Hop) -> Any:
    """Make one call, or take one item: await what is async, hop for the rest."""
    if isinstance(call, Next):
        if hasattr(call.items, "__anext__"):
            return await in_context(ctx, next_async(call.items))
        return await hop(lambda: ctx.run(next_item, call.items))
    if call.variables is not None:
        ctx = call.variables
    if call.acall is not None:
        value = ctx.run(call.acall, *call.args, **call.kwargs)
    elif call.brief:
        return ctx.run(call.call, *call.args, **call.kwargs)  # type: ignore[arg-type]
    else:
        blocking_call, args, kwargs = call.call, call.args, call.kwargs
        assert blocking_call is not None
        value = await hop(lambda: ctx.run(blocking_call, *args, **kwargs))
    if type(value) not in PLAIN and hasattr(value, "__await__"):
        return await in_context(ctx, value)
    return value


async def next_async(items: Any) -> Any:
    try:
        return await items.__anext__()
    except StopAsyncIteration:
        return EXHAUSTED


@types.coroutine
def in_context(ctx: Context, awaitable: Any) -> Generator[Any, Any, Any]:
    """Await something with every step of it run in `ctx`.

    A task of its own would cost five microseconds; this costs a context entry
    per suspension.
    """
    steps = awaitable.__await__()
    send = steps.send if hasattr(steps, "send") else lambda _: next(steps)
    try:
        waited = ctx.run(send, None)
        while True:
            try:
                value = yield waited
            except BaseException as error:
                waited = ctx.run(steps.throw, error)
            else:
                waited = ctx.run(send, value)
    except StopIteration as stop:
        return stop.value
