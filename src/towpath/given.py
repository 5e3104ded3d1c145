"""What users hand to decorators, constructors and `compile()`, looked at once.

A wrong kind of object is refused where it was given, with its value in the
message: found later, it would be an error in the middle of a run, or none.
Backends are known by their methods, as those of other packages may have
base classes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from towpath.errors import (
    InvalidCacheError,
    InvalidGraphError,
    InvalidPolicyError,
    InvalidStoreError,
    InvalidTransformerError,
    NotAGraphPartError,
    NotAPolicyError,
)
from towpath.policies import CachePolicy, RetryPolicy, TracePolicy

VALUES = (str, bytes, int, float, list, tuple, set, frozenset, dict)
"""What is a value, and can stand for no class."""


def store_of(store: Any) -> Any:
    """A store, or None.

    Raises:
        InvalidStoreError: it is none (TP-608).
    """
    if store is None or has_any(store, "batch", "abatch"):
        return store
    raise InvalidStoreError(
        f"a store is a BaseStore, not {named(store)}",
        hint="pass a store such as InMemoryStore()",
    )


def cache_of(cache: Any) -> Any:
    """A cache, or None.

    Raises:
        InvalidCacheError: it is none (TP-609).
    """
    if cache is None or (
        has_any(cache, "get", "aget") and has_any(cache, "set", "aset")
    ):
        return cache
    raise InvalidCacheError(
        f"a cache is a BaseCache, not {named(cache)}",
        hint="pass a cache such as InMemoryCache()",
    )


def has_any(given: Any, *methods: str) -> bool:
    """Whether an instance has one of these methods."""
    if isinstance(given, type):
        return False
    return any(callable(getattr(given, name, None)) for name in methods)


def named(given: Any) -> str:
    """A wrong object, for a message."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"{given!r}"


# -- policies -----------------------------------------------------------------


def retry_policies(
    policy: RetryPolicy | Sequence[RetryPolicy] | None,
) -> tuple[RetryPolicy, ...] | None:
    """One policy or several, as a tuple; None where nothing was said.

    Raises:
        InvalidPolicyError: one that is none, or could not work (TP-605).
    """
    if policy is None:
        return None
    # A policy is itself a tuple, so it is asked for first.
    several: Any = (policy,) if isinstance(policy, RetryPolicy) else policy
    if isinstance(several, str) or not isinstance(several, Sequence):
        raise NotAPolicyError(
            f"a retry policy is a RetryPolicy or a list of them, not {named(policy)}"
        )
    for each in several:
        check_retry(each)
    return tuple(several)


def check_retry(policy: Any) -> None:
    """Refuse a retry policy that could not work.

    Raises:
        InvalidPolicyError: says which field, and what it holds (TP-605).
    """
    if not isinstance(policy, RetryPolicy):
        raise NotAPolicyError(f"a retry policy is a RetryPolicy, not {named(policy)}")
    for name in ("max_attempts", "initial_interval", "backoff_factor", "max_interval"):
        value = getattr(policy, name)
        if not isinstance(value, int | float):
            raise NotAPolicyError(f"RetryPolicy.{name} is a number, not {value!r}")
    if policy.max_attempts < 1:
        raise InvalidPolicyError(
            f"RetryPolicy.max_attempts is at least 1, not {policy.max_attempts}"
        )
    for name in ("initial_interval", "backoff_factor", "max_interval"):
        if not getattr(policy, name) >= 0:
            raise InvalidPolicyError(
                f"RetryPolicy.{name} is not negative, but {getattr(policy, name)!r}"
            )
    check_retry_on(policy.retry_on)


def check_retry_on(retry_on: Any) -> None:
    """Refuse what does not say which errors are retried."""
    if isinstance(retry_on, Sequence) and not isinstance(retry_on, str):
        kinds, fits = retry_on, all(isinstance(kind, type) for kind in retry_on)
    else:
        kinds, fits = (retry_on,), callable(retry_on)
    classes = [kind for kind in kinds if isinstance(kind, type)]
    if not fits or not all(issubclass(kind, BaseException) for kind in classes):
        raise NotAPolicyError(
            "RetryPolicy.retry_on is an exception class, several, or a function, "
            f"not {retry_on!r}"
        )


def cache_policy_of(policy: Any) -> CachePolicy[Any] | None:
    """A cache policy, or None.

    Raises:
        InvalidPolicyError: it is none, or could not work (TP-605).
    """
    if policy is None:
        return None
    if not isinstance(policy, CachePolicy):
        raise NotAPolicyError(f"a cache policy is a CachePolicy, not {named(policy)}")
    if not callable(policy.key_func):
        raise NotAPolicyError(
            f"CachePolicy.key_func is a function, not {policy.key_func!r}"
        )
    if policy.ttl is not None and not isinstance(policy.ttl, int | float):
        raise NotAPolicyError(f"CachePolicy.ttl is a number, not {policy.ttl!r}")
    return policy


def trace_policy_of(policy: Any) -> TracePolicy | None:
    """A trace policy, or None.

    Raises:
        InvalidPolicyError: it is none (TP-605).
    """
    if policy is None or isinstance(policy, TracePolicy):
        return policy
    raise NotAPolicyError(f"a trace policy is a TracePolicy, not {named(policy)}")


# -- parts of graphs ----------------------------------------------------------


def schema_of(what: str, schema: Any) -> Any:
    """A schema: a class, or what stands for one.

    Raises:
        InvalidGraphError: a value was given for it (TP-101).
    """
    if isinstance(schema, VALUES):
        raise InvalidGraphError(
            f"the {what} is a class, not {schema!r}",
            hint="a TypedDict, a dataclass, a pydantic model, or a plain type",
        )
    return schema


def metadata_of(what: str, metadata: Any) -> dict[str, Any]:
    """The metadata of a node.

    Raises:
        InvalidGraphError: it is no mapping (TP-101).
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise NotAGraphPartError(
            f"the metadata of {what} is a dict, not {named(metadata)}"
        )
    return dict(metadata)


def node_names(what: str, given: Any) -> tuple[str, ...]:
    """Names of nodes: a lone one is meant as such, not letter by letter.

    Raises:
        InvalidGraphError: these are no names (TP-101).
    """
    names = (given,) if isinstance(given, str) else given or ()
    try:
        several = tuple(names)
    except TypeError:
        several = (given,)
    for name in several:
        if not isinstance(name, str):
            raise NotAGraphPartError(f"{what} has names of nodes, not {named(name)}")
    return several


def path_map_of(given: Any) -> dict[Any, Any] | None:
    """Where the answers of a branch lead; a list only says which there are.

    Raises:
        InvalidGraphError: it is neither a dict nor names (TP-101).
    """
    if isinstance(given, Mapping):
        return dict(given)
    names = node_names("a path map", given)
    return {name: name for name in names} if given is not None else None


def factories_of(given: Any) -> Sequence[Any] | None:
    """What makes the transformers of a run's stream, or None.

    Raises:
        InvalidTransformerError: one of them cannot be called (TP-614).
    """
    if given is None:
        return None
    lone = isinstance(given, str) or not isinstance(given, Sequence)
    several: Sequence[Any] = (given,) if lone else given
    for each in several:
        if not callable(each):
            raise InvalidTransformerError(
                f"a transformer is a class or a function, not {named(each)}",
                hint="compile(transformers=[Mine]), not [Mine()]",
            )
    return several


def seconds_of(what: str, value: Any) -> float | None:
    """A number of seconds, or None.

    Raises:
        InvalidPolicyError: it is no number (TP-605).
    """
    if value is None or isinstance(value, int | float):
        return value
    raise NotAPolicyError(f"{what} is a number of seconds, not {named(value)}")
