"""Where the boxes of a layer stand, with the order and the distances kept.

The sum of the squares of how far links go sideways is least.

dot minimises absolute values (Gansner and others, 1993). With squares, the best
places of one layer, the others given, are an isotonic regression, which pooling
adjacent violators solves exactly in one pass; layers take turns until nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Final

from towpath.picture.order import Layers
from towpath.picture.shapes import Link

TURNS: Final = 60
MANY: Final = 2000
"""Of more boxes nobody follows the lines; they are placed less exactly."""
STILL: Final = 0.05
# Links that belong to a long wire are kept straighter than short ones.
WEIGHTS: Final = (1.0, 2.0, 8.0)


class Placer:
    """Places for the boxes of all layers; `boxes` are as many real ones."""

    def __init__(
        self, layers: Layers, widths: Sequence[float], gaps: tuple[float, float],
        boxes: int,
    ) -> None:  # fmt: skip
        self.layers = layers
        self.widths = widths
        self.gaps = gaps
        self.boxes = boxes
        self.xs = [0.0] * len(widths)
        for row in layers.rows:
            edges = self.steps(row)
            middle = (edges[-1] + edges[0]) / 2 if edges else 0
            for v, edge in zip(row, edges, strict=True):
                self.xs[v] = edge - middle

    def gap(self, left: int, right: int) -> float:
        wide = left < self.boxes and right < self.boxes
        half = (self.widths[left] + self.widths[right]) / 2
        return half + self.gaps[0 if wide else 1]

    def steps(self, row: Sequence[int]) -> list[float]:
        """The places of a row that is packed as tightly as it may be."""
        found = [0.0] if row else []
        for left, right in pairwise(row):
            found.append(found[-1] + self.gap(left, right))
        return found

    def settle(self) -> list[float]:
        """Let the layers take turns; return the places."""
        for turn in range(TURNS if len(self.widths) <= MANY else TURNS // 4):
            moved = 0.0
            rows = self.layers.rows
            for row in rows if turn % 2 == 0 else reversed(rows):
                moved = max(moved, self.place(row))
            if moved < STILL:
                break
        return self.xs

    def round_off(self) -> None:
        """Move to whole numbers, keeping the distances, which are whole."""
        for row in self.layers.rows:
            for before, v in zip([None, *row], row, strict=False):
                self.xs[v] = float(round(self.xs[v]))
                if before is not None:
                    least = self.xs[before] + self.gap(before, v)
                    self.xs[v] = max(self.xs[v], least)

    def place(self, row: Sequence[int]) -> float:
        """Give one layer its best places; return how far one moved at most."""
        steps = self.steps(row)
        wanted, weights = [], []
        for v, step in zip(row, steps, strict=True):
            want, weight = self.wish(v)
            wanted.append(want - step)
            weights.append(weight)
        moved = 0.0
        for v, step, at in zip(row, steps, pooled(wanted, weights), strict=True):
            moved = max(moved, abs(self.xs[v] - at - step))
            self.xs[v] = at + step
        return moved

    def wish(self, v: int) -> tuple[float, float]:
        """Where a box would stand if it were alone, and how much it wants to."""
        total = weight = 0.0
        for link in self.layers.up[v]:
            part = self.weight(link.upper, v)
            total += part * (self.xs[link.upper] + link.leave - link.enter)
            weight += part
        for link in self.layers.down[v]:
            part = self.weight(link.lower, v)
            total += part * (self.xs[link.lower] + link.enter - link.leave)
            weight += part
        return (total / weight, weight) if weight else (self.xs[v], 0.01)

    def weight(self, v: int, w: int) -> float:
        return WEIGHTS[(v >= self.boxes) + (w >= self.boxes)]

    # -- fewer bends ----------------------------------------------------------

    def straighten(self, chains: Sequence[Sequence[Link]]) -> None:
        """Let wires that pass several layers run straight down where they can."""
        rows = {v: row for row in self.layers.rows for v in row}
        index = {v: i for row in self.layers.rows for i, v in enumerate(row)}
        for links in chains:
            passes = [link.lower for link in links[:-1]]
            free = [self.room(rows[v], index[v]) for v in passes]
            first, last = links[0], links[-1]
            start = self.xs[first.upper] + first.leave
            end = self.xs[last.lower] + last.enter
            done = 0
            while done < len(passes):
                low, high, size = common(free[done:])
                mean = sum(self.xs[v] for v in passes[done : done + size]) / size
                # Going on where the wire comes from, or where it goes to, saves a
                # bend.
                whole = done + size == len(passes)
                near = (
                    min((start, end), key=lambda x: abs(x - mean)) if whole else start
                )
                near = end if whole and low <= end <= high else near
                at = min(max(near, low), high)
                for v in passes[done : done + size]:
                    self.xs[v] = at
                start, done = at, done + size

    def room(self, row: Sequence[int], i: int) -> tuple[float, float]:
        """Between which places a box can move in its row."""
        low, high = -inf, inf
        if i:
            low = self.xs[row[i - 1]] + self.gap(row[i - 1], row[i])
        if i + 1 < len(row):
            high = self.xs[row[i + 1]] - self.gap(row[i], row[i + 1])
        x = self.xs[row[i]]
        return min(low, x), max(high, x)


def common(ranges: Sequence[tuple[float, float]]) -> tuple[float, float, int]:
    """What the first ranges have in common, and how many they are."""
    low, high = ranges[0]
    for size, (left, right) in enumerate(ranges[1:], 1):
        if max(low, left) > min(high, right):
            return low, high, size
        low, high = max(low, left), min(high, right)
    return low, high, len(ranges)


def pooled(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest numbers that never fall: pool adjacent violators."""
    pools: list[tuple[float, float, int]] = []
    for want, weight in zip(wanted, weights, strict=True):
        value, total, size = want, weight, 1
        while pools and pools[-1][0] > value:
            before, heavy, many = pools.pop()
            value = (before * heavy + value * total) / (heavy + total)
            total, size = total + heavy, size + many
        pools.append((value, total, size))
    return [value for value, _, size in pools for _ in range(size)]
