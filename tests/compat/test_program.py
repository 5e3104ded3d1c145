"""`python -m towpath.compat` runs a program as `python` would."""

from __future__ import annotations

import json

import pytest

TOLD = """
import json, sys
import langgraph.types
from helper import answer
print(json.dumps({
    "argv": sys.argv[1:],
    "name": __name__,
    "file": __file__,
    "main": sys.modules["__main__"].__dict__ is globals(),
    "answer": answer,
    "hooked": langgraph.types.__name__,
}))
"""


def test_a_file_has_its_arguments_its_folder_and_its_name(programs):
    programs.write("bin/helper.py", "answer = 42")
    programs.write("bin/app.py", TOLD)
    told = programs.printed("-m", "towpath.compat", "bin/app.py", "--json", "-m", "x")
    assert {
        "argv": ["--json", "-m", "x"],
        "name": "__main__",
        "file": "bin/app.py",
        "main": True,
        "answer": 42,
        "hooked": "towpath.types",
    } == json.loads(told)


@pytest.mark.parametrize("name", ["package", "package.app"])
def test_a_module_or_package_runs_by_its_name(programs, name):
    programs.write("helper.py", "answer = 42")
    programs.write("package/__init__.py", "")
    text = "from . import other\n" + TOLD
    programs.write("package/__main__.py", text)
    programs.write("package/app.py", text)
    programs.write("package/other.py", "")
    told = json.loads(programs.printed("-m", "towpath.compat", "-m", name, "a", "--b"))
    assert ["a", "--b"] == told["argv"]
    assert ("__main__", 42) == (told["name"], told["answer"])


def test_a_program_ends_as_it_would_by_itself(programs):
    programs.write("app.py", "import sys; sys.exit(3)")
    assert 3 == programs.python("-m", "towpath.compat", "app.py").returncode
    programs.write("app.py", "import atexit\natexit.register(print, 'bye')\n1 / 0")
    done = programs.python("-m", "towpath.compat", "app.py")
    assert 1 == done.returncode
    assert "ZeroDivisionError" in done.stderr
    assert "bye\n" == done.stdout


SPAWN = """
import multiprocessing
from langgraph.types import Send
import langgraph.checkpoint.memory

class Mine:
    pass

def work(given):
    import langgraph.types
    return type(given).__name__, langgraph.types.Send.__module__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [Mine(), Send("a", 1)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["file", "module"])
def test_processes_that_it_starts_have_the_hook_too(programs, by):
    programs.write("app.py", SPAWN)
    start = ["app.py"] if by == "file" else ["-m", "app"]
    shown = programs.printed("-m", "towpath.compat", *start)
    assert "[('Mine', 'towpath.types'), ('Send', 'towpath.types')]" == shown


def test_a_program_that_is_not_there_is_told_in_a_line(programs):
    done = programs.python("-m", "towpath.compat", "ap.py", "--json")
    assert 2 == done.returncode
    assert "no such file or folder: ap.py" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_program_it_says_how_it_is_called(programs):
    done = programs.python("-m", "towpath.compat")
    assert 2 == done.returncode
    assert "usage: python -m towpath.compat" in done.stderr
