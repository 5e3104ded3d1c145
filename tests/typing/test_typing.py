"""What type checkers of users see: the files here are checked, and never run.

A line that must not pass ends in `# error: code`, and each `assert_type` says
what is inferred. Anything else that the checker finds is a failure, as is an
error that it does not find.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXPECTED = re.compile(r"# error: (?P<code>[\w-]+)$")
FOUND = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")
FILES = sorted(path for path in HERE.glob("*.py") if path.stem.startswith("see_"))

Places = dict[tuple[str, int], str]


def expected() -> Places:
    places: Places = {}
    for path in FILES:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := EXPECTED.search(line):
                places[path.name, number] = match["code"]
    return places


@pytest.fixture
def pyright():
    """Pyright, as it is packed with all it needs, or as it is installed here."""
    beside = Path(sys.executable).parent
    for place in (str(beside), None):
        for name in ("basedpyright", "pyright"):
            if found := shutil.which(name, path=place):
                return found
    pytest.skip("pyright is not installed")


@pytest.mark.slow
def test_pyright_finds_errors_in_the_same_lines_and_no_others(pyright, tmp_path):
    config = tmp_path / "pyrightconfig.json"
    options = {
        "include": [str(path) for path in FILES],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    config.write_text(json.dumps(options), "utf-8")
    command = [pyright, "-p", str(config), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)["generalDiagnostics"]
    found = {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1): each["message"]
        for each in told
        if each["severity"] == "error"
    }
    assert set(expected()) == set(found), found


def mypy(folder: Path, *options: str, **env: str) -> str:
    """Run mypy in a process of its own: it would leave much behind in this one."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", *options],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_mypy_finds_these_errors_and_no_others(tmp_path):
    options = ["--no-error-summary", "--show-error-codes", f"--cache-dir={tmp_path}"]
    told = mypy(ROOT, *options, *map(str, FILES), MYPYPATH="src")
    errors = [line for line in told.splitlines() if ": error: " in line]
    found = {}
    for line in errors:
        match = FOUND.match(line)
        assert match is not None, line
        found[Path(match["path"]).name, int(match["line"])] = match["code"]
    assert expected() == found, told


@pytest.mark.slow
@pytest.mark.differential
def test_the_ported_program_passes_under_its_first_name(tmp_path):
    """So that what it asks of our types is what LangGraph's allow."""
    text = (HERE / "see_ported.py").read_text("utf-8").replace("towpath", "langgraph")
    (tmp_path / "program.py").write_text(text, "utf-8")
    told = mypy(tmp_path, "program.py")
    assert [] == [line for line in told.splitlines() if ": error: " in line]


def test_there_are_cases_of_both_kinds():
    text = "".join(path.read_text("utf-8") for path in FILES)
    assert text.count("assert_type(") > 10
    assert len(expected()) > 10
