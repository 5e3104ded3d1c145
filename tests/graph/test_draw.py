"""Drawings have the nodes and edges of the graph, in the peer's forms."""

import operator
import socket
import struct
import sys
import types
from typing import Annotated, Literal, TypedDict
from xml.etree import ElementTree as ET

import pytest

from towpath import END, START, Command, Send, StateGraph
from towpath.graph.draw import DrawingError, Edge, Graph
from towpath.picture.png import has_font
from towpath.picture.svg import FONT
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


def test_plain_text_is_a_drawing(capsys):
    made = builder(load("towpath"), "a", "b")
    made.add_edge(START, "a")
    made.add_conditional_edges("a", lambda state: 1, {1: "b"})
    graph = made.compile().get_graph()
    graph.print_ascii()
    shown = capsys.readouterr().out
    assert graph.draw_ascii() + "\n" == shown
    assert "|  a  |" in shown


@pytest.fixture
def renderer():
    """What draws PNG, with a font to write with."""
    pytest.importorskip("resvg_py")
    if not has_font((), FONT):
        pytest.skip("no font on this machine")


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.usefixtures("renderer")
@pytest.mark.parametrize("verb", ["draw_png", "draw_mermaid_png"])
def test_png_is_drawn_here_and_written_to_the_file_named(verb, tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)  # nobody is asked
    file = tmp_path / "graph.png"
    graph = chain(load("towpath"), "a").compile().get_graph()
    assert getattr(graph, verb)(output_file_path=str(file)) == file.read_bytes()
    assert file.read_bytes().startswith(PNG)


@pytest.mark.usefixtures("renderer")
def test_options_of_the_peer_s_picture_are_taken():
    graph = chain(load("towpath"), "a").compile().get_graph()
    options = {"background_color": "white", "padding": 3, "max_retries": 2}
    assert graph.draw_mermaid_png(**options).startswith(PNG)


def test_a_notebook_shows_a_compiled_graph_and_a_drawing():
    graph = chain(load("towpath"), "a").compile()
    for shown in (graph, graph.get_graph(), graph.draw()):
        bundle = shown._repr_mimebundle_()
        assert bundle["image/svg+xml"].startswith("<svg")
        assert bundle["text/plain"]


# -- pictures -----------------------------------------------------------------


def manners(graph, **options):
    sketch = graph.draw(**options).sketch
    return {(s.source, s.target, s.manner) for s in sketch.strokes}


def test_routes_of_commands_are_told_from_choices():
    assert ("a", "b", "command") in manners(commands(load("towpath")))
    assert ("a", "b", "branch") in manners(path_map(load("towpath")))


def test_an_error_handler_is_marked():
    made = StateGraph(State)
    made.add_node("a", nothing, error_handler=nothing)
    made.add_edge(START, "a")
    sketch = made.compile().draw().sketch
    assert ["error"] == [s.manner for s in sketch.strokes if s.label == "error"]
    [handler] = [f for f in sketch.figures if f.kind == "handler"]
    assert ("a", ("error handler",)) == (handler.name, handler.notes)


def fan(state):
    return [Send("work", one) for one in state["seen"]]


@pytest.mark.parametrize(
    ("path", "manner"), [(fan, "send"), (lambda state: "work", "branch")]
)
def test_a_path_that_makes_sends_is_marked(path, manner):
    made = builder(load("towpath"), "work")
    made.add_conditional_edges(START, path, ["work"])
    assert ("__start__", "work", manner) in manners(made.compile())


@pytest.mark.parametrize("policy", ["all", "taken"])
def test_a_join_is_drawn_as_one(policy):
    made = builder(load("towpath"), "a", "b", "c")
    made.add_edge(START, "a")
    made.add_edge(START, "b")
    made.add_edge(["a", "b"], "c", join=policy)
    sketch = made.compile().draw().sketch
    [join] = [f for f in sketch.figures if f.kind == "join"]
    assert policy == join.name
    ends = {
        (s.source, s.target) for s in sketch.strokes if join.id in (s.source, s.target)
    }
    assert {("a", join.id), ("b", join.id), (join.id, "c")} == ends
    assert ("a", "c") not in {(s.source, s.target) for s in sketch.strokes}


def test_a_join_of_subgraphs_is_led_from_where_they_end():
    lib = load("towpath")
    made = builder(lib, "c")
    for name in ("left", "right"):
        made.add_node(name, chain(lib, "i", "j").compile())
        made.add_edge(START, name)
    made.add_edge(["left", "right"], "c")
    sketch = made.compile().draw(xray=True).sketch
    [join] = [f for f in sketch.figures if f.kind == "join"]
    into = {s.source for s in sketch.strokes if s.target == join.id}
    assert {"left:j", "right:j"} == into


def test_deferred_nodes_and_breakpoints_are_told():
    notes = {f.id: f.notes for f in marked(load("towpath")).draw().sketch.figures}
    assert ("deferred",) == notes["d"]
    assert ("stops before", "stops after") == notes["a"]


def test_subgraphs_are_marked_and_opened():
    graph = nested(load("towpath"))
    kinds = {f.id: f.kind for f in graph.draw().sketch.figures}
    assert "graph" == kinds["sub"]
    paths = {f.id: f.path for f in graph.draw(xray=True).sketch.figures}
    assert ("sub", "deep") == paths["sub:deep:i"]
    once = {f.id for f in graph.draw(xray=1).sketch.figures}
    assert {"sub:m", "sub:deep"} <= once


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_shape_has_a_picture(shape):
    picture = shape(load("towpath")).draw(xray=True)
    ET.fromstring(picture.svg)
    assert picture.ascii.isascii() or shape is odd_names
    assert picture.mermaid.startswith("---\nconfig:")


def test_an_edge_to_a_node_that_is_not_there_is_left_out():
    """A graph that was put together by hand, or came from elsewhere."""
    graph = Graph()
    graph.add_node(None, "a")
    graph.edges.append(Edge("a", "missing"))
    assert [] == graph.draw().sketch.strokes
    assert "a" in graph.draw_ascii()
    assert Graph().draw().svg.startswith("<svg")
    assert "" == Graph().draw_ascii()


def test_a_picture_is_saved_in_the_form_of_its_suffix(tmp_path):
    picture = chain(load("towpath"), "a").compile().draw()
    forms = {
        "a.svg": picture.svg,
        "a.mmd": picture.mermaid,
        "a.txt": picture.text + "\n",
    }
    for name, text in forms.items():
        assert text == picture.save(tmp_path / name).read_text("utf-8")
    assert picture.svg in picture.save(tmp_path / "a.html").read_text("utf-8")
    with pytest.raises(DrawingError, match="gif") as raised:
        picture.save(tmp_path / "a.gif")
    assert ".svg" in raised.value.hint


def test_without_the_renderer_png_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(DrawingError) as raised:
        chain(load("towpath"), "a").compile().draw().png()
    assert "towpath[draw]" in raised.value.hint


def test_without_a_font_no_picture_without_names_is_made(monkeypatch):
    renderer = types.ModuleType("resvg_py")
    renderer.svg_to_bytes = lambda **options: PNG
    monkeypatch.setitem(sys.modules, "resvg_py", renderer)
    has_font.cache_clear()
    with pytest.raises(DrawingError, match="no font"):
        chain(load("towpath"), "a").compile().draw().png()
    has_font.cache_clear()


def test_a_font_file_that_is_not_there_is_named():
    with pytest.raises(DrawingError, match=r"missing\.ttf"):
        chain(load("towpath"), "a").compile().draw().png(fonts=["missing.ttf"])


@pytest.mark.usefixtures("renderer")
def test_a_huge_picture_is_made_smaller_than_asked_for(monkeypatch):
    monkeypatch.setattr("towpath.picture.png.PIXELS_MAX", 10_000)
    made = chain(load("towpath"), "a").compile().draw().png(scale=1000)
    width, height = struct.unpack(">II", made[16:24])
    assert width * height <= 10_500


def test_a_command_that_names_no_known_node_draws_nothing():
    def go(state) -> Command[Literal["a", "elsewhere"]]:
        return Command(goto="a")

    made = builder(load("towpath"), "a")
    made.add_node("go", go, destinations=("a",))
    made.add_edge(START, "go")
    assert ("go", "elsewhere", True) not in edges(made.compile())
