"""However a run ends, the same facts are stored, whatever the durability.

`sync` and `async` store the same checkpoints and the same results beside them;
`exit` stores the newest of them.
"""

from __future__ import annotations

import asyncio
import operator
import signal
import threading
from typing import Annotated, Any, TypedDict

import pytest

from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import GraphDrained
from towpath.graph import START, StateGraph
from towpath.runtime import RunControl
from towpath.testing.laws import shown
from towpath.testing.rows import strays

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    notes: dict[str, list[str]]


class Trouble:
    """What befalls the run in its third step, once."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.over = False
        self.control = RunControl()
        self.caller: Any = None

    def befall(self) -> None:
        if self.over:
            return
        self.over = True
        if self.kind == "error":
            raise ValueError("no")
        if self.kind == "drain":
            self.control.request_drain("the machine is wanted")
        elif self.kind == "cancel":
            self.caller.cancel()
        else:
            signal.raise_signal(signal.SIGTERM)


def make(saver: Any, trouble: Trouble, colour: str, *, beside: bool) -> Any:
    def work(name: str) -> Any:
        def node(state: State) -> State:
            return {"log": [name], "notes": {name: list(state["log"])}}

        return node

    ended = threading.Event()

    def good(state: State) -> State:
        ended.set()
        return {"log": ["good"]}

    def bad(state: State) -> State:
        assert not beside or ended.wait(30)
        trouble.befall()
        return {"log": ["bad"]}

    async def abad(state: State) -> State:
        assert not beside or await asyncio.to_thread(ended.wait, 30)
        trouble.befall()
        await asyncio.sleep(0)
        return {"log": ["bad"]}

    builder: Any = StateGraph(State)
    for name in ("one", "two", "last"):
        builder.add_node(name, work(name))
    builder.add_node("bad", bad if colour == "sync" else abad)
    for edge in ((START, "one"), ("one", "two"), ("two", "bad"), ("bad", "last")):
        builder.add_edge(*edge)
    if beside:
        builder.add_node("good", good)
        builder.add_edge("two", "good")
    return builder.compile(checkpointer=saver)


def run(graph: Any, trouble: Trouble, colour: str, durability: str) -> Any:
    options = {"durability": durability, "control": trouble.control}
    given = {"log": ["in"]}
    if colour == "loop":

        async def main():
            trouble.caller = asyncio.current_task()
            return await graph.ainvoke(given, THREAD, **options)

        return asyncio.run(main())
    if trouble.kind != "close":
        return graph.invoke(given, THREAD, **options)
    steps = graph.stream(given, THREAD, stream_mode="updates", **options)
    for chunk in steps:
        if "two" in chunk:
            trouble.over = True
            steps.close()
    return None


EXPECTED = {
    "error": ValueError,
    "drain": GraphDrained,
    "cancel": asyncio.CancelledError,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
}


def stored(saver: Any) -> list[Any]:
    """What can be read of a thread, newest first, without ids."""
    return [
        (
            saved.metadata["source"],
            saved.metadata["step"],
            shown(saved),
            sorted(
                (channel, repr(value)) for _, channel, value in saved.pending_writes
            ),
        )
        for saved in saver.list(THREAD)
    ]


@pytest.fixture
def terminated(request):
    """Has SIGTERM raise an exception, as programs do that want to end in order."""

    def install(kind):
        def handler(number, frame):
            raise KeyboardInterrupt if kind == "KeyboardInterrupt" else SystemExit(143)

        before = signal.signal(signal.SIGTERM, handler)
        request.addfinalizer(lambda: signal.signal(signal.SIGTERM, before))

    return install


@pytest.mark.parametrize(
    ("kind", "colour", "beside"),
    [
        *((kind, "sync", False) for kind in ("error", "drain", "close")),
        *((kind, "loop", False) for kind in ("error", "drain", "cancel")),
        *((kind, "sync", False) for kind in ("KeyboardInterrupt", "SystemExit")),
        *((kind, "loop", False) for kind in ("KeyboardInterrupt", "SystemExit")),
        *(("error", colour, True) for colour in ("sync", "loop")),
        ("cancel", "loop", True),
    ],
)
def test_all_durabilities_store_the_same(tmp_path, terminated, kind, colour, beside):
    if kind in ("KeyboardInterrupt", "SystemExit"):
        terminated(kind)
    found, ended = {}, {}
    for durability in ("sync", "async", "exit"):
        trouble = Trouble(kind)
        with SqliteSaver(str(tmp_path / durability)) as saver:
            graph = make(saver, trouble, colour, beside=beside)
            if kind == "close":
                run(graph, trouble, colour, durability)
            else:
                with pytest.raises(EXPECTED[kind]):
                    run(graph, trouble, colour, durability)
            found[durability] = stored(saver)
            assert [] == strays(saver)
            if colour == "sync":
                ended[durability] = graph.invoke(None, THREAD)
            else:
                ended[durability] = asyncio.run(graph.ainvoke(None, THREAD))
    assert found["sync"] == found["async"]
    assert found["sync"][:1] == found["exit"]
    assert ["in", "one", "two"] == found["sync"][0][2]["log"][:3]
    if beside:
        assert ("log", "['good']") in found["sync"][0][3]
        expected = ["in", "one", "two", "bad", "good", "last"]
    else:
        expected = ["in", "one", "two", "bad", "last"]
    assert expected == ended["sync"]["log"]
    assert ended["sync"] == ended["async"] == ended["exit"]
