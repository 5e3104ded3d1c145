"""The project's own files agree with one another."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

from towpath.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_changelog_knows_the_version():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_target_that_contributing_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8") + (
        ROOT / "README.md"
    ).read_text()
    named = set(re.findall(r"`?make ([a-z-]+)", text))
    assert set() == named - targets


def test_every_extra_is_there():
    extras = set(PROJECT["project"]["optional-dependencies"])
    wanted = "langchain postgres redis cli server ray otel dev"
    assert set(wanted.split()) <= extras


def test_the_core_needs_next_to_nothing():
    needed = {re.split(r"[<>=]", one)[0] for one in PROJECT["project"]["dependencies"]}
    assert needed <= {"ormsgpack", "typing_extensions"}


def test_scripts_can_be_executed():
    for name in (".ci/run", "tools/find-python"):
        assert os.access(ROOT / name, os.X_OK), name
        shell = "bash" if name == ".ci/run" else "sh"
        assert 0 == subprocess.run([shell, "-n", ROOT / name]).returncode
