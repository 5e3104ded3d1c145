"""A sketch -> SVG text: one self-contained element, for light and dark viewers.

Everything is drawn on a card of its own, so a page of any colour around it leaves
it legible. Rules of style are bound to the picture's own id, since a page may hold
several. The same sketch gives the same text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from towpath.picture.measure import folded, plain, sized, width
from towpath.picture.nest import Frame, Nest
from towpath.picture.shapes import Box, Link, Point, Wire
from towpath.picture.sketch import Figure, Sketch, Stroke

NAME: Final = 13.0
NOTE: Final = 10.5
LABEL: Final = 11.0
ROOM: Final = 190.0
LABEL_ROOM: Final = 150.0
EDGE: Final = 20.0
HEAD: Final = 8.0
FONT: Final = (
    "Helvetica,Arial,'Liberation Sans','Segoe UI','Noto Sans','DejaVu Sans',sans-serif"
)

LIGHT: Final = {
    "card": "#ffffff", "line": "#5f6f8f", "text": "#1b2333", "note": "#56627a",
    "node": "#f3f6fc", "edge": "#8292b4", "ends": "#3a4763", "on": "#ffffff",
    "frame": "#f8f9fc", "rim": "#b9c3d8", "back": "#8250c4", "error": "#c0362c",
    "done": "#dff3e4", "ok": "#2e8b57", "failed": "#fbe1de", "waiting": "#fdf0cf",
    "wait": "#a8740a", "next": "#deebfd", "go": "#2f6fd0",
}  # fmt: skip
DARK: Final = {
    "card": "#161a22", "line": "#94a3c4", "text": "#e9edf6", "note": "#aab4c8",
    "node": "#242b3a", "edge": "#6d7da3", "ends": "#c3cde3", "on": "#161a22",
    "frame": "#1b202b", "rim": "#465270", "back": "#b992f0", "error": "#f0837a",
    "done": "#1d3a29", "ok": "#5cc489", "failed": "#482322", "waiting": "#443717",
    "wait": "#e5b84e", "next": "#1d3355", "go": "#7db0f5",
}  # fmt: skip
RULES: Final = {
    ".card": "fill:{card}",
    ".name": "fill:{text}",
    ".note": "fill:{note}",
    ".label": "fill:{text}",
    ".under": "fill:{card}",
    ".box": "fill:{node};stroke:{edge}",
    ".inner": "fill:none;stroke:{edge}",
    ".ends": "fill:{ends};stroke:{ends}",
    ".on": "fill:{on}",
    ".frame": "fill:{frame};stroke:{rim}",
    ".way": "fill:none;stroke:{line}",
    ".head": "fill:{line}",
    ".back .way": "stroke:{back}",
    ".back .head": "fill:{back}",
    ".error .way": "stroke:{error}",
    ".error .head": "fill:{error}",
    ".done .box": "fill:{done};stroke:{ok}",
    ".failed .box": "fill:{failed};stroke:{error}",
    ".waiting .box": "fill:{waiting};stroke:{wait}",
    ".next .box": "fill:{next};stroke:{go}",
}
DASHES: Final = {"branch": "6 4", "command": "2 3", "send": "9 3 2 3", "error": "3 3"}
MEANINGS: Final = {
    "edge": "always",
    "branch": "a choice",
    "command": "where a Command may lead",
    "send": "may be sent many times (Send)",
    "error": "after an error",
    "join": "one of several that are waited for",
}


class Pixels:
    """Distances in a picture of pixels."""

    boxes = 28.0
    wires = 18.0
    ports = 20.0
    snap = 26.0
    title = 34.0
    margin = 18.0
    loop = 30.0
    whole = False
    half = 0.0

    def between(self, links: Sequence[Link], xs: Sequence[float]) -> float:
        """Leave more room where wires go far sideways: no bend is flat."""
        far = max(abs(xs[k.upper] + k.leave - xs[k.lower] - k.enter) for k in links)
        return min(max(30.0, far * 0.36), 130.0)

    def bends(self, upper: Point, lower: Point, row: int) -> list[Point]:
        """None: the way between two points is one curve."""
        del upper, lower, row
        return []


class Drawing:
    """The work on one SVG."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.figures = {figure.id: figure for figure in sketch.figures}
        self.nest = Nest()
        self.boxes: dict[str, Box] = {}
        for figure in sketch.figures:
            box = self.boxes[figure.id] = box_of(figure)
            self.nest.put(box, figure.path)
        self.drawn: list[tuple[Stroke, Wire]] = []
        for stroke in sketch.strokes:
            size = label_size(label_of(stroke))
            choice = stroke.manner not in {"edge", "join"}
            wire = Wire(stroke.source, stroke.target, size, choice)
            self.nest.connect(wire)
            self.drawn.append((stroke, wire))
        self.widen()
        for frame in self.nest.root.every()[1:]:
            lines = folded(frame.path[-1], sized(NOTE), ROOM, 1)
            frame.title = (width(lines[0], NOTE) + 8, NOTE)
        across, down = self.nest.settle(Pixels())
        self.extent = (round(across + 2 * EDGE), round(down + 2 * EDGE))

    def widen(self) -> None:
        """Make boxes wide enough for the edges that end there."""
        for id, box in self.boxes.items():
            ends = [(s.source == id) + (s.target == id) for s in self.sketch.strokes]
            box.width = max(box.width, 9.0 * sum(ends) + 2 * box.inset)

    def text(self) -> str:
        across, down = self.extent
        body = "\n".join(self.parts(across, down))
        key = "tp-" + hashlib.sha256(body.encode()).hexdigest()[:10]
        title, about = plain(self.sketch.title), self.about()
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" id="{key}" role="img" '
            f'viewBox="0 0 {across} {down}" width="{across}" height="{down}" '
            f'style="max-width:100%;height:auto" font-family="{FONT}" '
            f'aria-labelledby="{key}-t {key}-d">\n'
            f'<title id="{key}-t">{escape(title)}</title>\n'
            f'<desc id="{key}-d">{escape(about)}</desc>\n'
            f"<style>{style(key)}</style>\n{body}\n</svg>\n"
        )

    def about(self) -> str:
        """The picture in words, for those who cannot see it."""
        nodes = [f for f in self.sketch.figures if f.kind in {"node", "graph"}]
        told = [f"A graph of {len(nodes)} nodes."]
        told.extend(plain(f"{f.name} {f.ran.told()}.") for f in nodes if f.ran)
        if not self.sketch.run:
            told.extend(sentence(s, self.figures) for s in self.sketch.strokes[:100])
        return " ".join(told)

    def parts(self, across: int, down: int) -> Iterator[str]:
        yield f'<rect class="card" width="{across}" height="{down}" rx="10"/>'
        yield f'<g transform="translate({EDGE:g} {EDGE:g})">'
        for frame in self.nest.root.every()[1:]:
            yield from frame_parts(frame)
        for stroke, wire in self.drawn:
            yield wire_part(stroke, wire, sentence(stroke, self.figures))
        for figure in self.sketch.figures:
            yield from figure_parts(figure, self.boxes[figure.id])
        for frame in self.nest.root.every()[1:]:
            yield frame_title(frame)
        for stroke, wire in self.drawn:
            yield from label_parts(stroke, wire)
        yield "</g>"


def style(key: str) -> str:
    def rules(colours: dict[str, str]) -> str:
        return "".join(
            f"#{key} {name}{{{rule.format(**colours)}}}" for name, rule in RULES.items()
        )

    return f"{rules(LIGHT)}@media (prefers-color-scheme:dark){{{rules(DARK)}}}"


# -- sizes --------------------------------------------------------------------


def lines_of(figure: Figure) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of a figure's name, and the smaller ones below."""
    notes = (*figure.notes, figure.ran.short() if figure.ran else "")
    small = [
        line for note in notes if note for line in folded(note, sized(NOTE), ROOM, 1)
    ]
    return folded(figure.name, sized(NAME), ROOM, 3), tuple(small)


def box_of(figure: Figure) -> Box:
    names, notes = lines_of(figure)
    if figure.kind == "join":
        across = width(names[0], NOTE) + 16
        return Box(figure.id, max(across, 34), 18, inset=9)
    if figure.kind in {"start", "end"}:
        across = width(names[0], NAME) + 32
        return Box(figure.id, across, 28, inset=16, last=figure.kind == "end")
    sizes = [width(line, NAME) for line in names]
    sizes.extend(width(line, NOTE) for line in notes)
    tall = 17 * len(names) + 14 * len(notes) + 18
    return Box(figure.id, max(64, max(sizes) + 28), tall, inset=12)


def label_of(stroke: Stroke) -> tuple[str, ...]:
    text = f"{stroke.label} · Send" if stroke.label else "Send"
    text = text if stroke.manner == "send" else stroke.label
    return folded(text, sized(LABEL), LABEL_ROOM, 2) if text else ()


def label_size(lines: Sequence[str]) -> tuple[float, float]:
    if not lines:
        return (0, 0)
    return (max(width(line, LABEL) for line in lines) + 10, 14.0 * len(lines) + 4)


# -- parts --------------------------------------------------------------------


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def text_part(line: str, x: float, y: float, size: float, name: str) -> str:
    """A line of text around x; it is never wider than we reckon."""
    long = width(line, size)
    fit = f' textLength="{number(long)}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text class="{name}" x="{number(x)}" y="{number(y)}" font-size="{size:g}" '
        f'text-anchor="middle"{fit if long else ""}>{escape(line)}</text>'
    )


def rect_part(box: Box, name: str, radius: float, extra: str = "") -> str:
    return (
        f'<rect class="{name}" x="{number(box.left)}" y="{number(box.y)}" '
        f'width="{number(box.width)}" height="{number(box.height)}" '
        f'rx="{radius:g}"{extra}/>'
    )


def figure_parts(figure: Figure, box: Box) -> Iterator[str]:
    state = f" {figure.ran.status}" if figure.ran else ""
    told = [figure.told or figure.name, figure.ran.told() if figure.ran else ""]
    about = plain(": ".join(part for part in told if part))
    key = quoteattr(plain(figure.id))
    yield f'<g class="figure {figure.kind}{state}" data-id={key}>'
    yield f"<title>{escape(about)}</title>"
    names, notes = lines_of(figure)
    if figure.kind in {"start", "end", "join"}:
        size = NOTE if figure.kind == "join" else NAME
        yield rect_part(box, "ends", box.height / 2)
        middle = box.y + box.height / 2 + size * 0.36
        yield text_part(names[0], box.x, middle, size, "on")
        yield "</g>"
        return
    dashed = ' stroke-dasharray="5 3"' if figure.kind == "handler" else ""
    yield rect_part(box, "box", 7, dashed)
    if figure.kind == "graph":
        inner = Box("", box.width - 6, box.height - 6, x=box.x, y=box.y + 3)
        yield rect_part(inner, "inner", 5)
    y = box.y + 9 + 13
    for line in names:
        yield text_part(line, box.x, y, NAME, "name")
        y += 17
    for line in notes:
        yield text_part(line, box.x, y - 2, NOTE, "note")
        y += 14
    yield "</g>"


def frame_parts(frame: Frame) -> Iterator[str]:
    assert frame.outer is not None
    yield rect_part(frame.outer, "frame", 10)


def frame_title(frame: Frame) -> str:
    """The name of a subgraph, at its upper left corner."""
    assert frame.outer is not None
    line = folded(frame.path[-1], sized(NOTE), ROOM, 1)[0]
    x = frame.outer.left + 12 + width(line, NOTE) / 2
    return text_part(line, x, frame.outer.y + 17, NOTE, "note")


def way(points: Sequence[Point]) -> str:
    """The path through points: lines down, and curves that start and end so."""
    out = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x, y), (u, v) in pairwise(points):
        if abs(x - u) < 0.05:
            out.append(f"L{number(u)} {number(v)}")
            continue
        bend = (v - y) * 0.55
        ends = ((x, y + bend), (u, v - bend), (u, v))
        out.append("C" + " ".join(f"{number(a)} {number(b)}" for a, b in ends))
    return "".join(out)


def merged(points: Sequence[Point]) -> list[Point]:
    """Points without those in the middle of a straight line."""
    out: list[Point] = []
    for point in points:
        if out and abs(out[-1][0] - point[0]) + abs(out[-1][1] - point[1]) < 0.05:
            continue
        straight = len(out) > 1 and all(abs(p[0] - point[0]) < 0.05 for p in out[-2:])
        if straight:
            out[-1] = point
        else:
            out.append(point)
    return out


def wire_part(stroke: Stroke, wire: Wire, told: str) -> str:
    dash = DASHES.get(stroke.manner)
    extra = f' stroke-dasharray="{dash}"' if dash else ""
    names = " ".join(["wire", stroke.manner, *(["back"] if wire.back else [])])
    if wire.source == wire.target:
        path, tip, side = loop_path(wire.points)
    else:
        points = merged(wire.points)
        (x, y), (_, before) = points[-1], points[-2]
        side = 1.0 if y >= before else -1.0
        tip = points[-1]
        if stroke.manner != "join":
            points[-1] = (x, y - side * HEAD * 0.7)
        path = way(points)
    head = "" if stroke.manner == "join" else head_part(tip, side, wire)
    ends = f"data-from={quoteattr(plain(stroke.source))} "
    ends += f"data-to={quoteattr(plain(stroke.target))}"
    return (
        f'<g class="{names}" {ends}><title>{escape(told)}</title>'
        f'<path class="way" stroke-width="1.4"{extra} d="{path}"/>{head}</g>'
    )


def loop_path(points: Sequence[Point]) -> tuple[str, Point, float]:
    """A bow at the side of a box, from below back to above."""
    (x, y), (a, b), (c, d), tip = points
    end = (tip[0] + HEAD * 0.7, tip[1])
    curve = " ".join(f"{number(u)} {number(v)}" for u, v in ((a, b), (c, d), end))
    return f"M{number(x)} {number(y)}C{curve}", tip, 0.0


def head_part(tip: Point, side: float, wire: Wire) -> str:
    x, y = tip
    if wire.source == wire.target:
        corners = [(x, y), (x + HEAD, y - HEAD / 2), (x + HEAD, y + HEAD / 2)]
    else:
        base = y - side * HEAD
        corners = [(x, y), (x - HEAD / 2, base), (x + HEAD / 2, base)]
    shape = "L".join(f"{number(a)} {number(b)}" for a, b in corners)
    return f'<path class="head" d="M{shape}Z"/>'


def label_parts(stroke: Stroke, wire: Wire) -> Iterator[str]:
    lines = label_of(stroke)
    if not lines or wire.label_at is None:
        return
    x, y = wire.label_at
    across, down = label_size(lines)
    under = Box("", across - 4, down - 2, x=x, y=y - down / 2 + 1)
    yield rect_part(under, "under", 4, ' fill-opacity="0.92"')
    base = y - 7 * (len(lines) - 1) + LABEL * 0.36
    for i, line in enumerate(lines):
        yield text_part(line, x, base + 14 * i, LABEL, "label")


def sentence(stroke: Stroke, figures: dict[str, Figure]) -> str:
    """An edge in words."""
    source, target = (figures[id].name for id in (stroke.source, stroke.target))
    when = f" when {plain(stroke.label)}" if stroke.label else ""
    return f"{plain(source)} to {plain(target)}{when}: {MEANINGS[stroke.manner]}."
