"""The model of an example: which one it is, and the way of a real one over HTTP."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.examples.running import EXAMPLES, run

pytest.importorskip("langchain_core")

WITHOUT_PROVIDERS = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
sys.modules["langchain"] = None
import handoff

handoff.main()
"""


class Server:
    """Answers as OpenAI's API does, with what `script` says to the messages."""

    def __init__(self, script: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.refusals: list[int] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                status, body = server.answer(
                    json.loads(self.rfile.read(length)), self.headers["Authorization"]
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def variables(self) -> dict[str, str]:
        """What a user exports to reach it."""
        return {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_API_BASE": f"http://127.0.0.1:{self.http.server_port}/v1",
        }

    def answer(self, request: dict[str, Any], key: str | None) -> tuple[int, Any]:
        self.keys.add(key)
        if self.refusals:
            status = self.refusals.pop(0)
            return status, {"error": {"message": f"refused with {status}"}}
        self.requests.append(request)
        said = self.script(request["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if isinstance(said, tuple):
            name, given = said
            function = {"name": name, "arguments": json.dumps(given)}
            call = {"id": f"c{len(self.requests)}", "type": "function"}
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**call, "function": function}],
            }
        end = "tool_calls" if isinstance(said, tuple) else "stop"
        choice = {"index": 0, "message": message, "finish_reason": end}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return 200, {
            "id": f"chat-{len(self.requests)}",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [choice],
            "usage": usage,
        }


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[list[dict[str, Any]]], Any]], Server]]:
    servers: list[Server] = []

    def start(script: Callable[[list[dict[str, Any]]], Any]) -> Server:
        server = Server(script)
        servers.append(server)
        Thread(target=server.http.serve_forever, daemon=True).start()
        return server

    yield start
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def supporter(messages: list[dict[str, Any]]) -> Any:
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if not results:
        return "look_up", {"number": 1002}
    if len(results) == 1:
        left = json.loads(results[0])["refundable_cents"]
        return "refund", {"number": 1002, "cents": left, "reason": "broken"}
    return f"All good: {results[-1]}."


@pytest.mark.slow
def test_a_real_client_is_used_when_there_is_a_key(tmp_path: Path, serve) -> None:
    pytest.importorskip("langchain.chat_models")
    pytest.importorskip("langchain_openai")
    server = serve(supporter)
    server.refusals = [503]
    program = (EXAMPLES / "support_agent.py", "Refund order 1002", "--answer")
    done = run(tmp_path, *program, "approve", **server.variables)
    assert 0 == done.returncode, done.stderr
    assert "model: openai:gpt-5-mini" in done.stdout
    assert "All good: paid back 39.95 EUR for order 1002." in done.stdout
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        paid = database.execute("SELECT number, cents FROM refunds").fetchall()
    assert [(1002, 3995)] == paid

    assert {"Bearer sk-test"} == server.keys
    first = server.requests[0]
    assert "gpt-5-mini" == first["model"]
    assert ["system", "user"] == [one["role"] for one in first["messages"]]
    tools = {one["function"]["name"]: one["function"] for one in first["tools"]}
    assert {"look_up", "refund"} == set(tools)
    # What the node fills in, no model is shown.
    given = tools["refund"]["parameters"]["properties"]
    assert {"number", "cents", "reason"} == set(given)


def traveller(messages: list[dict[str, Any]]) -> Any:
    system = messages[0]["content"]
    if "Which desk" in system:
        return "Flights, I think."
    if system.startswith("You book flights"):
        return "hand_over_to_hotels", {}
    return f"Welcome, after {len(messages)} messages."


@pytest.mark.slow
def test_a_model_hands_over_with_a_tool_that_asks_it_for_nothing(
    tmp_path: Path, serve
) -> None:
    pytest.importorskip("langchain.chat_models")
    pytest.importorskip("langchain_openai")
    server = serve(traveller)
    done = run(tmp_path, EXAMPLES / "handoff.py", **server.variables)
    assert 0 == done.returncode, done.stderr
    assert "reception: flights" in done.stdout
    assert "hotels: Welcome, after 4 messages." in done.stdout
    tools = {
        one["function"]["name"]: one["function"]["parameters"]["properties"]
        for one in server.requests[1]["tools"]
    }
    assert {"book_flight", "hand_over_to_hotels"} == set(tools)
    assert {} == tools["hand_over_to_hotels"]
    last = [one["role"] for one in server.requests[-1]["messages"]]
    assert ["system", "user", "assistant", "tool"] == last


@pytest.mark.slow
def test_another_model_is_named_and_a_fan_out_reaches_it(tmp_path: Path, serve) -> None:
    pytest.importorskip("langchain.chat_models")
    pytest.importorskip("langchain_openai")
    server = serve(lambda messages: f"Summary {len(messages[-1]['content'])}.")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join("A paragraph about locks. " * 20 for _ in range(5)))
    program = (EXAMPLES / "long_document.py", text, "--chunk", 600)
    done = run(tmp_path, *program, "--model", "openai:other", **server.variables)
    assert 0 == done.returncode, done.stderr
    assert {"other"} == {one["model"] for one in server.requests}
    assert 5 + 1 == len(server.requests)
    assert "Summary " in (tmp_path / "summary.md").read_text()


@pytest.mark.slow
def test_a_key_that_is_refused_ends_the_run_which_another_goes_on_with(
    tmp_path: Path, serve
) -> None:
    pytest.importorskip("langchain.chat_models")
    pytest.importorskip("langchain_openai")
    server = serve(lambda messages: "ok [gates.md]")
    server.refusals = [401]
    (tmp_path / "gates.md").write_text("# Gates\n\n" + "Lock gates are of oak. " * 9)
    program = (EXAMPLES / "research.py", "Of what are gates?", "--folder", tmp_path)
    refused = run(tmp_path, *program, **server.variables)
    assert 1 == refused.returncode
    assert "refused with 401" in refused.stderr
    # It would have been refused again: nobody tried.
    assert [] == server.refusals == server.requests
    done = run(tmp_path, *program, **server.variables)
    assert 0 == done.returncode, done.stderr
    assert "going on with thread" in done.stdout


@pytest.mark.slow
def test_a_model_that_cannot_be_had_is_refused_with_what_to_install(
    tmp_path: Path,
) -> None:
    key = {"ANTHROPIC_API_KEY": "x"}
    wrong = run(tmp_path, "-c", WITHOUT_PROVIDERS, **key)
    assert 2 == wrong.returncode
    assert "anthropic:claude-haiku-4-5 needs packages: pip install" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert [] == list(tmp_path.iterdir())
    scripted = {**key, "TOWPATH_MODEL": "scripted"}
    done = run(tmp_path, "-c", WITHOUT_PROVIDERS, **scripted)
    assert 0 == done.returncode, done.stderr
    assert "model: scripted" in done.stdout


def test_a_key_chooses_its_provider_and_a_name_goes_before(
    example, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = example("models")
    assert "scripted" == models.chosen()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    assert models.chosen().startswith("anthropic:")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert models.chosen().startswith("openai:")
    monkeypatch.setenv("TOWPATH_MODEL", "ollama:qwen3")
    assert "ollama:qwen3" == models.chosen()


@pytest.mark.parametrize(
    ("status", "expected"), [(429, True), (503, True), (400, False), (401, False)]
)
def test_what_may_pass_is_tried_again_and_nothing_else(
    example, status: int, expected: bool
) -> None:
    class StatusError(Exception):
        status_code = status

    models = example("models")
    assert expected is models.may_pass(StatusError())
    assert models.may_pass(ConnectionResetError())
    assert not models.may_pass(ValueError())
