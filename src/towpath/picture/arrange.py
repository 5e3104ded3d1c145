"""Boxes and wires of one level -> places and ways, layer by layer.

Between two layers a wire bends, inside a layer it goes straight down in a slot of
its own: a wire that passes a layer has a place in its row as a box has. So no
wire can touch a box that it does not belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from towpath.picture.order import Layers, reduce_crossings
from towpath.picture.place import Placer
from towpath.picture.ranks import Arc, layers, loops
from towpath.picture.shapes import Box, Gaps, Link, Point, Wire


def arrange(
    boxes: Sequence[Box], wires: Sequence[Wire], gaps: Gaps
) -> tuple[float, float]:
    """Place boxes and lead wires; return the width and height that they take.

    The upper left corner is (0, 0).
    """
    if not boxes:
        return (0, 0)
    return Arrangement(boxes, wires, gaps).done()


class Arrangement:
    """The work on one level; numbers below `len(boxes)` are boxes, others passes."""

    def __init__(self, boxes: Sequence[Box], wires: Sequence[Wire], gaps: Gaps) -> None:
        self.boxes, self.gaps = boxes, gaps
        self.wires = [wire for wire in wires if wire.source != wire.target]
        self.own = [wire for wire in wires if wire.source == wire.target]
        self.number = {box.id: i for i, box in enumerate(boxes)}
        self.widths = [box.width for box in boxes]
        self.heights = [box.height for box in boxes]
        for wire in self.own:
            beside = 2 * (gaps.loop + wire.label[0])
            i = self.number[wire.source]
            self.widths[i] = max(self.widths[i], boxes[i].width + beside)
        self.chains: dict[int, list[Link]] = {}
        self.labels: dict[int, int] = {}
        self.links: list[Link] = []
        self.xs: Sequence[float] = ()
        self.tops: list[float] = []

    def done(self) -> tuple[float, float]:
        rank = self.rank()
        rows: list[list[int]] = [[] for _ in range(max(rank) + 1)]
        for v, r in enumerate(rank):
            rows[r].append(v)
        for index in range(len(self.wires)):
            self.chain(index, rank, rows)
        table = Layers(rows, self.links)
        reduce_crossings(table, self.widths)
        distances = (self.gaps.boxes, self.gaps.wires)
        placer = Placer(table, self.widths, distances, len(self.boxes))
        self.xs = placer.settle()
        self.spread(table)
        placer.settle()
        if self.gaps.whole:
            placer.round_off()
        placer.straighten(self.long_chains())
        self.snap(table)
        placer.straighten(self.long_chains())
        return self.settle(table)

    def long_chains(self) -> list[list[Link]]:
        """The links of wires that pass layers, the longest wires first."""
        found = [links for links in self.chains.values() if len(links) > 1]
        return sorted(found, key=len, reverse=True)

    # -- layers ---------------------------------------------------------------

    def rank(self) -> list[int]:
        """The layer of each box; wires that close a loop are turned round."""
        number = self.number
        pairs = [(number[w.source], number[w.target]) for w in self.wires]
        choices = {i for i, wire in enumerate(self.wires) if wire.choice}
        for index in loops(len(self.boxes), pairs, choices):
            self.wires[index].back = True
        many = Counter(frozenset(pair) for pair in pairs)
        arcs = []
        for wire, pair in zip(self.wires, pairs, strict=True):
            upper, lower = pair[::-1] if wire.back else pair
            # A label, and each of several edges, gets a layer of its own.
            room = wire.label[0] or wire.back or many[frozenset(pair)] > 1
            arcs.append(Arc(upper, lower, 2 if room else 1))
        last = {i for i, box in enumerate(self.boxes) if box.last}
        return layers(len(self.boxes), arcs, last)

    def ends(self, wire: Wire) -> tuple[int, int, float | None, float | None]:
        """The numbers of the upper and lower box, and where the wire must end."""
        source, target = self.number[wire.source], self.number[wire.target]
        if wire.back:
            return target, source, wire.enter, wire.leave
        return source, target, wire.leave, wire.enter

    def chain(self, index: int, rank: list[int], rows: list[list[int]]) -> None:
        """Lead a wire through the layers between its ends."""
        wire = self.wires[index]
        upper, lower, leave, enter = self.ends(wire)
        between = range(rank[upper] + 1, rank[lower])
        passes = []
        for r in between:
            passes.append(len(self.widths))
            rows[r].append(passes[-1])
            self.widths.append(2 * self.gaps.half)
            self.heights.append(0)
        if wire.label[0] and passes:
            held = passes[(len(passes) - 1) // 2]
            self.labels[index] = held
            self.widths[held], self.heights[held] = wire.label
        way = [upper, *passes, lower]
        links = [Link(a, b, index) for a, b in pairwise(way)]
        links[0].leave, links[-1].enter = leave or 0, enter or 0
        self.chains[index] = links
        self.links.extend(links)

    # -- ports ----------------------------------------------------------------

    def spread(self, table: Layers) -> None:
        """Share the edges of each box between the wires that end there."""
        for v, box in enumerate(self.boxes):
            below = sorted(table.down[v], key=lambda link: self.xs[link.lower])
            above = sorted(table.up[v], key=lambda link: self.xs[link.upper])
            for link, at in zip(below, self.ports(box, len(below)), strict=True):
                if self.ends(self.wires[link.wire])[2] is None:
                    link.leave = at
            for link, at in zip(above, self.ports(box, len(above)), strict=True):
                if self.ends(self.wires[link.wire])[3] is None:
                    link.enter = at

    def ports(self, box: Box, count: int) -> list[float]:
        if count < 2:
            return [0.0] * count
        room = max(box.width - 2 * box.inset, 0) / (count - 1)
        step = min(self.gaps.ports, room)
        places = [(i - (count - 1) / 2) * step for i in range(count)]
        return [float(round(at)) for at in places] if self.gaps.whole else places

    def snap(self, table: Layers) -> None:
        """Move the end of a lone wire along its box if that takes a bend away."""
        for v, box in enumerate(self.boxes):
            reach = min(self.gaps.snap, max(box.width / 2 - box.inset, 0))
            for link in table.up[v] if len(table.up[v]) == 1 else ():
                off = self.xs[link.upper] + link.leave - self.xs[v]
                if abs(off) <= reach and self.ends(self.wires[link.wire])[3] is None:
                    link.enter = off
            for link in table.down[v] if len(table.down[v]) == 1 else ():
                off = self.xs[link.lower] + link.enter - self.xs[v]
                if abs(off) <= reach and self.ends(self.wires[link.wire])[2] is None:
                    link.leave = off

    # -- places ---------------------------------------------------------------

    def settle(self, table: Layers) -> tuple[float, float]:
        """Fix the places; lead the wires; return the size."""
        left = min(x - w / 2 for x, w in zip(self.xs, self.widths, strict=True))
        self.xs = [x - left - self.gaps.half for x in self.xs]
        right = max(x + w / 2 for x, w in zip(self.xs, self.widths, strict=True))
        top, heights = 0.0, []
        between: list[list[Link]] = [[] for _ in table.rows]
        level = {v: r for r, row in enumerate(table.rows) for v in row}
        for link in self.links:
            between[level[link.upper]].append(link)
        for row, links in zip(table.rows, between, strict=True):
            self.tops.append(top)
            heights.append(max(self.heights[v] for v in row))
            top += heights[-1]
            if links:
                top += self.gaps.between(links, self.xs)
        for v, box in enumerate(self.boxes):
            r = level[v]
            box.x = self.xs[v]
            spare = heights[r] - box.height
            box.y = self.tops[r] + (spare // 2 if self.gaps.whole else spare / 2)
        for index in range(len(self.wires)):
            self.lead(index, level, heights)
        for wire in self.own:
            self.circle(wire)
        return right + self.gaps.half, self.tops[-1] + heights[-1]

    def lead(self, index: int, level: dict[int, int], heights: list[float]) -> None:
        """Draw the way of a wire."""
        wire = self.wires[index]
        links = self.chains[index]
        first, last = links[0], links[-1]
        upper, lower = self.boxes[first.upper], self.boxes[last.lower]
        x = self.xs[first.upper] + first.leave
        points: list[Point] = [(x, upper.bottom)]
        for link in links:
            if link is not first:
                points.append((self.xs[link.upper], self.tops[level[link.upper]]))
            start = self.xs[link.upper] + link.leave
            end = self.xs[link.lower] + link.enter
            base = self.tops[level[link.upper]] + heights[level[link.upper]]
            goal = self.tops[level[link.lower]]
            points.append((start, base))
            points.extend(self.gaps.bends((start, base), (end, goal), link.row))
            points.append((end, goal))
        points.append((points[-1][0], lower.y))
        held = self.labels.get(index)
        if held is not None:
            r = level[held]
            wire.label_at = (self.xs[held], self.tops[r] + heights[r] / 2)
        wire.points = points[::-1] if wire.back else points

    def circle(self, wire: Wire) -> None:
        """Lead a wire from a box back into it, at its right side."""
        box = self.boxes[self.number[wire.source]]
        middle, away = box.y + box.height / 2, box.right + self.gaps.loop / 2
        up, down = box.y + box.height / 4, box.bottom - box.height / 4
        if self.gaps.whole:
            up, down, away = box.y, box.bottom - 1, float(round(away))
        wire.points = [(box.right, down), (away, down), (away, up), (box.right, up)]
        if wire.label[0]:
            wire.label_at = (away + self.gaps.half + wire.label[0] / 2, middle)
