"""What a config may hold, and what is said of what it may not."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from towpath import START, InMemorySaver, StateGraph
from towpath.errors import TowpathError


class State(TypedDict, total=False):
    tags: list[str]


def tells(state: State, config: Any) -> State:
    return {"tags": config.get("tags", [])}


def graph(**options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", tells)
    builder.add_edge(START, "node")
    return builder.compile(**options)


WRONG_KINDS = [
    ("recursion_limit", "5"),
    ("recursion_limit", 2.5),
    ("recursion_limit", True),
    ("recursion_limit", [1]),
    ("max_concurrency", "2"),
    ("max_concurrency", 2.5),
    ("tags", 3),
    ("callbacks", 3),
    ("callbacks", ["handler"]),
]
WRONG_VALUES = [
    ("recursion_limit", 0),
    ("max_concurrency", 0),
    ("metadata", ["a"]),
    ("configurable", "1"),
]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        *((*given, TypeError) for given in WRONG_KINDS),
        *((*given, ValueError) for given in WRONG_VALUES),
    ],
)
def test_what_is_of_a_wrong_kind_is_named(key, value, kind, asynchronous):
    """In whichever way the config is given, and before anything runs."""
    app = graph()
    ways = [
        lambda: app.invoke({}, {key: value}),
        lambda: app.with_config({key: value}).invoke({}),
    ]
    if asynchronous:
        ways = [lambda: asyncio.run(app.ainvoke({}, {key: value}))]
    for way in ways:
        with pytest.raises(kind, match="TP-610") as caught:
            way()
        assert key in str(caught.value)
        assert repr(value) in str(caught.value)
        assert isinstance(caught.value, TowpathError)


def test_the_keys_of_a_config_are_text():
    with pytest.raises(TypeError, match=r"text, not 1"):
        graph().invoke({}, {1: 2})


@pytest.mark.parametrize("key", ["checkpoint_id", "checkpoint_ns"])
def test_what_names_a_checkpoint_is_text(key):
    app = graph(checkpointer=InMemorySaver())
    for verb in (lambda config: app.invoke({}, config), app.get_state):
        with pytest.raises(ValueError, match=f"{key} is text, not 3"):
            verb({"configurable": {"thread_id": "1", key: 3}})


def test_a_limit_out_of_json_is_taken():
    assert {"tags": []} == graph().invoke({}, {"recursion_limit": 5.0})


def test_a_lone_tag_is_one():
    app = graph().with_config(tags=["first"])
    assert {"tags": ["first", "second"]} == app.invoke({}, {"tags": "second"})
