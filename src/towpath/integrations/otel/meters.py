"""The metrics. A histogram's count is also how many there were."""

from __future__ import annotations

from typing import Final

from opentelemetry.metrics import Histogram, Meter

SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds for what takes from a tenth of a millisecond to minutes."""
MODEL_SECONDS: Final = tuple(0.01 * 2**n for n in range(14))
TOKENS: Final = tuple(float(4**n) for n in range(14))
"""The bounds that the semantic conventions advise."""


class Meters:
    """The instruments, made once."""

    def __init__(self, meter: Meter) -> None:
        def duration(
            name: str, what: str, bounds: tuple[float, ...] = SECONDS, unit: str = "s"
        ) -> Histogram:
            return meter.create_histogram(
                name, unit, what, explicit_bucket_boundaries_advisory=bounds
            )

        count = meter.create_up_down_counter
        self.runs = duration("towpath.run.duration", "How long runs take.")
        self.steps = duration("towpath.step.duration", "How long supersteps take.")
        self.attempts = duration(
            "towpath.task.attempt.duration", "How long attempts at tasks take."
        )
        self.commits = duration(
            "towpath.commit.duration",
            "From the end of a step until its checkpoint is stored.",
        )
        self.active = count("towpath.run.active", "{run}", "Runs that go on.")
        self.queued = count(
            "towpath.task.queued", "{task}", "Tasks that wait to be started."
        )
        self.behind = count(
            "towpath.commit.queued",
            "{commit}",
            "Checkpoints that are not stored yet, while their runs go on.",
        )
        self.waiting = count(
            "towpath.interrupt.open",
            "{question}",
            "Questions that wait for an answer.",
        )
        self.operations = duration(
            "gen_ai.client.operation.duration",
            "How long calls of models take.",
            MODEL_SECONDS,
        )
        self.tokens = duration(
            "gen_ai.client.token.usage",
            "How many tokens calls of models use.",
            TOKENS,
            "{token}",
        )
