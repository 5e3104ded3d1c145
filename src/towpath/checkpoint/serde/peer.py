"""The peer's forms of values, for packages that look into them.

A saver of another package may keep the JSON form of langchain's objects
(`{"lc": ..., "type": "constructor", "id": [...]}`), and a server shows the
peer's bytes as JSON. Neither imports anything: a class is one of those listed
here, or one that the program registered.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import pathlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import ormsgpack

from towpath.checkpoint.serde.registry import DEFAULT
from towpath.errors import DeserializationError

EXT_DELTA_SNAPSHOT: Final = 7

PLAIN: Final[Mapping[tuple[str, ...], Callable[..., Any]]] = {
    ("builtins", "frozenset"): frozenset,
    ("builtins", "set"): set,
    ("collections", "deque"): collections.deque,
    ("datetime", "date", "fromisoformat"): dt.date.fromisoformat,
    ("datetime", "datetime", "fromisoformat"): dt.datetime.fromisoformat,
    ("datetime", "time", "fromisoformat"): dt.time.fromisoformat,
    ("datetime", "timedelta"): dt.timedelta,
    ("decimal", "Decimal"): decimal.Decimal,
    ("pathlib", "Path"): pathlib.Path,
    ("pathlib", "PosixPath"): pathlib.Path,
    ("uuid", "UUID"): uuid.UUID,
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
    for known in (f"langchain:{name}", f"{'.'.join(module)}:{name}"):
        try:
            return DEFAULT.of_name(known).cls
        except DeserializationError:
            continue
    return None


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
