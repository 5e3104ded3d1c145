"""What is measured, described once; the adapters know how to do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

LOOP_STEPS = 1000
WIDE_STEPS = 100
VISITS = 100
SAVERS = ("none", "memory", "sqlite", "postgres")


@dataclass(frozen=True)
class Workload:
    """One kind of work in one size."""

    name: str
    kind: str
    size: int
    """Nodes, tasks, keys, turns or levels; `title` says which."""
    title: str
    unit: str
    units: int
    """How many units one run has; times are told per unit."""
    expected: object
    """The result of a run, whoever does it."""
    asynchronous: bool = False
    saver: str = "none"

    @property
    def lasting(self) -> bool:
        """Whether a run leaves something behind that slows the next one down."""
        return self.saver != "none"


def _chains(colours: Sequence[bool]) -> Iterator[Workload]:
    for asynchronous in colours:
        for size in (10, 100, 1000):
            yield Workload(
                f"chain-{size}{_suffix(asynchronous)}",
                "chain",
                size,
                f"{size} nodes in a row",
                "step",
                size,
                expected=size,
                asynchronous=asynchronous,
            )
        yield Workload(
            f"loop{_suffix(asynchronous)}",
            "loop",
            LOOP_STEPS,
            f"two nodes and a router, {LOOP_STEPS} steps",
            "step",
            LOOP_STEPS,
            expected=LOOP_STEPS,
            asynchronous=asynchronous,
        )


def _fans(colours: Sequence[bool]) -> Iterator[Workload]:
    for asynchronous in colours:
        for size in (10, 100, 1000):
            yield Workload(
                f"fan-{size}{_suffix(asynchronous)}",
                "fan",
                size,
                f"{size} tasks by Send in one step",
                "task",
                size,
                expected=sum(range(size)),
                asynchronous=asynchronous,
            )


def _wides() -> Iterator[Workload]:
    for size in (100, 1000, 10_000):
        yield Workload(
            f"wide-{size}",
            "wide",
            size,
            f"state of {size} keys, a step touches 2",
            "step",
            WIDE_STEPS,
            expected=WIDE_STEPS,
        )


def _chats() -> Iterator[Workload]:
    for saver in SAVERS:
        for size in (50, 200, 1000):
            yield Workload(
                f"chat-{size}-{saver}",
                "chat",
                size,
                f"{size} turns of 2 messages, saver: {saver}",
                "turn",
                size,
                expected=2 * size,
                saver=saver,
            )


def _nested() -> Iterator[Workload]:
    for size in (1, 2, 3):
        yield Workload(
            f"nested-{size}",
            "nested",
            size,
            f"{VISITS} visits to a subgraph, {size} deep",
            "step",
            VISITS * (size + 1),
            expected=VISITS,
        )


def _starts() -> Iterator[Workload]:
    for size in (10, 100, 1000):
        yield Workload(
            f"compile-{size}",
            "compile",
            size,
            f"build and compile {size} nodes",
            "node",
            size,
            expected=size,
        )
    yield Workload(
        "import", "import", 1, "import of the graph module", "import", 1, expected=0
    )


def _suffix(asynchronous: bool) -> str:
    return "-async" if asynchronous else ""


WORKLOADS = (
    *_chains([False, True]),
    *_fans([False, True]),
    *_wides(),
    *_chats(),
    *_nested(),
    *_starts(),
)


def select(patterns: Sequence[str]) -> list[Workload]:
    """Return the workloads that a pattern names, all of them without patterns.

    Raises:
        LookupError: A pattern names no workload.
    """
    for pattern in patterns:
        if not any(fnmatchcase(each.name, pattern) for each in WORKLOADS):
            names = ", ".join(each.name for each in WORKLOADS)
            raise LookupError(f"no workload is called {pattern!r}; there are {names}")
    return [
        each
        for each in WORKLOADS
        if not patterns or any(fnmatchcase(each.name, one) for one in patterns)
    ]
