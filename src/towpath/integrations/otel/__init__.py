"""OpenTelemetry: what runs do, as spans and metrics.

    from towpath.integrations.otel import instrument

    instrument()

From then on each run of the process tells of itself, its supersteps, tasks,
attempts and commits, and of the calls of langchain's models and tools in its
nodes. Runs that began before do not. Docs: docs/telemetry.md.
"""

from __future__ import annotations

import os
from typing import Any, Final

from towpath.call.scope import RunScope
from towpath.errors import MissingExtraError
from towpath.pregel.ports import OBSERVERS
from towpath.version import __version__

try:
    from opentelemetry import context, metrics, trace

    from towpath.integrations.otel.meters import Meters
    from towpath.integrations.otel.runs import RunWatch
    from towpath.integrations.otel.telemetry import Telemetry
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"`{missing.name}` is not installed", hint="pip install 'towpath[otel]'"
    ) from missing

__all__ = ["TowpathInstrumentor", "instrument", "uninstrument"]

NAME: Final = "towpath"
CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def instrument(
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    record_content: bool | None = None,
    record_errors: bool = True,
) -> None:
    """Have every run of this process tell OpenTelemetry what it does.

    Without providers, the global ones are used, which may be set later. With
    `record_content` spans show inputs, outputs, questions, messages and the
    arguments of tools, cut after 8192 characters; None leaves that to the
    environment variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, and
    without it nothing of that is shown. `record_errors` shows the texts and stack
    traces of errors, which may have parts of inputs in them; `error.type` is
    always shown. Calling it again replaces the settings.

    The names are those of OpenTelemetry's semantic conventions for GenAI, where
    they have one.
    """
    if record_content is None:
        record_content = os.environ.get(CAPTURE, "").lower() in ("true", "1")
    telemetry = Telemetry(
        trace.get_tracer(NAME, __version__, tracer_provider),
        Meters(metrics.get_meter(NAME, __version__, meter_provider)),
        record_content=record_content,
        record_errors=record_errors,
    )
    OBSERVERS[:] = [*others(), Observer(telemetry)]


def uninstrument() -> None:
    """Let runs that begin from now on tell nothing."""
    OBSERVERS[:] = others()


class TowpathInstrumentor:
    """The same for `opentelemetry-instrument`, in the form of other libraries'."""

    def instrument(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        **_: Any,
    ) -> None:
        """As the function; further options are for instrumentors of other kinds."""
        instrument(tracer_provider=tracer_provider, meter_provider=meter_provider)

    def uninstrument(self, **_: Any) -> None:
        """As the function."""
        uninstrument()


class Observer:
    """Is shown each run before it begins."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry

    def __call__(self, scope: RunScope, bridge: Any) -> Any:
        """What traces the run, `bridge` included; that alone where it is suppressed."""
        if context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY):  # noqa: SLF001
            return bridge
        return RunWatch(self.telemetry, scope, bridge)


def others() -> list[Any]:
    return [each for each in OBSERVERS if not isinstance(each, Observer)]
