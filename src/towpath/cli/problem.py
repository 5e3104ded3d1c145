"""What the person at the command line got wrong, and how to put it right.

A `Problem` ends the program with a message, a hint and the exit code 2, without a
traceback. What fails while a graph runs is not one: that is an outcome of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click


class Problem(click.ClickException):
    """A wrong target, input, answer or thread."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def format_message(self) -> str:
        """Return the message with the hint on a line of its own."""
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Say which known names are close to `name`, or which there are at all."""
    names = sorted(set(known))
    if close := get_close_matches(name, names, n=3, cutoff=0.5):
        return f"did you mean {' or '.join(map(repr, close))}?"
    if not names:
        return None
    more = ", ..." if len(names) > 8 else ""
    return f"there are {', '.join(map(repr, names[:8]))}{more}"
