"""Spans and metrics of a real SDK, and a way to read them as text."""

import asyncio

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from towpath.integrations.otel import instrument, uninstrument


class Told:
    """What the code under test told OpenTelemetry."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self.reader])
        self.tracer = self.tracers.get_tracer("user")

    def instrument(self, **options):
        instrument(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def spans(self, name=""):
        """All ended spans whose name begins so, in the order they were begun."""
        ended = self.exporter.get_finished_spans()
        several = [span for span in ended if span.name.startswith(name)]
        return sorted(several, key=lambda span: span.start_time)

    def span(self, name):
        (one,) = self.spans(name)
        return one

    def tree(self):
        """The spans as indented lines, and forget them."""
        spans = self.spans()
        self.exporter.clear()
        known = {span.context.span_id for span in spans}
        below = {}
        for span in spans:
            above = span.parent.span_id if span.parent else None
            assert above is None or above in known, f"{span.name} hangs in the air"
            below.setdefault(above, []).append(span)
        lines = []

        def add(span, depth):
            lines.append("  " * depth + line(span))
            for each in below.get(span.context.span_id, ()):
                add(each, depth + 1)

        for span in below.get(None, ()):
            add(span, 0)
        return lines

    def metrics(self):
        """The points of all metrics, by name: counts of histograms, or values."""
        told = self.reader.get_metrics_data()
        points = {}
        for resource in told.resource_metrics if told else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points[metric.name] = [
                        (
                            getattr(point, "count", None) or getattr(point, "value", 0),
                            dict(point.attributes),
                        )
                        for point in metric.data.data_points
                    ]
        return points

    def total(self, name):
        return sum(value for value, _ in self.metrics().get(name, ()))


def line(span):
    """A span in a line: its name, what tells it from others, how it ended."""
    facts = span.attributes
    words = [span.name]
    if span.name == "superstep":
        words.append(str(facts["towpath.step"]))
    elif span.name == "commit":
        words.append(f"{facts['towpath.checkpoint.source']} {facts['towpath.step']}")
    elif span.name.startswith("attempt") and facts["towpath.task.attempt"] > 1:
        words.append(f"#{facts['towpath.task.attempt']}")
    outcome = facts.get("towpath.outcome", "done")
    if outcome != "done":
        words.append(f"[{outcome}]")
    if span.status.status_code.name == "ERROR":
        words.append(f"! {facts['error.type']}")
    return " ".join(words)


def lines(expected):
    """The lines of a text that is indented as the code around it is."""
    several = [each for each in expected.splitlines() if each.strip()]
    margin = len(several[0]) - len(several[0].lstrip())
    return [each[margin:].rstrip() for each in several]


@pytest.fixture
def told():
    told = Told()
    told.instrument()
    yield told
    uninstrument()


class Sync:
    name = "sync"

    def invoke(self, graph, *given, **options):
        return graph.invoke(*given, **options)

    def node(self, function):
        return function


class Loop:
    name = "async"

    def invoke(self, graph, *given, **options):
        return asyncio.run(graph.ainvoke(*given, **options))

    def node(self, function):
        async def node(state):
            await asyncio.sleep(0)
            return function(state)

        return node


class Threads(Loop):
    """An async run of blocking nodes."""

    name = "async, blocking nodes"
    node = Sync.node


@pytest.fixture(params=[Sync(), Loop(), Threads()], ids=lambda colour: colour.name)
def colour(request):
    return request.param
