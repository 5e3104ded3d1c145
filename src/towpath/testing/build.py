"""Build the graph that a description stands for, with any library's names.

Nodes log what they saw of the state when they ran, so that a wrong order, a
lost write or a stale read shows up in the values themselves.
"""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, get_type_hints

from typing_extensions import TypedDict

from towpath.testing import normal
from towpath.testing.api import Api
from towpath.testing.describe import (
    Act,
    Ask,
    Branch,
    Emit,
    Fail,
    Fan,
    Graph,
    Hop,
    Node,
    Replace,
    StateKind,
    Write,
)

LOG_LENGTH_MAX = 60
SEEN = ("total", "best", "note", "item")
RARE = ("once", "hidden", "delta", "left")
_ERRORS: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "RuntimeError": RuntimeError,
}


def append(left: list[str], right: list[str]) -> list[str]:
    """Append to a list up to a length: the reducer of `log`.

    A child that shares the key returns what it was given and more, so that an
    unbounded log doubles with every visit.
    """
    return (left + right)[:LOG_LENGTH_MAX]


def merge(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Add `right` to a dict: the reducer of `tags`."""
    return {**left, **right}


def larger(left: int, right: int) -> int:
    """Keep the larger number: the reducer of `best`."""
    return max(left, right)


class TypedState(TypedDict, total=False):
    """The state of every described graph, as a TypedDict."""

    log: Annotated[list[str], append]
    total: Annotated[int, operator.add]
    best: Annotated[int, larger]
    tags: Annotated[dict[str, int], merge]
    note: str
    item: int


class PrivateState(TypedDict, total=False):
    """What a private node reads: a key that is no part of the state."""

    log: Annotated[list[str], append]
    total: Annotated[int, operator.add]
    secret: str


class NarrowState(TypedDict, total=False):
    """A part of the state, for narrow inputs and outputs."""

    log: Annotated[list[str], append]
    note: str


@dataclass
class DataState:
    """The state as a dataclass."""

    log: Annotated[list[str], append] = field(default_factory=list)
    total: Annotated[int, operator.add] = 0
    best: Annotated[int, larger] = 0
    tags: Annotated[dict[str, int], merge] = field(default_factory=dict)
    note: str = ""
    item: int = 0


@cache
def _model_state() -> type:
    from pydantic import create_model

    return create_model(
        "ModelState",
        log=(Annotated[list[str], append], []),
        total=(Annotated[int, operator.add], 0),
        best=(Annotated[int, larger], 0),
        tags=(Annotated[dict[str, int], merge], {}),
        note=(str, ""),
        item=(int, 0),
    )


def extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Append many writes at once: the reducer of `delta`."""
    return [*state, *(item for write in writes for item in write)][:LOG_LENGTH_MAX]


@cache
def _channel_state(api: Api) -> Any:
    """Make a state of channels that are named one by one, and managed values."""
    hints = {
        **get_type_hints(TypedState, include_extras=True),
        "once": Annotated[str, api.EphemeralValue],
        "hidden": Annotated[str, api.UntrackedValue],
        "delta": Annotated[list, api.DeltaChannel(extend, list, snapshot_frequency=3)],
        "left": api.RemainingSteps,
    }
    return TypedDict("ChannelState", hints, total=False)  # type: ignore[operator]


def state_type(api: Api, kind: StateKind) -> Any:
    """Return the state class of a kind."""
    match kind:
        case "pydantic":
            return _model_state()
        case "dataclass":
            return DataState
        case "channels":
            return _channel_state(api)
        case _:
            return TypedState


def read(state: Any, key: str) -> Any:
    """Read a key of a state of any kind, `None` when it is not there."""
    if isinstance(state, dict):
        return state.get(key)
    return getattr(state, key, None)


def seen(state: Any) -> str:
    """Return a short text that tells two states apart."""
    log, tags = read(state, "log") or [], read(state, "tags") or {}
    parts = [len(log), *(read(state, key) for key in SEEN)]
    rare = [f"{key}={read(state, key)}" for key in RARE if read(state, key) is not None]
    return "/".join(map(str, [*parts, ",".join(sorted(tags)), *rare]))


@dataclass
class Builder:
    """Builds graphs for one library and counts the calls of their nodes."""

    api: Api
    asynchronous: bool = False
    calls: Counter[str] = field(default_factory=Counter)

    def compile(self, graph: Graph, **options: object) -> Any:
        """Build and compile `graph`."""
        return self.api.compile(
            self.build(graph),
            interrupt_before=list(graph.pause_before) or None,
            interrupt_after=list(graph.pause_after) or None,
            **options,
        )

    def build(self, graph: Graph) -> Any:
        """Return the library's builder object for `graph`."""
        builder = self.api.StateGraph(
            state_type(self.api, graph.state),
            input_schema=NarrowState if graph.narrow_input else None,
            output_schema=NarrowState if graph.narrow_output else None,
        )
        for node in graph.nodes:
            self._add_node(builder, graph, node)
        for edge in graph.edges:
            source = edge.sources[0] if len(edge.sources) == 1 else list(edge.sources)
            builder.add_edge(source, edge.target)
        for branch in graph.branches:
            _add_branch(self.api, builder, branch)
        return builder

    def _add_node(self, builder: Any, graph: Graph, node: Node) -> None:
        builder.add_node(
            node.name,
            self._action(graph, node),
            defer=node.defer,
            retry_policy=_retry(self.api, node.attempts),
            error_handler=self._handler(node) if node.handled else None,
            input_schema=PrivateState if node.private else None,
        )

    def _action(self, graph: Graph, node: Node) -> Any:
        child = None
        if node.child is not None:
            child = self.compile(node.child, checkpointer=node.child.persist)
            if not node.calls_child:
                return child
        body = partial(self._body, node)
        make = _async_node if self.asynchronous else _sync_node
        hint = state_type(self.api, graph.state) if node.hints else Parameter.empty
        return _signed(make(body, child), hint, node)

    def _handler(self, node: Node) -> Callable[..., Any]:
        NodeError = self.api.NodeError  # noqa: N806

        def handle(state: Any, error: NodeError) -> Any:  # type: ignore[valid-type]
            cause = normal.error(error.error)[1]  # type: ignore[attr-defined]
            return {"log": [f"{node.name} failed: {cause} {seen(state)}"]}

        handle.__annotations__["error"] = NodeError
        return handle

    def _body(
        self, node: Node, state: Any, injected: dict[str, Any], returned: Any
    ) -> Any:
        self.calls[node.name] += 1
        update: dict[str, Any] = {"log": [f"{node.name}:{seen(state)}"]}
        if node.private:
            update["log"].append(f"secret={read(state, 'secret')}")
        if node.injected:
            extra = _describe_injected(node, injected[node.injected])
            update["log"].append(extra)
        if returned is not None:
            update["log"].append(f"child={len(read(returned, 'log') or [])}")
        for act in node.acts:
            self._perform(act, node, update)
        if node.hops:
            return self._command(node, update)
        if node.returns == "parts":
            command = self.api.Command
            return [command(update={key: value}) for key, value in update.items()]
        return update if node.returns == "dict" else None

    def _perform(self, act: Act, node: Node, update: dict[str, Any]) -> None:
        match act:
            case Write(key, value):
                update[key] = value
            case Replace(key, value):
                update[key] = self.api.Overwrite(value)
            case Emit(value):
                self.api.get_stream_writer()(value)
            case Ask(question):
                answer = self.api.interrupt(question)
                update["log"].append(f"{question}={answer}")
            case Fail(times, error):
                if self.calls[node.name] <= times:
                    raise _ERRORS[error](f"{node.name} fails")

    def _command(self, node: Node, update: dict[str, Any]) -> Any:
        command, send = self.api.Command, self.api.Send
        if any(getattr(hop, "parent", False) for hop in node.hops):
            (hop,) = node.hops
            return command(
                graph=command.PARENT, goto=hop.target, update={"log": update["log"]}
            )
        goto = [target for hop in node.hops for target in _hop(send, hop)]
        return command(update=update, goto=goto[0] if len(goto) == 1 else goto)


def child_input(state: Any) -> dict[str, Any]:
    """Return what a node gives to the child graph that it invokes."""
    return {"log": ["call"], "total": read(state, "total") or 0}


def _sync_node(body: Callable[..., Any], child: Any) -> Callable[..., Any]:
    def action(state: Any, **injected: Any) -> Any:
        returned = child.invoke(child_input(state)) if child is not None else None
        return body(state, injected, returned)

    return action


def _async_node(body: Callable[..., Any], child: Any) -> Callable[..., Any]:
    async def action(state: Any, **injected: Any) -> Any:
        await asyncio.sleep(0)
        returned = None
        if child is not None:
            returned = await child.ainvoke(child_input(state))
        return body(state, injected, returned)

    return action


def _signed(action: Any, hint: Any, node: Node) -> Any:
    """Give a node function the signature that asks for what it wants injected."""
    wanted = [Parameter("state", Parameter.POSITIONAL_OR_KEYWORD, annotation=hint)]
    if node.injected:
        wanted.append(Parameter(node.injected, Parameter.KEYWORD_ONLY))
    action.__signature__ = Signature(wanted)
    action.__annotations__ = {"state": hint} if node.hints else {}
    return action


def _describe_injected(node: Node, extra: Any) -> str:
    match node.injected:
        case "config":
            return f"thread={extra['configurable'].get('thread_id')}"
        case "runtime":
            return f"context={extra.context}"
        case "writer":
            extra(f"{node.name} writes")
            return "writer"
        case _:
            extra.put(("seen", node.name), "last", {"by": node.name})
            return f"store={len(extra.search(('seen', node.name)))}"


def _hop(send: Any, hop: Hop) -> list[Any]:
    if isinstance(hop, Fan):
        return [send(hop.target, _item(number)) for number in range(hop.count)]
    return [hop.target]


def _item(number: int) -> dict[str, Any]:
    return {"log": ["sent"], "item": number}


def _retry(api: Api, attempts: int) -> Any:
    if attempts == 1:
        return None
    return api.RetryPolicy(
        initial_interval=0, jitter=False, max_attempts=attempts, retry_on=ValueError
    )


def route(api: Api, branch: Branch, state: Any) -> Any:
    """Decide where a branch goes: targets, or the keys of its path map.

    `loop` takes the first target until the log has `limit` entries, `pick`
    takes one by the log's length, `all` takes every target, and `scatter`
    sends `limit` items to the first.
    """
    length, targets = len(read(state, "log") or []), branch.targets
    if branch.kind == "scatter":
        return [api.Send(targets[0], _item(number)) for number in range(branch.limit)]
    if branch.kind == "all":
        return [_path(branch, index) for index in range(len(targets))]
    if branch.kind == "loop":
        return _path(branch, 0 if length < branch.limit else len(targets) - 1)
    return _path(branch, length % len(targets))


def _path(branch: Branch, index: int) -> Any:
    return f"path{index}" if branch.paths == "dict" else branch.targets[index]


def _add_branch(api: Api, builder: Any, branch: Branch) -> None:
    def router(state: Any) -> Any:
        return route(api, branch, state)

    router.__name__ = f"route_{branch.kind}"
    router.__annotations__.clear()
    paths: Any = None
    if branch.paths == "dict":
        paths = {f"path{index}": name for index, name in enumerate(branch.targets)}
    elif branch.paths == "list":
        paths = list(branch.targets)
    elif branch.paths == "literal":
        router.__annotations__["return"] = Literal[branch.targets]
    builder.add_conditional_edges(branch.source, router, paths)
