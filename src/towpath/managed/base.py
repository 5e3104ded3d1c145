"""`ManagedValue`: the base of what the engine computes for a node to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import isclass
from typing import Any, Generic, Protocol, TypeAlias, TypeGuard, TypeVar

__all__ = (
    "ManagedValue",
    "ManagedValueMapping",
    "ManagedValueSpec",
    "is_managed_value",
)

V = TypeVar("V")


class Scratchpad(Protocol):
    """The place in the run that a value is computed from."""

    @property
    def step(self) -> int:
        """The number of the running step."""

    @property
    def stop(self) -> int:
        """The step at which the recursion limit ends the run."""


class ManagedValue(ABC, Generic[V]):
    """A field of the state that is computed anew for every task."""

    @staticmethod
    @abstractmethod
    def get(scratchpad: Any) -> V:
        """Compute the value; `scratchpad` is a `Scratchpad`."""


ManagedValueSpec: TypeAlias = type[ManagedValue[Any]]
ManagedValueMapping: TypeAlias = dict[str, ManagedValueSpec]


def is_managed_value(value: Any) -> TypeGuard[ManagedValueSpec]:
    """Tell whether a thing found in `Annotated` is a managed value."""
    return isclass(value) and issubclass(value, ManagedValue)
