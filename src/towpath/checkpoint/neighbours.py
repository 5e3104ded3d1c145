"""A look at what else is in a database: threads of LangGraph's savers.

They have tables of their own, which are left alone. A program that opens their database
finds no thread in it, and would take that for a loss.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Final

from towpath.checkpoint.programs import Make, Program, Query, migrate
from towpath.warnings import TowpathWarning

IN_SQLITE: Final = (
    "SELECT count(*) FROM pragma_table_info('checkpoints') WHERE name = ?"
)
IN_POSTGRES: Final = (
    "SELECT count(*) FROM information_schema.columns WHERE table_name = 'checkpoints'"
    " AND table_schema = ANY (current_schemas(false)) AND column_name = ?"
)
"""Whether there is a table like theirs: one that has this column."""
_COLUMN: Final = "checkpoint_ns"


def tell_of_others(there: str) -> Program[None]:
    """Warn of threads of LangGraph's where there are none of ours."""
    [(found,)] = yield from Query(there, (_COLUMN,))
    if not found:
        return
    ours = yield from Query("SELECT 1 FROM towpath_spaces LIMIT 1")
    theirs = yield from Query("SELECT 1 FROM checkpoints LIMIT 1")
    if theirs and not ours:
        warnings.warn(
            "this database holds threads of LangGraph's saver, which are not seen "
            "here: `towpath import --from DATABASE --to DATABASE` takes them over",
            TowpathWarning,
            stacklevel=2,
        )


def migrate_in_sqlite() -> Program[None]:
    """Bring the tables of an SQLite database to the newest version."""
    yield from migrate()
    yield from tell_of_others(IN_SQLITE)


in_postgres: Final[Make[None]] = partial(tell_of_others, IN_POSTGRES)
