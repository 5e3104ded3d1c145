"""A run elsewhere read as events: the same calls made, the same read as by the peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from tests.programs.both import on_both

from towpath.testing.api import Api

if not find_spec("langgraph_sdk"):
    pytest.skip("needs langgraph-sdk", allow_module_level=True)

THREAD = {"configurable": {"thread_id": "T", "own": 1, "checkpoint_id": "C"}}
EVENTS = [
    {"method": "values", "params": {"namespace": [], "data": {"a": 1}}},
    {"method": "custom", "params": {"namespace": ["sub:1"], "data": "said"}},
    {"method": "updates", "params": {"namespace": [], "data": {"n": {"a": 1}}}},
    {"method": "custom", "params": {"namespace": []}},
]


class Stream:
    """A thread stream of a client that is not there: it notes what it is asked."""

    thread_id = "T"
    values = ("all values",)
    messages = ("all messages",)
    subgraphs = ("all subgraphs",)
    tool_calls = ("all tool calls",)
    interrupted = True
    interrupts = ({"interrupt_id": "q"},)
    extensions = {"own": ("all of my own",)}  # noqa: RUF012 - it is only read

    def __init__(self, calls: list[Any], *, fails: bool = False) -> None:
        self.calls = calls
        self.run = self
        self.fails = fails

    def noted(self, *call: Any) -> None:
        self.calls.append(call)

    def begun(self, given: dict[str, Any]) -> dict[str, str]:
        self.noted("start", given)
        if self.fails:
            raise ConnectionError("no")
        return {"run_id": "R"}


class Blocking(Stream):
    def __enter__(self) -> Blocking:
        self.noted("enter")
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.noted("exit", kind and kind.__name__)

    def start(self, **given: Any) -> Any:
        return self.begun(given)

    def close(self) -> None:
        self.noted("close")

    @property
    def output(self) -> Any:
        return {"a": 1}

    @property
    def events(self) -> Iterator[Any]:
        return iter(EVENTS)

    def subscribe(self, channels: list[str]) -> Iterator[Any]:
        self.noted("subscribe", channels)
        return (each for each in EVENTS if each["method"] in channels)

    def interleave_projections(self, channels: list[str]) -> Iterator[Any]:
        return iter([(name, 1) for name in channels])


class Awaited(Stream):
    async def __aenter__(self) -> Awaited:
        self.noted("enter")
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        self.noted("exit", kind and kind.__name__)

    async def start(self, **given: Any) -> Any:
        return self.begun(given)

    async def close(self) -> None:
        self.noted("close")

    async def soon(self) -> Any:
        return {"a": 1}

    @property
    def output(self) -> Any:
        return self.soon()

    @property
    def events(self) -> AsyncIterator[Any]:
        return self.told(EVENTS)

    async def told(self, events: list[Any]) -> AsyncIterator[Any]:
        for each in events:
            yield each

    def subscribe(self, channels: list[str]) -> AsyncIterator[Any]:
        self.noted("subscribe", channels)
        return self.told([each for each in EVENTS if each["method"] in channels])


class Client:
    """A client with such threads, and runs that can be cancelled."""

    def __init__(self, kind: type[Stream], *, fails: bool = False) -> None:
        self.calls: list[Any] = []
        self.kind, self.fails = kind, fails
        self.threads = self.runs = self

    def stream(self, **given: Any) -> Any:
        self.calls.append(("stream", given))
        return self.kind(self.calls, fails=self.fails)

    def cancel(self, *args: Any, **given: Any) -> Any:
        self.calls.append(("cancel", args, given))
        return soon() if self.kind is Awaited else None


async def soon() -> None:
    return None


def graphs(lib: Api, **options: Any) -> tuple[Any, Client, Client]:
    kind = import_module(f"{lib.package}.pregel.remote").RemoteGraph
    blocking, awaited = Client(Blocking, **options), Client(Awaited, **options)
    config = {"metadata": {"m": 1}, "tags": ["t"]}
    graph = kind("asst", sync_client=blocking, client=awaited, config=config)
    return graph, blocking, awaited


def tried(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__


@on_both
def test_a_blocking_run_is_read(lib: Api) -> object:
    graph, client, _ = graphs(lib)
    found: list[Any] = []
    config = {**THREAD, "recursion_limit": 5}
    run = graph.stream_events(
        {"x": 1}, config, version="v3", headers={"h": "1"}, metadata={"k": 1}
    )
    with run as entered:
        found += [entered is run, run.output, run.interrupted, run.interrupts]
        found += [run.values, run.messages, run.subgraphs, run.tool_calls]
        found += [list(run), list(run.interleave("values", "own"))]
        shown = run.extensions
        found += [list(shown), len(shown), shown["values"], shown["own"]]
        found += [list(shown["custom"]), list(shown["updates"])]
        found += ["custom" in shown, "own" in shown, shown.get("none", "none")]
    found.append(tried(run.__enter__))
    return found, client.calls


@on_both
async def test_an_awaited_run_is_read(lib: Api) -> object:
    graph, _, client = graphs(lib)
    found: list[Any] = []
    async with await graph.astream_events({"x": 1}, THREAD, version="v3") as run:
        found += [await run.output(), await run.interrupted(), await run.interrupts()]
        found += [run.values, run.extensions["tool_calls"]]
        found.append([event async for event in run])
        found.append([data async for data in run.extensions["custom"]])
    try:
        await run.__aenter__()
    except RuntimeError:
        found.append("closed")
    return found, client.calls


@on_both
def test_a_run_is_aborted(lib: Api) -> object:
    graph, client, awaited = graphs(lib)
    with graph.stream_events(None, THREAD, version="v3") as run:
        run.abort()
        run.abort()

    async def main() -> None:
        async with await graph.astream_events(None, THREAD, version="v3") as other:
            await other.abort()
            await other.abort()

    asyncio.run(main())
    graph.stream_events(None, THREAD, version="v3").abort()
    return client.calls, awaited.calls


@on_both
def test_what_is_raised_closes_the_stream(lib: Api) -> object:
    def enter(graph: Any) -> None:
        with graph.stream_events({}, version="v3"):
            raise KeyError("mine")

    async def aenter(graph: Any) -> None:
        async with await graph.astream_events({}, version="v3"):
            raise KeyError("mine")

    found: list[Any] = []
    for fails in (False, True):
        graph, client, awaited = graphs(lib, fails=fails)
        found.append(tried(lambda graph=graph: enter(graph)))
        found.append(tried(lambda graph=graph: asyncio.run(aenter(graph))))
        found += [client.calls, awaited.calls]
    return found


@on_both
def test_answers_are_sent_as_input(lib: Api) -> object:
    graph, client, _ = graphs(lib)
    with graph.stream_events(lib.Command(resume={"a": 1}), THREAD, version="v3"):
        pass
    goes = lib.Command(resume=1, goto="x")
    calls = list(client.calls)
    return tried(lambda: graph.stream_events(goes, version="v3")), calls


@on_both
def test_what_servers_do_not_take_is_refused(lib: Api) -> object:
    graph, _, _ = graphs(lib)
    bare = type(graph)("asst")
    given = [
        {"version": "v2"},
        {},
        {"version": "v9"},
        {"version": "v3", "interrupt_before": ["a"]},
        {"version": "v3", "interrupt_after": "*"},
        {"version": "v3", "control": object()},
        {"version": "v3", "transformers": [dict]},
        {"version": "v3", "stream_mode": "values"},
        {"version": "v3", "context": {}},
    ]
    calls = [(graph, each) for each in given] + [(bare, {"version": "v3"})]
    found = [
        tried(lambda g=g, each=each: g.stream_events({}, **each)) for g, each in calls
    ]
    found += [
        tried(lambda g=g, each=each: asyncio.run(g.astream_events({}, **each)))
        for g, each in calls
    ]
    return found
