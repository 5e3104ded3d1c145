"""The stored forms of pydantic's URLs and data source names: their text.

Its secrets have none. Who wants one stored in the clear has to say so, by
registering the class.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from towpath.checkpoint.serde.arrays import loaded
from towpath.checkpoint.serde.registry import DEFAULT, Entry, Registry

_PREFIX: Final = "pydantic:"
_NAMES: Final = frozenset(
    {
        "AmqpDsn",
        "AnyHttpUrl",
        "AnyUrl",
        "AnyWebsocketUrl",
        "ClickHouseDsn",
        "CockroachDsn",
        "FileUrl",
        "FtpUrl",
        "HttpUrl",
        "KafkaDsn",
        "MariaDBDsn",
        "MongoDsn",
        "MySQLDsn",
        "NatsDsn",
        "PostgresDsn",
        "RedisDsn",
        "SnowflakeDsn",
        "WebsocketUrl",
    }
)


def _by_type(cls: type) -> Entry | None:
    name = cls.__name__
    if name not in _NAMES or cls.__module__ != "pydantic.networks":
        return None
    return (
        _entry(cls) if getattr(sys.modules.get("pydantic"), name, None) is cls else None
    )


def _by_name(name: str) -> Entry | None:
    bare = name.removeprefix(_PREFIX)
    if bare == name or bare not in _NAMES:
        return None
    return _entry(getattr(loaded("pydantic"), bare))


def _entry(cls: Any) -> Entry:
    return Entry(_PREFIX + cls.__name__, cls, str, cls)


def register_urls(registry: Registry = DEFAULT) -> None:
    """Let a registry find these classes when it meets them."""
    registry.find(_by_type, _by_name)
