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
from towpath.graph import START, StateGraph

class State(TypedDict):
    log: Annotated[list, operator.add]

builder = StateGraph(State)
for name in "abc":
    builder.add_node(name, lambda state, name=name: {"log": [name]})
    builder.add_edge(START, name)
graph = builder.compile()
graph.invoke({"log": []})
while not STOCK.idle:  # until the threads have come back
    pass
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if graph.invoke({"log": []}) == {"log": ["a", "b", "c"]} else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_starts_threads_of_its_own():
    source = str(Path(towpath.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": source, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", FORKS], env=env, timeout=60)
    assert 0 == done.returncode
