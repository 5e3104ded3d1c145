"""In which order the boxes of a layer stand: few crossings.

Barycentre sweeps (Sugiyama, Tagawa and Toda, 1981), then exchanges of
neighbours as in dot (Gansner and others, 1993); the best order seen is kept.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from towpath.picture.shapes import Link

SWEEPS: Final = 12
# Above this, a sweep costs more than a better order is worth.
MANY: Final = 4000


@dataclass(slots=True)
class Layers:
    """Numbered boxes in layers, and the links between neighbouring layers."""

    rows: list[list[int]]
    links: list[Link]
    up: dict[int, list[Link]] = field(default_factory=dict)
    down: dict[int, list[Link]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            for v in row:
                self.up[v], self.down[v] = [], []
        for link in self.links:
            self.down[link.upper].append(link)
            self.up[link.lower].append(link)


def reduce_crossings(layers: Layers, widths: Sequence[float]) -> None:
    """Put each row into an order in which few links cross."""
    best, fewest = layers.rows, crossings(layers, layers.rows, widths)
    rows = [list(row) for row in best]
    rounds = SWEEPS if len(layers.links) <= MANY else 2
    for turn in range(rounds):
        if not fewest:
            break
        sweep(layers, rows, widths, downwards=turn % 2 == 0)
        exchange(layers, rows, widths)
        count = crossings(layers, rows, widths)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    layers.rows = [list(row) for row in best]


def positions(row: Sequence[int]) -> dict[int, float]:
    return {v: float(i) for i, v in enumerate(row)}


def end_of(link: Link, v: int, widths: Sequence[float]) -> float:
    """Where a link ends at a box, as a part of a place in the row."""
    offset = link.enter if v == link.lower else link.leave
    return 0.8 * offset / widths[v] if widths[v] else 0.0


def sweep(
    layers: Layers, rows: list[list[int]], widths: Sequence[float], *, downwards: bool
) -> None:
    """Order each row by where its links come from, row after row."""
    indices = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    sides = layers.up if downwards else layers.down
    for index in indices:
        other = positions(rows[index - 1 if downwards else index + 1])
        own = positions(rows[index])
        wanted = {}
        for v in rows[index]:
            ends = [link.upper if downwards else link.lower for link in sides[v]]
            places = [
                other[u] + end_of(link, u, widths)
                for u, link in zip(ends, sides[v], strict=True)
            ]
            wanted[v] = sum(places) / len(places) if places else own[v]
        rows[index].sort(key=wanted.__getitem__)


def crossings(
    layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float]
) -> int:
    """How many pairs of links cross."""
    total = 0
    for upper, lower in pairwise(rows):
        at, below = positions(upper), positions(lower)
        ends = sorted(
            (
                at[v] + end_of(link, v, widths),
                below[link.lower] + end_of(link, link.lower, widths),
            )
            for v in upper
            for link in layers.down[v]
        )
        seen: list[float] = []
        for _, end in ends:
            total += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return total


def exchange(layers: Layers, rows: list[list[int]], widths: Sequence[float]) -> None:
    """Exchange neighbours where that saves crossings."""
    for index, row in enumerate(rows):
        above = positions(rows[index - 1]) if index else {}
        below = positions(rows[index + 1]) if index + 1 < len(rows) else {}
        places = {
            v: (
                sorted(
                    above[k.upper] + end_of(k, k.upper, widths) for k in layers.up[v]
                ),
                sorted(
                    below[k.lower] + end_of(k, k.lower, widths) for k in layers.down[v]
                ),
            )
            for v in row
        }
        for i in range(len(row) - 1):
            left, right = places[row[i]], places[row[i + 1]]
            now = sum(crossed(a, b) for a, b in zip(left, right, strict=True))
            then = sum(crossed(b, a) for a, b in zip(left, right, strict=True))
            if then < now:
                row[i], row[i + 1] = row[i + 1], row[i]


def crossed(left: Sequence[float], right: Sequence[float]) -> int:
    """Crossings of the links of two neighbours on one side, ends sorted."""
    return sum(len(left) - bisect_right(left, end) for end in right)
