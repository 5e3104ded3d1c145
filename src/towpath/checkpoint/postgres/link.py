"""Statements to the server in batches, with one wait for a batch.

psycopg's cursors talk to the server once for each statement, even in pipeline
mode; a commit has about eight. Here statements collect in the buffer of libpq
until somebody needs their rows or the end of the transaction, and are sent and
waited for together. What goes on between is psycopg's own generators, so that a
connection of either colour can do the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, PipelineStatus
from psycopg.pq.abc import PGresult

from towpath.checkpoint.postgres.dialect import bound, loaded
from towpath.checkpoint.programs import Row

Step = Callable[[], Any]
"""A call of psycopg, to be made blocking or to be awaited."""

_BAD: Final = ConnStatus.BAD
_FAILED: Final = ExecStatus.FATAL_ERROR


class Reply:
    """What a statement comes to, once it was waited for."""

    result: PGresult | None = None


class Link:
    """A connection in pipeline mode, and the statements under way on it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._under_way: list[Reply] = []
        self._entered = self._pgconn.pipeline_status == PipelineStatus.OFF
        if self._entered:
            self._pgconn.enter_pipeline_mode()

    def leave(self) -> None:
        """Leave pipeline mode. A connection that cannot is closed."""
        if not self._entered or self._pgconn.status == _BAD:
            return
        try:
            self._pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:
            self._pgconn.finish()

    def send(self, sql: bytes, args: Sequence[Any] = ()) -> Reply:
        """Have a statement sent with the next batch."""
        transformer = self._transformer
        formats = [PyFormat.BINARY] * len(args)
        self._pgconn.send_query_params(
            sql,
            transformer.dump_sequence(bound(args), formats) if args else None,
            param_types=transformer.types if args else None,
            param_formats=transformer.formats if args else None,
            result_format=Format.BINARY,
        )
        reply = Reply()
        self._under_way.append(reply)
        return reply

    def receive(self) -> Step:
        """Send what collected, and wait for all of it."""
        return partial(self._connection.wait, self._exchange(last=False))

    def end(self) -> Step:
        """Do so, and have the server end the batch."""
        return partial(self._connection.wait, self._exchange(last=True))

    def rows(self, reply: Reply) -> list[Row]:
        """Return the rows of a statement that was waited for."""
        assert reply.result is not None
        transformer = self._transformer
        transformer.set_pgresult(reply.result)
        return loaded(transformer.load_rows(0, reply.result.ntuples, tuple))

    def _exchange(self, *, last: bool) -> Generator[Any, Any, None]:
        pgconn, failed = self._pgconn, None
        if last:
            pgconn.pipeline_sync()
        else:
            pgconn.send_flush_request()
        yield from generators.send(pgconn)
        while self._under_way:
            reply = self._under_way.pop(0)
            *_, reply.result = yield from generators.fetch_many(pgconn)
            if reply.result.status == _FAILED and failed is None:
                failed = reply.result
        if failed is not None and not last:
            pgconn.pipeline_sync()
            yield from generators.send(pgconn)
        if failed is not None or last:
            yield from generators.fetch_many(pgconn)  # the answer to the sync
        if failed is not None:
            encoding = self._connection.info.encoding
            raise error_from_result(failed, encoding=encoding)
