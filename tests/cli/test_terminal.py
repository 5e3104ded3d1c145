"""In a terminal: a live table, and a prompt for every answer."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")

ROOT = Path(__file__).resolve().parents[2]


def converse(
    folder: Path, words: list[str], answers: dict[str, str]
) -> tuple[int, str]:
    """Run the program in a terminal, typing each answer when its prompt shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        path = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "TERM": "xterm"}
        program = [sys.executable, "-m", "towpath.cli", *words]
        os.execve(sys.executable, program, env)
    shown, seen = "", 0
    pending = list(answers.items())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk.decode(errors="replace")
        if pending and pending[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(terminal, f"{pending.pop(0)[1]}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_resume_prompts_for_each_answer_until_the_run_is_done(towpath):
    assert 3 == towpath.run("twice", {}, "t").exit_code
    words = ["resume", "graphs.py:twice", "--thread", "t"]
    answers = {"answer: ": "plain text", "answer:": "[1, 2]"}
    code, shown = converse(towpath.folder, words, answers)
    assert 0 == code, shown
    assert "first?" in shown
    assert "second?" in shown
    assert '"plain text",' in shown


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_run_shows_steps_live(towpath):
    words = ["run", "graphs.py:straight", "--input", '{"count": 1}']
    code, shown = converse(towpath.folder, words, {})
    assert 0 == code, shown
    assert "step 1: add (" in shown
    assert "\x1b[?25l" in shown, "a live display hides the cursor"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_long_state_is_cut_in_a_terminal_and_whole_in_a_pipe(towpath):
    seen = list(range(200))
    assert 0 == towpath.run("straight", {"count": 1, "seen": seen}, "t").exit_code
    words = ["resume", "graphs.py:straight", "--thread", "t"]
    code, shown = converse(towpath.folder, words, {})
    assert 0 == code, shown
    assert "count: 2\r\nseen: [0, 1, 2" in shown
    assert "199" not in shown
    assert "state graphs.py:straight --thread t" in shown
    assert "199" in towpath(*words).stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_step_that_only_asked_is_not_shown_as_finished(towpath):
    words = ["run", "graphs.py:asking", "--input", '{"count": 1}', "--thread", "t"]
    code, shown = converse(towpath.folder, words, {})
    assert 3 == code, shown
    assert "step 2: ask asks (" in shown


REVIEW = """
from graphs import State, chain, interrupt

def review(state):
    answer = interrupt("Publish?", response_schema={
        "type": "object",
        "properties": {
            "yes": {"type": "boolean"},
            "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        },
        "required": ["yes", "stars"],
    })
    return {"seen": [answer]}

graph = chain(("review", review))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_resume_asks_for_what_the_schema_of_the_question_wants(towpath):
    (towpath.folder / "reviews.py").write_text(REVIEW)
    words = ["reviews.py:graph", "--thread", "t"]
    assert 3 == towpath("run", *words, "--input", "{}").exit_code
    answers = {
        "yes (y/n): ": "y",
        "stars (whole number, at least 1, at most 5): ": "9",
        "at most 5\r\n  stars (whole": "4",
    }
    code, shown = converse(towpath.folder, ["resume", *words], answers)
    assert 0 == code, shown
    state = json.loads(towpath("state", "--thread", "t", "--json").stdout)
    assert [{"yes": True, "stars": 4}] == state["values"]["seen"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_live_view_shows_every_node_of_the_graph(towpath):
    words = ["run", "graphs.py:joining", "--input", "{}"]
    code, shown = converse(towpath.folder, words, {})
    assert 0 == code, shown
    assert "step 1: part x3 (" in shown
    for node in ("part", "left", "right", "end"):
        assert node in shown


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_live_view_shows_what_a_model_says(towpath):
    pytest.importorskip("langchain_core")
    (towpath.folder / "talks.py").write_text(TALKS)
    words = ["run", "talks.py:graph", "--input", '{"count": 1}']
    code, shown = converse(towpath.folder, words, {})
    assert 0 == code, shown
    assert "  a few" in shown


TALKS = """
import time
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from graphs import chain

model = GenericFakeChatModel(messages=iter([AIMessage("a few words of a model")]))

def talk(state):
    for piece in model.stream("hello"):
        time.sleep(0.15)  # as slow as a model, so that the screen is drawn meanwhile
    return {"seen": ["talked"]}

graph = chain(("talk", talk))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_answer_that_the_node_refuses_is_asked_for_again(towpath):
    pytest.importorskip("pydantic")
    words = ["graphs.py:strict", "--thread", "t"]
    assert 3 == towpath("run", *words, "--input", "{}").exit_code
    answers = {"answer (whole number): ": "3", "once more": "4"}
    code, shown = converse(towpath.folder, ["resume", *words], answers)
    assert 0 == code, shown
    assert "bad luck" in shown
    state = json.loads(towpath("state", "--thread", "t", "--json").stdout)
    assert [4] == state["values"]["seen"]
