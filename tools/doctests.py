"""For the reference: doctests in docstrings are code, not quotations.

An extension of griffe, which reads the docstrings for mkdocstrings.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

DOCTEST: Final = re.compile(r"^>>> .*\n?(?:^(?!\s*$).*\n?)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Put a fence around every doctest."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(fenced, obj.docstring.value)


def fenced(found: re.Match[str]) -> str:
    """Make a block of a doctest."""
    return f"```pycon\n{found[0].rstrip()}\n```\n"
