"""The peer's forms of values, for packages that look into them.

A saver of another package may keep the JSON form of langchain's objects
(`{"lc": ..., "type": "constructor", "id": [...]}`), and a server shows the
peer's bytes as JSON. A thread that the peer wrote
is read through the peer's own saver. None of that imports anything: a class is
one of those listed here, or one that the program registered.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import pathlib
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any, Final

import ormsgpack

from towpath.checkpoint.serde.registry import DEFAULT, refuse_name
from towpath.checkpoint.serde.types import _DeltaSnapshot
from towpath.errors import DeserializationError

EXT_DELTA_SNAPSHOT: Final = 7

PLAIN: Final[Mapping[tuple[str, ...], Callable[..., Any]]] = {
    ("builtins", "frozenset"): frozenset,
    ("builtins", "set"): set,
    ("collections", "deque"): collections.deque,
    ("datetime", "date"): dt.date,
    ("datetime", "date", "fromisoformat"): dt.date.fromisoformat,
    ("datetime", "datetime", "fromisoformat"): dt.datetime.fromisoformat,
    ("datetime", "time"): dt.time,
    ("datetime", "time", "fromisoformat"): dt.time.fromisoformat,
    ("datetime", "timedelta"): dt.timedelta,
    ("datetime", "timezone"): dt.timezone,
    ("decimal", "Decimal"): decimal.Decimal,
    ("pathlib", "Path"): pathlib.Path,
    ("pathlib", "PosixPath"): pathlib.Path,
    ("pathlib._local", "PosixPath"): pathlib.Path,
    ("uuid", "UUID"): uuid.UUID,
    ("zoneinfo", "ZoneInfo"): zoneinfo.ZoneInfo,
}


def revived(value: Mapping[str, Any]) -> Any:
    """The object that a constructor in JSON stands for, or the JSON itself."""
    if value.get("lc") not in {1, 2} or value.get("type") != "constructor":
        return value
    make = maker(tuple(value["id"]), value.get("method"))
    if make is None:
        return value
    return make(*(value.get("args") or ()), **(value.get("kwargs") or {}))


def maker(path: tuple[str, ...], method: Any) -> Callable[..., Any] | None:
    """What makes objects of a class, if the program knows it."""
    full = (*path, method) if isinstance(method, str) else path
    if full in PLAIN:
        return PLAIN[full]
    *module, name = path
    home = ".".join(module)
    own = home.startswith(("langgraph.", "towpath."))
    prefix = "langchain:" if home.startswith("langchain") else ""
    for known in (f"{prefix}{name}" if prefix or own else "", f"{home}:{name}"):
        try:
            return DEFAULT.of_name(known).cls
        except DeserializationError:
            continue
    return None


def read(tag: str, content: bytes) -> Any:
    """Decode what the peer's codec wrote.

    Raises:
        DeserializationError: it names a class that the program does not know,
            or is in a form that could run code.
    """
    if tag == "msgpack":
        return Unpacking().read(content)
    assert tag == "bytearray"
    return bytearray(content)


class Unpacking:
    """One reading of bytes; ormsgpack does not say why a part could not be read."""

    failure: DeserializationError | None = None

    def read(self, content: bytes) -> Any:
        try:
            return ormsgpack.unpackb(
                content, ext_hook=self.extension, option=ormsgpack.OPT_NON_STR_KEYS
            )
        except ValueError as error:
            raise self.failure or DeserializationError(
                f"the peer's bytes are damaged: {error}"
            ) from None

    def extension(self, code: int, content: bytes) -> Any:
        try:
            return built(code, self.read(content))
        except DeserializationError as error:
            self.failure = error
            raise
        except Exception as error:
            self.failure = DeserializationError(f"a value cannot be made: {error!r}")
            self.failure.__cause__ = error
            raise


def built(code: int, parts: Any) -> Any:
    """An object from its class and what that is made of.

    Codes: 0 one argument, 1 several, 2 keywords, 3 a method with one argument,
    4 and 5 the fields of a pydantic model.
    """
    if code == EXT_DELTA_SNAPSHOT:
        return _DeltaSnapshot(parts)
    if code not in range(6):
        raise DeserializationError(f"the peer's form {code} of a value is not read")
    module, name, given, *method = parts
    path = (module, name, *method) if code == 3 else (module, name)
    make = maker(tuple(path), None)
    if make is None:
        refuse_name(f"{module}:{name}")
    if code == 1:
        return make(*given)
    return make(**given) if code in {2, 4, 5} else make(given)


def msgpack_to_json(code: int, data: bytes) -> Any:
    """Show an extension in the peer's bytes as JSON: what the class is made of."""
    if code == EXT_DELTA_SNAPSHOT:
        return None
    parts = ormsgpack.unpackb(
        data, ext_hook=msgpack_to_json, option=ormsgpack.OPT_NON_STR_KEYS
    )
    if parts[:2] == ["uuid", "UUID"]:
        return str(uuid.UUID(parts[2]))
    return parts[2]
