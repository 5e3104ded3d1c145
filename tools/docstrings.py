"""For the reference: docstrings as mkdocstrings understands them.

An extension of griffe, which reads the docstrings.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

DOCTEST: Final = re.compile(r"^>>> .*\n?(?:^(?!\s*$).*\n?)*", re.MULTILINE)
RAISES: Final = re.compile(r"^(Raises:\n +)As (?=`)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Put a fence around doctests, and a class before "As `invoke`"."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            fenced = DOCTEST.sub(as_block, obj.docstring.value)
            obj.docstring.value = RAISES.sub(r"\1Exception: as ", fenced)


def as_block(found: re.Match[str]) -> str:
    """Make a block of a doctest."""
    return f"```pycon\n{found[0].rstrip()}\n```\n"
