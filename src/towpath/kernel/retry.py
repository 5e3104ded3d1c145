"""Pure decisions about a failed attempt: try again or give up, and when."""

from __future__ import annotations

from collections.abc import Sequence

from towpath.errors import GraphBubbleUp
from towpath.types import RetryPolicy


def matching(
    policies: Sequence[RetryPolicy], error: BaseException
) -> RetryPolicy | None:
    """The first policy that wants this error tried again."""
    if isinstance(error, GraphBubbleUp) or not isinstance(error, Exception):
        return None
    return next((policy for policy in policies if wants(policy, error)), None)


def wants(policy: RetryPolicy, error: Exception) -> bool:
    retry_on = policy.retry_on
    if isinstance(retry_on, type):
        return isinstance(error, retry_on)
    if isinstance(retry_on, Sequence):
        return isinstance(error, tuple(retry_on))
    return bool(retry_on(error))


def delay_s(policy: RetryPolicy, attempt: int, jitter: float) -> float:
    """Seconds before the attempt after `attempt` (1 for the first).

    `jitter` is a random number in [0, 1), drawn by whoever runs the attempt:
    up to a second is added, so that many tasks do not come back at once.
    """
    interval = min(
        policy.max_interval,
        policy.initial_interval * policy.backoff_factor ** (attempt - 1),
    )
    return interval + jitter if policy.jitter else interval
