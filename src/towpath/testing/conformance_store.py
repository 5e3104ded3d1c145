"""What every store must do, as checks for any of them.

For the author of a store: derive from `StoreConformance`, say how to open an
empty store, and every check is a test, in both colours.

    class TestMyStore(StoreConformance):
        def open(self, index=None):
            return MyStore.from_conn_string(..., index=index)

A store that does not search by meaning says `by_meaning = False`. Checks of how
lifetimes pass need `pass_time`; without it they are skipped. Nothing here needs
pytest: `store_checks` gives the same as plain functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from typing import Any, ClassVar, Final, Protocol, cast
from unittest import SkipTest

from towpath.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
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

Namespace = tuple[str, ...]


class Opens(Protocol):
    """Opens an empty store, which is closed with its context."""

    def __call__(
        self, index: IndexConfig | None = None
    ) -> AbstractContextManager[BaseStore]: ...


class BlockingStore(Face):
    """A store by its blocking methods, as the checks call it."""

    def get(self, namespace: Namespace, key: str, **options: Any) -> Item | None:
        found: Item | None = self.call("get", namespace, key, **options)
        return found

    def value(self, namespace: Namespace, key: str) -> Any:
        item = self.get(namespace, key)
        return None if item is None else item.value

    def put(self, namespace: Namespace, key: str, value: Any, **options: Any) -> None:
        self.call("put", namespace, key, value, **options)

    def delete(self, namespace: Namespace, key: str) -> None:
        self.call("delete", namespace, key)

    def search(self, prefix: Namespace, **options: Any) -> list[SearchItem]:
        found: list[SearchItem] = self.call("search", prefix, **options)
        return found

    def keys(self, prefix: Namespace, **options: Any) -> list[str]:
        return [item.key for item in self.search(prefix, **options)]

    def namespaces(self, **options: Any) -> list[Namespace]:
        found: list[Namespace] = self.call("list_namespaces", **options)
        return found

    def batch(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = self.call("batch", ops)
        return results


class LoopedStore(Looped, BlockingStore):
    """A store by its async methods."""


def letters(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts by how many a, b and c they have."""
    return [[float(text.count(letter)) for letter in "abc"] for text in texts]


INDEX: Final[IndexConfig] = {"dims": 3, "embed": letters, "fields": ["t", "more[*]"]}

_VALUES: Final[dict[str, dict[str, Any]]] = {
    "a": {"n": 1, "text": "x", "deep": {"x": 1}, "list": [1, 2]},
    "b": {"n": 2.0, "text": "y", "deep": {"x": 2, "y": None}},
    "c": {"n": 3, "text": "z", "flag": True},
    "d": {"none": None, "flag": False, "n": "10"},
}
_FILTERS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({}, "abcd"),
    ({"n": 2}, "b"),
    ({"n": 1.0}, "a"),
    ({"n": {"$eq": 3}}, "c"),
    ({"n": {"$ne": 1}}, "bcd"),
    ({"n": {"$gt": 1, "$lte": 3}}, "bc"),
    ({"n": {"$gt": 3}}, "d"),
    ({"n": {"$lt": 2}}, "a"),
    ({"n": {"$gte": "2"}}, "bc"),
    ({"n": "1"}, ""),
    ({"text": {"$lt": "y"}}, "a"),
    ({"text": {"$gt": 1}}, ""),
    ({"deep": {"x": 1}}, "a"),
    ({"deep": {"x": {"$gt": 1}}}, "b"),
    ({"deep": {"y": None}}, "ab"),
    ({"deep": {}}, ""),
    ({"list": [1, 2]}, "a"),
    ({"list": [1]}, ""),
    ({"flag": True}, "c"),
    ({"flag": 1}, "c"),
    ({"flag": False}, "d"),
    ({"n": True}, "a"),
    ({"none": None}, "abcd"),
    ({"none": {"$ne": None}}, ""),
    ({"none": {"$gt": 0}}, ""),
    ({"nowhere": {"$ne": 1}}, "abcd"),
    ({"nowhere": 1}, ""),
    ({"n": 1, "text": "x"}, "a"),
    ({"n": 1, "text": "y"}, ""),
)
"""Filters, and the keys of `_VALUES` that each fits."""

_NAMESPACES: Final[tuple[Namespace, ...]] = (
    ("a", "b", "c"),
    ("a", "b", "d"),
    ("a", "x"),
    ("a!",),
    ("ab",),
    ("b", "c"),
)
_LISTINGS: Final[tuple[tuple[dict[str, Any], list[Namespace]], ...]] = (
    ({}, [*_NAMESPACES]),
    ({"prefix": ("a",)}, [*_NAMESPACES[:3]]),
    ({"suffix": ("c",)}, [_NAMESPACES[0], _NAMESPACES[5]]),
    ({"prefix": ("a", "*", "c")}, [_NAMESPACES[0]]),
    ({"prefix": ("*", "c")}, [_NAMESPACES[5]]),
    ({"prefix": ("a",), "suffix": ("d",)}, [_NAMESPACES[1]]),
    ({"prefix": ("a", "b", "c", "d")}, []),
    ({"max_depth": 1}, [("a",), ("a!",), ("ab",), ("b",)]),
    ({"max_depth": 2, "prefix": ("a",)}, [("a", "b"), ("a", "x")]),
    ({"limit": 2, "offset": 1}, [*_NAMESPACES[1:3]]),
    ({"offset": 10}, []),
    ({"limit": 0}, []),
)

_BAD: Final[tuple[Any, ...]] = (
    (),
    ("",),
    ("a.b",),
    ("a\0b",),
    ("a", 1),
    ("langgraph", "x"),
    "ab",
)


class StoreChecks:
    """What is checked of every store. `s` is empty."""

    def an_item_comes_back_as_it_was_put(self, s: BlockingStore) -> None:
        s.put(("a",), "k", {"x": [1, None, "ü", {"y": 2.5}]})
        item = s.get(("a",), "k")
        assert item is not None
        assert item.value == {"x": [1, None, "ü", {"y": 2.5}]}
        assert (item.key, item.namespace) == ("k", ("a",))
        assert item.created_at.tzinfo is not None
        assert s.get(("a",), "other") is None
        assert s.get(("b",), "k") is None

    def an_item_put_again_keeps_when_it_was_made(self, s: BlockingStore) -> None:
        s.put(("a",), "k", {"x": 1})
        first = s.get(("a",), "k")
        s.put(("a",), "k", {"x": 2})
        second = s.get(("a",), "k")
        assert first is not None
        assert second is not None
        assert first.created_at == second.created_at
        assert first.updated_at < second.updated_at
        assert second.value == {"x": 2}

    def a_deleted_item_is_gone(self, s: BlockingStore) -> None:
        s.put(("a",), "k", {"x": 1})
        s.delete(("a",), "k")
        s.delete(("a",), "never there")
        assert s.get(("a",), "k") is None
        assert s.namespaces() == []
        assert s.search(()) == []

    def values_are_apart_from_makers_and_readers(self, s: BlockingStore) -> None:
        value = {"x": [1]}
        s.put(("a",), "k", value)
        value["x"].append(2)
        s.value(("a",), "k")["x"].append(3)
        s.search(("a",))[0].value["x"].append(4)
        assert s.value(("a",), "k") == {"x": [1]}

    def a_bad_namespace_is_refused(self, s: BlockingStore) -> None:
        for namespace in _BAD:
            try:
                s.put(namespace, "k", {})
            except InvalidNamespaceError:
                continue
            raise AssertionError(namespace)
        assert s.namespaces() == []

    def names_that_no_file_can_hold_are_refused(self, s: BlockingStore) -> None:
        s.put(("a",), "k", {"\ud800": "\ud800"})
        calls = (
            lambda: s.put(("\ud800",), "k", {}),
            lambda: s.put(("a",), "\ud800", {}),
            lambda: s.value(("a", "\ud800"), "k"),
            lambda: s.value(("a",), "\ud800"),
            lambda: s.keys(("\ud800",)),
            lambda: s.namespaces(prefix=("\ud800",)),
        )
        for call in calls:
            try:
                call()
            except ValueError:
                continue
            raise AssertionError("a lone surrogate was taken")
        assert s.keys((), filter={"\ud800": "\ud800"}) == ["k"]

    def hostile_names_are_names_like_any_other(self, s: BlockingStore) -> None:
        names = [*(name for name in HOSTILE if "." not in name), "\1"]
        for name in names:
            s.put((name, "x"), name, {name: name})
        for name in names:
            assert s.value((name, "x"), name) == {name: name}
            assert s.keys((name,)) == [name]
            assert s.keys((), filter={name: name}, limit=1000) == [name]
            assert s.namespaces(prefix=(name,)) == [(name, "x")]

    def a_zero_in_a_key_is_a_letter_like_any_other(self, s: BlockingStore) -> None:
        name = "nul\0inside"
        s.put(("a",), name, {name: name})
        assert s.value(("a",), name) == {name: name}
        assert s.keys((), filter={name: name}) == [name]

    def a_filter_s_keys_and_values_are_no_query(self, s: BlockingStore) -> None:
        s.put(("a",), "k", {"a.b": 1, "'; --": "it's", "$x": 2, "%": "%"})
        assert s.keys((), filter={"a.b": 1, "'; --": "it's", "%": "%"}) == ["k"]
        for wanted in ({"a": {"b": 1}}, {"a.b' OR '1'='1": 1}, {"%": "x"}):
            assert s.keys((), filter=wanted) == []

    def a_prefix_is_compared_label_by_label(self, s: BlockingStore) -> None:
        for namespace in (("acme",), ("acme", "eu"), ("acme-corp",), ("acm",)):
            s.put(namespace, "k", {})
        found = {item.namespace for item in s.search(("acme",))}
        assert found == {("acme",), ("acme", "eu")}
        assert s.search(("ac_e",)) == s.search(("ac%",)) == s.search(("ACME",)) == []

    def a_search_is_cut_into_pages(self, s: BlockingStore) -> None:
        for number in range(25):
            s.put(("a", str(number % 2)), f"k{number}", {"n": number})
        assert len(s.search(("a",))) == 10
        for wanted in (None, {"n": {"$gte": 3}}):
            whole = s.keys(("a",), limit=100, filter=wanted)
            pages = [
                s.keys(("a",), limit=4, offset=offset, filter=wanted)
                for offset in range(0, 28, 4)
            ]
            assert [key for page in pages for key in page] == whole
        assert s.search(("a",), limit=0) == []
        assert s.search(("a",), offset=25) == []
        assert s.search(("a",), offset=10**20) == []
        assert len(s.search(("a",), limit=10**20)) == len(s.search(("a",), limit=99))

    def a_filter_says_what_is_found(self, s: BlockingStore) -> None:
        for key, value in _VALUES.items():
            s.put(("f",), key, value)
        for wanted, expected in _FILTERS:
            assert sorted(s.keys(("f",), filter=wanted)) == [*expected], wanted

    def a_filter_chooses_before_the_page_is_cut(self, s: BlockingStore) -> None:
        s.batch([PutOp(("f",), str(n), {"n": n, "odd": n % 2}) for n in range(300)])
        assert len(s.search(("f",), filter={"odd": 1}, limit=1000)) == 150
        [last] = s.search(("f",), filter={"n": 0})
        [first] = s.search(("f",), filter={"n": 299})
        assert (last.key, first.key) == ("0", "299")

    def an_unknown_operator_is_an_error(self, s: BlockingStore) -> None:
        s.put(("f",), "a", {"n": 1})
        with _raises(ValueError):
            s.search(("f",), filter={"n": {"$regex": "x"}})

    def namespaces_are_listed(self, s: BlockingStore) -> None:
        for namespace in _NAMESPACES:
            s.put(namespace, "k", {})
        for query, expected in _LISTINGS:
            assert s.namespaces(**query) == expected, query

    def reads_of_a_batch_see_what_was_there_before(self, s: BlockingStore) -> None:
        condition = MatchCondition("prefix", ("z",))
        results = s.batch(
            [
                PutOp(("z",), "k", {"a": 1}),
                GetOp(("z",), "k"),
                PutOp(("z",), "k", {"a": 2}),
                SearchOp(("z",)),
                ListNamespacesOp((condition,)),
            ]
        )
        assert results == [None, None, None, [], [("z",)]]
        assert s.value(("z",), "k") == {"a": 2}

    def the_last_operation_on_a_key_counts(self, s: BlockingStore) -> None:
        s.batch([PutOp(("z",), "k", {"a": 1}), PutOp(("z",), "k", None)])
        assert s.get(("z",), "k") is None
        s.batch([PutOp(("z",), "k", None), PutOp(("z",), "k", {"a": 2})])
        assert s.value(("z",), "k") == {"a": 2}

    def a_batch_is_stored_whole_or_not_at_all(self, s: BlockingStore) -> None:
        bad: Any = PutOp(("z",), "bad", {"x": object()})
        with suppress(Exception):
            s.batch([PutOp(("z",), "k", {"a": 1}), bad])
            raise AssertionError("an object was stored")
        assert s.get(("z",), "k") is None

    def results_are_in_the_order_of_the_operations(self, s: BlockingStore) -> None:
        s.batch([PutOp(("z",), str(n), {"n": n}) for n in range(300)])
        places = [*range(299, -1, -1), 5, 5, 1000]
        found = s.batch([GetOp(("z",), str(n)) for n in places])
        values = [item.value["n"] for item in found if isinstance(item, Item)]
        assert values == places[:-1]
        assert found[-1] is None
        assert s.batch([]) == []


class LifetimeChecks:
    """What is checked of stores whose items can expire."""

    def a_lifetime_is_a_number_and_may_have_no_end(self, s: BlockingStore) -> None:
        for ttl in (math.inf, 1e300, 10**30):
            s.put(("a",), str(ttl), {"x": 1}, ttl=ttl)
            assert s.get(("a",), str(ttl)) is not None
        for ttl in (-1e300, -math.inf):
            s.put(("a",), str(ttl), {"x": 1}, ttl=ttl)
            assert s.get(("a",), str(ttl)) is None
        with _raises(ValueError):
            s.put(("a",), "nan", {"x": 1}, ttl=math.nan)
        with _raises(TypeError):
            s.put(("a",), "text", {"x": 1}, ttl=cast("float", "5"))

    def what_has_expired_is_gone(self, s: BlockingStore) -> None:
        s.put(("a",), "short", {"x": 1}, ttl=1e-9)
        s.put(("a",), "long", {"x": 1}, ttl=60)
        s.put(("b",), "short", {"x": 1}, ttl=1e-9)
        assert s.get(("a",), "short") is None
        assert s.keys(()) == ["long"]
        assert s.namespaces() == [("a",)]
        first = s.get(("a",), "long")
        s.put(("a",), "short", {"x": 2}, ttl=None)
        again = s.get(("a",), "short")
        assert first is not None
        assert again is not None
        assert again.created_at > first.created_at


class PassingChecks:
    """What is checked of lifetimes, where time can be made to pass."""

    def an_item_expires(
        self, s: BlockingStore, passes: Callable[[float], None]
    ) -> None:
        s.put(("a",), "short", {}, ttl=1)
        s.put(("a",), "longer", {}, ttl=3)
        s.put(("a",), "for good", {})
        passes(50)
        assert len(s.search(("a",), refresh_ttl=False)) == 3
        passes(50)
        assert sorted(s.keys(("a",), refresh_ttl=False)) == ["for good", "longer"]
        passes(200)
        assert s.keys(("a",)) == ["for good"]

    def reading_prolongs_a_life(
        self, s: BlockingStore, passes: Callable[[float], None]
    ) -> None:
        s.put(("a",), "k", {"t": "a"}, ttl=1)
        for _ in range(3):
            passes(50)
            assert s.get(("a",), "k") is not None
        for _ in range(3):
            passes(50)
            assert s.keys(("a",)) == ["k"]
        passes(50)
        assert s.get(("a",), "k", refresh_ttl=False) is not None
        passes(50)
        assert s.get(("a",), "k") is None


class MeaningChecks:
    """What is checked of searches by meaning. `s` was opened with `INDEX`."""

    def the_nearest_items_come_first(self, s: BlockingStore) -> None:
        s.put(("d",), "b", {"t": "bbb"})
        s.put(("d",), "a", {"t": "aa"})
        s.put(("d",), "both", {"t": "b", "more": ["c", "a"]})
        s.put(("d",), "hidden", {"t": "aaa"}, index=False)
        s.put(("d",), "other", {"title": "aab"}, index=["title"])
        s.put(("e",), "a", {"t": "a"})
        found = s.search(("d",), query="aaaa")
        keys = [item.key for item in found]
        assert sorted(keys[:2]) == ["a", "both"]
        assert keys[2:] == ["other", "b", "hidden"]
        scores = [item.score for item in found]
        assert scores[-1] is None
        assert _close(scores[:4], [1.0, 1.0, 0.8944, 0.0])
        assert s.keys(("d",), query="aaaa", limit=2, offset=2) == ["other", "b"]
        assert {item.score for item in s.search(("d",))} == {None}

    def a_filter_is_heeded_by_a_search_by_meaning(self, s: BlockingStore) -> None:
        s.batch(
            [
                PutOp(("d",), str(n), {"t": "a" * n + "b", "odd": n % 2})
                for n in range(100)
            ]
        )
        nearest = s.keys(("d",), query="a", filter={"odd": 0}, limit=3)
        assert nearest == ["98", "96", "94"]

    def an_item_is_found_by_its_newest_text(self, s: BlockingStore) -> None:
        s.put(("d",), "k", {"t": "a"})
        s.put(("d",), "k", {"t": "b"})
        [found] = s.search(("d",), query="b")
        assert found.score is not None
        assert found.score > 0.99
        s.put(("d",), "k", {"t": "b"}, index=False)
        [found] = s.search(("d",), query="b")
        assert found.score is None
        s.delete(("d",), "k")
        assert s.search(("d",), query="b") == []

    def a_vector_of_zeros_is_near_to_none(self, s: BlockingStore) -> None:
        s.put(("d",), "zero", {"t": "x"})
        s.put(("d",), "a", {"t": "ab"})
        assert s.keys(("d",), query="a") == ["a", "zero"]
        assert [item.score for item in s.search(("d",), query="xyz")] == [0.0, 0.0]


_KINDS: Final = kinds_of(StoreChecks, LifetimeChecks, PassingChecks, MeaningChecks)
_COLOURS: Final = (BlockingStore, LoopedStore)


def store_checks(
    open: Opens,
    *,
    by_meaning: bool = True,
    pass_time: Callable[[float], None] | None = None,
) -> Iterator[Check]:
    """Yield every check for the stores that `open` opens, each on a fresh one."""
    for check, colour in each_check(_KINDS, _COLOURS):
        run = partial(_run, check, colour, open, by_meaning, pass_time)
        yield Check(f"{check[1]}[{colour.__name__.lower()}]", run)


def _run(
    check: Named,
    colour: type[BlockingStore],
    open: Opens,
    by_meaning: bool,
    pass_time: Callable[[float], None] | None,
) -> None:
    kind, name = check
    if kind is MeaningChecks and not by_meaning:
        raise SkipTest("the store does not search by meaning")
    if kind is PassingChecks and pass_time is None:
        raise SkipTest("time cannot be made to pass")
    index = INDEX if kind is MeaningChecks else None
    with open(index=index) as store, closing(colour(store)) as face:
        if kind in (LifetimeChecks, PassingChecks) and not store.supports_ttl:
            raise SkipTest("items of the store do not expire")
        more = (pass_time,) if kind is PassingChecks else ()
        getattr(kind(), name)(face, *more)


class StoreConformance:
    """A base for test classes: has a test method for every check and colour."""

    by_meaning: ClassVar[bool] = True
    pass_time: Callable[[float], None] | None = None
    """Makes seconds pass for the store, without waiting."""

    def open(
        self, index: IndexConfig | None = None
    ) -> AbstractContextManager[BaseStore]:
        """Return a context manager that gives an empty store."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        add_tests(cls, _KINDS, _COLOURS, cls._check)

    def _check(self, check: Named, colour: type[BlockingStore]) -> None:
        _run(check, colour, self.open, self.by_meaning, self.pass_time)


class _raises:  # noqa: N801 - reads as a verb
    """Fails unless its body raises."""

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        assert kind is not None, f"no {self._kind.__name__} was raised"
        return issubclass(kind, self._kind)


def _close(found: Sequence[float | None], expected: Sequence[float]) -> bool:
    return all(
        one is not None and abs(one - other) < 1e-4
        for one, other in zip(found, expected, strict=True)
    )
