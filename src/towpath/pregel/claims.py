"""Which lease a run stores under: its own, or that of a run around it."""

from __future__ import annotations

from towpath.call.scope import RunScope
from towpath.checkpoint.base.lease import Lease
from towpath.kernel.request import Request, capable
from towpath.semantics import Semantics


def claim_thread(
    request: Request, around: RunScope | None, semantics: Semantics
) -> None:
    """Have a run claim its thread, unless a run around it has it already."""
    if not capable(request.saver, "leases") or request.thread_id is None:
        return
    scope = around
    while scope is not None:
        outer = scope.req
        if outer.saver is request.saver and outer.thread_id == request.thread_id:
            request.lease = outer.lease
            return
        scope = scope.outer
    if request.nested:
        return  # the thread is that of the run around it, whatever saver this has
    request.lease = Lease(request.thread_id)
    request.claims = True
    request.on_busy = semantics.on_busy
