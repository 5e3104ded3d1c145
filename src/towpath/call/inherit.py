"""Threads that a node starts know which node started them.

`asyncio` hands contextvars on to tasks and to `to_thread`; bare threads and
thread pools of the standard library do not before Python 3.14, so that
`get_config()`, `get_stream_writer()` and `interrupt()` would fail in them. The
first run of a graph makes `Thread.start` and `ThreadPoolExecutor.submit` hand
on the context of a running node. Outside of a node both do what they did.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as pool_module
from contextvars import copy_context
from functools import cache, partial, wraps
from typing import Any

from towpath.context import current


@cache
def install() -> None:
    """Make threads started by a node inherit its context; once per process."""
    start = inheriting(threading.Thread.start)
    threading.Thread.start = start  # type: ignore[method-assign,assignment]
    submit = submitting(ThreadPoolExecutor.submit)
    ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]


def inheriting(start: Callable[[Any], None]) -> Callable[[Any], None]:
    """`Thread.start` that hands on the context of a running node.

    Workers of pools are left out: they outlive the node that happens to start
    them, and serve others. Their jobs carry the context instead.
    """

    @wraps(start)
    def start_inheriting(self: Any) -> None:
        if current.get() is not None and not is_worker(self):
            self.run = partial(copy_context().run, self.run)
        start(self)

    return start_inheriting


def is_worker(thread: Any) -> bool:
    target = getattr(thread, "_target", None)
    return (
        getattr(thread, "serves_many", False) or target is pool_module._worker  # noqa: SLF001
    )


def submitting(submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    """`ThreadPoolExecutor.submit` that does the same for each job."""

    @wraps(submit)
    def submit_inheriting(
        self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        if current.get() is not None:
            fn = partial(copy_context().run, fn)
        return submit(self, fn, *args, **kwargs)

    return submit_inheriting
