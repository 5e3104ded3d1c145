"""What is laid out: boxes with a size, and wires between them.

Lengths are in any unit: pixels for SVG, characters for text. x is the middle of a
box, y its upper edge, and y grows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

Point = tuple[float, float]


@dataclass(slots=True)
class Box:
    """Something with a size that is given a place."""

    id: str
    width: float
    height: float
    inset: float = 0
    """How far from its corners no wire may end."""
    last: bool = False
    """Whether it belongs into the last layer."""
    x: float = 0
    y: float = 0

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def move(self, dx: float, dy: float) -> None:
        self.x += dx
        self.y += dy


@dataclass(slots=True)
class Wire:
    """An edge between two boxes, and the way it takes.

    `choice` says that it is not always taken. `leave` and `enter` are where it
    must touch its boxes, from their middle; None leaves that to the layout. `back`
    says that it leads to an earlier layer, so its way goes upwards.
    """

    source: str
    target: str
    label: tuple[float, float] = (0, 0)
    choice: bool = False
    leave: float | None = None
    enter: float | None = None
    back: bool = False
    points: list[Point] = field(default_factory=list)
    label_at: Point | None = None

    def move(self, dx: float, dy: float) -> None:
        self.points = [(x + dx, y + dy) for x, y in self.points]
        if self.label_at is not None:
            self.label_at = (self.label_at[0] + dx, self.label_at[1] + dy)


@dataclass(slots=True)
class Link:
    """A piece of a wire between two neighbouring layers, upper end first."""

    upper: int
    lower: int
    wire: int
    leave: float = 0
    enter: float = 0
    row: int = 0


class Gaps(Protocol):
    """How much room there is between two layers, and how wires cross it."""

    boxes: float
    """Between two boxes of a layer."""
    wires: float
    """Between a wire that passes a layer and its neighbours."""
    ports: float
    """Between two wires at a box."""
    snap: float
    """How far a wire may end from the middle of a box to be straight."""
    title: float
    """Above the content of a subgraph."""
    margin: float
    """Around the content of a subgraph."""
    loop: float
    """Beside a box with an edge to itself."""
    whole: bool
    """Whether places are cells; all widths are odd numbers then."""
    half: float
    """Half a cell, or nothing."""

    def between(self, links: Sequence[Link], xs: Sequence[float]) -> float:
        """Choose the rows of links; return the distance of their layers."""

    def bends(self, upper: Point, lower: Point, row: int) -> list[Point]:
        """The points between the ends of a link in this row."""
