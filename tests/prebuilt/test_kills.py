"""A process that dies among the calls of one message costs only the unfinished ones."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sqlite3, time
from pathlib import Path
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from towpath import START, StateGraph
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph import MessagesState
from towpath.prebuilt import ToolNode
from towpath.testing.models import calling

log, died = Path("log"), Path("died")
KEPT = "SELECT count(*) FROM towpath_writes WHERE channel = '__return__'"

@tool
def work(n: int) -> int:
    "Work."
    with log.open("a") as lines:
        lines.write(f"{n} ")
    return n

@tool
def die() -> str:
    "Kill the process, the first time."
    if died.exists():
        return "survived"
    died.touch()
    with sqlite3.connect("threads.db") as database:
        # The thread that keeps the first result is another one.
        while not database.execute(KEPT).fetchone()[0]:
            time.sleep(0.002)
    os._exit(9)

turn = calling(("work", {"n": 1}), ("die", {}), ("work", {"n": 2}))
graph = StateGraph(MessagesState)
graph.add_node("tools", ToolNode([work, die]))
graph.add_edge(START, "tools")
with SqliteSaver.from_conn_string("threads.db") as saver:
    app = graph.compile(checkpointer=saver)
    given = None if died.exists() else {"messages": [turn]}
    # One after the other, so that it is known what was finished.
    config = {"configurable": {"thread_id": "1"}, "max_concurrency": 1}
    state = app.invoke(given, config, durability="sync")
print([m.content for m in state["messages"] if isinstance(m, ToolMessage)])
"""


@pytest.mark.slow
def test_a_call_that_has_finished_does_not_run_again_after_a_kill(tmp_path):
    source = str(Path("src").resolve())

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env={"PYTHONPATH": source},
            capture_output=True,
            text=True,
        )

    first = run()
    second = run()

    assert 9 == first.returncode, first.stderr
    assert "['1', 'survived', '2']" == second.stdout.strip(), second.stderr
    assert "1 2 " == (tmp_path / "log").read_text()
