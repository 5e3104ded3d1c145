"""Which seeds the laws are tried on."""

from __future__ import annotations

import os
from collections.abc import Iterator

SCALE = float(os.environ.get("TOWPATH_EXAMPLES", "1"))


def seeds(count: int, start: int = 0) -> Iterator[int]:
    """The seeds a law is tried on: other ones for every law, the same every day.

    `SEED` names one; `TOWPATH_EXAMPLES` scales how many there are.
    """
    if "SEED" in os.environ:
        yield int(os.environ["SEED"])
    else:
        yield from range(start, start + max(1, round(count * SCALE)))
