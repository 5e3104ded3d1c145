"""Functions that are sure to return at once.

An async run has blocking functions run in threads, for they may wait. Most path
functions do not: they look at the state and name a node. The hop to a thread and
back costs more than all the rest of such a step, so those of which their code shows
that they wait for nothing are called in the loop.
"""

from __future__ import annotations

import builtins
import sys
from collections import ChainMap
from dis import get_instructions
from enum import Enum
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from towpath.plan.actions import Action
from towpath.types import Command, Send

_IS_KNOWN: Final = sys.version_info[:2] <= (3, 13)
"""Whether what instructions do in this Python is known here."""
_REFUSED: Final = frozenset(
    {
        *("PUSH_NULL", "CALL_FUNCTION_EX"),  # they call something that was computed
        *("IMPORT_NAME", "BEFORE_WITH", "BEFORE_ASYNC_WITH", "GET_AWAITABLE"),
        *("LOAD_NAME", "LOAD_SUPER_ATTR", "LOAD_BUILD_CLASS", "STORE_GLOBAL"),
    }
)
_TELLS: Final = sys.version_info >= (3, 12)
_LATER: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR

_DATA: Final = (str, int, float, bytes, tuple, frozenset, list, set, dict, Enum)
_CALLED: Final = frozenset(
    {
        *(abs, all, any, bool, dict, enumerate, float, frozenset, getattr, hasattr),
        *(int, isinstance, issubclass, len, list, max, min, range, repr, reversed),
        *(round, set, sorted, str, sum, tuple, type, zip, Command, Send),
    }
)
_METHODS: Final = frozenset(
    {
        *("append", "casefold", "copy", "count", "endswith", "extend", "find", "get"),
        *("index", "intersection", "isalnum", "isalpha", "isdigit", "isdisjoint"),
        *("issubset", "issuperset", "items", "keys", "lower", "lstrip", "partition"),
        *("removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip"),
        *("split", "splitlines", "startswith", "strip", "title", "union", "upper"),
        "values",
    }
)
"""Methods that str, list, set and dict have, and that wait for nothing there."""


class _Name(NamedTuple):
    """A global name that a function loads."""

    name: str
    called: bool
    owner: bool = False
    """Whether a method of it is called."""


def is_brief(action: Action) -> bool:
    """Whether a blocking function returns at once, as far as its code shows.

    It calls nothing but builtins and functions that do so too, and has no loop but
    over what there is. The values of the state are taken for data.
    """
    return action.blocking and _is_brief(action.call, ())


def _is_brief(function: Any, callers: tuple[Any, ...]) -> bool:
    if type(function) is not FunctionType or function in callers or not _IS_KNOWN:
        return False
    names = _names(function.__code__)
    if names is None:
        return False
    known = ChainMap(function.__globals__, vars(builtins))
    within = (*callers, function)
    if not all(n.name in known and _allows(known[n.name], n, within) for n in names):
        return False
    try:
        return all(_is_data(cell.cell_contents) for cell in function.__closure__ or ())
    except ValueError:  # one is still empty
        return False


def _allows(value: Any, name: _Name, callers: tuple[Any, ...]) -> bool:
    if name.called:
        if isinstance(value, FunctionType):
            return _is_brief(value, callers)
        if isinstance(value, type) and issubclass(value, BaseException):
            return True
        return any(value is one for one in _CALLED)
    return _is_data(value) or (isinstance(value, type) and not name.owner)


def _is_data(value: Any) -> bool:
    return value is None or isinstance(value, _DATA)


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[_Name, ...] | None:
    """Return the global names that code loads; None: it does what may take long."""
    return None if code.co_flags & _LATER else _within(code)


def _within(code: CodeType) -> tuple[_Name, ...] | None:
    """The same for code inside a function too, such as a comprehension's."""
    found: list[_Name] = []
    loops: set[int] = set()
    fresh, after_except, start = False, False, -1
    for step in get_instructions(code):
        name, begins = step.opname, start if start >= 0 else step.offset
        start = begins if name == "EXTENDED_ARG" else -1
        if name == "LOAD_GLOBAL":
            found.append(_Name(step.argval, called=bool((step.arg or 0) & 1)))
            fresh = True
            continue
        if name == "FOR_ITER":
            loops.add(begins)
        elif name == "LOAD_METHOD" or (name == "LOAD_ATTR" and _is_method(step.arg)):
            if step.argval not in _METHODS:
                return None
            if fresh:
                found[-1] = found[-1]._replace(owner=True)
        elif name in _REFUSED or not (
            "BACKWARD" not in name or step.argval in loops or after_except
        ):
            return None
        fresh = fresh and name in ("CACHE", "EXTENDED_ARG")
        after_except = name == "POP_EXCEPT"
    for const in code.co_consts:
        if isinstance(const, CodeType):
            inner = _within(const)
            if inner is None:
                return None
            found += inner
    return tuple(found)


def _is_method(arg: int | None) -> bool:
    """Whether what LOAD_ATTR loads is called: from 3.12 on, its lowest bit says so."""
    return _TELLS and bool((arg or 0) & 1)
