"""Plays a script on a graph and writes down what could be observed."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass, field
from typing import Any

from towpath.testing import normal
from towpath.testing.api import Api
from towpath.testing.build import Builder
from towpath.testing.describe import (
    Ask,
    Edit,
    Fail,
    Graph,
    Inside,
    Proceed,
    Rewind,
    Run,
    Script,
    Steer,
    has,
    walk,
)

from .ear import Ear


@dataclass
class Player:
    """One graph, one thread, and the trace so far."""

    api: Api
    graph: Graph
    script: Script
    asynchronous: bool = False
    saver: Any = None
    ear: Ear = field(default_factory=Ear)
    trace: list[Any] = field(default_factory=list)
    over: bool = False
    """What comes now is a race, or of no use."""

    def __post_init__(self) -> None:
        self.builder = Builder(self.api, self.asynchronous)
        if self.script.stored and self.saver is None:
            self.saver = self.api.InMemorySaver()
        self.app = self.builder.compile(
            self.graph, checkpointer=self.saver, store=self.api.InMemoryStore()
        )
        self.config = {
            "configurable": {"thread_id": "thread"},
            "recursion_limit": self.script.recursion_limit,
        }
        self.loop = asyncio.Runner() if self.asynchronous else None
        children = [node for node in walk(self.graph) if node.child is not None]
        self.hidden = normal.Hidden(
            # A child called by a node's body: the peer guesses it from the function's
            # closure before the node ran, we know it once it was called.
            states={node.name for node in children if node.calls_child},
            # A child that keeps its state: the peer's config leads to a namespace of
            # the task, where there is nothing.
            configs={node.name for node in children if node.child.persist},
            # Steps that are not stored are nobody's parents; the peer is of two minds.
            parents=self.script.durability == "exit",
        )

    def play(self) -> list[Any]:
        """Play the whole script, up to where the libraries need not agree."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step in self.script.steps:
                if self.over:
                    break
                self._step(step)
            if self.saver is not None and not self.over:
                self._note("history", self._history(self.config))
                self._note("pinned", self._pinned())
        if not self.over:
            self._note("calls", dict(sorted(self.builder.calls.items())))
        if self.loop is not None:
            self.loop.close()
        return self.trace

    def _step(self, step: Any) -> None:
        match step:
            case Run(values):
                self._run(dict(values), self.config)
            case Proceed():
                self._run(self._answers(), self.config)
            case Edit():
                self._edit(step)
            case Steer(values, goto):
                self._steer(dict(values), goto)
            case Inside(values):
                self._edit_inside(dict(values))
            case Rewind(back):
                self._run(None, self._behind(back))

    def _run(self, given: Any, config: Any) -> None:
        chunks: list[normal.Chunk] = []
        outcome: Any = "ends"
        try:
            self._stream(given, config, chunks)
        except Exception as raised:  # any error is an outcome to compare
            outcome = normal.error(raised)
        snapshot = self._snapshot() if self.saver is not None else None
        failed = outcome != "ends" or isinstance(snapshot, tuple)
        racy = failed and self._is_race(chunks, snapshot)
        # What a run that failed leaves: is an answered question open again (we say
        # no), does a child that keeps its state forget its last visit (no)?
        left = has(self.graph, Ask) or bool(self.hidden.configs)
        self.over = racy or (failed and left)
        if racy:
            chunks = []
            # When two tasks of a step fail, the one that is told is a race, too.
            outcome = "fails" if has(self.graph, Fail) else outcome
        self._note("run", outcome, normal.stream(chunks, self.hidden))
        self._note("snapshot", None if self.over else self._ids().value(snapshot))

    def _is_race(self, chunks: list[normal.Chunk], snapshot: Any) -> bool:
        """Tell whether it is by chance which tasks of a failed step were done."""
        if self.script.durability == "exit":
            return True  # The peer stores what it had half applied.
        if snapshot is None and "tasks" not in self.ear.modes:
            return True  # Nothing tells how many tasks there were.
        return _several_tasks(chunks, snapshot)

    def _stream(self, given: Any, config: Any, chunks: list[normal.Chunk]) -> None:
        options: dict[str, Any] = {}
        if self.script.durability and self.saver is not None:
            options["durability"] = self.script.durability
        if not self.ear.modes:
            result = self._call("invoke", given, config, **options)
            chunks.append(((), "values", result))
            return
        options |= self.ear.options()
        if self.loop is None:
            for raw in self.app.stream(given, config, **options):
                chunks.append(self.ear.chunk(raw))
            return

        async def collect() -> None:
            async for raw in self.app.astream(given, config, **options):
                chunks.append(self.ear.chunk(raw))

        self.loop.run(collect())

    def _answers(self) -> Any:
        if self.saver is None:
            return None
        pending = getattr(self._snapshot(), "interrupts", ())
        if not pending:
            return None
        answers = {one.id: f"yes to {one.value}" for one in pending}
        command = self.api.Command
        if len(answers) == 1:
            return command(resume=next(iter(answers.values())))
        return command(resume=answers)

    def _edit(self, edit: Edit) -> None:
        config = self._behind(edit.back)
        if self._unsettled(config, now=edit.back == 0):
            return
        try:
            updated = self._call(
                "update_state", config, dict(edit.values), edit.as_node
            )
        except Exception as raised:  # any error is an outcome to compare
            self._note("edit", normal.error(raised))
            return
        self._note("edit", self._ids().value(self._snapshot()))
        if edit.proceed:
            limit = {"recursion_limit": self.script.recursion_limit}
            self._run(None, self.config if edit.back == 0 else {**updated, **limit})

    def _steer(self, values: Any, goto: str) -> None:
        # A jump while paused: the peer's thread is inconsistent afterwards.
        if getattr(self._snapshot(), "next", ()):
            return
        self._run(self.api.Command(update=values, goto=goto), self.config)
        # The peer's snapshots do not know that the command made a task: an open
        # question is invisible, and an update loses it. So this is the end.
        self.over = True
        self.trace.pop()

    def _edit_inside(self, values: Any) -> None:
        tasks = getattr(self._snapshot(), "tasks", ())
        children = [task.state for task in tasks if getattr(task.state, "next", ())]
        if not children or self._unsettled(children[0].config, now=True):
            return
        try:
            self._call("update_state", children[0].config, values)
        except Exception as raised:  # any error is an outcome to compare
            self._note("edit", normal.error(raised))
            return
        self._note("inside", self._history(children[0].config))
        self._run(None, self.config)

    def _unsettled(self, config: Any, *, now: bool) -> bool:
        """Tell whether a step has open questions, or is half done.

        An update drops the questions, and what finished tasks wrote or subgraphs
        have done, with the peer; with us it keeps them: an intended difference.
        """
        tasks = getattr(self._snapshot(config), "tasks", ())
        return any(task.interrupts or (now and _half_done(task)) for task in tasks)

    def _behind(self, back: int) -> Any:
        history = self._history(self.config, raw=True)
        if not history or back == 0:
            return self.config
        config = history[min(back, len(history) - 1)].config
        return {**config, "recursion_limit": self.script.recursion_limit}

    def _snapshot(self, config: Any = None) -> Any:
        try:
            return self._call("get_state", config or self.config, subgraphs=True)
        except Exception as raised:  # any error is an outcome to compare
            return normal.error(raised)

    def _history(self, config: Any, *, raw: bool = False) -> Any:
        if self.saver is None:
            return []
        if self.loop is None:
            found = list(self.app.get_state_history(config))
        else:

            async def collect() -> list[Any]:
                return [one async for one in self.app.aget_state_history(config)]

            found = self.loop.run(collect())
        return found if raw else self._ids().value(found)

    def _pinned(self) -> Any:
        """Look at some checkpoints by their ids."""
        configs = [one.config for one in self._history(self.config, raw=True)]
        return [self._ids().value(self._snapshot(one)) for one in configs[1:4]]

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if self.loop is None:
            return getattr(self.app, name)(*args, **options)
        return self.loop.run(getattr(self.app, f"a{name}")(*args, **options))

    def _ids(self) -> normal.Placeholders:
        return normal.Placeholders(self.hidden)

    def _note(self, *entry: Any) -> None:
        self.trace.append(entry)


def _several_tasks(chunks: list[normal.Chunk], snapshot: Any) -> bool:
    if snapshot is not None:
        return _wide(snapshot)
    started: dict[tuple[str, ...], int] = {}
    for namespace, mode, payload in chunks:
        if mode == "values":
            started[namespace] = 0
        elif mode == "tasks" and "input" in payload:
            started[namespace] = started.get(namespace, 0) + 1
    return any(count > 1 for count in started.values())


def _wide(snapshot: Any) -> bool:
    if not hasattr(snapshot, "tasks"):
        return True  # Finished tasks of a step wrote what cannot be read together.
    children = [task.state for task in snapshot.tasks if hasattr(task.state, "tasks")]
    return len(snapshot.tasks) > 1 or any(map(_wide, children))


def _half_done(task: Any) -> bool:
    """Tell whether a task has come to something that an update must keep."""
    inside = getattr(task.state, "metadata", None)
    return task.result is not None or task.error is not None or bool(inside)
