"""Functions that are sure to return at once.

An async run has blocking functions run in threads, for they may wait. Most path
functions do not: they look at the state and name a node. The hop to a thread and
back costs more than all the rest of such a step, so those of which their code shows
that they wait for nothing are called in the loop.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator
from dis import Instruction, get_instructions
from enum import Enum, EnumType
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import chain
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

_SCALARS: Final = (bool, int, float, str, bytes)
_BUILTIN: Final = (*_SCALARS, tuple, frozenset, list, set, dict)
_DATA: Final = (*_BUILTIN, Enum)
_CALLED: Final = frozenset(
    {
        *(abs, all, any, bool, dict, enumerate, float, frozenset, getattr, hasattr),
        *(int, isinstance, issubclass, len, list, max, min, range, repr, reversed),
        *(round, set, sorted, str, sum, tuple, type, zip, Command, Send),
    }
)
_TEXT_METHODS: Final = frozenset(
    {
        *("casefold", "endswith", "isalnum", "isalpha", "isdigit", "lower", "lstrip"),
        *("partition", "removeprefix", "removesuffix", "rpartition", "rsplit"),
        *("rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"),
    }
)
_METHODS: Final = _TEXT_METHODS | {
    *("append", "copy", "count", "extend", "find", "get", "index", "intersection"),
    *("isdisjoint", "issubset", "issuperset", "items", "keys", "replace", "union"),
    "values",
}
"""Methods that str, list, set and dict have, and that wait for nothing there.

Those that are not of tuples only others have too: clients, queues, collections.
"""
_INSIDE: Final = {"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_CALLS: Final = {"PRECALL", "CALL"}
_COMPARES: Final = {*_CALLS, "BUILD_TUPLE", "IS_OP", "COMPARE_OP", "CONTAINS_OP"}
"""What may come next where a class is only compared with; as the last argument of
a call, it is one of `isinstance`."""
_CHOOSES: Final = "key"
"""The keyword with which a builtin is given a function."""
_WAITS: Final = {"block", "timeout"}
"""Keywords that tell how long to wait."""


class _Name(NamedTuple):
    """A global name that a function loads."""

    name: str
    called: bool
    compared: bool = False
    """Whether nothing is done with it but a comparison, if it is a class."""
    owner: bool = False
    """Whether a method of it is called."""


class _Look(NamedTuple):
    """What the code of a function shows of it."""

    names: tuple[_Name, ...]
    reaches: bool
    """Whether it calls something that others than data have, too."""


def is_brief(action: Action) -> bool:
    """Whether a blocking function returns at once, as far as its code shows.

    It calls nothing but builtins and functions that do so too, and has no loop but
    over what there is. The values of the state are taken for data; what else it sees,
    as it is now.
    """
    given = {what for _, what in action.inject}
    if not action.blocking or not given <= {"config"}:
        return False
    try:
        return _Reading(bool(given)).allows(action.call, ())
    except Exception:  # of users' objects, or of code that tools have made
        return False


class _Reading:
    """One function is read, and those that it calls.

    What one of them gets from a global, another may call a method of.
    """

    def __init__(self, holds: bool) -> None:
        self.holds = holds
        """Whether they see what may hold more than data, now or later."""
        self.reaches = False

    def allows(self, function: Any, callers: tuple[Any, ...]) -> bool:
        """Whether it does nothing that may take long."""
        if type(function) is not FunctionType or function in callers or not _IS_KNOWN:
            return False
        look = _look(function.__code__)
        if look is None:
            return False
        self.reaches = self.reaches or look.reaches
        own: Any = function
        known = ChainMap(function.__globals__, own.__builtins__)
        within = (*callers, function)
        return (
            all(
                n.name in known and self.names(known[n.name], n, within)
                for n in look.names
            )
            and all(map(self.sees, _given(function)))
            and not (self.reaches and self.holds)
        )

    def names(self, value: Any, name: _Name, callers: tuple[Any, ...]) -> bool:
        """Whether a global may be used like this."""
        if name.called:
            if type(value) is FunctionType:
                return self.allows(value, callers)
            if isinstance(value, type) and issubclass(value, BaseException):
                return True
            return any(value is one for one in _CALLED)
        if name.owner:
            return type(value) in _BUILTIN
        if name.compared and isinstance(value, type):
            return True
        return self.sees(value)

    def sees(self, value: Any) -> bool:
        """Whether it may see this at all."""
        self.holds = self.holds or not _is_plain(value)
        return value is None or issubclass(type(value), (*_DATA, type))


def _given(function: FunctionType) -> Iterator[Any]:
    """The values that are kept with a function."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        yield cell.cell_contents  # raises ValueError while it is empty


def _is_plain(value: Any) -> bool:
    """Whether there is nothing in it that could wait, nor ever will be.

    None may be the place of what comes later.
    """
    if isinstance(value, EnumType):
        return all(map(_is_plain, value))
    if isinstance(value, Enum):
        return _is_plain(value.value)
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    return type(value) in _SCALARS or any(value is one for one in _CALLED)


@lru_cache(maxsize=1024)
def _look(code: CodeType) -> _Look | None:
    """Return what code shows; None: it does what may take long."""
    return None if code.co_flags & _LATER else _within(code)


def _within(code: CodeType) -> _Look | None:
    """The same for code inside a function too, such as a comprehension's."""
    inside = [const for const in code.co_consts if isinstance(const, CodeType)]
    if any(const.co_name not in _INSIDE for const in inside):
        return None  # a decorator may call what is defined here
    looks = [_own(code), *map(_within, inside)]
    found = [look for look in looks if look is not None]
    if len(found) < len(looks):
        return None
    names = tuple(chain.from_iterable(look.names for look in found))
    return _Look(names, any(look.reaches for look in found))


def _own(code: CodeType) -> _Look | None:
    """The same for the instructions of one code object."""
    names: list[_Name] = []
    loops: set[int] = set()
    tuples = [const for const in code.co_consts if type(const) is tuple]
    if any(not _WAITS.isdisjoint(keywords) for keywords in tuples):
        return None
    reaches = any(_CHOOSES in keywords for keywords in tuples)
    fresh, after_except = False, False
    for begins, step, after in _steps(code):
        name = step.opname
        if name == "LOAD_GLOBAL":
            names.append(_loaded(step, after))
        elif name == "FOR_ITER":
            loops.add(begins)
        elif _is_method(step):
            if step.argval not in _METHODS or _waits(step, after):
                return None
            if fresh:
                names[-1] = names[-1]._replace(owner=True)
            elif step.argval not in _TEXT_METHODS:
                reaches = True
        elif name in _REFUSED or not (
            "BACKWARD" not in name or step.argval in loops or after_except
        ):
            return None
        fresh, after_except = name == "LOAD_GLOBAL", name == "POP_EXCEPT"
    return _Look(tuple(names), reaches)


def _steps(code: CodeType) -> Iterator[tuple[int, Instruction, Instruction]]:
    """Yield where an instruction begins, itself, and the one behind it."""
    steps, start = [], -1
    for step in get_instructions(code):
        begins = start if start >= 0 else step.offset
        start = begins if step.opname == "EXTENDED_ARG" else -1
        if start < 0:
            steps.append((begins, step))
    for (begins, step), (_, after) in zip(steps, [*steps[1:], steps[-1]], strict=True):
        yield begins, step, after


def _loaded(step: Instruction, after: Instruction) -> _Name:
    called = bool((step.arg or 0) & 1)
    compared = after.opname in _COMPARES or after.opname == "LOAD_GLOBAL"
    return _Name(step.argval, called, compared)


def _is_method(step: Instruction) -> bool:
    """Whether what this loads is called: from 3.12 on, the lowest bit says so."""
    if step.opname == "LOAD_ATTR":
        return _TELLS and bool((step.arg or 0) & 1)
    return step.opname == "LOAD_METHOD"


def _waits(step: Instruction, after: Instruction) -> bool:
    """Whether this is `get()` or `get(True, ...`: a dict's takes a key."""
    if step.argval != "get":
        return False
    return (after.opname in _CALLS and not after.arg) or after.argval is True
