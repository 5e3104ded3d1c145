"""What every cache must do, as checks for any of them.

For the author of a cache: derive from `CacheConformance`, say how to open an empty
cache, and every check is a test, in both colours.

    class TestMyCache(CacheConformance):
        def open(self):
            return closing(MyCache(...))

Checks of how lifetimes pass need `pass_time`; without it they are skipped. Nothing
here needs pytest: `cache_checks` gives the same as plain functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from typing import Any, Final
from unittest import SkipTest

from towpath.cache.base import BaseCache, FullKey, Namespace
from towpath.errors import SerializationError
from towpath.testing.conformance import Check
from towpath.testing.conformance_saver import HOSTILE
from towpath.testing.faces import (
    Face,
    Looped,
    Named,
    add_tests,
    each_check,
    kinds_of,
)
from towpath.warnings import CacheWarning

Opened = AbstractContextManager[BaseCache[Any]]
PassTime = Callable[[float], None] | None

KEY: Final[FullKey] = (("node", "v1"), "k")
OTHER: Final[FullKey] = (("node", "v1"), "other")


class BlockingCache(Face):
    """A cache by its blocking methods, as the checks call it."""

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        found: dict[FullKey, Any] = self.call("get", keys)
        return found

    def set(self, pairs: dict[FullKey, tuple[Any, int | None]]) -> None:
        self.call("set", pairs)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        self.call("clear", namespaces)


class LoopedCache(Looped, BlockingCache):
    """A cache by its async methods."""


class _Unreadable:
    """A codec whose values nobody can read."""

    def dumps_typed(self, _: Any) -> tuple[str, bytes]:
        return "pickle", b"cos\nsystem\n(S'true'\ntR."

    def loads_typed(self, _: tuple[str, bytes]) -> Any:
        raise AssertionError("the cache has a codec of its own")


class CacheChecks:
    """What is checked of every cache. `c` is empty."""

    def a_value_comes_back_with_its_type(self, c: BlockingCache) -> None:
        c.set({KEY: ([("channel", (1, {2}))], None)})
        assert c.get([KEY, OTHER]) == {KEY: [("channel", (1, {2}))]}
        assert c.get([]) == {}
        c.set({})

    def none_is_a_value(self, c: BlockingCache) -> None:
        c.set({KEY: (None, None)})
        assert c.get([KEY]) == {KEY: None}

    def a_value_is_replaced(self, c: BlockingCache) -> None:
        c.set({KEY: (1, 60)})
        c.set({KEY: (2, None)})
        assert c.get([KEY]) == {KEY: 2}

    def a_value_without_time_is_not_kept(self, c: BlockingCache) -> None:
        c.set({KEY: (1, None)})
        c.set({KEY: (2, 0), OTHER: (3, 0)})
        assert c.get([KEY, OTHER]) == {}

    def a_namespace_is_cleared_and_no_other(self, c: BlockingCache) -> None:
        namespaces: list[Namespace] = [("a",), ("ab",), ("a", "b"), ("A",), ("[a]",)]
        keys: list[FullKey] = [(namespace, "k") for namespace in namespaces]
        c.set(dict.fromkeys(keys, (1, None)))
        c.clear([("a",)])
        assert [*c.get(keys)] == keys[1:]
        c.clear([("[a]",), ("never there",)])
        assert [*c.get(keys)] == keys[1:-1]
        c.clear([])
        assert [*c.get(keys)] == keys[1:-1]
        c.clear()
        assert c.get(keys) == {}

    def hostile_names_are_names_like_any_other(self, c: BlockingCache) -> None:
        names = [*HOSTILE, "*", "?", "[a-z]", "\\", "nul\0", "\ud800", ""]
        keys: list[FullKey] = [((name, "x"), name) for name in names]
        c.set({key: (key[1].encode("utf-8", "replace"), None) for key in keys})
        found = c.get(keys)
        assert found == {key: key[1].encode("utf-8", "replace") for key in keys}
        c.clear([("*", "x"), ("?", "x")])
        assert len(c.get(keys)) == len(keys) - 2
        # Joined by any separator, these two would be one.
        one, two = (("a", "b,c"), "k"), (("a,b", "c"), "k")
        c.set({one: (1, None), two: (2, None)})
        assert c.get([one, two]) == {one: 1, two: 2}

    def values_are_apart_from_makers_and_readers(self, c: BlockingCache) -> None:
        value = [1]
        c.set({KEY: (value, None)})
        value.append(2)
        c.get([KEY])[KEY].append(3)
        assert c.get([KEY]) == {KEY: [1]}

    def a_value_without_stored_form_is_refused(self, c: BlockingCache) -> None:
        try:
            c.set({KEY: (object(), None)})
        except SerializationError:
            return
        raise AssertionError("an object was stored")

    def what_cannot_be_read_is_a_miss_and_told(self, c: BlockingCache) -> None:
        own, c.thing.serde = c.thing.serde, _Unreadable()
        c.set({KEY: (1, None)})
        c.thing.serde = own
        c.set({OTHER: (2, None)})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert c.get([KEY, OTHER]) == {OTHER: 2}
        assert CacheWarning in {each.category for each in told}


class PassingChecks:
    """What is checked where time can be made to pass."""

    def a_value_expires(
        self, c: BlockingCache, passes: Callable[[float], None]
    ) -> None:
        c.set({KEY: (1, 10), OTHER: (2, None)})
        passes(8)
        assert c.get([KEY, OTHER]) == {KEY: 1, OTHER: 2}
        passes(3)
        assert c.get([KEY, OTHER]) == {OTHER: 2}


_KINDS: Final = kinds_of(CacheChecks, PassingChecks)
_COLOURS: Final = (BlockingCache, LoopedCache)


def cache_checks(
    open: Callable[[], Opened], *, pass_time: PassTime = None
) -> Iterator[Check]:
    """Yield every check for the caches that `open` opens, each on a fresh one."""
    for check, colour in each_check(_KINDS, _COLOURS):
        run = partial(_run, check, colour, open, pass_time)
        yield Check(f"{check[1]}[{colour.__name__.lower()}]", run)


def _run(
    check: Named,
    colour: type[BlockingCache],
    open: Callable[[], Opened],
    pass_time: PassTime,
) -> None:
    kind, name = check
    if kind is PassingChecks and pass_time is None:
        raise SkipTest("time cannot be made to pass")
    with open() as cache, closing(colour(cache)) as face:
        more = (pass_time,) if kind is PassingChecks else ()
        getattr(kind(), name)(face, *more)


class CacheConformance:
    """A base for test classes: has a test method for every check and colour."""

    pass_time: PassTime = None
    """Makes seconds pass for the cache, without waiting."""

    def open(self) -> Opened:
        """Return a context manager that gives an empty cache."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        add_tests(cls, _KINDS, _COLOURS, cls._check)

    def _check(self, check: Named, colour: type[BlockingCache]) -> None:
        _run(check, colour, self.open, self.pass_time)
