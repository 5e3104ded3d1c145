"""A cache on a Redis server, which many processes and machines may share.

An entry is one key of Redis, with the server's own expiry: the prefix, then
namespace and key as JSON, in which no text can look like the end of another. Its
value is the tag of the codec, a colon, and the bytes.

A server that cannot be reached is no reason to stop a run: nothing is found then,
nothing is kept, and a warning says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from itertools import islice
from typing import Any, Final, NamedTuple

from towpath.cache.base import BaseCache, Cell, FullKey, Namespace, ValueT
from towpath.checkpoint.base.saver import in_thread
from towpath.checkpoint.serde.base import SerializerProtocol
from towpath.errors import MissingExtraError
from towpath.warnings import CacheWarning, warn_user

try:
    from redis.exceptions import RedisError
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        "`redis` is not installed", hint="pip install 'towpath[redis]'"
    ) from missing

__all__ = ("BaseCache", "RedisCache", "SerializerProtocol")

_SCAN: Final = 500
"""How many keys the server looks at, and forgets, in one call."""
_FAILURES: Final = (RedisError, OSError)
_SPECIAL: Final = re.compile(rb"[\\*?\[\]^-]")


class _Entry(NamedTuple):
    name: bytes
    data: bytes
    ttl: int | None


class RedisCache(BaseCache[ValueT]):
    """Keeps values on the server of `redis`, a client of the package of that name.

    A blocking client has both colours: async calls are made in threads. One of
    `redis.asyncio` has the async methods only, and stays on its event loop.

    Raises:
        ValueError: the client decodes responses, and would damage values.
    """

    def __init__(
        self,
        redis: Any,
        *,
        serde: SerializerProtocol | None = None,
        prefix: str = "langgraph:cache:",
    ) -> None:
        super().__init__(serde=serde)
        if _decodes(redis):
            raise ValueError(
                "a client with `decode_responses=True` cannot return bytes; give the "
                "cache one without it"
            )
        self.redis = redis
        self.prefix = prefix
        self._prefix = prefix.encode()
        self._awaited = iscoroutinefunction(type(redis).execute_command)

    # Blocking

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Return the values of those keys that have one."""
        self._check_blocking()
        try:
            found = self._getting(keys).execute()
        except _FAILURES as error:
            _miss(error)
            return {}
        return self._loaded(_cells(keys, found))

    def set(self, mapping: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Keep values, each with its lifetime in seconds."""
        self._check_blocking()
        self._set(self._entries(mapping))

    def _set(self, entries: Sequence[_Entry]) -> None:
        try:
            self._setting(entries).execute()
        except _FAILURES as error:
            _miss(error)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget these namespaces; everything when none are given."""
        self._check_blocking()
        try:
            for pattern in self._patterns(namespaces):
                names = self.redis.scan_iter(match=pattern, count=_SCAN)
                while some := [*islice(names, _SCAN)]:
                    self.redis.unlink(*some)
        except _FAILURES as error:
            _miss(error)

    # Async

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Async twin of `get`."""
        if not self._awaited:
            return await in_thread(self.get, keys)
        try:
            found = await self._getting(keys).execute()
        except _FAILURES as error:
            _miss(error)
            return {}
        return self._loaded(_cells(keys, found))

    async def aset(self, mapping: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Async twin of `set`."""
        # Encoded here: in the thread, the values may change meanwhile.
        entries = self._entries(mapping)
        if not self._awaited:
            return await in_thread(self._set, entries)
        try:
            await self._setting(entries).execute()
        except _FAILURES as error:
            _miss(error)
        return None

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Async twin of `clear`."""
        if not self._awaited:
            return await in_thread(self.clear, namespaces)
        try:
            for pattern in self._patterns(namespaces):
                names = self.redis.scan_iter(match=pattern, count=_SCAN)
                async for some in _parts(names):
                    await self.redis.unlink(*some)
        except _FAILURES as error:
            _miss(error)
        return None

    # What either colour asks of the server

    def _getting(self, keys: Sequence[FullKey]) -> Any:
        # Not MGET: in a cluster, keys lie on several servers.
        pipeline = self.redis.pipeline(transaction=False)
        for key in keys:
            pipeline.get(self._name(key))
        return pipeline

    def _setting(self, entries: Iterable[_Entry]) -> Any:
        pipeline = self.redis.pipeline(transaction=False)
        for name, data, ttl in entries:
            if ttl is not None and ttl <= 0:
                pipeline.delete(name)
            else:
                pipeline.set(name, data, ex=ttl)
        return pipeline

    def _entries(
        self, mapping: Mapping[FullKey, tuple[ValueT, int | None]]
    ) -> list[_Entry]:
        entries = []
        for key, (value, ttl) in mapping.items():
            tag, data = self.serde.dumps_typed(value)
            entries.append(_Entry(self._name(key), tag.encode() + b":" + data, ttl))
        return entries

    def _name(self, key: FullKey) -> bytes:
        namespace, name = key
        return self._space(namespace) + json.dumps(name).encode()

    def _space(self, namespace: Namespace) -> bytes:
        return self._prefix + json.dumps(list(namespace)).encode()

    def _patterns(self, namespaces: Sequence[Namespace] | None) -> Iterator[bytes]:
        spaces = [self._prefix] if namespaces is None else map(self._space, namespaces)
        for space in spaces:
            yield _SPECIAL.sub(rb"\\\g<0>", space) + b"*"

    def _check_blocking(self) -> None:
        if self._awaited:
            raise TypeError(
                "the client of this cache is async: use `aget`, `aset` and `aclear`, "
                "or give the cache a blocking client"
            )


def _decodes(redis: Any) -> bool:
    pool = getattr(redis, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", {})
    return bool(settings.get("decode_responses"))


def _cells(
    keys: Sequence[FullKey], found: Sequence[bytes | None]
) -> Iterator[tuple[FullKey, Cell]]:
    for key, data in zip(keys, found, strict=True):
        if data is not None:
            tag, _, content = data.partition(b":")
            yield key, (tag.decode("utf-8", "replace"), content)


async def _parts(names: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    some: list[bytes] = []
    async for name in names:
        some.append(name)
        if len(some) == _SCAN:
            yield some
            some = []
    if some:
        yield some


def _miss(error: Exception) -> None:
    warn_user(f"the cache on Redis could not be used: {error}", CacheWarning)
