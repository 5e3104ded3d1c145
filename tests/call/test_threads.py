"""The stock of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import towpath

FORKS = """
import operator, os, signal, sys
from typing import Annotated, TypedDict
from towpath.call.threads import STOCK
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph import START, StateGraph

THREAD = {"configurable": {"thread_id": "t"}}

class State(TypedDict):
    log: Annotated[list, operator.add]

builder = StateGraph(State)
builder.add_node("node", lambda state: {"log": ["node"]})
builder.add_edge(START, "node")
with SqliteSaver(sys.argv[1]) as saver:
    builder.compile(checkpointer=saver).invoke({"log": []}, THREAD)
while not STOCK.idle:  # until the threads have come back
    pass
child = os.fork()
if child == 0:
    signal.alarm(20)
    with SqliteSaver(sys.argv[1]) as saver:
        graph = builder.compile(checkpointer=saver)
        os._exit(0 if graph.invoke({"log": []}, THREAD)["log"] == ["node"] * 2 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_starts_threads_of_its_own(tmp_path):
    source = str(Path(towpath.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": source, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path / "db")], env=env, timeout=60
    )
    assert 0 == done.returncode
