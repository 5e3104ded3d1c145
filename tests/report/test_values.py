"""Values and changes as text: readable, bounded, and never an error."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.report.changes import changes
from towpath.report.values import line, shown


class Rude:
    def __repr__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None


@dataclass
class Message:
    role: str
    content: str
    extra: dict | None = None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@pytest.mark.slow
@given(value=values, most=st.integers(1, 400))
@settings(max_examples=40)
def test_no_value_is_longer_than_asked_for(value, most):
    assert len(shown(value, most)) <= most + 40
    assert len(line(value, most)) <= most + 40
    assert "\n" not in line(value, most)


def test_containers_are_indented_and_objects_named():
    expected = 'Message(\n  role: "user",\n  content: "hi"\n)'
    assert expected == shown(Message("user", "hi"), 1000)
    assert "{\n  a: [\n    1,\n    2\n  ]\n}" == shown({"a": [1, 2]}, 1000)
    assert "[]" == shown([], 10)


def test_a_value_in_itself_ends():
    value = []
    value.append(value)
    assert "[\n  […]\n]" == shown(value, 1000)


def test_huge_values_are_not_walked_through():
    class Endless(list):
        def __iter__(self):
            i = 0
            while True:
                yield i
                i += 1

    assert shown(Endless([1]), 50).endswith("(cut here: the value is longer)")


def test_a_rude_value_is_shown_and_compared():
    assert "<Rude, whose repr raised RuntimeError>" == shown(Rude(), 100)
    assert ["x"] == [one.key for one in changes({"x": Rude()}, {"x": Rude()}, 100)]


def told(before, after):
    return {one.key: (one.kind, one.lines) for one in changes(before, after, 100)}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({}, {"a": 1}, {"a": ("new", ["+ 1"])}),
        ({"a": 1}, {}, {"a": ("gone", ["- 1"])}),
        ({"a": 1}, {"a": True}, {"a": ("changed", ["- 1", "+ True"])}),
        (
            {"a": [1, 2]},
            {"a": [1, 2, 3]},
            {"a": ("grown", ["  after 2 items", "+ 3"])},
        ),
        (
            {"a": [1, 2]},
            {"a": [1, 5, 3]},
            {"a": ("changed", ["  at 1, of 2 items, now 3", "- 2", "+ 5"])},
        ),
        ({"a": [1, 2]}, {"a": [1]}, {"a": ("changed", ["- 2 items", "+ 1 items"])}),
        (
            {"a": {"x": 1, "y": 2}},
            {"a": {"x": 1, "y": 3, "z": 4}},
            {"a": ("changed", ["- y: 2", "+ y: 3", "+ z: 4"])},
        ),
        (None, 5, {"state": ("new", ["+ 5"])}),
        (4, 5, {"state": ("changed", ["- 4", "+ 5"])}),
    ],
)
def test_a_change_is_told_by_key(before, after, expected):
    assert expected == told(before, after)


def test_many_items_and_keys_are_counted():
    [change] = changes({"a": []}, {"a": list(range(50))}, 100)
    assert "  … and 44 more" == change.lines[-1]
    many = changes({}, {str(i): i for i in range(900)}, 100)
    assert len(many) <= 41


def test_arrays_are_compared():
    numpy = pytest.importorskip("numpy")
    one, two = numpy.zeros(3), numpy.ones(3)
    assert ["a"] == [c.key for c in changes({"a": one}, {"a": two}, 100)]
