"""What users can import is what it was, or the change is in this commit."""

from __future__ import annotations

import difflib

from tools.api import MODULES, kept, sections

REWRITE = "if that is meant: python tools/api.py --write, and a line in changes/"


def test_the_public_names_and_signatures_are_those_that_were_written_down():
    then, now = kept(), sections()
    told = [
        line
        for name, lines in now.items()
        for line in difflib.unified_diff(
            then.get(name, []), lines, f"{name} as it was", "as it is", "", "", 0, ""
        )
    ]
    assert not told, "\n".join([REWRITE, *told])


def test_every_public_module_is_written_down():
    assert {*MODULES} == kept().keys()
