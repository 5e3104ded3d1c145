"""Whatever the graph, boxes are apart, and wires touch only what they belong to."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.picture.arrange import arrange
from towpath.picture.nest import Nest
from towpath.picture.shapes import Box, Wire
from towpath.picture.svg import Pixels
from towpath.picture.text import Cells

PATHS = [(), (), (), ("a",), ("b",), ("a", "c")]
GAPS = [Pixels(), Cells()]


@st.composite
def nests(draw, paths=PATHS):
    """A function that makes the same nest, not settled, for any distances."""
    count = draw(st.integers(1, 10))
    sizes = st.tuples(st.sampled_from([5, 9, 61, 141]), st.sampled_from([3, 20, 49]))
    boxes = [(draw(sizes), draw(st.sampled_from(paths))) for _ in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    labels = st.sampled_from([(0, 0), (0, 0), (41, 1)])
    edges = draw(st.lists(st.tuples(ends, labels, st.booleans()), max_size=22))

    def make():
        nest = Nest()
        for i, ((width, height), path) in enumerate(boxes):
            nest.put(Box(str(i), width, height, inset=1, last=i == count - 1), path)
        for (source, target), label, choice in edges:
            nest.connect(Wire(str(source), str(target), label, choice))
        return nest

    return make


def boxes_of(nest):
    return [box for frame in nest.root.every() for box in frame.boxes]


def wires_of(nest):
    return [wire for frame in nest.root.every() for wire in frame.wires]


def apart(a, b):
    return a.right <= b.left or b.right <= a.left or a.bottom <= b.y or b.bottom <= a.y


def inside(inner, outer):
    return (
        outer.left <= inner.left
        and inner.right <= outer.right
        and outer.y <= inner.y
        and inner.bottom <= outer.bottom
    )


def around(nest, id):
    """A box and the frames around it."""
    path = nest.homes[id]
    frames = [nest.root.at(path[:depth]).outer for depth in range(1, len(path) + 1)]
    return [next(box for box in boxes_of(nest) if box.id == id), *frames]


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS, ids=["pixels", "cells"])
@given(make=nests())
@settings(deadline=None, max_examples=60)
def test_no_two_boxes_overlap(gaps, make):
    nest = make()
    nest.settle(gaps)
    for a, b in combinations(boxes_of(nest), 2):
        assert apart(a, b), (a, b)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS, ids=["pixels", "cells"])
@given(make=nests())
@settings(deadline=None, max_examples=60)
def test_a_frame_holds_its_boxes_and_no_others(gaps, make):
    nest = make()
    nest.settle(gaps)
    for frame in nest.root.every()[1:]:
        own = {box.id for one in frame.every() for box in one.boxes}
        for box in boxes_of(nest):
            holds = inside(box, frame.outer) if box.id in own else None
            assert holds or apart(box, frame.outer), (box, frame.outer)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS, ids=["pixels", "cells"])
@given(make=nests())
@settings(deadline=None, max_examples=60)
def test_a_wire_ends_at_its_boxes_or_the_frames_around_them(gaps, make):
    nest = make()
    nest.settle(gaps)
    for wire in wires_of(nest):
        for point, id in (
            (wire.points[0], wire.source),
            (wire.points[-1], wire.target),
        ):
            assert any(touches(point, box, gaps.half) for box in around(nest, id)), wire


def touches(point, box, half):
    x, y = point
    across = box.left - 0.01 <= x <= box.right + 0.01
    up = box.y - 0.01 <= y <= box.bottom + 0.01
    edges = (box.left, box.right - 2 * half, box.right, box.y, box.bottom)
    near = min(abs(x - edge) for edge in edges[:3]), min(abs(y - e) for e in edges[3:])
    return across and up and min(near) <= 0.01 + half


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS, ids=["pixels", "cells"])
@given(make=nests(paths=[()]))
@settings(deadline=None, max_examples=100)
def test_a_wire_passes_no_other_box(gaps, make):
    """Straight pieces go past boxes, bent ones through a band without boxes."""
    nest = make()
    nest.settle(gaps)
    for wire in wires_of(nest):
        if wire.source == wire.target:
            continue
        for (x, y), (u, v) in pairwise(wire.points):
            for box in boxes_of(nest):
                aside = max(x, u) <= box.left or min(x, u) >= box.right
                above = max(y, v) <= box.y or min(y, v) >= box.bottom
                assert aside or above, (wire, box)


@pytest.mark.slow
@given(make=nests())
@settings(deadline=None, max_examples=60)
def test_places_of_characters_are_whole_numbers(make):
    nest = make()
    nest.settle(Cells())
    for box in boxes_of(nest):
        assert (box.left + 0.5).is_integer(), box
        assert float(box.y).is_integer(), box


@pytest.mark.slow
@given(make=nests())
@settings(deadline=None, max_examples=30)
def test_the_same_graph_is_laid_out_in_the_same_way(make):
    one, two = make(), make()
    assert one.settle(Pixels()) == two.settle(Pixels())
    assert boxes_of(one) == boxes_of(two)
    assert wires_of(one) == wires_of(two)


@pytest.mark.slow
@given(make=nests())
@settings(deadline=None, max_examples=60)
def test_everything_is_inside_of_the_size(make):
    nest = make()
    width, height = nest.settle(Pixels())
    for box in boxes_of(nest):
        assert box.left >= -0.01
        assert box.y >= -0.01
        assert box.right <= width + 0.01
        assert box.bottom <= height + 0.01
    for wire in wires_of(nest):
        assert all(-0.01 <= x <= width + 0.01 for x, _ in wire.points)


def placed(*edges, choices=()):
    names = dict.fromkeys(name for edge in edges for name in edge)
    boxes = {name: Box(name, 60, 40, inset=5) for name in names}
    wires = [Wire(a, b, choice=(a, b) in choices) for a, b in edges]
    arrange(list(boxes.values()), wires, Pixels())
    return boxes, wires


def test_edges_lead_down():
    boxes, _ = placed("ab", "bc", "ac", "cd")
    assert boxes["a"].y < boxes["b"].y < boxes["c"].y < boxes["d"].y


def test_the_edge_that_closes_a_loop_leads_up():
    _, wires = placed("sa", "at", "ta", "ae")
    assert [("t", "a")] == [(w.source, w.target) for w in wires if w.back]


def test_a_loop_is_closed_by_a_choice_rather_than_by_what_always_follows():
    """From the start, `r` and `i` are equally near; only `c` to `r` is a choice."""
    edges = ["st", "ti", "tr", "tw", "ij", "rj", "jw", "wc", "cr"]
    _, wires = placed(*edges, choices={("c", "r"), ("t", "r"), ("t", "w")})
    assert [("c", "r")] == [(w.source, w.target) for w in wires if w.back]


def test_a_fork_is_symmetrical():
    boxes, _ = placed("ab", "ac", "bd", "cd")
    assert boxes["a"].x == pytest.approx(boxes["d"].x, abs=0.5)
    assert boxes["b"].x + boxes["c"].x == pytest.approx(2 * boxes["a"].x, abs=0.5)


def test_a_chain_is_straight():
    boxes, wires = placed("ab", "bc", "cd")
    assert 1 == len({round(box.x, 3) for box in boxes.values()})
    assert 1 == len({round(x, 3) for wire in wires for x, _ in wire.points})


def test_a_graph_that_can_be_drawn_without_crossings_is():
    boxes, _ = placed("ax", "by", "cz", "ra", "rb", "rc")
    order = [name for name in sorted("abc", key=lambda name: boxes[name].x)]
    below = [name for name in sorted("xyz", key=lambda name: boxes[name].x)]
    assert [dict(zip("abc", "xyz", strict=True))[n] for n in order] == below


@pytest.mark.slow
def test_a_chain_of_thousands_needs_no_deep_stack():
    names = [str(i) for i in range(3000)]
    boxes = [Box(name, 10, 10) for name in names]
    arrange(boxes, [Wire(a, b) for a, b in pairwise(names)], Pixels())
    assert boxes[0].y < boxes[-1].y
