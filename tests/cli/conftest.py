"""A folder with a graph file, and a way to run the program in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from towpath.cli.app import program

GRAPHS = """
import operator
from typing import Annotated, TypedDict

from towpath import END, START, Send, StateGraph, interrupt
from towpath.checkpoint.memory import InMemorySaver


class State(TypedDict, total=False):
    count: int
    seen: Annotated[list, operator.add]


def add(state):
    if state["count"] == 13:
        raise ValueError("thirteen is refused")
    return {"count": state["count"] + 1, "seen": ["add"]}


async def later(state):
    return {"seen": ["later"]}


def ask(question, schema=None):
    def node(state):
        return {"seen": [interrupt(question, response_schema=schema)]}
    return node


def picky(state):
    if (answer := interrupt("which?")) == "bad":
        raise ValueError("that one is bad")
    return {"seen": [answer]}


def even(value):
    if value % 2:
        raise ValueError("odd numbers bring bad luck")
    return value


try:
    from pydantic import AfterValidator as Checked
except ImportError:
    Checked = repr


def chain(*nodes):
    builder = StateGraph(State)
    before = START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder


straight = chain(("add", add), ("later", later))
choosing = chain(("ask", ask("which?", {"enum": ["send", "drop"]})))
asking = chain(("add", add), ("ask", ask({"question": "go?", "options": ["1. a"]})))
twice = chain(("one", ask("first?")), ("two", ask("second?")))
both = StateGraph(State)
both.add_node("east", ask("east?")).add_node("west", ask("west?"))
both.add_edge(START, "east").add_edge(START, "west")
printing = chain(("say", lambda state: print("a word from the node")))
misfit = chain(("write", lambda state: {"seen": 3}))
joining = StateGraph(State)
for node in ("part", "left", "right", "end"):
    joining.add_node(node, lambda state: {})
joining.add_conditional_edges(START, lambda state: [Send("part", {})] * 3, ["part"])
joining.add_edge("part", "left").add_edge("part", "right")
joining.add_edge(["left", "right"], "end")
routing = StateGraph(State)
routing.add_node("first", lambda state: {"seen": ["first"]})
routing.add_node("odd", lambda state: {}).add_node("even", lambda state: {})
routing.add_edge(START, "first")
routing.add_conditional_edges(
    "first", lambda state: "odd" if state["count"] % 2 else "even", ["odd", "even"]
)
strict = chain(("ask", ask("how many?", Annotated[int, Checked(even)])))
failing_after = chain(("ask", picky))
compiled = straight.compile()
pausing = straight.compile(interrupt_before=["later"])
remembering = straight.compile(checkpointer=InMemorySaver())


def factory():
    return straight


def failing():
    raise RuntimeError("no graph today")


def needy(setting):
    return straight


number = 3
"""


class Program:
    """The program in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "graphs.py"
        self.file.write_text(GRAPHS)

    def __call__(self, *words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program, list(words), input=stdin)

    def run(self, graph: str, values: Any, thread: str, *words: str) -> Result:
        given = json.dumps(values)
        target = f"graphs.py:{graph}"
        return self("run", target, "--input", given, "--thread", thread, *words)

    def resume(self, graph: str, thread: str, *words: str) -> Result:
        return self("resume", f"graphs.py:{graph}", "--thread", thread, *words)

    def fork(self, graph: str, thread: str, *words: str) -> Result:
        return self("fork", f"graphs.py:{graph}", "--thread", thread, *words)

    def replay(self, graph: str, thread: str, *words: str) -> Result:
        return self("replay", f"graphs.py:{graph}", "--thread", thread, *words)


@pytest.fixture
def towpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Program(tmp_path)


@pytest.fixture
def last() -> Callable[[Result], dict[str, Any]]:
    """Read the last line of `--json` output."""
    return lambda result: json.loads(result.stdout.splitlines()[-1])
