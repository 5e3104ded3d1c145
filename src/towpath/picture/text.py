"""A sketch -> text: the same layout with characters as its unit.

Wires run along rows and columns. Between two layers each wire that goes sideways
has a row for itself where it would meet another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from towpath.picture.measure import cells, columns, folded
from towpath.picture.nest import Nest
from towpath.picture.shapes import Box, Link, Point, Wire
from towpath.picture.sketch import TIMES, Figure, Sketch, Stroke

ROOM: Final = 28
LABEL_ROOM: Final = 24
UP, DOWN, LEFT, RIGHT, DASHED = 1, 2, 4, 8, 16
ACROSS, ALONG = LEFT | RIGHT, UP | DOWN

LINES: Final = {
    UP: "│", DOWN: "│", ALONG: "│", LEFT: "─", RIGHT: "─", ACROSS: "─",
    DOWN | RIGHT: "┌", DOWN | LEFT: "┐", UP | RIGHT: "└", UP | LEFT: "┘",
    ALONG | RIGHT: "├", ALONG | LEFT: "┤", ACROSS | DOWN: "┬", ACROSS | UP: "┴",
    ACROSS | ALONG: "┼",
}  # fmt: skip
ASCII: Final = str.maketrans(
    f"│─┆┄┌┐└┘├┤┬┴┼╔╗╚╝═║▼▲◀…·{TIMES}", "|-:.+++++++++++++=|v^<.-x"
)


class Cells:
    """Distances in a picture of characters."""

    boxes = 3.0
    wires = 1.0
    ports = 2.0
    snap = 3.0
    title = 2.0
    margin = 2.0
    loop = 4.0
    whole = True
    half = 0.5

    def between(self, links: Sequence[Link], xs: Sequence[float]) -> float:
        """Give each link that goes sideways a row; return the distance."""
        ways = [(k, xs[k.upper] + k.leave, xs[k.lower] + k.enter) for k in links]
        bent = [way for way in ways if way[1] != way[2]]
        starts = by_start(bent)
        used: list[list[tuple[float, float]]] = []
        rows: dict[int, int] = {}
        for link, start, end in lowest_last(bent, starts):
            low, high = min(start, end), max(start, end)
            others = (rows.get(id(k), -1) for k, _, _ in starts.get(end, ()))
            row = 1 + max(others, default=-1)
            while row < len(used) and meets(used[row], low, high):
                row += 1
            if row >= len(used):
                used.extend([] for _ in range(row + 1 - len(used)))
            used[row].append((low, high))
            rows[id(link)] = link.row = row
        return len(used) + 2.0

    def bends(self, upper: Point, lower: Point, row: int) -> list[Point]:
        """The corners in the row of a link."""
        if upper[0] == lower[0]:
            return []
        y = upper[1] + 1 + row
        return [(upper[0], y), (lower[0], y)]


Way = tuple[Link, float, float]
"""A link with the columns where it starts and ends."""


def by_start(ways: Sequence[Way]) -> dict[float, list[Way]]:
    found: dict[float, list[Way]] = {}
    for way in ways:
        found.setdefault(way[1], []).append(way)
    return found


def meets(taken: Sequence[tuple[float, float]], low: float, high: float) -> bool:
    """Whether a stretch of a row touches one that is taken."""
    return any(low <= b + 1 and a <= high + 1 for a, b in taken)


def lowest_last(
    ways: Sequence[Way], starts: Mapping[float, Sequence[Way]]
) -> list[Way]:
    """Links in an order in which those come first that must bend first.

    Where one ends below another's start, that other one must have turned away.
    """
    order: list[Way] = []
    seen: set[int] = set()
    for way in ways:
        path = [] if id(way[0]) in seen else [way]
        seen.add(id(way[0]))
        while path:
            others = starts.get(path[-1][2], ())
            before = next((one for one in others if id(one[0]) not in seen), None)
            if before is None:
                order.append(path.pop())
            else:
                seen.add(id(before[0]))
                path.append(before)
    return order


class Canvas:
    """Characters by place, lines as the directions in which they go on."""

    def __init__(self) -> None:
        self.lines: dict[tuple[int, int], int] = {}
        self.letters: dict[tuple[int, int], str] = {}

    def line(self, start: Point, end: Point, *, dashed: bool) -> None:
        """A straight line; its ends are open, so that lines meet there."""
        (x, y), (u, v) = sorted((whole(start), whole(end)))
        extra = DASHED if dashed else 0
        towards, back = (RIGHT, LEFT) if y == v else (DOWN, UP)
        places = [(c, y) for c in range(x, u + 1)] if y == v else [
            (x, r) for r in range(y, v + 1)
        ]  # fmt: skip
        for at, after in pairwise(places):
            for place, way in ((at, towards), (after, back)):
                old = self.lines.get(place)
                style = extra if old is None else old & extra
                self.lines[place] = ((old or 0) | way) & ~DASHED | style

    def write(self, text: str, x: int, y: int) -> None:
        for char in text:
            size = cells(char)
            if not size:
                place = (x - 1, y)
                self.letters[place] = self.letters.get(place, " ") + char
                continue
            self.letters[x, y] = char
            if size == 2:
                self.letters[x + 1, y] = ""
            x += size

    def text(self) -> str:
        ends: dict[int, int] = {}
        for x, y in (*self.lines, *self.letters):
            ends[y] = max(ends.get(y, 0), x)
        rows = (
            "".join(self.at(x, y) for x in range(ends.get(y, -1) + 1)).rstrip()
            for y in range(max(ends, default=-1) + 1)
        )
        return "\n".join(rows)

    def at(self, x: int, y: int) -> str:
        if (x, y) in self.letters:
            return self.letters[x, y]
        mask = self.lines.get((x, y), 0)
        if mask & DASHED and not (mask & ALONG and mask & ACROSS):
            return "┆" if mask & ALONG else "┄"
        return LINES.get(mask & 15, " ")


def whole(point: Point) -> tuple[int, int]:
    return int(point[0]), int(point[1])


def odd(length: int) -> int:
    return length | 1


def text(sketch: Sketch, *, ascii: bool = True) -> str:
    """The picture as lines of text, in ASCII or with the signs for drawing lines."""
    nest, boxes = Nest(), {}
    for figure in sketch.figures:
        ends = sum(
            (figure.id == s.source) + (figure.id == s.target) for s in sketch.strokes
        )
        box = boxes[figure.id] = box_of(figure, ends)
        nest.put(box, figure.path)
    drawn = []
    for stroke in sketch.strokes:
        label = label_of(stroke)
        choice = stroke.manner not in {"edge", "join"}
        size = (odd(columns(label)), 1) if label else (0, 0)
        wire = Wire(stroke.source, stroke.target, size, choice)
        nest.connect(wire)
        drawn.append((stroke, wire))
    for frame in nest.root.every()[1:]:
        frame.title = (columns(title_of(frame.path[-1])), 1)
    nest.settle(Cells())
    canvas = Canvas()
    for frame in nest.root.every()[1:]:
        assert frame.outer is not None
        outline(canvas, frame.outer)
    for stroke, wire in drawn:
        lead(canvas, stroke, wire)
    for figure in sketch.figures:
        show(canvas, figure, boxes[figure.id])
    for frame in nest.root.every()[1:]:
        assert frame.outer is not None
        left = int(frame.outer.left + 0.5)
        canvas.write(title_of(frame.path[-1]), left + 2, int(frame.outer.y))
    for stroke, wire in drawn:
        name(canvas, stroke, wire)
    made = canvas.text()
    return made.translate(ASCII) if ascii else made


def title_of(name: str) -> str:
    return f" {folded(name, columns, ROOM, 1)[0]} "


def lines_of(figure: Figure) -> list[str]:
    lines = list(folded(figure.name, columns, ROOM, 3))
    if figure.kind in {"start", "end", "join"}:
        return [f"[ {lines[0]} ]" if figure.kind == "join" else f"( {lines[0]} )"]
    notes = [f"({note})" for note in figure.notes]
    if figure.ran is not None and figure.ran.short():
        notes.append(f"[{figure.ran.short()}]")
    for note in notes:
        lines.extend(folded(note, columns, ROOM, 1))
    return lines


def box_of(figure: Figure, ends: int) -> Box:
    lines = lines_of(figure)
    wide = max(map(columns, lines))
    if figure.kind in {"start", "end", "join"}:
        wide = max(wide, 2 * ends + 1)
        return Box(figure.id, odd(wide), 1, inset=1, last=figure.kind == "end")
    wide = max(wide + 4, 2 * ends + 3)
    return Box(figure.id, odd(wide), len(lines) + 2, inset=1)


def label_of(stroke: Stroke) -> str:
    sent = f" {TIMES} n" if stroke.label else f"{TIMES} n"
    told = stroke.label + (sent if stroke.manner == "send" else "")
    return folded(told, columns, LABEL_ROOM, 1)[0] if told else ""


def outline(canvas: Canvas, box: Box) -> None:
    left, right = int(box.left + 0.5), int(box.right - 0.5)
    top, bottom = int(box.y), int(box.bottom) - 1
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    for start, end in pairwise(corners):
        canvas.line(start, end, dashed=False)


def show(canvas: Canvas, figure: Figure, box: Box) -> None:
    left, top = int(box.left + 0.5), int(box.y)
    wide, tall = int(box.width), int(box.height)
    for y in range(top, top + tall):
        canvas.write(" " * wide, left, y)
    lines = lines_of(figure)
    if tall > 1:
        a, b, c, d, across, along = "╔╗╚╝═║" if figure.kind == "graph" else "┌┐└┘─│"
        canvas.write(a + across * (wide - 2) + b, left, top)
        canvas.write(c + across * (wide - 2) + d, left, top + tall - 1)
        for y in range(top + 1, top + tall - 1):
            canvas.write(along, left, y)
            canvas.write(along, left + wide - 1, y)
        top += 1
    for y, line in enumerate(lines, top):
        canvas.write(line, left + (wide - columns(line)) // 2, y)


def lead(canvas: Canvas, stroke: Stroke, wire: Wire) -> None:
    """Draw a wire with the head of its arrow."""
    dashed = stroke.manner not in {"edge", "join"}
    points = [(x, y) for x, y in wire.points]
    if wire.source == wire.target:
        for start, end in pairwise(points):
            canvas.line(start, end, dashed=dashed)
        side, row = whole(points[-1])
        canvas.write("◀", side + 1, row)
        return
    if wire.back:
        points.reverse()
    # A box's edges belong to the box: the way ends one row above.
    x, y = points[-1]
    points[-1] = (x, y - 1)
    for start, end in pairwise(points):
        if start != end:
            canvas.line(start, end, dashed=dashed)
    if stroke.manner == "join":
        return
    head = points[0] if wire.back else points[-1]
    canvas.write("▲" if wire.back else "▼", *whole(head))


def name(canvas: Canvas, stroke: Stroke, wire: Wire) -> None:
    label = label_of(stroke)
    if label and wire.label_at is not None:
        x, y = wire.label_at
        canvas.write(label, int(x - (wire.label[0] - 1) / 2), int(y))
