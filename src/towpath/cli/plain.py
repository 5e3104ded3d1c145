"""Turn what graphs hold into JSON that any program can read.

For showing only: nothing is ever read back from it, so a value that JSON does not
know may end as its `repr`.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

DEPTH_MAX = 50


def to_json(value: object, *, indent: int | None = None) -> str:
    """Render any value as JSON, escaped where the text cannot be encoded."""
    plain = to_plain(value)
    text = json.dumps(plain, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(plain, indent=indent)
    return text


def outline(value: object, width: int) -> str:
    """Write one line for each key of a mapping, or the value, cut to a width."""
    plain = to_plain(value)
    lines = [json.dumps(plain, ensure_ascii=False)]
    if isinstance(plain, dict):
        lines = [
            f"{key}: {json.dumps(item, ensure_ascii=False)}"
            for key, item in plain.items()
        ]
    return "\n".join(map(partial(cut, width=width), lines))


def cut(line: str, *, width: int) -> str:
    """Leave out what goes beyond a width."""
    return line if len(line) < width else f"{line[: width - 5]} ..."


def to_plain(value: object, depth: int = 0) -> Any:
    """Reduce a value to what JSON knows."""
    if isinstance(value, enum.Enum):
        return to_plain(value.value, depth)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if depth > DEPTH_MAX:
        return "..."
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, depth + 1) for key, item in value.items()}
    if (fields := fields_of(value)) is not None:
        return to_plain(fields, depth)
    if isinstance(value, list | tuple | AbstractSet):
        return [to_plain(item, depth + 1) for item in value]
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return repr(value)


def fields_of(value: object) -> Mapping[str, object] | None:
    """Return the fields of a named tuple, a dataclass or a pydantic model."""
    if isinstance(value, type):
        return None
    for method in ("_asdict", "model_dump"):
        if callable(read := getattr(value, method, None)):
            fields: Mapping[str, object] = read()
            return fields
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name, None) for name in names}
    return None
