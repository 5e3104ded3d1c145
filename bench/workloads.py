"""What is measured, described once; the adapters know how to do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

LOOP_STEPS = 1000
WIDE_STEPS = 100
VISITS = 100
SAVERS = ("none", "memory", "sqlite", "postgres")
READING = {"snapshot", "history"}
WAITING = {"ask", "crowd"}
QUESTIONS = 20
CROWD = 1000
CROWD_TURNS = 3
STREAM_STEPS = 100
TOKENS = 500
# How many chunks a run of so many nodes tells, a mode at a time.
CHUNKS = {
    "values": STREAM_STEPS + 1,
    "updates": STREAM_STEPS,
    "custom": STREAM_STEPS,
    "tasks": 2 * STREAM_STEPS,
    "debug": 2 * STREAM_STEPS,
    # No node speaks: `tokens` is about messages, this about listening for them.
    "messages": 0,
    "checkpoints": STREAM_STEPS + 2,
}


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
    variant: str = ""
    """The stream mode, or the class of the state."""
    quick: bool = True
    """Whether `--quick` measures it."""

    @property
    def clock(self) -> str:
        """The clock to trust: waiting for a disk is no work of a processor."""
        return "wall" if self.saver in {"sqlite", "postgres"} else "cpu"

    @property
    def lasting(self) -> bool:
        """Whether a run leaves something behind that slows the next one down."""
        return self.saver != "none" and self.kind not in READING


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
                quick=size == 100,
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
                quick=size == 100,
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
            quick=size < 10_000,
        )


def _chats(colours: Sequence[bool]) -> Iterator[Workload]:
    for asynchronous in colours:
        for saver in SAVERS:
            for size in (50, 200, 1000):
                yield Workload(
                    f"chat-{size}-{saver}{_suffix(asynchronous)}",
                    "chat",
                    size,
                    f"{size} turns of 2 messages, saver: {saver}",
                    "turn",
                    size,
                    expected=2 * size,
                    asynchronous=asynchronous,
                    saver=saver,
                    quick=size == 50,
                )


def _agents() -> Iterator[Workload]:
    for saver in SAVERS[:3]:
        for size in (50, 200, 1000):
            yield Workload(
                f"messages-{size}-{saver}",
                "messages",
                size,
                f"{size} turns of 2 of LangChain's messages and a saver: {saver}",
                "turn",
                size,
                expected=2 * size,
                saver=saver,
                variant="messages",
                quick=size == 200 and saver != "sqlite",
            )


def _nested() -> Iterator[Workload]:
    for size in range(1, 6):
        yield Workload(
            f"nested-{size}",
            "nested",
            size,
            f"{VISITS} visits to a subgraph, {size} deep",
            "step",
            VISITS * (size + 1),
            expected=VISITS,
            quick=size in {1, 3},
        )


def _states() -> Iterator[Workload]:
    for state in ("dataclass", "pydantic"):
        yield Workload(
            f"state-{state}",
            "chain",
            100,
            f"100 nodes in a row, the state is a {state}",
            "step",
            100,
            expected=100,
            variant=state,
        )


def _questions() -> Iterator[Workload]:
    for saver in SAVERS[1:]:
        yield Workload(
            f"ask-{saver}",
            "ask",
            QUESTIONS,
            f"an interrupt and the answer to it, saver: {saver}",
            "question",
            QUESTIONS,
            expected=QUESTIONS,
            saver=saver,
        )


def _crowds() -> Iterator[Workload]:
    for saver in SAVERS[:3]:
        yield Workload(
            f"crowd-{saver}",
            "crowd",
            CROWD,
            f"{CROWD} conversations of {CROWD_TURNS} turns at once, saver: {saver}",
            "run",
            CROWD,
            expected=CROWD,
            asynchronous=True,
            saver=saver,
            quick=saver != "sqlite",
        )


def _readings() -> Iterator[Workload]:
    for saver in SAVERS[1:3]:
        for size in (1, 1000):
            yield Workload(
                f"snapshot-{size}-{saver}",
                "snapshot",
                size,
                f"the newest state after {size} of a chat's turns, saver: {saver}",
                "read",
                1,
                expected=2 * size,
                saver=saver,
                quick=size == 1,
            )
        yield Workload(
            f"history-1000-{saver}",
            "history",
            1000,
            f"all checkpoints of a chat of 1000 turns, saver: {saver}",
            "read",
            1,
            expected=1000 + 2,
            saver=saver,
            quick=False,
        )


def _streams() -> Iterator[Workload]:
    def streaming(variant: str, expected: int, saver: str = "none") -> Workload:
        return Workload(
            f"stream-{variant}" + ("" if saver == "none" else f"-{saver}"),
            "stream",
            STREAM_STEPS,
            f"{STREAM_STEPS} nodes in a row, told by: {variant}, saver: {saver}",
            "step",
            STREAM_STEPS,
            expected=expected,
            saver=saver,
            variant=variant,
        )

    yield streaming("invoke", STREAM_STEPS)
    yield streaming("invoke", STREAM_STEPS, "memory")
    yield streaming("invoke-custom", STREAM_STEPS)
    for mode, chunks in CHUNKS.items():
        # Without a saver there are no checkpoints to be told.
        yield streaming(mode, chunks, "memory" if mode == "checkpoints" else "none")
    yield Workload(
        "tokens",
        "tokens",
        TOKENS,
        f"a model that says {TOKENS} words, told by mode: messages",
        "token",
        TOKENS,
        expected=TOKENS,
        variant="messages",
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
            quick=size != 10,
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
    *_states(),
    *_chats([False, True]),
    *_questions(),
    *_crowds(),
    *_readings(),
    *_agents(),
    *_nested(),
    *_streams(),
    *_starts(),
)


def select(patterns: Sequence[str], *, quick: bool = False) -> list[Workload]:
    """Return the workloads that a pattern names; without patterns, all or the quick.

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
        if any(fnmatchcase(each.name, one) for one in patterns)
        or (not patterns and (each.quick or not quick))
    ]
