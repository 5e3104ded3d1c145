"""Values of the state that the engine computes, and nobody writes."""

from __future__ import annotations

from towpath.managed.is_last_step import IsLastStep, RemainingSteps

__all__ = ("IsLastStep", "RemainingSteps")
