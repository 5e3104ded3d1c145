"""What a cached node *is*: a text that changes when its code does.

Two graphs that share a cache must not take each other's results, and a node
whose code was edited must not take its own old ones. A function is known by its
module, its name, and a digest of

- its code, and that of functions defined in it;
- the values in its closure, its defaults, and the globals its code names, as far
  as they are plain and cannot change: numbers, texts, tuples of these;
- functions and classes of its own package that its code names, likewise.

A closure or default that is anything else, and an object that is called as a
function, carry state that cannot be looked into. Such a node is known only within
this process, so it is never taken for another. What else the code reaches, such as
another package, a client, a file or a global list, is not looked at; that is what
`CachePolicy(version=...)` is for.

A node's result includes where the run goes next, so its edges and path functions
are part of what it is.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from towpath.plan.code import enclosed
from towpath.plan.specs import BranchSpec

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, type(...))
_FACTS_MAX: Final = 10_000
"""How much is looked at of one node: beyond that, it is known by its object."""


class _Process:
    """Marks for the objects of this process."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start anew, as a forked process does: its objects are its own."""
        # Chance, because addresses and process ids come back.
        self.name = os.urandom(8).hex()
        self.known: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self.numbers = count(1)

    def mark(self, target: Any) -> str:
        """A mark that no other object of this or another process gets."""
        try:
            if target not in self.known:
                self.known[target] = f"{self.name}-{next(self.numbers)}"
            return self.known[target]
        except TypeError:  # not hashable or not weakly referable
            return f"{self.name}-{next(self.numbers)}"


_PROCESS: Final = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.renew)


def identity_of(target: Any, routing: Iterable[Any] = ()) -> str:
    """The identity of a node's callable and of what follows it.

    `routing` are plain values and path functions.
    """
    facts = [_Facts(each) for each in (target, *routing)]
    return f"{_name(target)}#{'.'.join(each.text() for each in facts)}"


def routing_of(
    edges: Iterable[tuple[str, Any]], branches: Iterable[BranchSpec]
) -> Iterator[Any]:
    """Yield what says where a run goes after a node."""
    yield tuple(edges)
    for branch in branches:
        yield branch.path.target
        yield None if branch.ends is None else tuple(branch.ends.items())


def _name(target: Any) -> str:
    if isinstance(target, functools.partial):
        return f"partial:{_name(target.func)}"
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}.{named.__qualname__}"


class _Facts:
    """What is known of a callable or a plain value."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._digest = blake2b(digest_size=12)
        self._opaque = False
        self._seen: set[int] = set()
        self._left = _FACTS_MAX
        try:
            self._take(target)
        except (RecursionError, OverflowError):
            self._opaque = True

    def text(self) -> str:
        """The digest; of what cannot be looked into, a mark of the object, too."""
        if not self._opaque:
            return self._digest.hexdigest()
        # A bound method is a new object each time.
        anchor = getattr(self._target, "__self__", self._target)
        return f"{self._digest.hexdigest()}-{_PROCESS.mark(anchor)}"

    def _note(self, *words: object) -> None:
        self._left -= 1
        if self._left < 0:
            raise OverflowError
        text = "\0".join(map(str, words))
        # Framed, so that no two sequences of facts read the same.
        self._digest.update(f"{len(text)}:{text}".encode("utf-8", "backslashreplace"))

    def _take(self, target: Any) -> None:
        """Take in a value on which the node depends."""
        if not self._is_plain(target) and not self._is_code(target, None):
            self._opaque = True

    def _is_plain(self, value: Any) -> bool:
        """Take in a value, if it and all in it are plain."""
        kind = type(value)
        if kind in _PLAIN:
            self._note(kind.__name__, repr(value))
            return True
        if kind not in (tuple, frozenset):
            return False
        self._note(kind.__name__, len(value))
        items = value if kind is tuple else sorted(value, key=repr)
        return all(map(self._is_plain, items))

    def _is_code(self, target: Any, package: str | None) -> bool:
        """Take in a callable, if it is one that can be looked into.

        With `package`, only one that is of it.
        """
        if isinstance(target, types.BuiltinFunctionType):
            self._note(target.__module__, target.__qualname__)
            return not package and isinstance(target.__self__, types.ModuleType | None)
        if package is not None and _package(target) != package:
            return False
        if isinstance(target, types.FunctionType):
            self._function(target)
        elif isinstance(target, types.MethodType):
            self._take(target.__func__)
            self._take(target.__self__)
        elif isinstance(target, functools.partial):
            self._note("partial")
            keywords = tuple(target.keywords.items())
            for each in (target.func, *target.args, *keywords):
                self._take(each)
        elif isinstance(target, type):
            self._class(target)
        else:
            return False
        return True

    def _class(self, cls: type) -> None:
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        self._note("class", cls.__module__, cls.__qualname__)
        for name, value in vars(cls).items():
            inner = getattr(value, "__func__", None) or getattr(value, "fget", value)
            self._note(name)
            if isinstance(inner, types.FunctionType):
                self._function(inner)
            elif not name.startswith("__"):
                self._is_plain(value)
        for base in cls.__bases__:
            self._is_code(base, _package(cls))

    def _function(self, function: types.FunctionType) -> None:
        # Of a wrapped function, what it wraps is in its closure.
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        names = set(self._code(function.__code__))
        self._take_each(function.__defaults__ or ())
        self._take_each((function.__kwdefaults__ or {}).values())
        self._take_each(enclosed(function))
        package = _package(function)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            self._note("global", name)
            if isinstance(value, types.ModuleType):
                self._module(value, names, package)
            elif not self._is_code(value, package):
                self._is_plain(value)

    def _take_each(self, values: Iterable[Any]) -> None:
        for value in values:
            self._take(value)

    def _module(self, module: types.ModuleType, names: set[str], package: str) -> None:
        """Take in what code may reach in a module of its own package."""
        if module.__name__.partition(".")[0] != package:
            return
        known: Mapping[str, Any] = vars(module)
        for name in sorted(names & known.keys()):
            self._note(module.__name__, name)
            if not self._is_code(known[name], package):
                self._is_plain(known[name])

    def _code(self, code: types.CodeType) -> Iterable[str]:
        """Take in instructions and constants; return the names they use."""
        self._note("code", code.co_code.hex(), code.co_exceptiontable.hex())
        self._note(*code.co_names)
        names = [*code.co_names]
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                names += self._code(const)
            elif not self._is_plain(const):
                self._note(repr(const))
        return names


def _package(target: Any) -> str:
    module = getattr(target, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""
