"""Path functions that wait for nothing are called in the loop, others in a thread."""

from __future__ import annotations

import operator
import queue
import threading
import time
from enum import Enum
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest

from towpath import END, START, Runtime, Send, StateGraph, interrupt
from towpath.plan import action_of
from towpath.plan.brief import is_brief
from towpath.prebuilt import tools_condition
from towpath.store.base import BaseStore

WAYS = {"a": "b"}
NAMES = ["a", "b"]
QUEUE: Any = queue.SimpleQueue()
QUEUES = {"queue": QUEUE}
PAIR = ("a", QUEUE)
CLIENT: Any = None


class Fields(NamedTuple):
    queue: Any


FIELDS = Fields(QUEUE)


class Held:
    queue = QUEUE

    @staticmethod
    def call(function: Any) -> Any:
        return function()


class Member(Enum):
    QUEUE = QUEUE


class Text(str):
    __slots__ = ()

    def lower(self) -> str:
        time.sleep(0)
        return "x"


TEXT = Text("x")


class Elsewhere:
    """As what stands for an object of a request, outside of one."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("there is none here")


ELSEWHERE = Elsewhere()


class Way(Enum):
    A = "a"


class Table(dict[str, str]):
    @classmethod
    def get(cls, key: str) -> str:  # type: ignore[override]
        time.sleep(0)
        return key


def first(message: Any) -> bool:
    return message["x"] > 3


def asks_the_clock(message: Any) -> float:
    return time.time()


def walks(state: Any) -> str:
    for message in state["messages"]:
        if isinstance(message, dict) and message["a"].startswith("x"):
            return "a" if first(message) else END
        if message is None:
            continue
    if len(state["messages"]) > 3:
        raise ValueError(f"too many: {state!r}")
    match state:
        case {"a": 1}:
            return "x"
        case dict():
            return Way.A.value
    return max(state["messages"], key=lambda message: message["x"])["name"]


def reads_the_config(state: Any, config: Any) -> str:
    return config["configurable"]["x"].lower()


def asks_what_is_in_the_config(state: Any, config: Any) -> str:
    return config["configurable"]["client"].get("x")


def asks_the_store(state: Any, store: BaseStore) -> str:
    return store.get(("a",), "x").value


def asks_the_runtime(state: Any, runtime: Runtime[Any]) -> str:
    return runtime.store.get(("a",), "x").value


def asks_its_default(state: Any, queue: Any = QUEUE) -> str:
    return queue.get("x")


def asks_its_keyword(state: Any, *, queue: Any = QUEUE) -> str:
    return queue.get("x")


def picks_by_its_default(state: Any, key: Any = time.sleep) -> str:
    return max(state, key=key)


def asks_a_name_for_it(state: Any) -> str:
    held = Held
    return held.queue.get("x")


def asked(owner: Any) -> str:
    return owner["queue"].get("x")


def decorates(state: Any) -> str:
    @Held.call
    def name() -> str:
        return "a"

    return "b"


def asks_what_comes_later() -> Any:
    client = None

    def path(state: Any) -> str:
        return client.get("x")

    def connect() -> None:
        nonlocal client
        client = QUEUE

    return path, connect


def with_builtins(**names: Any) -> Any:
    scope: dict[str, Any] = {"__builtins__": names}
    exec("def path(state): return len(state)", scope)
    return scope["path"]


def unreadable() -> Any:
    """A function as no compiler makes it."""

    def path(state: Any) -> str:
        return "a"

    path.__code__ = path.__code__.replace(co_consts=([], "a"))
    return path


def expects_errors(state: Any) -> str:
    try:
        return WAYS[state["a"]]
    except KeyError:
        way = "c"
    return way


def holds_data() -> Any:
    most, names = 3, ["a", "b"]
    return lambda state: names[min(state["a"], most)]


def holds_a_function() -> Any:
    work = time.time
    return lambda state: [work()]


def waits_in_a_loop(state: Any) -> str:
    while state:
        pass
    return "a"


def never_ends(state: Any) -> str:
    for each in state:
        while True:
            if each:
                return "a"
    return "b"


def imports(state: Any) -> str:
    import json

    return json.dumps(state)


def enters(state: Any) -> str:
    with state["lock"]:
        return "a"


def calls_itself(state: Any) -> str:
    return calls_itself(state)


def yields(state: Any) -> Any:
    yield "a"


async def awaits(state: Any) -> str:
    return "a"


BRIEF = [
    lambda state: "talk" if state["turn"] < state["turns"] else END,
    lambda state: [Send("node", {"x": x}) for x in state["xs"]],
    lambda state: "a" if any(m.get("x") for m in state["messages"]) else "b",
    lambda state: "a" if state["messages"][-1].tool_calls else END,
    lambda state: WAYS.get(state["a"], END),
    lambda state: NAMES[state["a"] % 2],
    holds_data(),
    lambda state: state.get("way") == Way.A and state["x"].get("y"),
    lambda state: isinstance(state["x"], Held) and state["x"].get("y"),
    lambda state: max(state["xs"], key=lambda x: isinstance(x, (Held, Text))),
    with_builtins(len=len),
    walks,
    reads_the_config,
    expects_errors,
    tools_condition,
]
OTHERS = [
    lambda state: interrupt("which?"),
    lambda state: time.sleep(1),
    lambda state: state["work"](),
    lambda state: Table.get("x"),
    lambda state: asks_the_clock(state),
    lambda state: state["thread"].join(),
    lambda state: print("x"),
    lambda state: [time.sleep(x) for x in state],
    lambda state: sorted(state, key=asks_the_clock),
    lambda state: len(*state),
    lambda state: not_there_yet(state),  # noqa: F821
    holds_a_function(),
    waits_in_a_loop,
    never_ends,
    imports,
    enters,
    calls_itself,
    yields,
    awaits,
    len,
    lambda state: state["queue"].get(),
    lambda state: state["queue"].get(True, 5),
    lambda state: state["queue"].get(timeout=5),
    lambda state: QUEUES["queue"].get("x"),
    lambda state: [each.get("x") for each in PAIR],
    lambda state: CLIENT.get("x"),
    lambda state: (CLIENT or state).get("x"),
    lambda state: FIELDS.queue.get("x"),
    lambda state: Held.queue.get("x"),
    lambda state: getattr(Held, "queue").get("x"),  # noqa: B009
    lambda state: Member.QUEUE.value.get("x"),
    lambda state: TEXT.lower(),
    lambda state: asked(QUEUES),
    lambda state: max(state, key=Held),
    lambda state: max(state, key=Held.call),
    lambda state: ELSEWHERE,
    lambda state, queue=QUEUE: queue.get("x"),
    asks_what_is_in_the_config,
    asks_the_store,
    asks_the_runtime,
    asks_its_default,
    asks_its_keyword,
    picks_by_its_default,
    asks_a_name_for_it,
    decorates,
    asks_what_comes_later()[0],
    with_builtins(len=time.sleep),
    unreadable(),
]


@pytest.mark.parametrize("function", BRIEF)
def test_what_only_looks_at_the_state_is_brief(function):
    assert is_brief(action_of(function, "path"))


@pytest.mark.parametrize("function", OTHERS)
def test_what_may_wait_is_not(function):
    assert not is_brief(action_of(function, "path"))


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Watched(list[str]):
    """Tells in which thread somebody looks at its length."""

    seen: list[int]

    def __len__(self) -> int:
        self.seen.append(threading.get_ident())
        return super().__len__()


def looking(state: Any) -> str:
    return END if len(state["log"]) > 3 else "node"


def waiting(state: Any) -> str:
    time.sleep(0)
    return END if len(state["log"]) > 3 else "node"


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("brief", [True, False])
async def test_where_a_path_function_runs(brief, awaited, start):
    seen: list[int] = []

    def join(old: list[str], new: list[str]) -> list[str]:
        joined = Watched([*old, *new])
        joined.seen = seen
        return joined

    async def afar(state: Any) -> Any:
        return {"log": ["x"]}

    def here(state: Any) -> Any:
        return {"log": ["x"]}

    graph = StateGraph(TypedDict("S", {"log": Annotated[list[str], join]}))
    graph.add_node("node", afar if awaited else here)
    path = (
        (lambda state: END if len(state["log"]) > 3 else "node") if brief else waiting
    )
    graph.add_conditional_edges(START, path) if start else graph.add_edge(START, "node")
    graph.add_conditional_edges("node", path)
    result = await graph.compile().ainvoke({"log": ["a"]})
    assert ["a", "x", "x", "x"] == result["log"]
    assert seen
    assert ({threading.get_ident()} == set(seen)) is brief


async def test_what_it_raises_is_raised():
    graph = StateGraph(State)

    async def node(state: Any) -> None:
        return None

    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: WAYS["nowhere"])
    with pytest.raises(KeyError, match="nowhere") as caught:
        await graph.compile().ainvoke({"log": []})
    assert any("'node'" in note for note in caught.value.__notes__)
