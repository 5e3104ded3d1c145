"""For the reference: docstrings as mkdocstrings understands them.

An extension of griffe, which reads the docstrings.
"""

from __future__ import annotations

import re
from typing import Any, Final

import griffe

DOCTEST: Final = re.compile(r"^>>> .*\n?(?:^(?!\s*$).*\n?)*", re.MULTILINE)
PEER: Final = re.compile(r"\b[Tt]he peer\b")
RAISES: Final = re.compile(r"^(Raises:\n +)As (?=`)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Fence doctests, name the peer, put a class before "As `invoke`"."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            fenced = DOCTEST.sub(as_block, obj.docstring.value)
            named = PEER.sub("LangGraph", fenced)
            obj.docstring.value = RAISES.sub(r"\1Exception: as ", named)


def as_block(found: re.Match[str]) -> str:
    """Make a block of a doctest."""
    return f"```pycon\n{found[0].rstrip()}\n```\n"
