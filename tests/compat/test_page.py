"""The examples of the page on the drop-in import run, each by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-langgraph.md"
EXAMPLES = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(programs, number):
    programs.printed(str(programs.write("example.py", EXAMPLES[number])))
