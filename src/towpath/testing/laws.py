"""What must hold of every graph, whoever runs it and whenever it dies.

`crash_everywhere` holds a whole conversation (a run, the answers to what it
asks) under the simulator, and once more for each of its commands with a crash
before that command. Whatever is wrong afterwards is in the `Report`: another
final state or history, a task that ran again although its result was stored,
something stored under a checkpoint that is not there, a history with a fork.

The functions below it check stored history by itself: versions, order, and
that each checkpoint leads to its successor again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Literal

from towpath.checkpoint.memory import InMemorySaver
from towpath.constants import CONF
from towpath.errors import LeaseLostError
from towpath.testing.simulate import Clock, DiskError, Faults, Trace, simulate
from towpath.types import Command, Interrupt

GraphFactory = Callable[[Any], Any]
"""Makes the graph anew, as a new process would, with the saver it is given."""

Answer = Callable[[Any], Any]
THREAD: Final[Mapping[str, Any]] = {CONF: {"thread_id": "thread"}}
BROKEN: Final = ("crashed", "failed", "stopped")
TURNS_MAX: Final = 100


class EndlessError(RuntimeError):
    """A conversation goes on and on: nothing can be compared."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong after trouble at place `at`."""

    at: int | None
    law: str
    detail: str

    def __str__(self) -> str:
        when = "without trouble" if self.at is None else f"at {self.at}"
        return f"{when}: {self.law}: {self.detail}"


@dataclass(slots=True)
class Report:
    """What came of trouble at all places of one conversation."""

    seed: int
    places: int = 0
    tried: int = 0
    error: str | None = None
    """What the conversation ends in by itself; then little can be compared."""
    findings: list[Finding] = field(default_factory=list)

    def check(self) -> None:
        """Raise an `AssertionError` that tells all, if anything is wrong."""
        if self.findings:
            lines = "\n".join(map(str, self.findings[:20]))
            raise AssertionError(
                f"seed {self.seed}: {len(self.findings)} findings in "
                f"{self.tried} tries:\n{lines}"
            )


Trouble = Literal["crash", "close", "cancel", "store", "fetch", "theft"]
"""What befalls a run at a command, at a storage call or at a read."""


@dataclass(slots=True)
class Talk:
    """A conversation: run, answer what is asked, go on after what broke it."""

    factory: GraphFactory
    input: Any
    answer: Answer = str
    seed: int = 0
    durability: str = "async"
    lag: float = 0.5
    config: Mapping[str, Any] = field(default_factory=lambda: THREAD)
    saver: Any = field(default_factory=InMemorySaver)
    disk_s: float = 0.0
    clock: Clock = field(default_factory=Clock)
    traces: list[Trace] = field(default_factory=list)

    def hold(self, trouble: Trouble = "crash", at: int | None = None) -> None:
        """Talk to the end, or until trouble at the n-th effect of its kind."""
        graph = self.factory(self.saver)
        before = self.effects(trouble)
        for _ in range(TURNS_MAX):
            open_, given = self.next_input(graph)
            if not open_:
                return
            left = None if at is None else at - self.effects(trouble) + before
            trace = self.play(graph, given, trouble, left)
            self.traces.append(trace)
            if self.broken:
                return
        raise EndlessError(f"the conversation has no end after {TURNS_MAX} turns")

    def play(self, graph: Any, given: Any, trouble: Trouble, at: int | None) -> Trace:
        """Run the graph once, with trouble at the n-th effect from here."""
        return simulate(
            graph,
            given,
            self.config,
            seed=self.seed + len(self.traces),
            clock=self.clock,
            crash_at=at if trouble == "crash" else None,
            faults=replace(faults(trouble, at), lag=self.lag, disk_s=self.disk_s),
            durability=self.durability,
        )

    def reply(self, asked: Interrupt[Any]) -> Any:
        """Answer a question."""
        return self.answer(asked.value)

    def effects(self, trouble: Trouble) -> int:
        """How many places there were so far where this trouble could befall."""
        journals = [trace.journal for trace in self.traces]
        if trouble in ("store", "theft"):
            return sum(journal.stores for journal in journals)
        if trouble == "fetch":
            return sum(journal.fetches for journal in journals)
        return sum(len(journal.commands) for journal in journals)

    def next_input(self, graph: Any) -> tuple[bool, Any]:
        """Whether anything is left to do, and what to say next."""
        state = graph.get_state(self.config)
        if state.created_at is None:
            return not self.traces or self.broken, self.input
        if state.interrupts:
            answers = {asked.id: self.reply(asked) for asked in state.interrupts}
            return True, Command(resume=answers)
        return bool(state.next) or self.broken, None

    @property
    def broken(self) -> bool:
        """Whether the last run ended otherwise than by itself."""
        return bool(self.traces) and self.traces[-1].status in BROKEN

    @property
    def error(self) -> str | None:
        error = self.traces[-1].error
        return None if error is None else f"{type(error).__name__}: {error.args}"

    def history(self) -> dict[str, list[Any]]:
        """All checkpoints by namespace, oldest first."""
        found: dict[str, list[Any]] = defaultdict(list)
        thread = {CONF: {"thread_id": self.config[CONF]["thread_id"]}}
        for saved in self.saver.list(thread):
            found[saved.config[CONF]["checkpoint_ns"]].insert(0, saved)
        return dict(found)

    def outcome(self) -> dict[str, Any]:
        """What another telling of the same conversation must agree on."""
        state = self.factory(self.saver).get_state(self.config)
        told: dict[str, Any] = {
            "values": state.values,
            "next": state.next,
            "error": self.error,
        }
        if self.durability != "exit":
            steps = [
                (saved.metadata["source"], saved.metadata["step"], shown(saved))
                for saved in self.history().get("", ())
            ]
            told["history"] = steps
        return told


def shown(saved: Any) -> Mapping[str, Any]:
    """The values of a checkpoint that a user can see."""
    values = saved.checkpoint["channel_values"]
    return {
        key: value
        for key, value in values.items()
        if not key.startswith(("__", "branch:", "join:"))
    }


def faults(trouble: Trouble, at: int | None) -> Faults:
    """One fault of a kind, or none."""
    if at is None or at < 0:
        return Faults()
    if trouble == "store":
        return Faults(stores=frozenset({at}))
    if trouble == "fetch":
        return Faults(fetches=frozenset({at}))
    if trouble == "theft":
        return Faults(thefts=frozenset({at}))
    stop_at = at if trouble in ("close", "cancel") else None
    return Faults(stop_at=stop_at, cancels=trouble == "cancel")


def crash_everywhere(
    graph_factory: GraphFactory,
    input: Any,
    answers: Answer = str,
    *,
    seed: int = 0,
    durability: str = "async",
    trouble: Trouble = "crash",
    lag: float = 0.5,
    disk_s: float = 0.0,
    at_most: int | None = None,
    config: Mapping[str, Any] = THREAD,
    new_saver: Callable[[], Any] = InMemorySaver,
) -> Report:
    """Crash a conversation before each of its commands, and go on each time.

    `answers` gives the answer to the value of a question. Nodes must depend on
    nothing but the state they are given, or the laws do not hold for them; of
    a conversation that ends in an error only what is stored is looked at.
    `trouble` may be another than a crash: the caller closes the stream or
    cancels, the n-th storage call or read fails, or another run takes the
    thread over before the n-th storage call. `lag` is the chance that
    storage behind the run does not move at a command, and `disk_s` how long a
    storage call takes. With `at_most`, so many places are tried, spread evenly.
    `config` names the thread, and limits. `new_saver` is called for each telling,
    and returns a saver in which nothing is stored of the thread.
    """
    report = Report(seed)

    def talk() -> Talk:
        talk = Talk(graph_factory, input, answers, seed, durability, lag, config)
        talk.saver, talk.disk_s = new_saver(), disk_s
        return talk

    whole = talk()
    whole.hold()
    report.error = whole.error
    expected = whole.outcome() if whole.error is None else {}
    report.findings.extend(blamed(None, whole))
    report.places = whole.effects(trouble)
    every = 1 if at_most is None else max(1, -(-report.places // at_most))
    for number in range(seed % every, report.places, every):
        broken = talk()
        broken.hold(trouble, number)
        if number % 3 == 0:  # misfortunes never come alone
            broken.hold("crash", (number * 7 + seed) % (report.places + 1))
        broken.hold()
        report.tried += 1
        report.findings.extend(blamed(number, broken))
        report.findings.extend(differences(number, expected, broken.outcome()))
    return report


def differences(
    at: int | None, expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> Iterator[Finding]:
    """What a resumed conversation came to otherwise."""
    for key, value in expected.items():
        if actual[key] != value:
            detail = f"{actual[key]!r}, uninterrupted {value!r}"
            yield Finding(at, f"the same {key}", detail)


def blamed(at: int | None, talk: Talk) -> Iterator[Finding]:
    """What is wrong with a conversation by itself."""
    for name in rerun(talk.traces):
        yield Finding(at, "no task with a stored result runs again", name)
    for trace in talk.traces:
        for name in trace.journal.left:
            yield Finding(at, "no task is left behind", name)
        for kind, place in trace.journal.orphans:
            detail = f"{kind} under {place}"
            yield Finding(at, "nothing is stored under what is not", detail)
        for detail in trace.journal.trespasses:
            yield Finding(at, "nothing is stored under a lost lease", detail)
    for ns, history in talk.history().items():
        # Of a run that dies, "exit" stores nothing but the subgraphs that had ended:
        # nothing leads to that, and the next run goes on before it.
        line = led(history) if ns and talk.durability == "exit" else history
        for detail in crooked(line):
            yield Finding(at, "history is linear", f"{ns or 'root'}: {detail}")


def rerun(traces: Sequence[Trace]) -> Iterator[str]:
    """The tasks that ran in one run although an earlier one stored their result."""
    saved: set[str] = set()
    for trace in traces:
        for name, task in trace.journal.ran:
            if task in saved:
                yield f"{name} ({task})"
        saved |= trace.journal.saved
        if ended_in_order(trace):
            saved |= trace.journal.finished


def ended_in_order(trace: Trace) -> bool:
    """Whether a run had the chance to record all that had finished in it."""
    lost = isinstance(trace.error, DiskError | LeaseLostError)
    return trace.status != "crashed" and not lost


def led(history: Sequence[Any]) -> list[Any]:
    """The newest checkpoint of a history and its ancestors, oldest first."""
    line: list[Any] = []
    for saved in reversed(history):
        of = line[-1].parent_config if line else None
        if not line or (of and of[CONF]["checkpoint_id"] == saved.checkpoint["id"]):
            line.append(saved)
    return line[::-1]


def crooked(history: Sequence[Any]) -> Iterator[str]:
    """Where a history, oldest first, forks, skips or goes back."""
    for parent, saved in pairwise(history):
        id_ = saved.checkpoint["id"]
        of = saved.parent_config
        if of is None or of[CONF]["checkpoint_id"] != parent.checkpoint["id"]:
            yield f"checkpoint {id_} does not follow the one before it"
        if saved.metadata["step"] <= parent.metadata["step"]:
            yield f"checkpoint {id_} has a step that was taken before"
        yield from shrunk(parent.checkpoint, saved.checkpoint)


def shrunk(parent: Mapping[str, Any], checkpoint: Mapping[str, Any]) -> Iterator[str]:
    """Channels whose version became smaller or was lost."""
    versions = checkpoint["channel_versions"]
    for channel, version in parent["channel_versions"].items():
        if channel not in versions or versions[channel] < version:
            yield f"the version of `{channel}` went back in {checkpoint['id']}"


def replays(graph: Any, config: Mapping[str, Any]) -> Iterator[str]:
    """The checkpoints from which a run does not come to their successor again.

    The thread must have ended; it gets a branch from each of its checkpoints.
    """
    history = list(graph.get_state_history(config))
    for successor, snapshot in pairwise(history):
        if successor.metadata["source"] != "loop":
            continue
        before = ids(graph, config)
        graph.invoke(None, snapshot.config)
        branch = [s for s in graph.get_state_history(config) if id_of(s) not in before]
        # The branch starts with a copy of the checkpoint it starts from.
        again = [s for s in branch if s.metadata["source"] == "loop"]
        if not again or again[-1].values != successor.values:
            yield f"step {successor.metadata['step']}: {again[-1:]!r}"


def ids(graph: Any, config: Mapping[str, Any]) -> set[str]:
    return {id_of(snapshot) for snapshot in graph.get_state_history(config)}


def id_of(snapshot: Any) -> str:
    id_: str = snapshot.config[CONF]["checkpoint_id"]
    return id_
