"""Values as text that a person reads, never longer than asked for.

Whatever a value is, and however its `repr` behaves, there is a text of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Any, Final

DEPTH: Final = 8
TEXT: Final = 2000
"""Of a longer string inside of a value, the beginning is shown."""


def cut(text: str, most: int) -> str:
    """Text, and how much is missing where it was too long."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def line(value: Any, most: int) -> str:
    """A value in one line."""
    # A little more than fits is enough, whatever the size of the value.
    text = shown(value, 4 * most)
    return cut(" ".join(text.split()), most)


def shown(value: Any, most: int) -> str:
    """A value in lines, with what it holds indented."""
    parts: list[str] = []
    size = 0
    for part in pieces(value, 0, ()):
        parts.append(part)
        size += len(part)
        if size > most:
            return "".join(parts)[:most] + "\n… (cut here: the value is longer)"
    return "".join(parts)


def pieces(value: Any, depth: int, above: tuple[int, ...]) -> Iterator[str]:
    """The parts of a value's text, made only as far as they are taken."""
    if isinstance(value, str):
        yield quoted(value) if depth else cut(value, TEXT * 5)
        return
    inner = members(value)
    if inner is None:
        yield bare(value)
        return
    opening, closing, pairs = inner
    if id(value) in above or depth >= DEPTH:
        yield f"{opening}…{closing}"
        return
    empty, pad = True, "  " * (depth + 1)
    yield opening
    for key, member in pairs:
        yield f"\n{pad}" if empty else f",\n{pad}"
        empty = False
        if key is not None:
            yield f"{key}: "
        yield from pieces(member, depth + 1, (*above, id(value)))
    yield closing if empty else f"\n{'  ' * depth}{closing}"


def quoted(text: str) -> str:
    return '"' + cut(text, TEXT) + '"'


Members = tuple[str, str, Iterator[tuple[str | None, Any]]]


def members(value: Any) -> Members | None:
    """What a value holds, with names where it has them; None if it is one piece."""
    if isinstance(value, Mapping):
        return "{", "}", ((str(key), member) for key, member in value.items())
    if isinstance(value, AbstractSet):
        return "{", "}", ((None, member) for member in value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return "[", "]", ((None, member) for member in value)
    named = attributes(value)
    if named is None:
        return None
    return f"{type(value).__name__}(", ")", iter(named)


def attributes(value: Any) -> list[tuple[str | None, Any]] | None:
    """The fields of an object that declares them, but those that say nothing."""
    declared = getattr(type(value), "model_fields", None)
    if isinstance(declared, Mapping):
        names = list(declared)
    elif is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
    else:
        return None
    pairs = [(name, getattr(value, name, None)) for name in names]
    return [(name, member) for name, member in pairs if not idle(member)]


def idle(value: Any) -> bool:
    """Whether a field says nothing: it is None, or an empty container."""
    return value is None or (isinstance(value, list | dict | tuple) and not value)


def bare(value: Any) -> str:
    """The `repr` of a value, if it has one."""
    if isinstance(value, bytes | bytearray):
        return f"{bytes(value[:64])!r}" + (f" ({len(value):,} bytes)" if value else "")
    try:
        return cut(repr(value), TEXT)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
