"""The client library as it is, over HTTP, to a server made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from threading import Thread

import pytest

from towpath.testing.api import load

if not find_spec("langgraph_sdk"):
    pytest.skip("needs langgraph-sdk", allow_module_level=True)

from .remote_client import ASKED, GRAPH, STATE, THREAD

EVENTS = [
    ("metadata", {"run_id": "r"}),
    ("values", {"a": 1}),
    ("updates", {"n": {"a": 2}}),
    ("values", {"a": 2}),
]
ANSWERS = {
    "/threads/T/state": STATE,
    "/threads/T/state/checkpoint": STATE,
    "/threads/T/history": [STATE],
    "/assistants/asst/graph": GRAPH,
}


class Server(ThreadingHTTPServer):
    """Answers by path, and notes what it was asked."""

    events = EVENTS

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, object, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.answer(json.loads(self.rfile.read(length) or "null"))

    def answer(self, body: object) -> None:
        path = self.path.partition("?")[0]
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.server.asked.append((self.command, path, body, headers))
        if path.endswith("/runs/stream"):
            kind = "text/event-stream"
            lines = (
                f"event: {name}\ndata: {json.dumps(told)}\n\n"
                for name, told in self.server.events
            )
            sent = "".join(lines).encode()
        else:
            kind, sent = "application/json", json.dumps(ANSWERS[path]).encode()
            if self.command == "POST" and path == "/threads/T/state":
                sent = json.dumps({"checkpoint": STATE["checkpoint"]}).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def client(lib, server, **options):
    kind = import_module(f"{lib.package}.pregel.remote").RemoteGraph
    return kind("asst", url=server.url, api_key="key", **options)


def plain(shown):
    return repr(shown)


def verbs(graph, lib):
    drawn = graph.get_graph()
    return [
        graph.invoke({"x": 1}, THREAD, headers={"x-mine": "1"}),
        list(graph.stream({"x": 1}, THREAD, stream_mode=["updates", "values"])),
        graph.invoke(lib.Command(resume="yes"), THREAD),
        plain(graph.get_state(THREAD)),
        plain(list(graph.get_state_history(THREAD))),
        graph.update_state(THREAD, {"a": 1}, as_node="n"),
        [tuple(each) for each in drawn.nodes.values()],
    ]


async def averbs(graph, lib):
    drawn = await graph.aget_graph()
    modes = ["updates", "values"]
    return [
        await graph.ainvoke({"x": 1}, THREAD, headers={"x-mine": "1"}),
        [each async for each in graph.astream({"x": 1}, THREAD, stream_mode=modes)],
        await graph.ainvoke(lib.Command(resume="yes"), THREAD),
        plain(await graph.aget_state(THREAD)),
        plain([each async for each in graph.aget_state_history(THREAD)]),
        await graph.aupdate_state(THREAD, {"a": 1}, as_node="n"),
        [tuple(each) for each in drawn.nodes.values()],
    ]


def asked(server):
    """Return what the server was asked, and forget it."""
    found = []
    for command, path, body, headers in server.asked:
        if isinstance(body, dict) and "stream_mode" in body:
            body["stream_mode"] = sorted(set(body["stream_mode"]))
        kept = {k: headers.get(k) for k in ("x-api-key", "x-mine")}
        found.append((command, path, body, kept))
    server.asked.clear()
    return found


@pytest.mark.differential
@pytest.mark.parametrize("colour", ["blocking", "looping"])
async def test_a_server_is_asked_and_understood_as_by_the_peer(server, colour):
    found = []
    for lib in (load("langgraph"), load("towpath")):
        graph = client(lib, server)
        told = verbs(graph, lib) if colour == "blocking" else await averbs(graph, lib)
        found.append((told, asked(server)))
    assert found[0] == found[1]


def test_a_question_over_http_stops_the_local_run(server):
    lib = load("towpath")
    server.events = [*EVENTS, ("updates", ASKED)]
    graph = lib.StateGraph(dict)
    graph.add_node("far", client(lib, server))
    graph.add_edge(lib.START, "far")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    assert "sure?" == app.invoke({"a": 0}, THREAD)["__interrupt__"][0].value
    server.events = EVENTS
    assert {"a": 2} == app.invoke(lib.Command(resume="yes"), THREAD)
    assert {"q1": "yes"} == server.asked[-1][2]["command"]["resume"]


def test_an_error_over_http_is_one_here(server):
    from towpath.pregel.remote import RemoteException

    server.events = [("error", {"message": "broke"})]
    with pytest.raises(RemoteException) as caught:
        client(load("towpath"), server).invoke({})
    assert {"message": "broke"} == caught.value.args[0]


def test_without_the_client_library_the_error_says_what_to_install(monkeypatch):
    import sys

    from towpath.pregel.remote import RemoteGraph

    monkeypatch.setitem(sys.modules, "langgraph_sdk", None)
    with pytest.raises(ImportError, match=r"towpath\[remote\]"):
        RemoteGraph("asst", url="http://nowhere")
