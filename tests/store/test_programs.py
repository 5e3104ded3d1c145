"""Namespaces as texts: back and forth, in order, and below one another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from towpath.store.programs import _below, pack, unpack

LABELS = st.text(st.sampled_from("\0\1\2\3a!z"), min_size=1, max_size=3)
NAMESPACES = st.lists(LABELS, max_size=3).map(tuple)


@given(NAMESPACES)
def test_a_namespace_comes_back(namespace):
    assert namespace == unpack(pack(namespace))


@given(NAMESPACES, NAMESPACES)
def test_texts_sort_as_namespaces_do(one, other):
    assert (one < other) == (pack(one) < pack(other))


@given(NAMESPACES.filter(bool), NAMESPACES)
def test_what_is_below_a_namespace_is_a_range_of_texts(prefix, namespace):
    _, (first, last) = _below(prefix)
    below = namespace[: len(prefix)] == prefix
    assert below == (first <= pack(namespace) < last)
