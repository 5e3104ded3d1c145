"""What is measured: one description per workload, whoever runs it.

A description says how much work there is; an adapter makes a callable of it.
The unit is what the time is divided by: a superstep, a task, a turn, a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Colour = Literal["sync", "async"]
Saver = Literal["none", "memory", "sqlite"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One amount of one kind of work."""

    size: int

    kind: ClassVar[str]
    unit: ClassVar[str]
    colours: ClassVar[tuple[Colour, ...]] = ("sync", "async")

    @property
    def units(self) -> int:
        return self.size

    @property
    def name(self) -> str:
        return f"{self.kind} {self.size}"


@dataclass(frozen=True, slots=True)
class Sequential(Workload):
    """So many nodes one after the other, each adding one to a number."""

    kind = "sequential"
    unit = "step"


@dataclass(frozen=True, slots=True)
class Loop(Workload):
    """Two nodes that hand over to each other, so many steps in all."""

    kind = "loop"
    unit = "step"


@dataclass(frozen=True, slots=True)
class FanOut(Workload):
    """So many `Send`s to one node; their results go into one list."""

    kind = "fan-out"
    unit = "task"


@dataclass(frozen=True, slots=True)
class Wide(Workload):
    """A state of so many keys, of which every step reads and writes two."""

    kind = "wide state"
    unit = "step"
    STEPS: ClassVar[int] = 100

    @property
    def units(self) -> int:
        return self.STEPS


@dataclass(frozen=True, slots=True)
class Chat(Workload):
    """A conversation of so many turns: a user's and a model's message each."""

    saver: Saver

    kind = "chat"
    unit = "turn"

    @property
    def name(self) -> str:
        return f"chat {self.size}, {self.saver}"


@dataclass(frozen=True, slots=True)
class Nested(Workload):
    """A loop of a hundred steps around so many levels of subgraphs."""

    kind = "nested"
    unit = "step"
    STEPS: ClassVar[int] = 100

    @property
    def units(self) -> int:
        return self.STEPS


@dataclass(frozen=True, slots=True)
class Compile(Workload):
    """Building and compiling a chain of so many nodes."""

    kind = "compile"
    unit = "node"
    colours = ("sync",)


@dataclass(frozen=True, slots=True)
class Import(Workload):
    """Importing the library in a new process, less that of an empty program."""

    kind = "import"
    unit = "import"
    colours = ("sync",)

    @property
    def name(self) -> str:
        return "import"


def full() -> list[Workload]:
    """Every workload in every size."""
    return [
        Import(1),
        *(Compile(n) for n in (10, 100, 1000)),
        *(Sequential(n) for n in (10, 100, 1000)),
        Loop(1000),
        *(FanOut(n) for n in (10, 100, 1000)),
        *(Wide(n) for n in (100, 1000, 10_000)),
        *(Nested(n) for n in (1, 2, 3)),
        *(Chat(n, "none") for n in (50, 200, 1000)),
        *(Chat(n, "memory") for n in (50, 200, 1000)),
        *(Chat(n, "sqlite") for n in (50, 200, 1000)),
    ]


def quick() -> list[Workload]:
    """One size of each, small enough for a coffee break."""
    return [
        Import(1),
        Compile(100),
        Sequential(100),
        Loop(200),
        FanOut(100),
        Wide(1000),
        Nested(2),
        Chat(100, "none"),
        Chat(100, "memory"),
        Chat(50, "sqlite"),
    ]
