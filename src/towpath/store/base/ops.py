"""The words of a store: operations, items, and the rules for namespaces.

A namespace is a tuple of labels, compared label by label: `("acme",)` is above
`("acme", "eu")` and has nothing to do with `("acme-corp",)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict

from towpath.checkpoint.nul import is_unicode
from towpath.store.base.embed import AEmbeddingsFunc, Embeddings, EmbeddingsFunc

NamespacePath = tuple[str | Literal["*"], ...]  # noqa: PYI051 - says more
"""Labels, any of which may be the wildcard "*"."""
NamespaceMatchType = Literal["prefix", "suffix"]


class NotProvided:
    """The type of `NOT_PROVIDED`: an argument that was left out."""

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_PROVIDED = NotProvided()
NOT_GIVEN = NOT_PROVIDED


class TTLConfig(TypedDict, total=False):
    """How long items live. Times are in minutes."""

    refresh_on_read: bool
    omit_expired: bool
    default_ttl: float | None
    sweep_interval_minutes: int | None


class IndexConfig(TypedDict, total=False):
    """How items are found by meaning."""

    dims: int
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str
    fields: list[str] | None


class Item:
    """A stored value, where it is, and when it was put."""

    __slots__ = ("created_at", "key", "namespace", "updated_at", "value")

    def __init__(
        self,
        *,
        value: dict[str, Any],
        key: str,
        namespace: tuple[str, ...],
        created_at: datetime,
        updated_at: datetime,
    ) -> None:
        self.value = value
        self.key = key
        # JSON has neither tuples nor datetimes, and stores read it.
        self.namespace = tuple(namespace)
        self.created_at = _datetime(created_at)
        self.updated_at = _datetime(updated_at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and self._facts() == other._facts()

    def _facts(self) -> tuple[Any, ...]:
        times = self.created_at, self.updated_at
        return self.namespace, self.key, self.value, *times

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.dict().items())
        return f"{type(self).__name__}({facts})"

    def dict(self) -> dict[str, Any]:
        """Return the item as JSON has it."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


class SearchItem(Item):
    """An item that a search found, and how well it fits the query."""

    __slots__ = ("score",)

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        score: float | None = None,
    ) -> None:
        super().__init__(
            value=value,
            key=key,
            namespace=namespace,
            created_at=created_at,
            updated_at=updated_at,
        )
        self.score = score

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.dict().items())
        return f"Item({facts})"

    def dict(self) -> dict[str, Any]:
        """Return the item as JSON has it."""
        return {**super().dict(), "score": self.score}


def _datetime(time: datetime | str) -> datetime:
    return datetime.fromisoformat(time) if isinstance(time, str) else time


class GetOp(NamedTuple):
    """Get one item."""

    namespace: tuple[str, ...]
    key: str
    refresh_ttl: bool = True


class SearchOp(NamedTuple):
    """Find items below a namespace."""

    namespace_prefix: tuple[str, ...]
    filter: dict[str, Any] | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class PutOp(NamedTuple):
    """Put an item in place of the one that may be there; None deletes it."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]  # tuples have a method of this name
    ttl: float | None = None


class MatchCondition(NamedTuple):
    """What the start or the end of a namespace must be."""

    match_type: NamespaceMatchType
    path: NamespacePath

    def holds(self, namespace: tuple[str, ...]) -> bool:
        """Tell whether a namespace fits."""
        count = len(self.path)
        if self.match_type == "prefix":
            labels = namespace[:count]
        elif self.match_type == "suffix":
            labels = namespace[max(len(namespace) - count, 0) :]
        else:
            raise ValueError(f"Unsupported match type: {self.match_type}")
        return len(labels) == count and all(
            wanted in ("*", label)
            for wanted, label in zip(self.path, labels, strict=True)
        )


class ListNamespacesOp(NamedTuple):
    """List namespaces that hold items."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0

    def select(self, namespaces: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return those of the namespaces there are that were asked for, in order."""
        found = {
            namespace[: self.max_depth]
            for namespace in namespaces
            if all(each.holds(namespace) for each in self.match_conditions or ())
        }
        return sorted(found)[self.offset : self.offset + self.limit]


Op = GetOp | SearchOp | PutOp | ListNamespacesOp
Result = Item | list[Item] | list[SearchItem] | list[tuple[str, ...]] | None


class InvalidNamespaceError(ValueError):
    """A namespace that items cannot be put in."""


class InvalidKeyError(ValueError):
    """A key is no text that could be stored everywhere."""


def validate_op_namespace(op: Op) -> None:
    """Check the names of an operation.

    Raises:
        InvalidNamespaceError: a label is empty, has a period or a NUL, is not a str or
            has a lone surrogate, which no file can hold, or nothing can be put there.
        InvalidKeyError: the key has a lone surrogate.
    """
    if isinstance(op, PutOp):
        _check_put(op.namespace)
    elif isinstance(op, GetOp):
        _check_labels(op.namespace)
    elif isinstance(op, SearchOp):
        _check_labels(op.namespace_prefix)
    else:
        for condition in op.match_conditions or ():
            for label in condition.path:
                _check_text(label, condition.path)
    if isinstance(op, PutOp | GetOp) and not _storable(op.key):
        raise InvalidKeyError(f"The key {op.key!a} has a lone surrogate.")


def _storable(text: object) -> bool:
    """Whether this is no text with a lone surrogate."""
    return not isinstance(text, str) or is_unicode(text)


def _check_text(label: object, namespace: Iterable[object]) -> None:
    if not _storable(label):
        raise InvalidNamespaceError(
            f"Invalid namespace label {label!a} found in {namespace!a}. "
            "Namespace labels cannot have lone surrogates."
        )


def _check_put(namespace: tuple[str, ...]) -> None:
    if not namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    _check_labels(namespace)
    if namespace[0] == "langgraph":
        raise InvalidNamespaceError(
            f'Root label for namespace cannot be "langgraph". Got: {namespace}'
        )


def _check_labels(namespace: Iterable[object]) -> None:
    if isinstance(namespace, str):
        raise InvalidNamespaceError(
            f"A namespace is a tuple of labels: ({namespace!r},), not {namespace!r}."
        )
    for label in namespace:
        if not isinstance(label, str):
            raise InvalidNamespaceError(
                f"Invalid namespace label '{label}' found in {namespace}. Namespace "
                f"labels must be strings, but got {type(label).__name__}."
            )
        if "." in label:
            raise InvalidNamespaceError(
                f"Invalid namespace label '{label}' found in {namespace}. Namespace "
                "labels cannot contain periods ('.')."
            )
        if "\0" in label:
            raise InvalidNamespaceError(
                f"Invalid namespace label {label!r} found in {namespace}. Namespace "
                "labels cannot contain NUL bytes ('\\x00')."
            )
        if not label:
            raise InvalidNamespaceError(
                f"Namespace labels cannot be empty strings. Got {label} in {namespace}"
            )
        _check_text(label, namespace)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda value, operand: value > operand,
    "$gte": lambda value, operand: value >= operand,
    "$lt": lambda value, operand: value < operand,
    "$lte": lambda value, operand: value <= operand,
}


def fits(value: Any, filter: Mapping[str, Any] | None) -> bool:
    """Tell whether a value has every key of `filter`, as it says.

    A key is compared for equality, or by operators (`{"$gt": 3}`); a filter
    inside a filter is for a value inside a value. A missing key counts as None, and
    numbers are compared as Python does: 1, 1.0 and True are equal.

    Raises:
        ValueError: there is no such operator.
    """
    return all(_fits(value.get(key), wanted) for key, wanted in (filter or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(op, value, wanted[op]) for op in wanted)
        if not isinstance(value, Mapping) or (value and not wanted):
            return False
        return fits(value, wanted)
    if isinstance(wanted, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(wanted)
            and all(map(_fits, value, wanted))
        )
    return bool(value == wanted)


def _holds(operator: str, value: Any, operand: Any) -> bool:
    if operator == "$eq":
        return bool(value == operand)
    if operator == "$ne":
        return bool(value != operand)
    compare = _COMPARISONS.get(operator)
    if compare is None:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return compare(value, operand)
    except (TypeError, ArithmeticError):
        pass
    try:
        return compare(float(value), float(operand))
    except (TypeError, ValueError, ArithmeticError):
        return False


def ensure_ttl(
    ttl_config: TTLConfig | None, ttl: float | NotProvided | None = NOT_PROVIDED
) -> float | None:
    """Return the lifetime of an item: its own, or the store's default."""
    if isinstance(ttl, NotProvided):
        return (ttl_config or {}).get("default_ttl")
    return ttl


def check_page(limit: int, offset: int) -> None:
    """Check how much of what is found is asked for.

    Raises:
        ValueError: one of them is negative.
    """
    if limit < 0 or offset < 0:
        raise ValueError("`limit` and `offset` must not be negative")
