"""Subgraphs as frames: each is arranged by itself, then placed as one box.

A wire belongs to the innermost frame that holds both of its ends. At a frame on
its way it goes on to the box inside where nothing is in the way; else it ends at
the frame, as do the edges of loops, which mean the subgraph as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from towpath.picture.arrange import arrange
from towpath.picture.shapes import Box, Gaps, Wire

Path = tuple[str, ...]


@dataclass(slots=True)
class Frame:
    """A subgraph: its boxes, the frames in it, and the wires between these."""

    path: Path = ()
    title: tuple[float, float] = (0, 0)
    boxes: list[Box] = field(default_factory=list)
    frames: dict[str, Frame] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    outer: Box | None = None
    """The frame as a box of the level around it."""

    def at(self, path: Iterable[str]) -> Frame:
        frame = self
        for name in path:
            frame = frame.frames.setdefault(name, Frame((*frame.path, name)))
        return frame

    def every(self) -> list[Frame]:
        """This frame and those in it, outer ones first."""
        return [self, *(f for one in self.frames.values() for f in one.every())]

    def move(self, dx: float, dy: float) -> None:
        for box in self.boxes:
            box.move(dx, dy)
        for wire in self.wires:
            wire.move(dx, dy)
        for frame in self.frames.values():
            assert frame.outer is not None
            frame.outer.move(dx, dy)
            frame.move(dx, dy)


@dataclass(slots=True)
class Nest:
    """The frames of a picture, and in which of them each box is."""

    root: Frame = field(default_factory=Frame)
    homes: dict[str, Path] = field(default_factory=dict)

    def put(self, box: Box, path: Path) -> None:
        self.root.at(path).boxes.append(box)
        self.homes[box.id] = path

    def connect(self, wire: Wire) -> None:
        self.root.at(self.around(wire)).wires.append(wire)

    def around(self, wire: Wire) -> Path:
        """The innermost frame that holds both ends."""
        source, target = self.homes[wire.source], self.homes[wire.target]
        same = 0
        for a, b in zip(source, target, strict=False):
            if a != b:
                break
            same += 1
        return source[:same]

    def settle(self, gaps: Gaps) -> tuple[float, float]:
        """Place everything; return the size."""
        return settle(self.root, self, gaps)


def settle(frame: Frame, nest: Nest, gaps: Gaps) -> tuple[float, float]:
    """Place what is in a frame, its upper left corner at (0, 0)."""
    inner = []
    for name, one in frame.frames.items():
        width, height = settle(one, nest, gaps)
        wide = max(width, one.title[0]) + 2 * gaps.margin
        if gaps.whole:
            wide = wide // 2 * 2 + 1
        tall = height + gaps.title + gaps.margin
        one.outer = Box(f"{name}:", wide, tall)
        one.move((wide - width) / 2 // 1, gaps.title)
        inner.append(one.outer)
    short = [stand_in(frame, nest, wire, gaps.half) for wire in frame.wires]
    size = arrange([*frame.boxes, *inner], short, gaps)
    for one in frame.frames.values():
        assert one.outer is not None
        one.move(one.outer.left + gaps.half, one.outer.y)
    for wire, done in zip(frame.wires, short, strict=True):
        wire.points, wire.back, wire.label_at = done.points, done.back, done.label_at
        reach(frame, nest, wire)
    return size


def outer_of(frame: Frame, nest: Nest, id: str) -> Frame | None:
    """The frame on this level that a box is in, if it is in one."""
    path, depth = nest.homes[id], len(frame.path)
    return frame.frames[path[depth]] if len(path) > depth else None


def stand_in(frame: Frame, nest: Nest, wire: Wire, half: float) -> Wire:
    """The wire between the boxes of this level."""
    source = outer_of(frame, nest, wire.source)
    target = outer_of(frame, nest, wire.target)
    made = replace(wire, points=[])
    if source is not None and source.outer is not None:
        made.source = source.outer.id
        made.leave = port(source, nest, wire.source, half, down=True)
    if target is not None and target.outer is not None:
        made.target = target.outer.id
        made.enter = port(target, nest, wire.target, half, down=False)
    return made


def found(frame: Frame, nest: Nest, id: str) -> Box:
    for box in frame.at(nest.homes[id][len(frame.path) :]).boxes:
        if box.id == id:
            return box
    raise KeyError(id)


def port(frame: Frame, nest: Nest, id: str, half: float, *, down: bool) -> float | None:
    """Where a wire to a box inside must cross the frame, if it goes on inside."""
    assert frame.outer is not None
    box = found(frame, nest, id)
    if in_the_way(frame, box, box.x, down=down):
        return None
    # A frame that is not placed yet has its left edge at 0.
    return box.x + half - frame.outer.width / 2


def in_the_way(frame: Frame, box: Box, x: float, *, down: bool) -> bool:
    """Whether something is between a box and the frame, straight up or down."""
    everything = [b for one in frame.every() for b in one.boxes if b is not box]
    around = [one.outer for one in frame.every() if one is not frame and one.outer]
    everything.extend(b for b in around if not b.left < box.x < b.right)
    return any(
        other.left - 1 < x < other.right + 1
        and (other.y > box.y if down else other.y < box.y)
        for other in everything
    )


def reach(frame: Frame, nest: Nest, wire: Wire) -> None:
    """Lead a wire on from the frames at its ends to its boxes."""
    if wire.back or not wire.points:
        return
    source = outer_of(frame, nest, wire.source)
    target = outer_of(frame, nest, wire.target)
    if source is not None:
        box = found(source, nest, wire.source)
        if not in_the_way(source, box, box.x, down=True):
            wire.points.insert(0, (wire.points[0][0], box.bottom))
    if target is not None:
        box = found(target, nest, wire.target)
        if not in_the_way(target, box, box.x, down=False):
            wire.points.append((wire.points[-1][0], box.y))
