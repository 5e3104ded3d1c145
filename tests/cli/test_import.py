"""`towpath import`: threads of LangGraph's database go on here."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

from towpath.cli.app import program

if not find_spec("langgraph"):
    pytest.skip("needs the peer", allow_module_level=True)

OLD = """
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
"""
NEW = """
from towpath import START, StateGraph, interrupt
"""
GRAPH = """
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    said: str


def ask(state):
    return {"said": interrupt("really?")}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a database of LangGraph's, two threads waiting in it."""
    monkeypatch.chdir(tmp_path)
    old: dict[str, object] = {"__name__": "old"}
    exec(OLD + GRAPH, old)
    with old["SqliteSaver"].from_conn_string("old.db") as saver:
        graph = old["builder"].compile(checkpointer=saver)
        for name in ("one", "two"):
            graph.invoke({}, {"configurable": {"thread_id": name}})
    (tmp_path / "app.py").write_text(NEW + GRAPH + "graph = builder.compile()\n")
    return tmp_path


def call(*words: str):
    return CliRunner().invoke(program, [*words])


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_waiting_thread_is_imported_and_answered(folder):
    told = call("import", "--from", "sqlite:///old.db", "--to", "new.db", "--json")
    assert (0, {"one", "two"}) == (
        told.exit_code,
        {one["thread_id"] for one in lines(told)},
    )
    assert [(2, 1, [])] * 2 == [
        (one["checkpoints"], one["questions"], one["unbound"]) for one in lines(told)
    ]
    answered = call(
        "resume", "app.py:graph", "--thread", "one", "--answer", '"yes"',
        "--db", "new.db", "--json",
    )  # fmt: skip
    assert 0 == answered.exit_code, answered.output
    state = call("state", "--thread", "one", "--db", "new.db", "--json")
    assert "yes" in state.stdout


def test_importing_again_brings_nothing_and_says_so(folder):
    words = ("import", "--from", "old.db", "--to", "new.db")
    assert "imported 4 checkpoints of 2 threads" in call(*words).stdout
    assert "imported 0 checkpoints of 2 threads" in call(*words).stdout


def test_a_dry_run_makes_no_database(folder):
    told = call("import", "--from", "old.db", "--to", "new.db", "--dry-run")
    assert "would import 4 checkpoints of 2 threads" in told.stdout
    assert not (folder / "new.db").exists()


def test_only_the_threads_that_are_named(folder):
    told = call(
        "import", "--from", "old.db", "--to", "new.db", "--thread", "two", "--json"
    )
    assert ["two"] == [one["thread_id"] for one in lines(told)]
    unknown = call("import", "--from", "old.db", "--to", "new.db", "--thread", "none")
    assert 1 == unknown.exit_code
    assert "'none'" in unknown.stderr


def test_what_is_no_database_of_theirs_is_an_error(folder):
    told = call("import", "--from", "sqlite:///nothing.db")
    assert 1 == told.exit_code
    assert "nothing.db" in told.stderr
    assert not (folder / "towpath.db").exists()


def test_who_looks_into_the_old_database_is_told_to_import_it(folder):
    looked = call("threads", "--db", "old.db")
    assert (0, True) == (looked.exit_code, "towpath import --from" in looked.stderr)
    assert "note:" not in call("import", "--from", "old.db", "--to", "new.db").stderr
