"""The contract of a store: `batch` and `abatch`, and what is made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from towpath.store.base.ops import (
    NOT_PROVIDED,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_ttl,
    validate_op_namespace,
)


class BaseStore(ABC):
    """Keeps items that outlive a thread, in namespaces.

    A store implements `batch` and `abatch`. In a batch, reads see what was
    there before it, and of several puts to one key the last one counts.
    """

    supports_ttl: bool = False
    ttl_config: TTLConfig | None = None

    __slots__ = ("__weakref__",)

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; return their results in the same order."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async twin of `batch`."""

    def _one(self, op: Op) -> Result:
        return self.batch([op])[0]

    async def _aone(self, op: Op) -> Result:
        return (await self.abatch([op]))[0]

    def get(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """Return the item, if there is one. Reading may prolong its life."""
        op = GetOp(namespace, str(key), _refresh(self.ttl_config, refresh_ttl))
        return cast("Item | None", self._one(op))

    async def aget(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> Item | None:
        """Async twin of `get`."""
        op = GetOp(namespace, str(key), _refresh(self.ttl_config, refresh_ttl))
        return cast("Item | None", await self._aone(op))

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Find items below a namespace, those nearest in meaning to `query` first.

        `filter` compares for equality, or by $eq, $ne, $gt, $gte, $lt, $lte.
        """
        refresh = _refresh(self.ttl_config, refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refresh)
        return cast("list[SearchItem]", self._one(op))

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Async twin of `search`."""
        refresh = _refresh(self.ttl_config, refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query, refresh)
        return cast("list[SearchItem]", await self._aone(op))

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Put an item in place of the one that may be there.

        `index` says which paths are searched by meaning: the store's when None,
        none when False. `ttl` is the item's lifetime in minutes.
        """
        self._one(self._put_op(namespace, key, value, index, ttl))

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Async twin of `put`."""
        await self._aone(self._put_op(namespace, key, value, index, ttl))

    def _put_op(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None,
        ttl: float | NotProvided | None,
    ) -> PutOp:
        if ttl not in (NOT_PROVIDED, None) and not self.supports_ttl:
            raise NotImplementedError(
                f"TTL is not supported by {type(self).__name__}. "
                "Use a store implementation that supports TTL or set ttl=None."
            )
        lifetime = ensure_ttl(self.ttl_config, ttl)
        op = PutOp(namespace, str(key), value, index, lifetime)
        validate_op_namespace(op)
        return op

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        """Delete an item, if there is one."""
        self._one(PutOp(namespace, str(key), None))

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Async twin of `delete`."""
        await self._aone(PutOp(namespace, str(key), None))

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """List the namespaces that hold items, cut off at `max_depth` labels."""
        conditions = _conditions(prefix, suffix)
        op = ListNamespacesOp(conditions, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", self._one(op))

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Async twin of `list_namespaces`."""
        conditions = _conditions(prefix, suffix)
        op = ListNamespacesOp(conditions, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", await self._aone(op))


def _refresh(config: TTLConfig | None, refresh_ttl: bool | None) -> bool:
    if refresh_ttl is not None:
        return refresh_ttl
    return (config or {}).get("refresh_on_read", True)


def _conditions(
    prefix: NamespacePath | None, suffix: NamespacePath | None
) -> tuple[MatchCondition, ...]:
    found = []
    if prefix:
        found.append(MatchCondition("prefix", tuple(prefix)))
    if suffix:
        found.append(MatchCondition("suffix", tuple(suffix)))
    return tuple(found)
