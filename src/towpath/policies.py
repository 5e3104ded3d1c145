"""Policies of a node: when it is tried again, cached, traced.

`towpath.types` offers them; how long a node may take is `TimeoutPolicy` there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from towpath.constants import MISSING
from towpath.errors import NodeTimeoutError

__all__ = (
    "CacheKey",
    "CachePolicy",
    "RetryPolicy",
    "TracePolicy",
    "default_cache_key",
    "default_retry_on",
    "omit_payload",
)

KeyFuncT = TypeVar("KeyFuncT", bound=Callable[..., str | bytes])


def default_retry_on(error: Exception) -> bool:
    """Tell whether an error may go away: a connection, a 5xx answer.

    Errors that a wrong program raises (`ValueError`, `TypeError`, ...) and
    those of the operating system are not retried; unknown ones are.
    """
    if isinstance(error, (ConnectionError, NodeTimeoutError)):
        return True
    status = _http_status(error)
    if status is not MISSING:
        return status is None or 500 <= status < 600
    return not isinstance(error, _PERMANENT)


_PERMANENT = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)
_HTTP_ERRORS = (("httpx", "HTTPStatusError"), ("requests", "HTTPError"))


def _http_status(error: Exception) -> Any:
    # Whoever raised one of these has imported its module.
    for module, name in _HTTP_ERRORS:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            response = getattr(error, "response", None)
            return None if response is None else response.status_code
    return MISSING


class RetryPolicy(NamedTuple):
    """Whether, when and how often a failed node is tried again."""

    initial_interval: float = 0.5
    """Seconds before the first retry."""
    backoff_factor: float = 2.0
    """By what the interval grows with each retry."""
    max_interval: float = 128.0
    """Seconds between two attempts, at most."""
    max_attempts: int = 3
    """How many attempts there are, the first one included."""
    jitter: bool = True
    """Whether a random part is added to each interval."""
    retry_on: (
        type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool]
    ) = default_retry_on
    """Which errors are retried."""


def default_cache_key(*args: Any, **kwargs: Any) -> str | bytes:
    """Make a cache key of a node's input: equal inputs have equal keys."""
    import pickle  # only written, never read back
    from io import BytesIO

    given = _ordered(args), _ordered(tuple(sorted(kwargs.items())))
    written = BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    # Without a memo: with one, it shows which parts are one and the same object,
    # and what was read from a checkpoint has no key of what was stored there.
    pickler.fast = True
    try:
        pickler.dump(given)
    except (RecursionError, ValueError):  # it holds itself
        return pickle.dumps(given, protocol=5)
    return written.getvalue()


def _ordered(value: Any) -> Any:
    """Take the order out of dicts and sets, and keep what they were."""
    if type(value) is dict:
        items = [(_ordered(k), _ordered(v)) for k, v in value.items()]
        return dict, sorted(items, key=repr)
    if type(value) in (set, frozenset):
        return type(value), sorted(map(_ordered, value), key=repr)
    if type(value) in (list, tuple):
        return type(value), [_ordered(item) for item in value]
    return value


# No slots: a slotted frozen class cannot be called as `CachePolicy[F]()`.
@dataclass(frozen=True, kw_only=True)
class CachePolicy(Generic[KeyFuncT]):
    """Reuse a node's result for an input that was seen before."""

    key_func: KeyFuncT = default_cache_key  # type: ignore[assignment]
    """Makes the key of an input."""
    ttl: int | None = None
    """Seconds that a result is kept; None: for ever."""
    version: str = ""
    """Say another one when something changed that the node's code does not show,
    such as a model or a file: old results are not taken any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePolicy:
    """What traces show of a node's input and output."""

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None


def omit_payload(_value: Any) -> dict[str, Any]:
    """Show nothing: for the fields of a `TracePolicy`."""
    return {}


class CacheKey(NamedTuple):
    """Where a cached result lies, and for how long."""

    ns: tuple[str, ...]
    key: str
    ttl: int | None
