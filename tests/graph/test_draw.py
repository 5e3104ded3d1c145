"""Drawings have the nodes and edges of the graph, in the peer's forms."""

import operator
from typing import Annotated, Literal, TypedDict

import pytest

from towpath import END, START, Command, StateGraph
from towpath.graph.draw import DrawingError
from towpath.testing.api import load


class State(TypedDict):
    seen: Annotated[list, operator.add]


def nothing(state):
    return None


def b_or_c(state) -> Literal["b", "c"]:
    return "b"


def builder(lib, *names):
    made = lib.StateGraph(State)
    for name in names:
        made.add_node(name, nothing)
    return made


def chain(lib, *names):
    made = builder(lib, *names)
    for source, target in zip((lib.START, *names), (*names, lib.END), strict=True):
        made.add_edge(source, target)
    return made


def literal(lib):
    made = builder(lib, "a", "b", "c")
    made.add_edge(lib.START, "a")
    made.add_conditional_edges("a", b_or_c)
    made.add_edge("b", lib.END)
    made.add_edge("c", "a")
    return made.compile()


def path_map(lib):
    made = builder(lib, "a", "b", "c")
    made.add_edge(lib.START, "a")
    ends = {"yes": "b", "no": "c", "neither of these two": lib.END}
    made.add_conditional_edges("a", nothing, ends)
    return made.compile()


def start_branch(lib):
    made = builder(lib, "a", "b", "c")
    made.add_conditional_edges(lib.START, nothing, ["b", "c"])
    made.add_edge(["b", "c"], "a")
    return made.compile()


def commands(lib):
    made = builder(lib, "b", "c")

    def go(state) -> lib.Command[Literal["b", "c", "__end__"]]:
        return lib.Command(goto="b")

    made.add_node("a", go)
    made.add_edge(lib.START, "a")
    return made.compile()


def named_destinations(lib):
    made = builder(lib, "b", "c")
    made.add_node("a", nothing, destinations={"b": "to b", "c": "to c"})
    made.add_edge(lib.START, "a")
    return made.compile()


def marked(lib):
    made = builder(lib, "a")
    made.add_node("d", nothing, defer=True, metadata={"k": 1})
    made.add_edge(lib.START, "a")
    made.add_edge("a", "d")
    options = {"interrupt_before": ["a"], "interrupt_after": ["a"]}
    return made.compile(**options)


def odd_names(lib):
    return chain(lib, "a b", "c-d", "é").compile()


def loose_end(lib):
    made = builder(lib, "a", "b", "alone")
    made.add_node("alone too", nothing)
    made.add_edge(lib.START, "a")
    made.add_edge("a", "b")
    return made.compile()


def nested(lib):
    middle = builder(lib, "m")
    middle.add_node("deep", chain(lib, "i", "j").compile())
    middle.add_edge(lib.START, "m")
    middle.add_edge("m", "deep")
    made = builder(lib, "z")
    made.add_node("sub", middle.compile())
    made.add_edge(lib.START, "sub")
    made.add_edge("sub", "z")
    return made.compile()


def nested_choice(lib):
    inner = builder(lib, "i", "j")
    inner.add_conditional_edges(lib.START, nothing, ["i", "j"])
    made = builder(lib, "z")
    made.add_node("sub", inner.compile())
    made.add_conditional_edges(lib.START, nothing, ["sub", "z"])
    return made.compile()


def called(lib):
    inner = chain(lib, "i", "j").compile()

    def call(state):
        return inner.invoke(state)

    made = lib.StateGraph(State)
    made.add_node("call", call)
    made.add_edge(lib.START, "call")
    return made.compile()


SHAPES = [
    lambda lib: chain(lib, "a", "b").compile(),
    *(literal, path_map, start_branch, commands, named_destinations, marked),
    *(odd_names, loose_end, nested, nested_choice, called),
]


def seen(lib, shape, xray):
    """What can be asked of a drawing, in no order where there is none."""
    graph = shape(lib).get_graph(xray=xray)
    first, last = graph.first_node(), graph.last_node()
    text = graph.to_json()
    for node in text["nodes"]:
        node.pop("data", None)
    return {
        "nodes": {key: (n.name, n.metadata) for key, n in graph.nodes.items()},
        "edges": {(e.source, e.target, e.data, e.conditional) for e in graph.edges},
        "ends": (first and first.id, last and last.id),
        "json nodes": sorted(text["nodes"], key=repr),
        "json edges": sorted(text["edges"], key=repr),
        "mermaid": sorted(graph.draw_mermaid().splitlines()),
        "bare": sorted(graph.draw_mermaid(with_styles=False).splitlines()),
        "folded": sorted(graph.draw_mermaid(wrap_label_n_words=2).splitlines()),
    }


@pytest.mark.differential
@pytest.mark.parametrize("xray", [False, 1, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_drawing_is_the_peer_s(shape, xray):
    assert seen(load("langgraph"), shape, xray) == seen(load("towpath"), shape, xray)


def edges(graph):
    return {(e.source, e.target, e.conditional) for e in graph.get_graph().edges}


def test_a_path_that_does_not_say_where_it_leads_is_drawn_to_every_node():
    """LG#4969."""
    made = builder(load("towpath"), "a", "b")
    made.add_edge(START, "a")
    made.add_conditional_edges("a", lambda state: "b")
    expected = {("a", "a", True), ("a", "b", True), ("a", END, True)}
    assert expected <= edges(made.compile())


def test_an_edge_to_the_end_beside_others_is_drawn():
    made = builder(load("towpath"), "a", "b")
    made.add_edge(START, "a")
    made.add_edge("a", "b")
    made.add_edge("a", END)
    assert {("a", "b", False), ("a", END, False)} <= edges(made.compile())


def test_an_error_handler_is_led_to_from_its_node():
    made = StateGraph(State)
    made.add_node("a", nothing, error_handler=lambda state: None)
    made.add_edge(START, "a")
    graph = made.compile().get_graph()
    handlers = [edge for edge in graph.edges if edge.data == "error"]
    assert [("a", True)] == [(edge.source, edge.conditional) for edge in handlers]
    assert graph.first_node().id == START


def test_names_are_no_mermaid_syntax():
    made = chain(load("towpath"), 'say "hi" (now)')
    text = made.compile().get_graph().draw_mermaid()
    assert '("say #quot;hi#quot; (now)")' in text


def test_a_graph_that_calls_itself_is_drawn_once():
    graphs = {}

    def again(state):
        return graphs["it"].invoke(state)

    made = StateGraph(State)
    made.add_node("again", again)
    made.add_edge(START, "again")
    graph = graphs["it"] = made.compile()
    graph.plan_of_graph.called["again"] = graph
    assert {START, "again", END} == set(graph.get_graph(xray=True).nodes)


def test_a_graph_that_was_called_is_opened_once_that_is_known():
    inner = chain(load("towpath"), "i").compile()
    graphs = [inner]

    def call(state):
        return graphs[0].invoke(state)

    made = StateGraph(State)
    made.add_node("call", call)
    made.add_edge(START, "call")
    graph = made.compile()
    graph.invoke({"seen": []})
    assert "call:i" in graph.get_graph(xray=True).nodes


def test_what_runs_in_a_node_is_its_data():
    inner = chain(load("towpath"), "i").compile()
    made = StateGraph(State)
    made.add_node("a", nothing)
    made.add_node("sub", inner)
    made.add_edge(START, "a")
    made.add_edge("a", "sub")
    nodes = made.compile().get_graph().nodes
    assert (nothing, inner, None) == tuple(nodes[n].data for n in ("a", "sub", END))


async def test_the_async_twin_gives_the_same():
    graph = chain(load("towpath"), "a").compile()
    assert graph.get_graph() == await graph.aget_graph()


def test_styles_can_be_chosen():
    from langchain_core.runnables.graph import CurveStyle, NodeStyles

    graph = chain(load("towpath"), "a").compile().get_graph()
    text = graph.draw_mermaid(
        curve_style=CurveStyle.BASIS,
        node_colors=NodeStyles(first="fill:#ffdfba"),
        frontmatter_config={"config": {"theme": "neutral", "look": "handDrawn"}},
    )
    assert "curve: basis" in text
    assert "classDef first fill:#ffdfba" in text
    assert "  theme: neutral" in text


def test_plain_text_lists_each_node_with_what_follows(capsys):
    made = builder(load("towpath"), "a", "b")
    made.add_edge(START, "a")
    made.add_conditional_edges("a", lambda state: 1, {1: "b"})
    made.compile().get_graph().print_ascii()
    expected = "__start__\n  --> a\na\n  ..> b  (1)\nb\n  --> __end__\n__end__\n"
    assert expected == capsys.readouterr().out


@pytest.mark.parametrize("picture", ["draw_png", "draw_mermaid_png"])
def test_no_picture_is_fetched_from_anywhere(picture):
    graph = chain(load("towpath"), "a").compile().get_graph()
    with pytest.raises(DrawingError, match="mermaid.live"):
        getattr(graph, picture)()


def test_a_command_that_names_no_known_node_draws_nothing():
    def go(state) -> Command[Literal["a", "elsewhere"]]:
        return Command(goto="a")

    made = builder(load("towpath"), "a")
    made.add_node("go", go, destinations=("a",))
    made.add_edge(START, "go")
    assert ("go", "elsewhere", True) not in edges(made.compile())
