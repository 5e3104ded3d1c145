"""The page about the command line has every command; its examples are played with
those of the other pages, by tests/guards/test_docs.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from towpath.cli.app import program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


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
