"""Draw SVG: bars of ratios, and lines of growth. No library, no style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import floor, log10
from typing import Any

COLOURS = ("#1b6ca8", "#d1603d", "#3c8d5a", "#8a5fb0", "#b08d2f", "#777777", "#aaaaaa")
BAR, GAP, LEFT, WIDE = 7, 6, 190, 520
HIGH, TOP = 220, 34


def ratios(document: Mapping[str, Any]) -> str:
    """Return bars of how many times longer each contestant takes than ours."""
    rows = [
        (entry["name"], {name: times for name, times in ratio.items() if times})
        for entry in document["workloads"]
        if (ratio := entry["ratio"][entry["clock"]])
    ]
    names = list(dict.fromkeys(name for _, ratio in rows for name in ratio))
    colour = dict(zip(names, COLOURS, strict=False))
    least = min((min(ratio.values()) for _, ratio in rows if ratio), default=1)
    most = max((max(ratio.values()) for _, ratio in rows if ratio), default=10)
    scale = Logarithm(min(least, 0.5), max(most, 10), LEFT, LEFT + WIDE)
    parts: list[str] = []
    y = TOP + 16
    for workload, ratio in rows:
        middle = y + max(len(ratio), 1) * BAR / 2 + 4
        parts.append(text(LEFT - 8, middle, workload, anchor="end"))
        for name, times in ratio.items():
            start, end = sorted((scale(1), scale(times)))
            told = f"{workload}, {name}: {times:.3g}x"
            width = max(end - start, 1)
            parts.append(bar(start, y, width, BAR - 1, colour[name], told))
            y += BAR
        y += GAP if ratio else BAR + GAP
    grid = [line(scale(at), TOP, scale(at), y, "#ddd") for at in scale.powers()]
    marks = [text(scale(at), TOP - 4, f"{at:g}x", "middle") for at in scale.powers()]
    one = line(scale(1), TOP, scale(1), y, "#333")
    title = text(LEFT, 14, "how many times longer than Towpath (right: slower)")
    return drawing(
        LEFT + WIDE + 30,
        y + 24,
        [title, *grid, *marks, one, *parts, *legend(colour, LEFT, y + 16)],
    )


class Logarithm:
    """A scale from numbers to places, in powers of ten."""

    def __init__(self, least: float, most: float, start: float, end: float) -> None:
        self._least, self._most = log10(least), log10(most)
        self._start, self._end = start, end

    def __call__(self, number: float) -> float:
        part = (log10(number) - self._least) / (self._most - self._least)
        return self._start + part * (self._end - self._start)

    def powers(self) -> list[float]:
        low, high = int(self._least // 1), int(self._most // 1)
        return [10.0**each for each in range(low, high + 1) if each >= self._least]


Lines = Mapping[str, Sequence[tuple[float, float]]]


def growth(title: str, unit: str, lines: Lines) -> str:
    """Return a line for each name: points of (how much there is, microseconds)."""
    points = [point for each in lines.values() for point in each]
    x_most = max(x for x, _ in points)
    y_most = round_up(max(y for _, y in points))
    colour = dict(zip(lines, COLOURS, strict=False))
    left, width, bottom = 64, 480, TOP + HIGH

    def place(x: float, y: float) -> tuple[float, float]:
        return left + x / x_most * width, bottom - y / y_most * HIGH

    parts = [text(left, 16, title)]
    for quarter in range(5):
        cost, much = y_most * quarter / 4, x_most * quarter / 4
        _, y = place(0, cost)
        x, _ = place(much, 0)
        parts.append(line(left, y, left + width, y, "#ddd"))
        parts.append(
            text(left - 6, y + 4, f"{cost:,.{0 if y_most >= 20 else 1}f} us", "end")
        )
        parts.append(text(x, bottom + 16, f"{much:,.0f}", "middle"))
    parts.append(text(left + width / 2, bottom + 32, unit, "middle"))
    for name, each in lines.items():
        corners = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in each)
        parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour[name]}" '
            'stroke-width="1.5"/>'
        )
    parts += legend(colour, left, bottom + 50)
    return drawing(left + width + 30, bottom + 60, parts)


def round_up(number: float) -> float:
    """Return the next number that is easily divided by four."""
    power = 10.0 ** floor(log10(number))
    return next(each * power for each in (1, 2, 4, 6, 8, 10) if each * power >= number)


def legend(colour: Mapping[str, str], x: float, y: float) -> Iterable[str]:
    for name, paint in colour.items():
        yield bar(x, y - 9, 10, 10, paint, name)
        yield text(x + 14, y, name)
        x += 26 + 7 * len(name)


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    told = escape(words)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{told}</text>'


def line(x1: float, y1: float, x2: float, y2: float, paint: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{paint}"/>'
    )


def bar(x: float, y: float, width: float, height: float, paint: str, told: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" '
        f'fill="{paint}"><title>{escape(told)}</title></rect>'
    )


def drawing(width: float, height: float, parts: Iterable[str]) -> str:
    """Return a drawing; its paper is white, so that it can be read on any page."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" font-family="sans-serif" font-size="11">'
    )
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join((head, paper, *parts, "</svg>\n"))
