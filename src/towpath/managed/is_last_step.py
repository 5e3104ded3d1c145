"""How many steps a run has left, before the recursion limit ends it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from towpath.managed.base import ManagedValue, Scratchpad

__all__ = ("IsLastStep", "IsLastStepManager", "RemainingSteps", "RemainingStepsManager")


class IsLastStepManager(ManagedValue[bool]):
    """Computes `IsLastStep`."""

    @staticmethod
    def get(scratchpad: Scratchpad) -> bool:
        """Tell whether the limit allows no step after this one."""
        return scratchpad.step == scratchpad.stop - 1


class RemainingStepsManager(ManagedValue[int]):
    """Computes `RemainingSteps`."""

    @staticmethod
    def get(scratchpad: Scratchpad) -> int:
        """Count the steps that the limit allows, this one included."""
        return scratchpad.stop - scratchpad.step


IsLastStep: TypeAlias = Annotated[bool, IsLastStepManager]
"""Annotates a field that is true in the last step the limit allows."""

RemainingSteps: TypeAlias = Annotated[int, RemainingStepsManager]
"""Annotates a field that counts the steps left, the running one included."""
