"""Nothing of a caller's config reaches a saver that it does not need."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath.cache.sqlite import SqliteCache
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph import START, StateGraph
from towpath.semantics import LANGGRAPH, NATIVE
from towpath.types import CachePolicy, Command, Send, interrupt
from towpath.warnings import TowpathWarning

SECRET = "s3cret"
STORED = "plainly-stored"
CONFIG = {
    "configurable": {
        "thread_id": "1",
        "api_key": f"{SECRET}-key",
        "headers": {"authorization": f"Bearer {SECRET}"},
        "user_id": f"{SECRET}-user",
    },
    "metadata": {"token": f"{SECRET}-token", "run_id": "run-1"},
    "tags": [f"{SECRET}-tag"],
    "run_name": f"{SECRET}-run",
}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Recording(JsonPlusSerializer):
    """A codec that keeps what a saver in memory would have written to a disk."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = b""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        self.seen += data
        return kind, data


@contextmanager
def in_memory(folder: Path, dsn: Callable[[], str]) -> Iterator[Any]:
    serde = Recording()
    yield InMemorySaver(serde=serde), lambda: serde.seen


@contextmanager
def on_sqlite(folder: Path, dsn: Callable[[], str]) -> Iterator[Any]:
    with SqliteSaver(str(folder / "threads.db")) as saver:
        yield saver, lambda: b""


@contextmanager
def on_postgres(folder: Path, dsn: Callable[[], str]) -> Iterator[Any]:
    import psycopg

    from towpath.checkpoint.postgres import PostgresSaver

    where = dsn()

    def dump() -> bytes:
        with psycopg.connect(where) as connection:
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables"
                " WHERE table_schema = current_schema()"
            ).fetchall()
            found = b""
            for (table,) in tables:
                for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608
                    for cell in row:
                        raw = isinstance(cell, bytes | memoryview)
                        found += bytes(cell) if raw else str(cell).encode()
            return found

    with PostgresSaver.from_conn_string(where) as saver:
        saver.setup()
        yield saver, dump


SAVERS = {"memory": in_memory, "sqlite": on_sqlite, "postgres": on_postgres}


@pytest.fixture(params=SAVERS)
def kept(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Any, Callable[[], bytes]]]:
    """A saver, and all the bytes that it and the caches in its folder hold."""

    def dsn() -> str:
        found: str = request.getfixturevalue("postgres")
        return found

    with SAVERS[request.param](tmp_path, dsn) as (saver, others):

        def everything() -> bytes:
            files = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
            return b"".join(files) + others()

        yield saver, everything


def fails(state: State) -> State:
    raise ValueError(f"{STORED}: a failure is recorded as text")


def build(saver: Any, folder: Path, **options: Any) -> Any:
    """Every kind of thing that is recorded: writes, questions, failures, caches."""
    inner = StateGraph(State)
    inner.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
    inner.add_edge(START, "ask")
    builder = StateGraph(State)
    builder.add_node("sub", inner.compile())
    builder.add_node("lasting", inner.compile(checkpointer=True))
    builder.add_node("sent", lambda state, config: {"log": [STORED]})
    builder.add_node("cached", lambda state: {"log": [STORED]}, cache_policy=TTL)
    builder.add_node("fails", fails)
    for name in ("sub", "lasting", "cached"):
        builder.add_edge(START, name)
    builder.add_conditional_edges(
        START, lambda state: [Send("sent", {"log": [STORED]})]
    )
    builder.add_edge("sent", "fails")
    cache = SqliteCache(path=str(folder / "cache.db"))
    return builder.compile(checkpointer=saver, cache=cache, **options)


TTL: CachePolicy[Any] = CachePolicy(ttl=60)


def play(graph: Any, colour: str) -> None:
    """Ask, answer, fail, edit."""

    def invoke(given: Any) -> Any:
        if colour == "sync":
            return graph.invoke(given, CONFIG)
        return asyncio.run(graph.ainvoke(given, CONFIG))

    asked = invoke({"log": [STORED]})["__interrupt__"]
    assert 2 == len(asked)
    with pytest.raises(ValueError, match="recorded"):
        invoke(Command(resume={question.id: STORED for question in asked}))
    graph.update_state(CONFIG, {"log": [STORED]})


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_no_saver_gets_a_secret_of_the_config(
    kept: Any, colour: str, tmp_path: Path
) -> None:
    saver, everything = kept
    graph = build(saver, tmp_path)
    play(graph, colour)
    held = everything()
    assert STORED.encode() in held
    assert SECRET.encode() not in held
    own = {"source", "step", "parents", "run_id"}
    assert all(own >= set(one.metadata) for one in graph.get_state_history(CONFIG))
    graph.cache.close()


def test_named_keys_are_stored_in_subgraphs_too(kept: Any, tmp_path: Path) -> None:
    saver, everything = kept
    graph = build(saver, tmp_path, store_metadata=["user_id", "token"])
    play(graph, "sync")
    held = everything()
    assert f"{SECRET}-user".encode() in held
    assert f"{SECRET}-key".encode() not in held
    named = {"user_id": f"{SECRET}-user", "token": f"{SECRET}-token"}
    place = {"configurable": {"thread_id": "1", "checkpoint_ns": "lasting"}}
    assert list(saver.list(place, filter=named))
    assert list(graph.get_state_history(CONFIG, filter={"run_id": "run-1"}))
    graph.cache.close()


def quick(**options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", lambda state: None)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=InMemorySaver(), **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"semantics": NATIVE}, {"run_id"}),
        ({"semantics": LANGGRAPH}, {"run_id", "token", "api_key", "user_id"}),
        ({"store_metadata": True}, {"run_id", "token"}),
        ({"store_metadata": "user_id"}, {"run_id", "user_id"}),
        ({"semantics": LANGGRAPH, "store_metadata": False}, {"run_id"}),
        ({"store_metadata": ["headers", "thread_id"]}, {"run_id"}),
    ],
)
def test_what_is_stored_is_what_was_asked_for(
    options: dict[str, Any], expected: set[str]
) -> None:
    graph = quick(**options)
    graph.invoke({"log": []}, CONFIG)
    stored = set(graph.get_state(CONFIG).metadata)
    assert expected == stored - {"source", "step", "parents"}


def test_a_filter_by_what_is_not_stored_warns() -> None:
    graph = quick()
    graph.invoke({"log": []}, CONFIG)
    with pytest.warns(TowpathWarning, match=r"store_metadata=\['token'\]"):
        assert not list(graph.get_state_history(CONFIG, filter={"token": "t"}))
    found = graph.get_state_history(CONFIG, filter={"source": "input"})
    assert 1 == len(list(found))


def test_a_tracing_library_around_the_run_does_not_leak_the_config() -> None:
    """langchain copies plain values of `configurable` into `metadata`."""
    runnables = pytest.importorskip("langchain_core.runnables")
    graph = quick()
    chain = runnables.RunnableLambda(lambda given, config: graph.invoke(given, config))
    chain.invoke({"log": []}, CONFIG)
    assert SECRET not in str(graph.get_state(CONFIG).metadata)
