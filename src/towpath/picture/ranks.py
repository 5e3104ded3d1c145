"""Which layer each box is in: loops are cut open, and edges lead down.

The edges that close a loop are found by walking the graph from its start. Layers
are the longest way from the start; then boxes move towards where most of their
edges lead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

ROUNDS: Final = 8


@dataclass(slots=True)
class Arc:
    """An edge between numbered boxes, and how many layers it spans at least."""

    upper: int
    lower: int
    span: int = 1


def loops(count: int, pairs: Sequence[tuple[int, int]], choices: set[int]) -> set[int]:
    """The indices of the edges that close a loop.

    Which those are is a matter of where a walk begins: of three walks the one
    counts that turns the fewest edges, and of these rather the choices, since a
    loop goes on or ends by a choice.
    """
    usual = range(len(pairs))
    firm_last = sorted(usual, key=lambda i: i not in choices)
    tries = [
        by_depth(count, pairs, usual),
        by_depth(count, pairs, firm_last),
        by_breadth(count, pairs, choices),
    ]
    return min(tries, key=lambda found: (len(found), len(found - choices)))


def by_depth(
    count: int, pairs: Sequence[tuple[int, int]], order: Sequence[int]
) -> set[int]:
    """Those that lead to where a walk, depth first, came from."""
    out: list[list[int]] = [[] for _ in range(count)]
    for index in order:
        out[pairs[index][0]].append(index)
    found: set[int] = set()
    state = [0] * count  # 1: the walk is inside, 2: it has left
    for root in roots(count, pairs):
        if not state[root]:
            walk(root, out, pairs, state, found)
    return found


def by_breadth(
    count: int, pairs: Sequence[tuple[int, int]], choices: set[int]
) -> set[int]:
    """Those that close a loop when edges are added, the nearest to the start first."""
    depth = depths(count, pairs)
    order = sorted(range(len(pairs)), key=lambda i: (depth[pairs[i][0]], i in choices))
    added: list[list[int]] = [[] for _ in range(count)]
    found = set()
    for index in order:
        source, target = pairs[index]
        if leads(target, source, added):
            found.add(index)
        else:
            added[source].append(target)
    return found


def depths(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """How many edges away from a root each box is."""
    depth = [count] * count
    out: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        out[source].append(target)
    for root in roots(count, pairs):
        if depth[root] == count:
            depth[root] = 0
            queue = deque([root])
            while queue:
                at = queue.popleft()
                for target in out[at]:
                    if depth[target] > depth[at] + 1:
                        depth[target] = depth[at] + 1
                        queue.append(target)
    return depth


def roots(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Where walks begin: where no edge leads to, then anywhere."""
    entered = {target for _, target in pairs}
    return sorted(range(count), key=lambda v: v in entered)


def leads(source: int, target: int, out: Sequence[Sequence[int]]) -> bool:
    seen, stack = {source}, [source]
    while stack:
        at = stack.pop()
        if at == target:
            return True
        new = [v for v in out[at] if v not in seen]
        seen.update(new)
        stack.extend(new)
    return False


def walk(
    root: int,
    out: Sequence[Sequence[int]],
    pairs: Sequence[tuple[int, int]],
    state: list[int],
    found: set[int],
) -> None:
    """Walk depth first from a root, with a stack of our own: chains are long."""
    state[root] = 1
    stack: list[tuple[int, Iterator[int]]] = [(root, iter(out[root]))]
    while stack:
        at, edges = stack[-1]
        for edge in edges:
            target = pairs[edge][1]
            if state[target] == 1:
                found.add(edge)
            elif not state[target]:
                state[target] = 1
                stack.append((target, iter(out[target])))
                break
        else:
            state[at] = 2
            stack.pop()


def layers(count: int, arcs: Sequence[Arc], last: set[int]) -> list[int]:
    """The layer of each box; those of `last` are in the last one."""
    ins: list[list[Arc]] = [[] for _ in range(count)]
    outs: list[list[Arc]] = [[] for _ in range(count)]
    for arc in arcs:
        ins[arc.lower].append(arc)
        outs[arc.upper].append(arc)
    order = topological(count, ins, outs)
    rank = [0] * count
    for v in order:
        rank[v] = max((rank[a.upper] + a.span for a in ins[v]), default=0)
    deepest = max(rank, default=0)
    for v in last:
        if not outs[v]:
            rank[v] = deepest
    for turn in range(ROUNDS):
        before = list(rank)
        for v in order if turn % 2 else reversed(order):
            if v not in last:
                rank[v] = drawn_to(rank, v, ins[v], outs[v])
        if rank == before:
            break
    return rank


def topological(
    count: int, ins: Sequence[Sequence[Arc]], outs: Sequence[Sequence[Arc]]
) -> list[int]:
    missing = [len(several) for several in ins]
    ready = deque(v for v in range(count) if not missing[v])
    order = []
    while ready:
        v = ready.popleft()
        order.append(v)
        for arc in outs[v]:
            missing[arc.lower] -= 1
            if not missing[arc.lower]:
                ready.append(arc.lower)
    assert len(order) == count  # loops have been cut
    return order


def drawn_to(
    rank: Sequence[int], v: int, ins: Sequence[Arc], outs: Sequence[Arc]
) -> int:
    """The layer where a box has its edges shortest."""
    if not outs or len(outs) < len(ins):
        return max((rank[a.upper] + a.span for a in ins), default=rank[v])
    if len(outs) > len(ins):
        return min(rank[a.lower] - a.span for a in outs)
    return rank[v]
