"""`--check` tells what of a code base is not covered, without running it."""

from __future__ import annotations

import json

import pytest

COVERED = """
from __future__ import annotations
import langgraph.types as t
import langgraph.graph
from langgraph.graph import StateGraph
from langgraph.types import Command as C
raise SystemExit("not to be run")
def go():
    import langgraph.checkpoint.memory
    builder = StateGraph(dict, context_schema=None)
    return C(goto=C.PARENT), t.Send("a", 1), langgraph.graph.END
"""
UNCOVERED = """
import langgraph.pregel._loop
from langgraph.types import Command, Wish
import langgraph.types as t
from langgraph.types import Send
from importlib import import_module
import_module("langgraph.nowhere")
t.Other
Send("a", 1, wings=2)
"""
OPTIONAL = """
from typing import TYPE_CHECKING
try:
    from langgraph.pregel.algo import local_read
except ImportError:
    from langgraph.nowhere import here
if TYPE_CHECKING:
    from langgraph.types import Wish
"""


def checked(programs, *words):
    done = programs.python("-m", "towpath.compat", *words)
    assert done.returncode in (0, 1, 2), done.stderr
    return done.returncode, done.stdout


def told(programs, *words):
    code, text = checked(programs, *words, "--json")
    return code, json.loads(text)


def test_a_code_base_that_is_covered(programs):
    programs.write("app/main.py", COVERED)
    programs.write("app/.venv/lib.py", UNCOVERED)
    code, found = told(programs, "--check", "app")
    assert (0, 1, []) == (code, found["files"], found["uncovered"])
    assert {
        "langgraph.types",
        "langgraph.graph",
        "langgraph.graph.END",
        "langgraph.graph.StateGraph",
        "langgraph.types.Command",
        "langgraph.types.Send",
        "langgraph.checkpoint.memory",
    } == {use["what"] for use in found["uses"]}


def test_what_is_not_covered_is_named_with_its_place(programs):
    programs.write("app.py", UNCOVERED)
    code, found = told(programs, "--check", "app.py")
    assert 1 == code
    assert [
        (2, "langgraph.pregel._loop"),
        (3, "langgraph.types.Wish"),
        (7, "langgraph.nowhere"),
        (8, "langgraph.types.Other"),
        (9, "langgraph.types.Send(wings=)"),
    ] == [(use["line"], use["what"]) for use in found["uncovered"]]


def test_what_a_program_can_do_without_is_no_failure(programs):
    programs.write("app.py", OPTIONAL)
    code, found = told(programs, "--check", "app.py")
    optional = {use["what"] for use in found["uses"] if use["optional"]}
    assert {"langgraph.pregel.algo.local_read", "langgraph.types.Wish"} == optional
    assert ["langgraph.nowhere.here"] == [use["what"] for use in found["uncovered"]]
    assert 1 == code


def test_other_distributions_provide_what_is_theirs(programs):
    programs.write("site/langgraph/checkpoint/redis/__init__.py", "raise SystemExit")
    text = "from langgraph.checkpoint.redis import RedisSaver"
    programs.write("app.py", text)
    code, found = told(programs, "--check", "app.py")
    assert (0, ["others"]) == (code, [use["by"] for use in found["uses"]])


def test_people_read_it_as_lines(programs):
    programs.write("app.py", UNCOVERED)
    programs.write("broken.py", "def")
    code, text = checked(programs, "--check", "app.py", "--check", "broken.py")
    assert 2 == code
    lines = text.splitlines()
    assert "app.py:3: langgraph.types.Wish: not covered" in lines
    assert any(line.startswith("broken.py: ") for line in lines)
    assert lines[-1].startswith("1 files: ")
    assert lines[-1].endswith("5 not covered; 1 files not read")


def test_what_is_nested_too_deeply_is_not_read_and_the_rest_is(programs):
    programs.write("app/deep.py", f"x = a{'.a' * 4000}")
    programs.write("app/main.py", COVERED)
    code, text = checked(programs, "--check", "app")
    assert 2 == code
    lines = text.splitlines()
    assert any("deep.py: " in line and "(not read)" in line for line in lines)
    assert lines[-1].startswith("1 files: ")


def test_a_path_that_is_not_there_is_an_error_of_the_call(programs):
    assert 2 == programs.python("-m", "towpath.compat", "--check", "no").returncode


@pytest.mark.parametrize("name", ["Send", "CONFIG_KEY_NODE_FINISHED"])
def test_names_that_only_a_warning_stands_before_are_covered(programs, name):
    programs.write("app.py", f"from langgraph.constants import {name}")
    assert 0 == checked(programs, "--check", "app.py")[0]


def test_what_needs_an_extra_is_covered_and_said_to_need_it(programs):
    text = "from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver"
    file = programs.write("app.py", text)
    words = ("-m", "towpath.compat", "--check", str(file))
    lines = programs.printed(*words, alone=True).splitlines()
    assert lines[0].endswith("AsyncPostgresSaver: needs an extra of towpath")
