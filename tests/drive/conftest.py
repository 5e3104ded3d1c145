"""Every test of this folder runs once per driver."""

from __future__ import annotations

import pytest

from .colours import Colour, Loop, Simulated, Sync


@pytest.fixture(params=["sync", "loop", "simulate-0", "simulate-1", "simulate-2"])
def colour(request: pytest.FixtureRequest) -> Colour:
    """One of the drivers; the simulated one with a few seeds."""
    name, _, seed = request.param.partition("-")
    if name == "sync":
        return Sync()
    return Loop() if name == "loop" else Simulated(int(seed))
