"""Where spans and metrics go, and what they may show."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import Tracer

from towpath.integrations.otel.meters import Meters


class Telemetry:
    """The settings of `instrument`, as one value."""

    def __init__(
        self,
        tracer: Tracer,
        meters: Meters,
        *,
        record_content: bool,
        record_errors: bool,
    ) -> None:
        self.tracer = tracer
        self.meters = meters
        self.record_content = record_content
        self.record_errors = record_errors
        self.models: Any = None
        """What hears langchain's models and tools, once a run finds that loaded."""
