"""Killing a user's graph at every commit, in the driver that runs it for real.

The laws are those of `towpath.testing.laws`, and so is how a conversation is held. Here
it is not simulated: nodes may use threads, event loops and libraries as they
like. A driver is watched instead. Before its n-th commit the process "dies":
nothing that the run still does reaches the saver, and its lease is free, as that
of a process that is gone. Then the graph goes on from what was stored.

What the process had begun is not taken back. A thread or a task of the dead run
may go on until it is done; nobody learns what it comes to.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from towpath.checkpoint.base.lease import Lease
from towpath.checkpoint.memory import InMemorySaver
from towpath.constants import CONF
from towpath.drive.loop import LoopDriver
from towpath.drive.sync import SyncDriver
from towpath.kernel.commands import (
    Called,
    Fetch,
    Launch,
    Persist,
    Program,
    Record,
    Wait,
    overheard,
)
from towpath.kernel.request import Chunk
from towpath.kernel.run import Outcome
from towpath.pregel.finish import adrive, to_end
from towpath.pregel.runs import Options, Run, prepare_run
from towpath.step.children import Child
from towpath.testing.colour import is_async, run_loop
from towpath.testing.laws import (
    Finding,
    Talk,
    Trouble,
    blamed,
    differences,
)
from towpath.testing.scripts import scripted_nodes
from towpath.testing.simulate import Trace
from towpath.testing.snapshots import normal_form
from towpath.testing.world import Crash, Journal, address
from towpath.types import Interrupt

__all__ = ("CrashReport", "crash_everywhere")

Answers = Callable[[Any], Any] | Sequence[Any]
"""A function of the value of a question, or the answers in the order asked."""
THREAD: Final = "crashes"
LAST_WORDS_MAX: Final = 1000


@dataclass(slots=True)
class CrashReport:
    """What came of crashes at all commits of one conversation.

    `repeated` tells which nodes began again because a crash came before their
    result was stored, and after how many of the crashes: what they do to the
    outside must bear to be done twice, or belongs into `runtime.step`.
    """

    commits: int = 0
    values: Any = None
    """The state that the graph comes to without a crash."""
    repeated: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def check(self) -> CrashReport:
        """Raise an `AssertionError` that tells all, if anything is wrong."""
        if self.findings:
            lines = "\n".join(map(str, self.findings[:20]))
            raise AssertionError(
                f"{len(self.findings)} findings after crashes before each of "
                f"{self.commits} commits:\n{lines}"
            )
        return self


class Watch:
    """Sees the commands of a run and of the runs inside it; kills it."""

    def __init__(self, crash_at: int | None) -> None:
        self.crash_at = crash_at
        self.journal = Journal()
        self.leases: list[Lease] = []
        self.dead = False

    def over(self, driver: Any, program: Program[Any]) -> Program[Any]:
        """Hand a program's commands on, until the process dies."""
        calls: list[Child] = []
        told = one_by_one(program)

        def after(command: Any, reply: Any) -> None:
            self.after(command, reply)
            calls.extend(called(command, reply))

        try:
            return (yield from overheard(told, self.before, after))
        except Crash:
            bury(told)
            driver.end()
            for child in calls:
                forget(child)
            raise

    def before(self, command: Any) -> None:
        """Note what is about to happen; die if it must not."""
        if self.dead:
            raise Crash
        if isinstance(command, Launch):
            self.journal.ran.extend((task.name, task.id) for task in command.tasks)
        elif commits(command):
            if len(self.journal.commands) == self.crash_at:
                self.dead = True
                raise Crash
            self.journal.commands.append(type(command).__name__)
        elif isinstance(command, Fetch) and command.lease is not None:
            self.leases.append(command.lease)

    def after(self, command: Any, reply: Any) -> None:
        """Note what is stored now."""
        if commits(command):
            self.journal.note(command)
        elif isinstance(command, Fetch) and reply is not None:
            self.journal.stored.add(address(reply.config))

    def end(self) -> None:
        """The process is gone."""
        self.dead = True
        for lease in self.leases:
            lease.end()

    # The drivers of runs inside nodes, as a scope knows them.

    def blocking(self, scope: Any) -> WatchedSync:
        return WatchedSync(scope, self)

    def looping(self, scope: Any) -> WatchedLoop:
        return WatchedLoop(scope, self)


def commits(command: Any) -> bool:
    """Whether a command stores something."""
    return isinstance(command, Record) or (
        isinstance(command, Persist) and command.how != "hold"
    )


def called(command: Any, reply: Any) -> Iterator[Child]:
    """The tasks that running ones have called, as the program is told."""
    if isinstance(command, Launch | Wait) and reply:
        yield from (event.child for event in reply if isinstance(event, Called))


def one_by_one(program: Program[Any]) -> Program[Any]:
    """The same program, to which tasks come back one by one.

    What ends together would be stored together, and no process could die in between.
    """
    early: list[Any] = []
    try:
        command = next(program)
        while True:
            known = early and isinstance(command, Wait)
            try:
                reply = () if known else (yield command)
            except BaseException as error:
                command = program.throw(error)
            else:
                if isinstance(command, Launch | Wait):
                    early += reply
                    reply = tuple(early[:1])
                    del early[:1]
                command = program.send(reply)
    except StopIteration as stop:
        return stop.value


def bury(program: Program[Any]) -> None:
    """Let a program end to which no command is obeyed any more.

    Now, and not when memory is cleared: closed, it would still have commands.
    """
    with suppress(BaseException):
        for _ in range(LAST_WORDS_MAX):
            program.throw(Crash())


def forget(child: Child) -> None:
    """Wake whoever waits for a task, to learn that the process has died."""
    child.error = Crash()
    with suppress(InvalidStateError):  # it has been answered
        child.answer(child)


class WatchedSync(SyncDriver):
    """The blocking driver, of a program that is watched."""

    def __init__(self, scope: Any, watch: Watch) -> None:
        super().__init__(scope)
        self.watch = watch

    def stream(self, program: Program[Any]) -> Generator[Chunk, None, Any]:
        return super().stream(self.watch.over(self, program))


class WatchedLoop(LoopDriver):
    """The asyncio driver, of a program that is watched."""

    def __init__(self, scope: Any, watch: Watch) -> None:
        super().__init__(scope)
        self.watch = watch

    def stream(
        self, program: Program[Any], outcome: list[Any]
    ) -> AsyncGenerator[Chunk, None]:
        return super().stream(self.watch.over(self, program), outcome)


async def in_loop(made: Run) -> Outcome:
    """Obey a run's program to its end, in the running loop."""
    outcome: list[Outcome] = []
    async for _ in adrive(made, outcome):
        pass
    return outcome[0]


@dataclass(slots=True)
class Performance(Talk):
    """A conversation that is not simulated."""

    options: Mapping[str, Any] = field(default_factory=dict)
    answers: Answers = str
    given: dict[str, Any] = field(default_factory=dict)
    """The answers so far, by the ids of the questions."""

    def play(self, graph: Any, given: Any, trouble: Trouble, at: int | None) -> Trace:
        """Run the graph once, and kill it before its n-th commit from here."""
        del trouble
        watch = Watch(at)
        trace = Trace("crashed", None, None, [], watch.journal)
        options = Options(stream_mode="values", durability="sync", **self.options)
        try:
            made = prepare_run(graph, given, self.config, options, streams=False)
            made.scope.drivers = watch
            outcome: Outcome
            if is_async(graph):
                outcome = run_loop(lambda: in_loop(made))
            else:
                outcome = to_end(made)
            trace.status, trace.value = outcome.status, outcome.value
        except Crash:
            pass
        except Exception as error:
            if not watch.dead:
                trace.status, trace.error = "failed", error
        watch.end()
        return trace

    def reply(self, asked: Interrupt[Any]) -> Any:
        """Answer a question; the same one again in the same way."""
        if callable(self.answers):
            return self.answers(asked.value)
        if asked.id not in self.given:
            number = len(self.given)
            if number >= len(self.answers):
                raise AssertionError(
                    f"the graph asks {asked.value!r}, and `answers` has only "
                    f"{len(self.answers)}"
                )
            self.given[asked.id] = self.answers[number]
        return self.given[asked.id]


def crash_everywhere(
    graph: Any,
    input: Any,
    *,
    answers: Answers = (),
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    before_each: Callable[[], Any] | None = None,
    normal: Callable[[Any], Any] = normal_form,
    check: bool = True,
) -> CrashReport:
    """Kill a compiled graph before each of its commits, and resume it each time.

    The graph runs to its end once, then once more for each commit; it keeps its
    state in a saver of the kit's, and no results in a cache. `answers` are what
    it is answered when it asks, as a function of the question or in order.
    `before_each` is called before each of the runs, to empty what nodes write to
    outside of the graph; scripted nodes begin anew by themselves. States are
    compared in their `normal` form, which leaves ids and times out.

    What is wrong is another final state or history than without a crash, or a
    node that ran again after its result was stored. (Failing at the n-th
    operation, for every n, is how SQLite tests itself.)

    Raises:
        AssertionError: something is wrong, unless `check` is False.
        Exception: what the graph raises without any crash.
    """
    given = dict(config or {})
    given[CONF] = {"thread_id": THREAD, **(given.get(CONF) or {})}
    options = {} if context is None else {"context": context}

    def perform(at: int | None) -> Performance:
        for node in scripted_nodes(graph):
            node.rewind()
        if before_each is not None:
            before_each()
        talk = performance(graph, input, given, options, answers)
        talk.hold("crash", at)
        if at is not None:
            talk.hold()
        return talk

    whole = perform(None)
    if (error := whole.traces[-1].error) is not None:
        raise error
    expected = seen(whole, normal)
    report = CrashReport(whole.effects("crash"), whole.outcome()["values"])
    report.findings.extend(blamed(None, whole))
    for number in range(report.commits):
        broken = perform(number)
        report.findings.extend(blamed(number, broken))
        report.findings.extend(differences(number, expected, seen(broken, normal)))
        for name in began_again(broken.traces):
            report.repeated[name] = report.repeated.get(name, 0) + 1
    return report.check() if check else report


def performance(
    graph: Any,
    input: Any,
    config: Mapping[str, Any],
    options: Mapping[str, Any],
    answers: Answers,
) -> Performance:
    """A conversation with a graph, in a saver of its own."""
    serde = getattr(graph.checkpointer, "serde", None)
    return Performance(
        lambda saver: graph.copy({"checkpointer": saver, "cache": None}),
        input,
        config=config,
        saver=InMemorySaver(serde=serde),
        options=options,
        answers=answers,
    )


def seen(talk: Talk, normal: Callable[[Any], Any]) -> dict[str, Any]:
    """What another telling must agree on, with what is accidental taken out."""
    return {key: normal(value) for key, value in talk.outcome().items()}


def began_again(traces: Sequence[Trace]) -> set[str]:
    """The nodes whose task began in the run that crashed, and again later."""
    ends = [trace.status for trace in traces]
    at = ends.index("crashed") if "crashed" in ends else len(ends) - 1
    begun = {task for _, task in traces[at].journal.ran}
    later = [ran for trace in traces[at + 1 :] for ran in trace.journal.ran]
    return {name for name, task in later if task in begun and not name.startswith("__")}
