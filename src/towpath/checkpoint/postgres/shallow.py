"""Savers that keep the newest checkpoint only, under the peer's names.

There is no going back to an earlier checkpoint with them, and no history. Rather
than these, consider `prune` on a `PostgresSaver` when a conversation is over.
"""

from __future__ import annotations

from towpath.checkpoint import retention, writing
from towpath.checkpoint.base.rules import Keep
from towpath.checkpoint.postgres.saver import PostgresSaver
from towpath.checkpoint.programs import Program
from towpath.checkpoint.writing import Draft


class ShallowPostgresSaver(PostgresSaver):
    """Keeps the newest checkpoint of each namespace in a Postgres database."""

    def _commit(self, draft: Draft) -> Program[set[str]]:
        missing = yield from writing.commit(draft)
        if not missing:
            inside = retention.Inside(self.serde.loads_typed, self._seal_of)
            yield from retention.remove(draft.thread, Keep(), inside, dry=False)
        return missing


class AsyncShallowPostgresSaver(ShallowPostgresSaver):
    """`ShallowPostgresSaver`, whose async methods need no class of their own."""
