"""The demo: durable to the last file, and at ease with whatever a folder holds."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, counted, finished, run, stop_after

PROGRAM = EXAMPLES / "repo_review.py"
WORKERS = 8


def review(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return run(folder, PROGRAM, *words)


def code(folder: Path, count: int = 30) -> Path:
    """Write a package of small modules, two of which import each other."""
    package = folder / "code" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for n in range(count - 3):
        (package / f"m{n:03}.py").write_text(f"def f{n}():\n    return {n}\n")
    (package / "east.py").write_text("from pack import west\n")
    (package / "west.py").write_text("from . import east\n")
    return folder / "code"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["example", "towpath resume"])
def test_killed_review_goes_on_without_measuring_a_finished_file_again(
    tmp_path: Path, way: str
) -> None:
    path, log, db = code(tmp_path, 120), tmp_path / "log", tmp_path / "demo.db"
    common = ("--db", db, "--thread", "demo")
    start = (PROGRAM, path, "--slow", 0.1, "--log", log, *common, "--yes")
    again = start if way == "example" else resume(*common)
    seed = random.randrange(1 << 32)
    done: set[str] = set()
    for words in (start, again, again):
        more = random.Random(seed).randint(20, 28)
        stop_after(tmp_path, log, counted(log).total() + more, *words)
        recorded = finished(db, "measures", "{name}")
        assert done <= recorded, f"seed {seed}: a finished task was lost"
        # More were begun than there are workers, so some had ended.
        assert done < recorded, f"seed {seed}: nothing was recorded"
        done, before = recorded, counted(log)

    end = run(tmp_path, *again)
    if way == "towpath resume":
        assert 3 == end.returncode, f"seed {seed}: {end.stderr}"
        end = run(tmp_path, *resume(*common), "--answer", '"all"')
    assert 0 == end.returncode, f"seed {seed}: {end.stderr}"

    after = counted(log)
    assert 120 == len(after)
    repeated = {name for name in after if after[name] > before[name] > 0}
    assert set() == repeated & done, f"seed {seed}"
    lines = [line.split() for line in end.stdout.splitlines()]
    shown = {line[-1] for line in lines if line[:1] == ["measure:"]}
    assert set() == shown & done, f"seed {seed}: shown as if measured again"
    report = (tmp_path / "repo-review.md").read_text()
    assert "- files: 120\n" in report
    assert "pack.east -> pack.west -> pack.east" in report


def resume(*common: object) -> tuple[object, ...]:
    limit = ("--config", f'{{"max_concurrency": {WORKERS}}}')
    return ("-m", "towpath.cli", "resume", f"{PROGRAM}:graph", *common, *limit)


@pytest.mark.slow
def test_uninterrupted_review_measures_each_file_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = review(tmp_path, code(tmp_path), "--yes", "--log", log)
    assert 0 == done.returncode, done.stderr
    assert {1} == set(counted(log).values())


@pytest.mark.slow
def test_unattended_review_waits_for_an_answer_and_says_how_to_give_it(
    tmp_path: Path,
) -> None:
    path = code(tmp_path)
    asked = review(tmp_path, path, "--thread", "t", "--report", "out/r.md")
    assert 3 == asked.returncode
    assert "resume" in asked.stdout

    db = ("--db", "towpath.db", "--thread", "t")
    wrong = run(tmp_path, *resume(*db), "--answer", '"1,99"', "--json")
    assert 3 == wrong.returncode
    end = json.loads(wrong.stdout.splitlines()[-1])
    assert "'99' is not between" in end["interrupts"][0]["value"]["problem"]

    done = run(tmp_path, *resume(*db), "--answer", "[1]")
    assert 0 == done.returncode, done.stderr
    report = (tmp_path / "out" / "r.md").read_text()
    assert "findings kept: 1 of 28" in report


@pytest.mark.slow
def test_a_thread_can_review_again(tmp_path: Path) -> None:
    path = code(tmp_path, 5)
    for _ in range(2):
        done = review(tmp_path, path, "--yes", "--thread", "t")
        assert 0 == done.returncode, done.stderr
    assert "- files: 5\n" in (tmp_path / "repo-review.md").read_text()


@pytest.mark.slow
def test_whatever_a_folder_holds_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.mkdir()
    (path / "syntax.py").write_text("def f(:\n")
    (path / "encoding.py").write_bytes(b'x = "\xff\xfe"\n')
    (path / "latin.py").write_bytes(b'# -*- coding: latin-1 -*-\nx = "\xff"\n')
    (path / "null.py").write_bytes(b"a\0b")
    (path / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000)
    (path / "sum.py").write_text("x = " + "+".join(["1"] * 50_000))
    (path / "loop.py").symlink_to("loop.py")
    (path / "up").symlink_to("..")
    (path / "gone.py").symlink_to("nowhere.py")
    (path / "folder.py").mkdir()
    os.mkfifo(path / "pipe.py")
    Path(os.fsdecode(os.fsencode(path) + b"/n\xffame.py")).touch()
    done = review(tmp_path, path, "--yes")
    assert 0 == done.returncode, done.stderr
    report = (tmp_path / "repo-review.md").read_text()
    for name in ("syntax", "encoding", "null", "deep", "sum", "loop", "gone", "pipe"):
        assert f"`{name}.py`: cannot be " in report
    assert "not printable" in report
    assert "latin" not in report


@pytest.mark.slow
def test_an_empty_folder_is_reviewed_and_a_missing_one_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty").mkdir()
    done = review(tmp_path, "empty")
    assert 0 == done.returncode, done.stderr
    assert "None." in (tmp_path / "repo-review.md").read_text()
    wrong = review(tmp_path, "missing")
    assert 2 == wrong.returncode
    assert "is not a directory" in wrong.stderr


def test_database_of_the_demo_is_sqlite(tmp_path: Path) -> None:
    review(tmp_path, code(tmp_path, 4), "--yes", "--db", "x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
