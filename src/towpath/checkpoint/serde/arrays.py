"""The stored forms of numpy's arrays, scalars and dtypes.

numpy is never imported here. A program that meets an array has it, both when the
array is stored and when it is read: bytes that hold one are refused where numpy
has not been imported, so that bytes cannot have it imported.

An array is its dtype, shape, memory order and buffer. Whatever else could be in
one (objects, subclasses, masks) is refused.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final

from towpath.checkpoint.serde.kinds import listed
from towpath.checkpoint.serde.registry import DEFAULT, Entry, Registry
from towpath.errors import DeserializationError, SerializationError

_PREFIX: Final = "numpy:"
_KINDS: Final = frozenset("biufcmMSUV")
"""Kinds of dtypes whose values are their bytes."""


def loaded(package: str) -> Any:
    """Return a package that the program has imported.

    Raises:
        DeserializationError: it has not been.
    """
    module = sys.modules.get(package)
    if module is None:
        raise DeserializationError(
            f"the stored value is one of {package}'s, which is not imported",
            hint=f"import {package} before you read it; bytes import nothing",
        )
    return module


def _plain(dtype: Any) -> bool:
    """Tell whether values of a dtype are their bytes, and nothing else."""
    if dtype.subdtype is not None:
        return _plain(dtype.subdtype[0])
    if dtype.kind not in _KINDS or dtype.hasobject or dtype.metadata:
        return False
    if dtype.itemsize == 0:  # any number of them would fit into no bytes
        return False
    return all(_plain(field[0]) for field in (dtype.fields or {}).values())


def _dtype_encode(dtype: Any) -> Any:
    """Return a dtype's description, as in the header of an .npy file."""
    if _plain(dtype):
        form = loaded("numpy").lib.format
        # The letter tells types of one size apart that have one name elsewhere.
        for found in (form.dtype_to_descr(dtype), dtype.byteorder + dtype.char):
            back = form.descr_to_dtype(found)
            if back == dtype and back.type is dtype.type:
                return found
    raise SerializationError(
        f"the dtype {dtype!r} has no stored form",
        hint="convert it first: array.tolist(), or array.astype(...)",
    )


def _dtype_decode(payload: Any) -> Any:
    dtype = loaded("numpy").lib.format.descr_to_dtype(payload)
    if not _plain(dtype):
        raise ValueError(f"a stored array cannot be of the dtype {dtype!r}")
    return dtype


def _array_encode(array: Any) -> list[Any]:
    order = "F" if array.flags.fnc else "C"
    dtype = _dtype_encode(array.dtype)
    return [dtype, list(array.shape), order, array.tobytes(order)]


def _array_decode(payload: Any) -> Any:
    descr, shape, order, buffer = payload
    dtype = _dtype_decode(descr)
    # The buffer backs the array: a shape can claim no memory of its own.
    size = dtype.itemsize * math.prod(listed(shape))
    if type(buffer) is not bytes or len(buffer) != size:
        raise ValueError("the shape of a stored array does not fit its size")
    return loaded("numpy").ndarray(shape, dtype, bytearray(buffer), order=order)


def _scalar_encode(scalar: Any) -> list[Any]:
    # A dtype of text drops zeros at the end.
    if isinstance(scalar, str):
        return [None, str(scalar)]
    if isinstance(scalar, bytes):
        return [None, bytes(scalar)]
    return [_dtype_encode(scalar.dtype), scalar.tobytes()]


def _scalar_decode(payload: Any) -> Any:
    descr, content = payload
    if descr is None:
        numpy = loaded("numpy")
        return numpy.str_(content) if type(content) is str else numpy.bytes_(content)
    return _array_decode([descr, [], "C", content])[()]


def _entry(kind: str, cls: type) -> Entry:
    if kind == "array":
        return Entry(_PREFIX + kind, cls, _array_encode, _array_decode)
    if kind == "dtype":
        return Entry(_PREFIX + kind, cls, _dtype_encode, _dtype_decode)
    return Entry(_PREFIX + kind, cls, _scalar_encode, _scalar_decode)


def _by_type(cls: type) -> Entry | None:
    """Return the entry of a class of numpy's own, if it is one of these."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or cls.__module__.partition(".")[0] != "numpy":
        return None
    if cls is numpy.ndarray:
        return _entry("array", cls)
    if issubclass(cls, numpy.dtype):
        return _entry("dtype", cls)
    return _entry("scalar", cls) if issubclass(cls, numpy.generic) else None


def _by_name(name: str) -> Entry | None:
    kind = name.removeprefix(_PREFIX)
    if kind == name or kind not in {"array", "dtype", "scalar"}:
        return None
    bases = {"array": "ndarray", "dtype": "dtype", "scalar": "generic"}
    return _entry(kind, getattr(loaded("numpy"), bases[kind]))


def register_numpy(registry: Registry = DEFAULT) -> None:
    """Let a registry find these classes when it meets them."""
    registry.find(_by_type, _by_name)
