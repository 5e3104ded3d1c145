"""Savers that keep the newest checkpoint only, under the peer's names.

There is no going back to an earlier checkpoint with them, and no history. Rather
than these, consider `prune` on a `PostgresSaver` when a conversation is over.
"""

from __future__ import annotations

from towpath.checkpoint import programs
from towpath.checkpoint.postgres.saver import PostgresSaver
from towpath.checkpoint.programs import Draft, Program


class ShallowPostgresSaver(PostgresSaver):
    """Keeps the newest checkpoint of each namespace in a Postgres database."""

    def _commit(self, draft: Draft) -> Program[set[str]]:
        missing = yield from programs.commit(draft)
        if not missing:
            yield from programs.prune([draft.thread])
        return missing


class AsyncShallowPostgresSaver(ShallowPostgresSaver):
    """`ShallowPostgresSaver`, whose async methods need no class of their own."""
