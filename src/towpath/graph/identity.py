"""What a cached node *is*: a text that changes when its code does.

Two graphs that share a cache must not take each other's results, and a node
whose code was edited must not take its own old ones. A function is known by
its module, its name and its code; anything that carries state of its own is
known only within this process, so it is never confused with another.
"""

from __future__ import annotations

import functools
import types
from hashlib import blake2b
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

SERIAL: Final = count(1)
KNOWN: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
PROCESS: Final = blake2b(repr(id(SERIAL)).encode(), digest_size=8).hexdigest()


def identity_of(target: Any) -> str:
    """The identity of a node's callable, for keys of a cache."""
    if isinstance(target, types.FunctionType):
        if target.__closure__ or target.__defaults__ or target.__kwdefaults__:
            return f"{target.__module__}.{target.__qualname__}#{own(target)}"
        digest = blake2b(digest_size=12)
        feed(digest, target.__code__)
        return f"{target.__module__}.{target.__qualname__}#{digest.hexdigest()}"
    if isinstance(target, types.BuiltinFunctionType):
        return f"{target.__module__}.{target.__qualname__}"
    kind = type(target)
    if isinstance(target, functools.partial):
        return f"partial:{identity_of(target.func)}#{own(target)}"
    return f"{kind.__module__}.{kind.__qualname__}#{own(target)}"


def feed(digest: Any, code: types.CodeType) -> None:
    """Take in a function's instructions, names and constants, nested ones too."""
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            feed(digest, const)
        else:
            digest.update(repr(const).encode("utf-8", "backslashreplace"))


def own(target: Any) -> str:
    """A mark that no other object of this or another process gets."""
    try:
        if target not in KNOWN:
            KNOWN[target] = f"{PROCESS}-{next(SERIAL)}"
        return KNOWN[target]
    except TypeError:  # not hashable or not weakly referable
        return f"{PROCESS}-{next(SERIAL)}"
