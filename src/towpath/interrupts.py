"""`Interrupt`: a question that a paused task asked.

It stands below the errors, because `NodeInterrupt` carries one; users import
it from `towpath.types`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Generic, final

from towpath.typing import ResponseT
from towpath.warnings import LangGraphDeprecatedSinceV10

__all__ = ("UNASKED", "Interrupt", "interrupt_id")

UNASKED = "placeholder-id"
"""The id of a question that no task has asked yet."""


def interrupt_id(ns: str) -> str:
    """Derive a question's id from the namespace of the task that asks it.

    Deterministic, so a question keeps its id when its task is restored.
    """
    from hashlib import blake2b  # here, as it takes long to import

    return blake2b(ns.encode(), digest_size=16).hexdigest()


class Keyed:
    """Has a key; apart, because the fields of `Interrupt` are those of the peer's."""

    __slots__ = ("key",)
    key: str | None
    """The name that the node gave the question, by which it may be answered."""


@final
@dataclass(init=False, slots=True)
class Interrupt(Keyed, Generic[ResponseT]):
    """A question put by `interrupt()`, waiting for `Command(resume=...)`."""

    value: Any
    """What was asked, as the node passed it to `interrupt()`."""
    id: str
    """The question's own id; answer several at once by a map of ids."""
    response_schema: type[ResponseT] | dict[str, Any] | None = None
    """What an answer must look like, when the node said so."""

    def __init__(
        self,
        value: Any,
        id: str = UNASKED,
        *,
        response_schema: type[ResponseT] | dict[str, Any] | None = None,
        key: str | None = None,
        **former: Any,
    ) -> None:
        # Stored threads and old programs still pass `ns`, `when`, `resumable`.
        ns = former.get("ns")
        self.value = value
        self.id = interrupt_id("|".join(ns)) if ns and id == UNASKED else id
        self.response_schema = response_schema
        self.key = key  # type: ignore[misc]  # a slot of the base

    @classmethod
    def from_ns(
        cls,
        value: Any,
        ns: str,
        *,
        response_schema: type[ResponseT] | dict[str, Any] | None = None,
    ) -> Interrupt[ResponseT]:
        """Make the question that the task of namespace `ns` asks."""
        return cls(value, interrupt_id(ns), response_schema=response_schema)

    @property
    def interrupt_id(self) -> str:
        """The former name of `id`."""
        warnings.warn(
            "`interrupt_id` is deprecated. Use `id` instead.",
            LangGraphDeprecatedSinceV10,
            stacklevel=2,
        )
        return self.id


# Pickles and stored threads name the public path.
Interrupt.__module__ = "towpath.types"
