"""A store that keeps items in Postgres.

Vectors lie in it as arrays of 32-bit floats. Where the extension pgvector is
installed, or may be, it compares them, otherwise numpy or Python does; each
compares all there are, so the results are the same.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, Self, TypedDict

import psycopg

from towpath.checkpoint.postgres.database import (
    AsyncConn,
    Conn,
    InPostgres,
    Pooling,
    PostgresDatabase,
    Tables,
)
from towpath.checkpoint.programs import Program, Query
from towpath.store.base import IndexConfig, TTLConfig
from towpath.store.nearness import MEASURES, Distance, Vector
from towpath.store.programs import MIGRATIONS, TABLES, VERSIONS, Measuring
from towpath.store.sql import SqlStore

_SCHEMA: Final = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n"
    " ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
)
_INSTALL: Final = (
    "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;"
    # Not shipped with this server, or not for this role to install.
    " EXCEPTION WHEN undefined_file OR feature_not_supported"
    " OR insufficient_privilege OR invalid_schema_name THEN NULL; END $$"
)
_SCORES: Final[dict[Distance, tuple[str, str]]] = {
    "cosine": ("<=>", "1 - ({})"),
    "l2": ("<->", "-({})"),
    "inner_product": ("<#>", "-({})"),  # what pgvector returns is negative
}
"""The operator of a distance, and what nearness that is."""


class PoolConfig(TypedDict, total=False):
    """How many connections a store may open."""

    min_size: int
    max_size: int | None
    kwargs: dict[str, Any]


class ANNIndexConfig(TypedDict, total=False):
    """What the peer builds an index for approximate search of. Ours is exact."""

    kind: Literal["hnsw", "ivfflat", "flat"]
    vector_type: Literal["vector", "halfvec"]


class PostgresIndexConfig(IndexConfig, total=False):
    """How items are found by meaning."""

    ann_index_config: ANNIndexConfig
    distance_type: Distance


class PostgresStore(InPostgres, SqlStore):
    """Keeps items in a Postgres database.

    The database is named by a connection string, of which the store makes a pool
    for each colour, of at most `pool_size_max` connections; or it is a connection
    or a pool of psycopg, blocking or async, which the caller closes. Lost
    connections are replaced as for `PostgresSaver`.

    One class has both colours. Values are kept by the codec of checkpoints, so
    they come back with their types.

    Raises:
        PersistenceError: (TP-501) from any method, with what Postgres said.
    """

    def __init__(
        self,
        conn: str | Conn | AsyncConn,
        *,
        pipe: psycopg.Pipeline | psycopg.AsyncPipeline | None = None,
        deserializer: Any = None,  # noqa: ARG002 - the peer's, for its own format
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        pool_size_max: int = 10,
        timeout_s: float = 30.0,
        prepare: bool = True,
    ) -> None:
        super().__init__(index=index, ttl=ttl)
        self.conn = conn
        self._schema: str | None = None
        distance: Any = (index or {}).get("distance_type", "cosine")
        if distance not in MEASURES:
            raise ValueError(
                f"unknown `distance_type` {distance!r}: cosine, l2 or inner_product"
            )
        self._distance: Distance = distance
        last = self._find_extension if index else None
        self._database = PostgresDatabase(
            conn,
            Tables(VERSIONS, MIGRATIONS, TABLES, last),
            pipe=pipe,
            pooling=Pooling(pool_size_max, timeout_s, prepare),
        )

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,  # noqa: ARG003 - the peer's
        pool_config: PoolConfig | None = None,
        **options: Any,
    ) -> Self:
        """Open a database. The store is its own context manager, in both colours."""
        if size_max := (pool_config or {}).get("max_size"):
            options["pool_size_max"] = size_max
        return cls(conn_string, **options)

    def close(self) -> None:
        """Stop sweeping, and close what was opened here."""
        SqlStore.stop_ttl_sweeper(self)
        super().close()

    @property
    def _measuring(self) -> Measuring:
        measure = MEASURES[self._distance]
        return Measuring(measure, _bind, _read, self._score())

    def _score(self) -> str | None:
        schema = self._schema
        if schema is None:
            return None
        operator, nearness = _SCORES[self._distance]
        # The extension need not be where unqualified names are looked up.
        score = nearness.format(
            f"v.data::{schema}.vector OPERATOR({schema}.{operator}) ?::{schema}.vector"
        )
        # The distance from a vector of zeros is no number, which sorts first.
        return (
            "CASE WHEN v.data IS NULL THEN NULL"
            f" ELSE coalesce(nullif({score}, 'NaN'), 0) END"
        )

    def _find_extension(self) -> Program[None]:
        """Find pgvector, or install it where that can be done."""
        rows = yield from Query(_SCHEMA)
        if not rows:
            yield Query("SELECT 1", lock=VERSIONS)
            yield Query(_INSTALL)
            rows = yield from Query(_SCHEMA)
        for (schema,) in rows:
            # Any other name would have to be quoted; nobody has one.
            if re.fullmatch(r"[a-z_][a-z0-9_]*", schema):
                self._schema = schema


def _bind(vector: Vector) -> list[float]:
    return [float(number) for number in vector]


def _read(data: Vector) -> Vector:
    return data
