"""How many examples the differential tests try, and how they are drawn.

The seed differs from run to run and Hypothesis prints a failing example with
the decorator that brings it back. `TOWPATH_EXAMPLES` scales the numbers.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings


def examples(count: int) -> settings:
    """Return settings that try `count` examples, scaled by the environment."""
    scale = float(os.environ.get("TOWPATH_EXAMPLES", "1"))
    return settings(
        max_examples=max(1, round(count * scale)),
        deadline=None,
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        # Explaining a failure runs hundreds of further graphs on the slow side.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
