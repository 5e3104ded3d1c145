"""doctor, draw, explain, init, lint, completion: the tools around a graph."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tomllib
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from towpath.cli.checkup import EXTRAS
from towpath.cli.starter import FILES
from towpath.errors import CODES
from towpath.lint import RULES

ROOT = Path(__file__).resolve().parents[2]


# -- doctor -------------------------------------------------------------------


def checkup(towpath, *words: str) -> dict[str, dict]:
    told = towpath("doctor", "--json", *words)
    found = {one["subject"]: one for one in map(json.loads, told.stdout.splitlines())}
    failed = any(one["health"] == "failed" for one in found.values())
    assert int(failed) == told.exit_code
    return found


def test_doctor_is_content_and_leaves_no_traces(towpath):
    towpath.run("straight", {"count": 1}, "t")
    before = sorted(towpath.folder.iterdir())
    found = checkup(towpath, "graphs.py:straight")
    assert before == sorted(towpath.folder.iterdir())
    for subject in ("towpath", "python", "sqlite", "database", "journal", "schema"):
        assert "ok" == found[subject]["health"], found[subject]
    assert ("ok", "1") == (found["threads"]["health"], found["threads"]["told"])
    assert "2 nodes" in found["graph"]["told"]


def test_doctor_knows_every_extra():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = set(tomllib.loads(text)["project"]["optional-dependencies"])
    assert extras - {"bench", "clients", "dev", "docs"} == set(EXTRAS)


def test_doctor_makes_no_database(towpath):
    assert "note" == checkup(towpath)["database"]["health"]
    assert not (towpath.folder / "towpath.db").exists()


def test_doctor_finds_what_is_no_database(towpath):
    (towpath.folder / "towpath.db").write_text("something else entirely")
    found = checkup(towpath)["database"]
    assert ("failed", True) == (found["health"], "no SQLite" in found["told"])


def damaged(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * 4096)


def test_doctor_finds_a_damaged_database(towpath):
    towpath.run("straight", {"count": 1}, "t")
    damaged(towpath.folder / "towpath.db")
    assert "failed" == checkup(towpath)["database"]["health"]


@pytest.mark.parametrize(
    ("statement", "subject", "health", "said"),
    [
        (
            "DELETE FROM towpath_migrations",
            "schema",
            "warning",
            "2 migrations are pending",
        ),
        (
            "INSERT INTO towpath_migrations VALUES (99)",
            "schema",
            "failed",
            "version 100",
        ),
        ("PRAGMA journal_mode = DELETE", "journal", "warning", "not WAL"),
        ("CREATE TABLE checkpoints (a)", "langgraph", "note", "`towpath import`"),
        (
            "INSERT OR REPLACE INTO towpath_leases VALUES ('t', 'nobody', 1, 0)",
            "leases",
            "ok",
            "1 held",
        ),
    ],
)
def test_doctor_looks_into_the_tables(towpath, statement, subject, health, said):
    towpath.run("straight", {"count": 1}, "t")
    with closing(sqlite3.connect(towpath.folder / "towpath.db")) as connection:
        connection.execute(statement)
        connection.commit()
    found = checkup(towpath)[subject]
    assert health == found["health"]
    assert said in found["told"]


DIES = """
import os, signal
from graphs import State
from towpath import START, StateGraph

def die(state):
    os.kill(os.getpid(), signal.SIGKILL)

graph = StateGraph(State).add_node("die", die).add_edge(START, "die")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_doctor_names_threads_whose_run_died(towpath):
    (towpath.folder / "dies.py").write_text(DIES)
    words = ["run", "dies.py:graph", "--input", "{}", "--thread", "lost"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = [sys.executable, "-m", "towpath.cli", *words]
    done = subprocess.run(program, env=env, cwd=towpath.folder, capture_output=True)
    assert -9 == done.returncode, done.stderr
    found = checkup(towpath)["leases"]
    assert ("warning", True) == (found["health"], "lost" in found["told"])


def test_doctor_tells_a_graph_that_cannot_be_loaded(towpath):
    found = checkup(towpath, "graphs.py:failing")["graph"]
    assert ("failed", True) == (found["health"], "no graph today" in found["told"])


def test_a_program_for_langgraph_is_told_how_it_runs_here(towpath):
    (towpath.folder / "theirs.py").write_text("import langgraph.nowhere\n")
    found = checkup(towpath, "theirs.py:graph")["graph"]
    assert "compat = true" in found["hint"]


def test_doctor_ends_with_a_verdict(towpath):
    told = towpath("doctor")
    assert 0 == told.exit_code
    assert told.stdout.splitlines()[-1] in {
        "all is well",
        "nothing is broken, 1 to look at",
    }


def test_doctor_looks_into_a_server(towpath, postgres):
    assert "no tables yet" in checkup(towpath, "--db", postgres)["schema"]["told"]
    towpath.run("straight", {"count": 1}, "t", "--db", postgres)
    found = checkup(towpath, "--db", postgres)
    assert ["ok", "ok", "1"] == [
        found["database"]["health"],
        found["schema"]["health"],
        found["threads"]["told"],
    ]


def test_doctor_tells_a_server_that_is_down(towpath):
    db = "postgresql://ann:secret@127.0.0.1:1/none"
    found = checkup(towpath, "--db", db)["database"]
    assert "failed" == found["health"]
    assert "secret" not in found["told"]


# -- draw ---------------------------------------------------------------------


def test_draw_prints_text(towpath):
    drawn = towpath("draw", "graphs.py:straight")
    assert 0 == drawn.exit_code
    assert "│ add │" in drawn.stdout
    plain = towpath("draw", "graphs.py:straight", "--format", "ascii").stdout
    assert plain.isascii()
    assert "| add |" in plain
    assert (
        "add --> later;"
        in towpath("draw", "graphs.py:straight", "--format", "mermaid").stdout
    )
    edges = json.loads(towpath("draw", "graphs.py:straight", "--json").stdout)["edges"]
    assert {"source": "add", "target": "later"} in edges


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("g.mmd", "---"),
        ("g.md", "```mermaid\n"),
        ("g.txt", "( start )"),
        ("g.svg", "<svg "),
        ("g.html", "<!doctype html>"),
        ("g.json", '{"nodes"'),
    ],
)
def test_draw_writes_a_file_in_the_form_of_its_name(towpath, name, begins):
    assert 0 == towpath("draw", "graphs.py:straight", "-o", name).exit_code
    assert (towpath.folder / name).read_text("utf-8").startswith(begins)


def test_draw_refuses_a_name_that_says_no_form(towpath):
    refused = towpath("draw", "graphs.py:straight", "-o", "g.pdf")
    assert 2 == refused.exit_code
    assert "'g.pdf' names no form" in refused.stderr
    assert not (towpath.folder / "g.pdf").exists()
    named = towpath("draw", "graphs.py:straight", "-o", "g.pdf", "--format", "text")
    assert 0 == named.exit_code


def test_draw_shows_what_ran_on_a_thread(towpath):
    towpath.run("straight", {"count": 1}, "t")
    run = towpath("draw", "graphs.py:straight", "--thread", "t")
    assert "[×1 · " in run.stdout
    early = towpath("draw", "graphs.py:straight", "--thread", "t", "--checkpoint", "0")
    assert "[runs next]" in early.stdout
    assert 2 == towpath("draw", "graphs.py:straight", "--thread", "u").exit_code
    assert 2 == towpath("draw", "graphs.py:straight", "--checkpoint", "0").exit_code


def test_draw_opens_subgraphs(towpath):
    (towpath.folder / "nested.py").write_text(
        "from graphs import *\n"
        "graph = StateGraph(State).add_node('inner', straight.compile())"
        ".add_edge(START, 'inner')\n"
    )
    assert "─ inner ─" not in towpath("draw", "nested.py:graph").stdout
    for words in (["--xray"], ["--depth", "1"]):
        assert "─ inner ─" in towpath("draw", "nested.py:graph", *words).stdout


# -- lint ---------------------------------------------------------------------


def test_lint_finds_nothing_in_the_example(towpath):
    for target in ("straight", "compiled", "asking"):
        assert 0 == towpath("lint", f"graphs.py:{target}").exit_code
    example = towpath("lint", str(ROOT / "examples" / "repo_review.py") + ":graph")
    assert 0 == example.exit_code, example.output


def test_lint_prints_findings_and_fails(towpath):
    (towpath.folder / "wrong.py").write_text(
        "from graphs import *\n"
        "graph = chain(('add', lambda state: {'cuont': 1}))\n"
        "graph.add_node('lost', lambda state: {})\n"
    )
    told = towpath("lint", "wrong.py:graph")
    assert 1 == told.exit_code
    assert "L203 error: node `add` writes `cuont`" in told.stdout
    assert "1 error, 1 warning" in told.stderr
    found = [
        json.loads(x)
        for x in towpath("lint", "wrong.py:graph", "--json").stdout.splitlines()
    ]
    assert [("L203", "add", "cuont"), ("L101", "lost", None)] == [
        (one["code"], one["node"], one["key"])
        for one in found
        if one["severity"] != "note"
    ]
    ignored = towpath("lint", "wrong.py:graph", "--ignore", "l203,L101")
    assert 0 == ignored.exit_code, "notes are not mistakes"
    assert 1 == towpath("lint", "wrong.py:graph", "--strict").exit_code
    assert 2 == towpath("lint", "wrong.py:graph", "--ignore", "L999").exit_code


def test_a_graph_that_runs_elsewhere_is_not_linted(towpath):
    (towpath.folder / "far.py").write_text(
        "class Far:\n    astream = aget_state = copy = None\ngraph = Far()\n"
    )
    refused = towpath("lint", "far.py:graph")
    assert 2 == refused.exit_code
    assert "Far" in refused.stderr
    assert "note" == checkup(towpath, "far.py:graph")["graph"]["health"]


# -- explain ------------------------------------------------------------------


@pytest.mark.parametrize("code", [*sorted(CODES), *RULES])
def test_explain_prints_the_page_of_every_code(towpath, code):
    told = towpath("explain", code)
    assert 0 == told.exit_code, told.output
    assert told.stdout.startswith(f"# {code}: ")
    assert 1 == sum(line.startswith("# ") for line in told.stdout.splitlines())


@pytest.mark.parametrize(
    "word",
    [
        *("tp-203", "203", "TP203", "[TP-203]", "ConcurrentUpdateError"),
        "INVALID_CONCURRENT_GRAPH_UPDATE",
    ],
)
def test_explain_takes_a_code_as_it_is_remembered(towpath, word):
    assert towpath("explain", word).stdout.startswith("# TP-203")


def test_explain_lists_codes(towpath):
    listed = towpath("explain").stdout
    assert all(code in listed for code in (*CODES, *RULES))
    codes = {
        json.loads(x)["code"] for x in towpath("explain", "--json").stdout.splitlines()
    }
    assert {*CODES, *RULES} <= codes


def test_explain_knows_every_code_that_has_a_page():
    """Also those of modules that nothing has imported yet."""
    script = "from towpath.cli.pages import titles; print(*titles())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    pages = {page.stem for page in (ROOT / "docs" / "errors").glob("TP-*.md")}
    assert pages <= set(done.stdout.split())


def test_explain_refuses_what_is_no_code(towpath):
    refused = towpath("explain", "TP-2033")
    assert 2 == refused.exit_code
    assert "did you mean 'TP-203'" in refused.stderr
    assert "lists them" in towpath("explain", "zzz").stderr
    assert "'StalledJoinError'" in towpath("explain", "StaledJoinEror").stderr


def test_an_error_says_where_more_is_told(towpath):
    towpath.run("misfit", {"count": 1}, "t")
    failed = towpath.run("straight", {"count": 1}, "t", "--config", "recursion_limit=1")
    assert "more: towpath explain TP-401" in failed.stderr


@pytest.mark.slow
def test_the_wheel_has_the_pages(tmp_path):
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"towpath/pages/errors/{code}.md" for code in CODES} <= names
    assert "towpath/pages/lint.md" in names


# -- init ---------------------------------------------------------------------


def test_init_makes_a_project_that_runs_and_whose_test_passes(towpath, monkeypatch):
    made = towpath("init", "new")
    assert 0 == made.exit_code, made.output
    folder = towpath.folder / "new"
    assert set(FILES) == {file.name for file in folder.iterdir()}
    monkeypatch.chdir(folder)
    assert 0 == towpath("lint", "--strict").exit_code
    asked = towpath("run", "--input", '{"question": "locks"}', "--thread", "1")
    assert 3 == asked.exit_code, asked.output
    done = towpath("resume", "--thread", "1", "--answer", '"send"')
    assert 0 == done.exit_code, done.output
    assert "sent: Thank you" in done.stdout


@pytest.mark.slow
def test_the_test_of_a_new_project_passes(towpath):
    towpath("init", "new")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_ADDOPTS": ""}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        words, cwd=towpath.folder / "new", env=env, capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stdout


def test_init_overwrites_nothing_unless_told_to(towpath):
    towpath("init", "new")
    graph = towpath.folder / "new" / "graph.py"
    graph.write_text("mine")
    refused = towpath("init", "new")
    assert 2 == refused.exit_code
    assert "graph.py" in refused.stderr
    assert "mine" == graph.read_text()
    assert 0 == towpath("init", "new", "--force").exit_code
    assert "mine" != graph.read_text()


def test_init_quotes_the_folder_in_what_to_type_next(towpath):
    assert "cd 'my project'\n" in towpath("init", "my project").stderr


# -- completion ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "said"),
    [("bash", "complete -o nosort"), ("zsh", "#compdef towpath"), ("fish", "complete")],
)
def test_completion_prints_a_script(towpath, shell, said):
    assert said in towpath("completion", shell).stdout


def test_completion_knows_the_shell_or_asks_which(towpath, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert "#compdef" in towpath("completion").stdout
    monkeypatch.setenv("SHELL", "/bin/csh")
    assert 2 == towpath("completion").exit_code


def completed(*words: str) -> set[str]:
    from click.shell_completion import BashComplete

    from towpath.cli.app import program

    *before, last = words
    complete = BashComplete(program, {}, "towpath", "_TOWPATH_COMPLETE")
    return {one.value for one in complete.get_completions(list(before), last)}


def test_commands_graphs_threads_and_codes_are_completed(towpath):
    towpath.run("straight", {"count": 1}, "thread-one")
    (towpath.folder / "towpath.toml").write_text(
        '[graphs]\nagent = "graphs.py:straight"'
    )
    assert {"replay", "report", "resume"} == completed("re")
    assert "agent" in completed("run", "ag")
    assert {"thread-one"} == completed("state", "--thread", "thr")
    assert {"TP-203"} == completed("explain", "tp-203")
