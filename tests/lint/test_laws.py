"""What lint says of random graphs is what happens when they run."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from hypothesis import event, given, settings
from hypothesis import strategies as st

from towpath import END, START, Command, Send, StateGraph
from towpath.errors import TowpathError

NAMES = ("a", "b", "c", "d", "e")
JOINED = ("j", "k")
names = st.sampled_from(NAMES)


class State(TypedDict, total=False):
    seed: int
    plain: str
    log: Annotated[list, operator.add]


def node(name: str, kind: str, goto: str, ran: list[str]) -> Any:
    """A node that is written down plainly, so that lint can read it."""

    def quiet(state: State) -> dict:
        ran.append(name)
        return {"log": [name]}

    def writing(state: State) -> dict:
        ran.append(name)
        return {"log": [name], "plain": name}

    def going(state: State) -> Command:
        ran.append(name)
        return Command(goto=goto, update={"log": [name]})

    def sending(state: State) -> Command:
        ran.append(name)
        return Command(goto=[Send(goto, state)], update={"log": [name]})

    kinds = {"quiet": quiet, "writing": writing, "going": going, "sending": sending}
    return kinds[kind]


def route(ends: list[str], several: bool) -> Any:
    def one(state: State) -> str:
        return ends[(state["seed"] + len(state["log"])) % len(ends)]

    def every(state: State) -> list[str]:
        return list(ends)

    return every if several else one


@st.composite
def graphs(draw: st.DrawFn) -> tuple[StateGraph, list[str]]:
    ran: list[str] = []
    builder = StateGraph(State)
    kinds = st.sampled_from(["quiet", "quiet", "writing", "going", "sending"])
    for name in NAMES:
        builder.add_node(name, node(name, draw(kinds), draw(names), ran))
    builder.add_edge(START, draw(names))
    sources = st.sampled_from((START, *NAMES))
    for source, target in draw(st.lists(st.tuples(sources, names), max_size=5)):
        builder.add_edge(source, target)
    for source in draw(st.lists(sources, max_size=2, unique=True)):
        ends = draw(st.lists(names, min_size=1, max_size=3, unique=True))
        path = route(ends, draw(st.booleans()))
        builder.add_conditional_edges(source, path, [*ends, END])
    for name in JOINED:  # nothing else leads to them, so that they tell what fired
        builder.add_node(name, node(name, draw(kinds), draw(names), ran))
        pair = draw(st.lists(names, min_size=2, max_size=2, unique=True))
        builder.add_edge(sorted(pair), name)
    return builder, ran


@given(graphs(), st.integers(0, 6))
@settings(max_examples=200, deadline=None)
def test_findings_come_true(drawn, seed):
    builder, ran = drawn
    found = builder.lint()
    error: TowpathError | None = None
    try:
        builder.compile().invoke({"seed": seed, "log": []}, {"recursion_limit": 9})
    except TowpathError as failure:
        error = failure
    for one in found:
        event(one.code)
        if one.code in ("L101", "L102"):
            assert one.node not in ran
        elif one.code == "L103" and one.node in ran:
            assert error is not None, "it goes on until something ends it"
