"""What goes wrong in telemetry must not break what is observed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

log = logging.getLogger("towpath.integrations.otel")


class Mishap:
    """Whether a failure has been logged: one tells as much as thousands."""

    logged = False


def harmless(method: Callable[P, None]) -> Callable[P, None]:
    """A method whose errors are logged, the first of the process in full."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception:
            level = logging.DEBUG if Mishap.logged else logging.WARNING
            Mishap.logged = True
            log.log(level, "telemetry failed; the run goes on", exc_info=True)

    return call
