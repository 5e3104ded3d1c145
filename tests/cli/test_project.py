"""What a project's files say in place of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from towpath.cli.problem import Problem
from towpath.cli.project import find_project, unquoted

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def write(towpath):
    def write(name: str, text: str) -> Path:
        file = towpath.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def test_without_a_file_a_target_is_needed(towpath):
    refused = towpath("run", "--input", "{}")
    assert 2 == refused.exit_code
    assert "TARGET is missing" in refused.stderr
    assert "towpath.toml" in refused.stderr


def test_the_file_names_target_database_and_thread(towpath, write):
    write(
        "towpath.toml",
        'target = "graphs.py:asking"\ndb = "kept.db"\nthread = "main"\n',
    )
    assert 3 == towpath("run", "--input", '{"count": 1}').exit_code
    assert (towpath.folder / "kept.db").exists()
    assert 0 == towpath("resume", "--answer", '"yes"').exit_code
    state = json.loads(towpath("state", "--json").stdout)
    assert (["add", "yes"], "main") == (state["values"]["seen"], state["thread"])


def test_pyproject_holds_the_same_under_its_own_table(towpath, write):
    write(
        "pyproject.toml",
        '[project]\nname = "x"\n[tool.towpath]\ntarget = "graphs.py:straight"\n',
    )
    assert 0 == towpath("run", "--input", '{"count": 1}').exit_code


def test_a_command_line_and_the_environment_go_before_the_file(
    towpath, write, monkeypatch
):
    write("towpath.toml", 'target = "graphs.py:straight"\ndb = "file.db"\n')
    monkeypatch.setenv("TOWPATH_DB", "environment.db")
    towpath("run", "--input", '{"count": 1}')
    towpath("run", "--input", '{"count": 1}', "--db", "line.db")
    made = {file.name for file in towpath.folder.glob("*.db")}
    assert {"environment.db", "line.db"} == made


def test_paths_are_meant_from_the_file(towpath, write, monkeypatch):
    write("towpath.toml", 'target = "graphs.py:straight"\ndb = "kept.db"\n')
    below = towpath.folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert 0 == towpath("run", "--input", '{"count": 1}').exit_code
    assert (towpath.folder / "kept.db").exists()


def test_a_database_of_the_file_replaces_the_graph_s_own(towpath, write):
    write("towpath.toml", 'target = "graphs.py:remembering"\ndb = "kept.db"\n')
    towpath("run", "--input", '{"count": 1}', "--thread", "t")
    assert 0 == towpath("state", "--thread", "t").exit_code


def test_a_config_of_the_file_is_the_base_of_a_run_s(towpath, write):
    write(
        "towpath.toml",
        'target = "graphs.py:straight"\n[config]\nrecursion_limit = 1\n',
    )
    stopped = towpath("run", "--input", '{"count": 1}')
    assert 1 == stopped.exit_code
    assert "TP-401" in stopped.stderr
    given = ["--config", "recursion_limit=9"]
    assert 0 == towpath("run", "--input", '{"count": 1}', *given).exit_code


def test_variables_come_from_a_table_or_a_file_and_replace_none(
    towpath, write, monkeypatch
):
    for name in ("ONE", "TWO", "THREE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TAKEN", "before")
    write(
        ".env", "# a remark\nexport ONE='1 # 1'\nTWO=2 # two\nTAKEN=after\nnonsense\n"
    )
    write("towpath.toml", 'env = ".env"\n')
    towpath("threads")
    try:
        assert ("1 # 1", "2", "before") == tuple(
            os.environ[name] for name in ("ONE", "TWO", "TAKEN")
        )
    finally:
        for name in ("ONE", "TWO"):
            os.environ.pop(name, None)


@pytest.mark.parametrize(
    ("value", "read"), [('"a"', "a"), ("a # b", "a"), ("a#b", "a#b"), ("'", "'")]
)
def test_quotes_and_remarks_of_values(value, read):
    assert read == unquoted(value)


LANGGRAPH = """
{
  "dependencies": ["./lib", "langchain_openai", "."],
  "graphs": {
    "agent": "./lib/agent.py:graph",
    "other": {"path": "./graphs.py:straight"}
  },
  "env": {"FROM_LANGGRAPH": "yes"}
}
"""
AGENT = """
import os
import beside
from graphs import straight as graph
assert os.environ["FROM_LANGGRAPH"] == "yes"
"""


def test_a_langgraph_json_is_understood(towpath, write, monkeypatch):
    monkeypatch.setenv("FROM_LANGGRAPH", "yes")
    write("langgraph.json", LANGGRAPH)
    write("lib/agent.py", AGENT)
    write("lib/beside.py", "")
    for name in ("agent", "other"):
        done = towpath("run", name, "--input", '{"count": 1}')
        assert 0 == done.exit_code, done.output


def test_of_several_graphs_one_has_to_be_named(towpath, write):
    write("langgraph.json", LANGGRAPH)
    refused = towpath("run", "--input", "{}")
    assert 2 == refused.exit_code
    assert "'agent', 'other'" in refused.stderr
    misspelt = towpath("run", "agnet", "--input", "{}")
    assert 2 == misspelt.exit_code
    assert "did you mean 'agent'" in misspelt.stderr


def test_files_of_one_folder_are_taken_together(towpath, write):
    write("langgraph.json", LANGGRAPH)
    write("towpath.toml", 'target = "other"\ndb = "kept.db"\n')
    assert 0 == towpath("run", "--input", '{"count": 1}').exit_code
    assert (towpath.folder / "kept.db").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("taget = 'x'", "did you mean 'target'"),
        ("db = 3", "db is a text, not 3"),
        ("graphs = 'x'", "graphs is a table"),
        ("graphs = {a = 1}", "a is a text, not 1"),
        ("durability = 'synch'", "did you mean 'sync'"),
        ("db = ", "cannot be read"),
        ("env = '.env'", "cannot read .env"),
    ],
)
def test_a_mistake_in_the_file_is_told(towpath, write, text, said):
    write("towpath.toml", text)
    refused = towpath("threads")
    assert 2 == refused.exit_code
    assert said in refused.stderr
    told = towpath("doctor", "--json")
    assert 1 == told.exit_code, "what finds mistakes is not stopped by them"
    assert said in json.dumps(told.stdout)


def test_a_json_file_that_is_none_is_told(write, towpath):
    write("langgraph.json", "[1]")
    with pytest.raises(Problem, match="no table of settings"):
        find_project(towpath.folder)


def test_a_graph_of_the_project_that_cannot_be_loaded_hides_no_state(towpath, write):
    towpath.run("straight", {"count": 1}, "t")
    write("broken.py", "raise RuntimeError('no graph today')")
    write("towpath.toml", 'target = "broken.py:graph"')
    shown = towpath("state", "--thread", "t", "--json")
    assert 0 == shown.exit_code
    assert 2 == json.loads(shown.stdout)["values"]["count"]
    assert "no graph today" in shown.stderr
    assert 1 == towpath("state", "broken.py:graph", "--thread", "t").exit_code


# -- targets that are functions -----------------------------------------------

FACTORIES = """
from graphs import straight


def nothing():
    return straight


def config_by_name(config):
    assert config["configurable"]["thread_id"] == "t", config
    return straight


def by_annotation(c: "RunnableConfig"):
    return straight.compile()


async def later():
    return straight


def with_default(model="small"):
    return straight


def two(config, model):
    return straight
"""


@pytest.mark.parametrize(
    "name", ["nothing", "config_by_name", "by_annotation", "later", "with_default"]
)
def test_a_function_that_builds_the_graph_is_a_target(towpath, write, name):
    write("factories.py", FACTORIES)
    words = ["--input", '{"count": 1}', "--thread", "t"]
    done = towpath("run", f"factories.py:{name}", *words)
    assert 0 == done.exit_code, done.output


def test_a_function_that_needs_more_is_refused(towpath, write):
    write("factories.py", FACTORIES)
    refused = towpath("run", "factories.py:two", "--input", "{}")
    assert 2 == refused.exit_code
    assert "(config, model)" in refused.stderr


# -- graphs of the peer's -----------------------------------------------------

PEERS = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    count: int

def add(state):
    return {"count": state["count"] + 1}

graph = StateGraph(State).add_node("add", add).add_edge(START, "add")
"""


@pytest.mark.differential
def test_a_graph_of_the_peer_s_is_refused_with_the_way_to_run_it(towpath, write):
    pytest.importorskip("langgraph")
    write("peers.py", PEERS)
    refused = towpath("run", "peers.py:graph", "--input", "{}")
    assert 2 == refused.exit_code
    assert "compat = true" in refused.stderr


def test_compat_makes_the_peer_s_name_mean_ours(towpath, write, monkeypatch):
    """What the hook does is tested where it is; here, that it is put in place."""
    called: list[int] = []
    hook = types.SimpleNamespace(install=lambda: called.append(1))
    monkeypatch.setitem(sys.modules, "towpath.compat", hook)
    write("towpath.toml", "compat = true")
    towpath("threads")
    assert [1] == called
    write("towpath.toml", "compat = false")
    write("langgraph.json", "{}")
    towpath("threads")
    assert [1] == called


@pytest.mark.parametrize("installed", [True, False])
def test_a_langgraph_json_means_compat_unless_the_peer_is_there(
    towpath, write, monkeypatch, installed
):
    found = object() if installed else None
    monkeypatch.setattr("towpath.cli.project.find_spec", lambda name: found)
    write("langgraph.json", "{}")
    assert (None if installed else True) is find_project(towpath.folder).compat


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of this kind")
def test_a_folder_that_anybody_may_write_to_settles_nothing_below(
    towpath, write, monkeypatch
):
    write("shared/towpath.toml", 'db = "theirs.db"')
    below = towpath.folder / "shared" / "mine"
    below.mkdir()
    assert find_project(below).db is not None
    below.parent.chmod(0o777)
    assert find_project(below).db is None


@pytest.mark.slow
@pytest.mark.differential
def test_a_project_of_the_peer_s_runs_here(towpath, write):
    """In a process of its own, where nothing of the peer's was imported before."""
    pytest.importorskip("langgraph")
    write("peers.py", PEERS)
    write("langgraph.json", '{"graphs": {"agent": "./peers.py:graph"}}')
    write("towpath.toml", "compat = true")
    program = [sys.executable, "-m", "towpath.cli"]
    words = ["run", "agent", "--input", '{"count": 1}', "--thread", "t"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*program, *words], cwd=towpath.folder, env=env, capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stderr
    assert {"count": 2} == json.loads(done.stdout)
