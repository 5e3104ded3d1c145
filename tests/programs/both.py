"""Runs a program with two libraries: "only the import changed".

A program is a test function that takes the library's names and returns what it
observed. Towpath runs it under both presets, for a program of the peer's
documentation loses nothing that a preset would have to complain about.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from towpath.testing.api import Api, load
from towpath.testing.normal import Placeholders

Program = Callable[[Api], Any]


def on_both(program: Program) -> Callable[[str], None]:
    """Make a test that compares what `program` returns with both libraries."""
    return compared(program, ["NATIVE", "LANGGRAPH"])


def on_drop_in(program: Program) -> Callable[[str], None]:
    """The same for a program that shows where NATIVE differs from the peer."""
    return compared(program, ["LANGGRAPH"])


def compared(program: Program, presets: list[str]) -> Callable[[str], None]:
    @pytest.mark.differential
    @pytest.mark.parametrize("preset", presets)
    def test(preset: str) -> None:
        from towpath import semantics

        expected = observe(program, load("langgraph"))
        former = semantics.set_default(getattr(semantics, preset))
        try:
            actual = observe(program, load("towpath"))
        finally:
            semantics.set_default(former)
        assert expected == actual

    test.__name__, test.__doc__ = program.__name__, program.__doc__
    test.__module__ = program.__module__
    return test


def observe(program: Program, library: Api) -> Any:
    """Run a program and return plain data for what it saw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = program(library)
        if inspect.isawaitable(outcome):
            outcome = asyncio.run(_awaited(outcome))
    assert outcome is not None, "a program returns what it observed"
    return Placeholders().value(outcome)


async def _awaited(outcome: Any) -> Any:
    return await outcome


def thread(name: str = "1", **configurable: Any) -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name, **configurable}}


def in_steps(chunks: Iterable[Any], *widths: int) -> list[list[Any]]:
    """Return the `updates` of each superstep, told its number of tasks, by name.

    Tasks that run at once are told as they end, and that is up to the threads.
    """
    rest = iter(chunks)
    steps = [sorted(islice(rest, width), key=repr) for width in widths]
    return [*steps, list(rest)]
