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
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakKeyDictionary

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
_DONE: Final = ExecStatus.COMMAND_OK


class Reply:
    """What a statement comes to, once it was waited for."""

    result: PGresult | None = None


class Prepared:
    """Which statements the server knows by name, for each connection.

    A name says which statement it is, so that nobody's is taken for another's
    where a pooler gives sessions to many.
    """

    in_use = True
    """Until it is known that a pooler is in the way."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[Any, set[bytes]] = WeakKeyDictionary()

    def of(self, connection: Any) -> set[bytes]:
        """Return the names that a connection has."""
        return self._names.setdefault(connection, set())


class Link:
    """A connection in pipeline mode, and the statements under way on it."""

    def __init__(self, connection: Any, prepared: Prepared | None = None) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._under_way: list[Reply] = []
        self._names = None
        if prepared is not None and prepared.in_use:
            self._names = prepared.of(connection)
        self._fresh: dict[bytes, Reply] = {}
        """Names that were sent and, as far as is known, not refused."""
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
        if not args:
            self._pgconn.send_query_params(sql, None, result_format=Format.BINARY)
            return self._sent()
        transformer = self._transformer
        formats = [PyFormat.BINARY] * len(args)
        values = transformer.dump_sequence(bound(args), formats)
        types, formats_ = transformer.types, transformer.formats
        if self._names is None:
            self._pgconn.send_query_params(sql, values, types, formats_, Format.BINARY)
        else:
            name = self._name(sql, types or ())
            self._pgconn.send_query_prepared(name, values, formats_, Format.BINARY)
        return self._sent()

    def _sent(self) -> Reply:
        reply = Reply()
        self._under_way.append(reply)
        return reply

    def _name(self, sql: bytes, types: Sequence[int]) -> bytes:
        """Return the name of a statement, which is prepared if it is not."""
        assert self._names is not None
        text = sql + repr(types).encode()
        name = b"towpath_" + blake2b(text, digest_size=12).hexdigest().encode()
        if name not in self._names and name not in self._fresh:
            self._pgconn.send_prepare(name, sql, types)
            self._fresh[name] = self._sent()
        return name

    def _note_prepared(self) -> None:
        # What was prepared stays so, also if its transaction is rolled back.
        for name, reply in self._fresh.items():
            if reply.result is not None and reply.result.status == _DONE:
                assert self._names is not None
                self._names.add(name)
        self._fresh.clear()

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
        self._note_prepared()
        if failed is not None and not last:
            pgconn.pipeline_sync()
            yield from generators.send(pgconn)
        if failed is not None or last:
            yield from generators.fetch_many(pgconn)  # the answer to the sync
        if failed is not None:
            encoding = self._connection.info.encoding
            raise error_from_result(failed, encoding=encoding)
