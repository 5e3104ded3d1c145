"""Drivers of programs that only look at what is stored.

Such a program asks savers and launches nothing, so nothing of what goes on beside a
run is needed: no inbox, no copy of the caller's context.
"""

from __future__ import annotations

from typing import Any

from towpath.drive.common import is_inline, saver_call
from towpath.kernel.commands import Fetch, FetchAll, Program


def look(program: Program[Any]) -> Any:
    """Obey a program in the caller's thread, and return what it returns."""
    try:
        command: Any = next(program)
        while True:
            fetch = fetch_one if type(command) is Fetch else fetch_all
            command = program.send(fetch(command))
    except StopIteration as stop:
        return stop.value


async def alook(program: Program[Any]) -> Any:
    """Async twin of `look`."""
    try:
        command: Any = next(program)
        while True:
            fetch = afetch_one if type(command) is Fetch else afetch_all
            command = program.send(await fetch(command))
    except StopIteration as stop:
        return stop.value


def fetch_one(command: Fetch) -> Any:
    """The checkpoint that a command asks for; nothing goes on from it."""
    return command.saver.get_tuple(command.config)


async def afetch_one(command: Fetch) -> Any:
    """Async twin of `fetch_one`."""
    if is_inline(command.saver):
        return fetch_one(command)
    return await command.saver.aget_tuple(command.config)


def fetch_all(command: FetchAll) -> list[Any]:
    """The rows that a command asks for, or what it makes of them."""
    method, args, kwargs = saver_call(command)
    rows = getattr(command.saver, method)(*args, **kwargs)
    return list(rows if command.made is None else map(command.made, rows))


async def afetch_all(command: FetchAll) -> list[Any]:
    """Async twin of `fetch_all`."""
    if is_inline(command.saver):
        return fetch_all(command)
    method, args, kwargs = saver_call(command)
    rows = getattr(command.saver, f"a{method}")(*args, **kwargs)
    made = command.made
    return [row if made is None else made(row) async for row in rows]
