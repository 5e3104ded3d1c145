"""One run in progress: its state, what is recorded of it, what it tells.

Shared by the programs that start a run, settle its tasks and drive its loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from towpath.checkpoint.base.saver import Added, Exact
from towpath.constants import CARRIED, ERROR, INTERRUPT, MISSING, NULL_TASK_ID, RESUME
from towpath.errors import SerializationError
from towpath.kernel.commands import (
    Finish,
    Flush,
    LateWrites,
    Persist,
    Program,
    Record,
)
from towpath.kernel.request import LIFECYCLE, NONE, Request, capable
from towpath.plan import Plan
from towpath.step.children import Child
from towpath.step.isolate import isolate
from towpath.step.project import (
    checkpoint_chunk,
    interrupt_chunk,
    kept_writes,
    output,
    result_chunk,
    task_chunk,
    touches,
    update_chunk,
)
from towpath.step.state import State, to_checkpoint
from towpath.step.tasks import Task, Write, path_key
from towpath.types import Interrupt


class Session:
    """The mutable record of one run.

    `pending` holds the writes recorded under the current checkpoint, by task
    id; `late` those that the next commit carries; `held` the checkpoint that
    waits for the end of a run with durability "exit". `entered` counts the step
    of the entry node, where it was taken together with the input. `exact` tells
    that the checkpoint before is of this run, and `lends` that one is stored
    before the run goes on, so that it need not be copied.
    """

    # Class attributes are the defaults: most runs never set most of these.
    mute = False
    entered = 0
    reruns = False
    halted = False
    broken = False
    atomic = False
    exact = False
    lends = False
    grouping = False
    """Whether what several tasks wrote can be recorded at once."""
    how: Any = "behind"
    held: Persist | None = None
    tasks: Sequence[Task] = ()
    late: LateWrites = ()
    failures: Sequence[Task] = ()
    interrupts: Sequence[Interrupt[Any]] = ()
    config: Mapping[str, Any] = NONE
    parent_config: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = NONE
    last: Any = MISSING
    """The output as it was last seen, where a later step may empty its keys."""
    held_records: list[Record]
    unsaved: dict[str, Any]

    def __init__(self, plan: Plan, req: Request, state: State) -> None:
        self.plan = plan
        self.req = req
        self.state = state
        self.saver = req.saver
        self.tells = req.modes
        self.ns = req.path if req.modes else ()
        self.pending: dict[str, list[Write]] = {}
        if self.saver is not None:
            self.atomic = capable(self.saver, "atomic_commit")
            self.grouping = capable(self.saver, "staged")
            if req.durability == "sync":
                self.how = "wait"
            at_once = req.durability == "sync" or capable(self.saver, "inline")
            self.lends = at_once and self.grouping
            self.held_records, self.unsaved = [], {}
        else:
            state.changed = None
        keys = (req.keys,) if isinstance(req.keys, str) else req.keys
        self.fading = bool(plan.ticking) and not plan.ticking.isdisjoint(keys)

    @property
    def stop(self) -> int:
        """The first step that is one too many; nested runs look at it too."""
        return self.req.stop

    @stop.setter
    def stop(self, step: int) -> None:
        self.req.stop = step

    # -- what is recorded ---------------------------------------------------

    def record(
        self, task_id: str, path: str, writes: Sequence[Write], how: Any = None
    ) -> Program[None]:
        """Record a task's writes under the checkpoint it was planned on."""
        return self.record_all([(task_id, path, writes)], how)

    def record_all(self, tasks: LateWrites, how: Any = None) -> Program[None]:
        """Record what several tasks wrote, in one transaction where that can be."""
        if self.broken:
            return  # nothing may be stored after what could not be
        together = self.grouping or len(tasks) == 1
        config, lease = self.req.place(self.state.id), self.req.lease
        commands = [
            Record(self.saver, config, part, how or self.how, lease)
            for part in ([tasks] if together else [[task] for task in tasks])
        ]
        if self.req.durability == "exit":
            self.held_records.extend(commands)
        else:
            yield from self.store_each(commands)

    def store_each(self, commands: Sequence[Record]) -> Program[None]:
        """Store records; what cannot be stored takes none of the others along.

        Raises:
            SerializationError: the first, when the others are stored.
        """
        failure: SerializationError | None = None
        for command in commands:
            try:
                yield from self.store(command)
            except SerializationError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def store(self, command: Record) -> Program[None]:
        """Store a record, or what can be stored of it."""
        try:
            yield command
        except SerializationError as error:
            if len(command.tasks) == 1:
                self.name_writers(error)
                raise
        else:
            return
        yield from self.store_each(
            [replace(command, tasks=[task]) for task in command.tasks]
        )

    def record_done(self, tasks: Sequence[Task], *, last: bool) -> Program[None]:
        """Record finished tasks; the last of a step go with the commit."""
        entries = list(map(self.result_of, tasks))
        if last:
            self.late = (*self.late, *entries)
        else:
            # A caller may act on a child's result as soon as it has it.
            how = "wait" if isinstance(tasks[0], Child) else None
            yield from self.record_all(entries, how)

    def result_of(self, task: Task) -> tuple[str, str, Sequence[Write]]:
        """What is recorded of a finished task."""
        untracked = self.plan.untracked
        own = [w for w in task.writes if w[0] not in untracked]
        writes = list(kept_writes(own))
        if task.answers:
            writes.insert(0, (RESUME, list(task.answers)))
        return task.id, path_key(task.path), writes

    def record_parked(self, task: Task) -> Program[None]:
        """Record the questions of a task, and the answers it already used."""
        writes: list[Write] = [(INTERRUPT, list(task.interrupts))]
        if task.answers:
            writes.append((RESUME, list(task.answers)))
        yield from self.record(task.id, path_key(task.path), writes)

    def record_failed(self, task: Task) -> Program[None]:
        writes: list[Write] = [(ERROR, text_of(task.error))]
        if task.answers:
            writes.append((RESUME, list(task.answers)))
        yield from self.record(task.id, path_key(task.path), writes)

    def forget(self, question: str | None) -> Program[None]:
        """Let a question be open again whose answer was refused."""
        answers = dict(self.req.answers)
        closes = self.plan.semantics.answered_questions == "closed"
        if question in answers and closes and not self.req.nested:
            del answers[question]
            self.req.answers = answers
            yield from self.record(NULL_TASK_ID, "", [(RESUME, answers)])

    def release_late(self) -> Program[None]:
        """Record by themselves the writes that no commit will carry."""
        late, self.late = self.late, ()
        if late:
            yield from self.record_all(late)

    def take_over(
        self, source: str, recorded: Mapping[str, Sequence[Write]]
    ) -> Program[None]:
        """Commit a checkpoint whose tasks were planned before, with what is recorded.

        In one transaction where the saver can: who died in between would leave tasks
        to be repeated that have ended, and questions that nobody has asked.
        """
        tasks = [(task, "", writes) for task, writes in recorded.items()]
        if capable(self.saver, "carries"):
            yield from self.commit(source, tasks)
            return
        yield from self.commit(source)
        for task in tasks:
            yield from self.record_all([task])

    def commit(self, source: str, own: LateWrites = ()) -> Program[None]:
        """Store the state as a checkpoint, with the late writes of its step."""
        state = self.state
        late: LateWrites = ()
        if self.late:
            if self.atomic:
                late, self.late = self.late, ()
            else:
                yield from self.release_late()
        for name in state.changed or ():
            self.unsaved[name] = state.versions[name]
        metadata = self.metadata_of(source)
        if self.tells:
            self.metadata = metadata.copy()
        command = Persist(
            self.saver,
            self.req.place(None if self.held else state.id),
            to_checkpoint(state, lent=self.exact and self.lends),
            metadata,
            Exact(self.unsaved) if self.exact else self.unsaved,
            late,
            self.how,
            written(self.plan, state),
            self.req.lease,
            own,
        )
        try:
            yield from self.put(command)
        except SerializationError:
            with suppress(SerializationError):
                yield from self.record_all(late)
            raise
        state.step += 1
        state.written = None

    def put(self, command: Persist) -> Program[None]:
        """Have a checkpoint stamped and stored, now or at the end of the run."""
        state = self.state
        if self.req.durability == "exit":
            if self.held is not None:
                command.config = self.held.config
            command.how = "hold"
            command.writes = ()
            command.written = None  # other steps have written since the parent
            self.held, self.held_records = command, []
        else:
            self.unsaved = {}
            # The next one is put on this, and `changed` is all in which they differ.
            self.exact = True
        above = command.config["configurable"].get("checkpoint_id")
        try:
            state.id, _ = yield command
        except SerializationError as error:
            self.name_writers(error)
            raise
        self.stand_at(state.id, above)

    def stand_at(self, checkpoint: str, parent: str | None) -> None:
        """Note for those who are told which checkpoint the run has come to."""
        if self.tells:
            self.config = self.req.shown(checkpoint)
            self.parent_config = self.req.shown(parent) if parent else None

    def name_writers(self, error: SerializationError) -> None:
        """Say which nodes wrote what could not be stored.

        What is stored behind the run fails when later tasks run; they are not
        to blame.
        """
        if self.how == "behind" and not capable(self.saver, "inline"):
            return
        asked = error.channel == INTERRUPT
        names = [
            f"`{task.name}`"
            for task in self.tasks
            if (asked and task.halted) or error.channel in dict(task.writes)
        ]
        if names:
            error.add_note(f"Written in step {self.state.step} by {', '.join(names)}")

    def metadata_of(self, source: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            **self.req.metadata,
            "source": source,
            "step": self.state.step,
            "parents": dict(self.req.parents),
        }
        if self.state.carried:
            metadata[CARRIED] = dict(self.state.carried)
        return metadata

    def release_held(self) -> Program[None]:
        """Store what a run with durability "exit" kept back."""
        if self.broken:
            return
        yield from self.release_late()
        if self.held is not None:
            held, self.held = self.held, None
            held.how = "wait"
            self.unsaved = {}
            yield held
        records, self.held_records = self.held_records, []
        for record in records:
            record.how = "wait"
        yield from self.store_each(records)

    def conclude(self, *, complete: bool) -> Program[None]:
        """Store what was kept back, and wait until everything is stored.

        What a node changed in place and did not return belongs to the state only
        when the run is complete: a task that runs again would change it twice.
        """
        values = dict(self.state.stored) if complete else None
        try:
            yield from self.release_held()
            yield Flush()
        except Exception:
            yield self.finish(None)
            raise
        yield self.finish(values)

    def finish(self, values: Mapping[str, Any] | None) -> Finish:
        req = self.req
        place = req.place(self.state.id)
        return Finish(self.saver, place, values, req.lease, release=req.claims)

    # -- what is told -------------------------------------------------------

    def tell(self, mode: str, payload: Any) -> None:
        if mode in self.tells and not self.mute:
            self.req.emit((self.ns, mode, payload))

    def tell_debug(self, kind: str, mode: str, payload: Any, step: int) -> None:
        """Tell a chunk to its own mode, and wrapped to listeners of `debug`."""
        self.tell(mode, payload)
        if "debug" in self.tells:
            self.tell("debug", {"step": step, "type": kind, "payload": payload})

    def tell_values(self) -> None:
        if self.fading:
            self.last = output(self.state.values, self.req.keys)
        if "values" in self.tells:
            self.tell("values", self.shown_values())

    def shown_values(self) -> Any:
        """The values for a listener, who must not hold our own containers."""
        shown = output(self.state.values, self.req.keys)
        return isolate(shown) if self.plan.semantics.isolate_state else shown

    def tell_step(self, tasks: Sequence[Task]) -> None:
        """Tell the values after a step, if it could have changed them."""
        if (self.fading or "values" in self.tells) and any(
            touches(task.writes, self.req.keys) for task in tasks
        ):
            self.tell_values()

    def tell_checkpoint(self) -> None:
        if self.saver is None or not self.tells & {"checkpoints", "debug"}:
            return
        place = {
            "config": self.config,
            "parent_config": self.parent_config,
            "metadata": {k: v for k, v in self.metadata.items() if k != CARRIED},
        }
        values = output(self.state.values, self.plan.shown)
        keys = self.plan.told or self.plan.keys
        chunk = checkpoint_chunk(values, place, self.tasks, keys)
        self.tell_debug("checkpoint", "checkpoints", chunk, self.state.step - 1)

    def tell_started(self, task: Task) -> None:
        if task.spec.hidden or not self.tells & {"tasks", "debug"}:
            return
        self.tell_debug(
            "task", "tasks", task_chunk(task, self.req.labels), self.state.step
        )

    def tell_result(self, task: Task) -> None:
        if task.spec.hidden or not self.tells & {"tasks", "debug"}:
            return
        chunk = result_chunk(task, self.plan.told or self.plan.keys)
        self.tell_debug("task_result", "tasks", chunk, self.state.step)

    def tell_update(self, task: Task) -> None:
        """Tell what a finished task wrote; generators have told it themselves."""
        if task.spec.hidden or "updates" not in self.tells:
            return
        yields = task.spec.action is not None and task.spec.action.yields
        if not yields or task.cached:
            self.tell("updates", update_chunk(task, self.req.keys))

    def tell_parked(self, task: Task) -> None:
        """Tell the questions of one task."""
        if not task.interrupts:
            self.tell_breakpoint()  # one further down, in a subgraph
            return
        chunk = interrupt_chunk(task.interrupts)
        self.tell("updates", chunk)
        if "values" in self.tells:
            shown = self.shown_values()
            shown = {**shown, **chunk} if isinstance(shown, dict) else chunk
            self.tell("values", shown)
        self.tell_result(task)

    def tell_lifecycle(self, what: str, status: str) -> None:
        """Tell that the run stops here, or goes on from here."""
        if LIFECYCLE in self.tells:
            told = (
                what,
                status,
                self.state.id or self.req.origin,
                tuple(self.interrupts),
            )
            self.tell(LIFECYCLE, told)

    def tell_breakpoint(self) -> None:
        """Tell that a static breakpoint stopped the run; the outermost one tells."""
        if not self.req.nested:
            self.tell("updates", {INTERRUPT: ()})


def written(plan: Plan, state: State) -> Mapping[str, Sequence[Any] | None] | None:
    """What the last step wrote; None for keys whose reducer may have done more."""
    known = state.written
    if known is None or (not plan.unsure and not plan.adding):
        return known
    told: dict[str, Sequence[Any] | None] = {**known}
    for key in plan.unsure.intersection(told):
        told[key] = None
    for key in plan.adding.intersection(told):
        if all(type(write) is list for write in known[key]):
            told[key] = Added(known[key])
    return told


def text_of(error: BaseException | None) -> str:
    """The text under which a failure is recorded."""
    try:
        return repr(error)
    except Exception:
        return f"{type(error).__name__}(...)"
