"""The page about the command line shows what the commands print."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from towpath.cli.app import program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands() -> Iterator[tuple[str, str]]:
    """Yield the lines after `$` in order, each with what it should print."""
    text = PAGE.read_text("utf-8")
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, output = command.partition("\n")
            yield line, output


def obey(line: str) -> str:
    """Run a line as a shell would."""
    line, _, echo = line.partition("; ")
    words = shlex.split(line)
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    assert "towpath" == words[0]
    result = CliRunner().invoke(program, words[1:])
    return result.output + (f"{result.exit_code}\n" if echo == "echo $?" else "")


@pytest.mark.slow
def test_commands_of_the_page_print_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    checker = doctest.OutputChecker()
    for line, expected in commands():
        shown = obey(line)
        assert checker.check_output(expected, shown, FLAGS), f"$ {line}\n{shown}"


def test_every_command_is_on_the_page():
    rows = [row for row in PAGE.read_text("utf-8").splitlines() if row[:3] == "| `"]
    named = {name for row in rows for name in re.findall(r"`([a-z]+)[` ]", row)}
    assert set(program.commands) <= named


@pytest.mark.parametrize("name", sorted(set(program.commands) - {"completion"}))
def test_every_command_has_json_and_help(name):
    options = {word for param in program.commands[name].params for word in param.opts}
    assert "--json" in options
    shown = CliRunner().invoke(program, [name, "--help"])
    assert 0 == shown.exit_code
    assert len(shown.output.splitlines()) > 5
