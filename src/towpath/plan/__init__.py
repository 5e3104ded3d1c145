"""The immutable compiled graph.

`compile()` turns a builder into a `Plan`: tables that say which channel wakes
which node, what each node reads and writes, how its function is called and
under which policies. A superstep looks things up here and decides nothing
that could have been decided before the run. Nothing in this package runs
anything.
"""

from towpath.plan.actions import Action, action_of
from towpath.plan.specs import (
    NOTHING,
    BranchSpec,
    JoinSpec,
    NodeSpec,
    Plan,
    Scratchpad,
    View,
)
from towpath.plan.tables import tables

__all__ = [
    "NOTHING",
    "Action",
    "BranchSpec",
    "JoinSpec",
    "NodeSpec",
    "Plan",
    "Scratchpad",
    "View",
    "action_of",
    "tables",
]
