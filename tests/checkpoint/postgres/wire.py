"""A wire to the server that counts round trips, and can be cut."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

Cut = Callable[[bytes], bool]


class Wire:
    """Passes bytes between clients and a server, both ways.

    `trips` counts how often a client spoke after the server did. `before` and
    `after` look at what a client sends: the wire is cut in place of passing it on or
    right after that, once or `always`.
    """

    def __init__(self, dsn: str) -> None:
        self.trips = 0
        self.cuts = 0
        self.before: Cut | None = None
        self.after: Cut | None = None
        self.always = False
        self._server = _address(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=port)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, self._connect() as server, selectors.DefaultSelector() as both:
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            last: object = None
            with suppress(OSError):
                while True:
                    for key, _ in both.select():
                        sent = key.fileobj.recv(1 << 20)
                        if not sent:
                            return
                        if key.fileobj is client:
                            self.trips += last is not client
                            if self._cuts("before", sent):
                                return
                        key.data.sendall(sent)
                        if key.fileobj is client and self._cuts("after", sent):
                            _wait_for_answer(server)
                            return
                        last = key.fileobj

    def _connect(self) -> socket.socket:
        family, address = self._server
        server = socket.socket(family)
        server.connect(address)
        return server

    def _cuts(self, when: str, sent: bytes) -> bool:
        cut = getattr(self, when)
        if cut is None or not cut(sent):
            return False
        if not self.always:
            setattr(self, when, None)
        self.cuts += 1
        return True


def _wait_for_answer(server: socket.socket) -> None:
    """Wait until the server did what it was told; nobody hears of it."""
    server.sendall(b"S\0\0\0\4")  # Sync: it answers at once
    server.recv(1 << 20)


def _address(dsn: str) -> tuple[socket.AddressFamily, object]:
    known = conninfo_to_dict(dsn)
    host, port = str(known.get("host") or "localhost"), int(known.get("port") or 5432)
    if host.startswith("/"):
        return socket.AF_UNIX, str(Path(host) / f".s.PGSQL.{port}")
    return socket.AF_INET, (host, port)
