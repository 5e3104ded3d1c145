"""Standard output, which a pipe may close and the nodes of a graph print to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import IO

import click

# What a shell reports for a program that SIGPIPE ended.
UNREAD = 141


def emit(text: str, stream: IO[str] | None = None) -> None:
    """Print a result; end the program quietly when nobody reads any more."""
    try:
        click.echo(text, file=stream)
    except BrokenPipeError:
        # Python flushes once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(UNREAD)


@contextmanager
def kept_apart(as_json: bool) -> Iterator[None]:
    """Send what the graph prints to standard error, lest it get between JSON."""
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        yield
