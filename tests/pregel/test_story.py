"""What happened on a thread: drawn on the graph, and as a report."""

import operator
import re
import socket
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from towpath import END, START, Command, InMemorySaver, Send, StateGraph, interrupt
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.checkpoint.sqlite.aio import AsyncSqliteSaver
from towpath.errors import NoCheckpointerError

CONFIG = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    n: int
    seen: Annotated[list, operator.add]


def count(state):
    return {"n": state["n"] + 1, "seen": [f"count {state['n']}"]}


def ask(state):
    return {"seen": [interrupt("<b>go on?</b>")]}


def fragile(state):
    if state["n"] > 3:
        raise ValueError("<i>too many</i>")
    return


def builder(**nodes):
    made = StateGraph(State)
    for name, node in nodes.items():
        made.add_node(name, node)
    return made


def asking(saver):
    """count -> sub (inner count -> ask) -> fragile -> count ..."""
    inner = builder(inner_count=count, ask=ask)
    inner.add_edge(START, "inner_count")
    inner.add_edge("inner_count", "ask")
    made = builder(count=count, sub=inner.compile(), fragile=fragile, never=count)
    made.add_edge(START, "count")
    made.add_edge("count", "sub")
    made.add_edge("sub", "fragile")
    made.add_conditional_edges(
        "fragile", lambda state: "count", ["count", "never", END]
    )
    return made.compile(checkpointer=saver)


def ran(graph, config=CONFIG, **options):
    sketch = graph.draw(config, **options).sketch
    return {
        figure.id: (figure.ran.status, figure.ran.times)
        for figure in sketch.figures
        if figure.ran is not None
    }


@pytest.fixture
def graph():
    return asking(InMemorySaver())


def test_nodes_say_how_often_they_ran_and_where_the_run_waits(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    expected = {
        "count": ("done", 1),
        "sub:inner_count": ("done", 1),
        "sub:ask": ("waiting", 0),
    }
    assert expected == ran(graph, xray=True)
    graph.invoke(Command(resume="yes"), CONFIG)
    expected = {
        "count": ("done", 2),
        "sub:inner_count": ("done", 2),
        "sub:ask": ("waiting", 1),
        "fragile": ("done", 1),
    }
    assert expected == ran(graph, xray=True)
    assert ("waiting", 1) == ran(graph)["sub"]


def test_what_failed_is_told_with_its_error(graph):
    graph.invoke({"n": 3, "seen": []}, CONFIG)
    with pytest.raises(ValueError, match="too many"):
        graph.invoke(Command(resume="yes"), CONFIG)
    assert ("failed", 0) == ran(graph)["fragile"]
    assert "&lt;i&gt;too many" in graph.draw(CONFIG).svg


def test_a_checkpoint_shows_what_led_to_it(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    rows = list(graph.get_state_history(CONFIG))
    assert {"count": ("next", 0)} == ran(graph, rows[-2].config, xray=True)
    assert ("waiting", 0) == ran(graph, rows[0].config)["sub"]
    graph.invoke(Command(resume="yes"), CONFIG)
    then = ran(graph, rows[0].config, xray=True)
    assert {"count": ("done", 1)} == then
    assert ("next", 0) == ran(graph, rows[0].config)["sub"]


def test_only_the_line_of_the_newest_checkpoint_counts(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    graph.invoke(Command(resume="yes"), CONFIG)
    first = list(graph.get_state_history(CONFIG))[-2]
    graph.invoke(None, first.config)
    assert ("done", 1) == ran(graph)["count"]


def test_an_edit_leaves_what_waits_where_it_is(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    graph.update_state(CONFIG, {"seen": ["edited"]})
    assert ("waiting", 0) == ran(graph)["sub"]
    assert ("waiting", 0) == ran(graph, xray=True)["sub:ask"]
    assert "ask asks" in told(graph).text()


def test_what_was_given_up_waits_no_more(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    graph.update_state(CONFIG, {"seen": ["skipped"]}, as_node="sub")
    assert "sub:ask" not in ran(graph, xray=True)
    assert ("next", 0) == ran(graph)["fragile"]


@pytest.mark.parametrize("keeps", [True, None])
def test_subgraphs_that_keep_their_state_are_told_of_too(keeps):
    inner = builder(inner_count=count)
    inner.add_edge(START, "inner_count")
    made = builder(sub=inner.compile(checkpointer=keeps))
    made.add_edge(START, "sub")
    graph = made.compile(checkpointer=InMemorySaver())
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    assert {"sub:inner_count": ("done", 1)} == ran(graph, xray=True)
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    assert {"sub:inner_count": ("done", 2)} == ran(graph, xray=True)
    assert 1 <= told(graph).text().count("in the subgraph sub")


def leaving(depth, keeps, **beside):
    """A graph whose innermost node leaves for `after`, which is in the outermost."""

    def leave(state):
        return Command(graph=Command.PARENT, goto="after", update={"n": 7})

    inner = builder(first=count, leave=leave, **beside)
    inner.add_edge(START, "first")
    for name in ("leave", *beside):
        inner.add_edge("first", name)
    for _ in range(depth - 1):
        between = builder(sub=inner.compile())
        between.add_edge(START, "sub")
        inner = between
    made = builder(sub=inner.compile(checkpointer=keeps), after=count)
    made.add_edge(START, "sub")
    return made.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("keeps", [None, True])
def test_who_leaves_for_the_graph_around_has_run(keeps):
    for depth in (1, 2):
        graph = leaving(depth, keeps)
        for times in (1, 2):
            graph.invoke({"n": 0, "seen": []}, CONFIG)
            found = ran(graph, xray=True)
            inside = "sub:" * depth
            assert ("done", times) == found[f"{inside}leave"], (depth, found)
            assert ("done", times) == found[f"{inside}first"]
            assert ("done", times) == found["after"]


def test_who_waited_beside_one_that_left_waits_no_more():
    """The run of their graph has ended, and the thread went on."""
    graph = leaving(1, None, asks=lambda state: interrupt("?"))
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    found = ran(graph, xray=True)
    assert ("done", 1) == found["sub:leave"]
    assert ("done", 1) == found["after"]
    assert "waiting" not in {status for status, _ in found.values()}


@pytest.mark.parametrize("file", ["graph.svg", Path("graph.png")])
async def test_a_file_is_no_thread_and_is_told_how_to_write_one(graph, file):
    for verb, how in (("draw", "draw()"), ("report", "report(config)")):
        with pytest.raises(TypeError, match="config of a thread") as caught:
            getattr(graph, verb)(file)
        assert f"graph.{how}.save('{file}')" in str(caught.value)
        with pytest.raises(TypeError, match="config of a thread"):
            await getattr(graph, f"a{verb}")(file)


def test_each_task_of_a_fan_out_counts():
    made = builder(work=lambda state: {"seen": [1]})
    made.add_conditional_edges(
        START, lambda state: [Send("work", {"n": i}) for i in range(7)], ["work"]
    )
    graph = made.compile(checkpointer=InMemorySaver())
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    assert {"work": ("done", 7)} == ran(graph)


def test_times_are_those_of_the_steps(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    rows = list(graph.get_state_history(CONFIG))
    [figure] = [f for f in graph.draw(CONFIG).sketch.figures if f.id == "count"]
    assert 0 <= figure.ran.seconds < 60
    assert rows[0].next == ("sub",)
    # Nobody knows how long a step took that waited for a person.
    graph.invoke(Command(resume="yes"), CONFIG)
    [figure] = [f for f in graph.draw(CONFIG).sketch.figures if f.id == "sub"]
    assert figure.ran.seconds is None


def test_a_thread_that_never_ran_is_drawn_without_a_run(graph):
    assert {} == ran(graph)
    assert "Nothing is stored" in graph.report(CONFIG).html


def test_without_a_checkpointer_there_is_no_run_to_draw():
    graph = asking(None)
    assert graph.draw().svg
    for verb in (graph.draw, graph.report):
        with pytest.raises(NoCheckpointerError):
            verb(CONFIG)


async def test_async_twins_give_the_same(tmp_path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "a.db")) as saver:
        graph = asking(saver)
        await graph.ainvoke({"n": 0, "seen": []}, CONFIG)
        picture = await graph.adraw(CONFIG, xray=True)
        report = await graph.areport(CONFIG)
        assert picture.sketch.run == "thread t"
    with SqliteSaver.from_conn_string(str(tmp_path / "a.db")) as saver:
        graph = asking(saver)
        assert picture.svg == graph.draw(CONFIG, xray=True).svg
        assert report.html == graph.report(CONFIG).html
    assert (await graph.adraw()).svg == graph.draw().svg


# -- reports ------------------------------------------------------------------


class Outline(HTMLParser):
    """Collects tags, and checks that those opened are closed."""

    VOID = {"meta", "rect", "path", "br"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, Any]] = []
        self.words: list[str] = []
        self.feed(html)
        assert [] == self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.extend(attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag):
        assert tag == self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def told(graph, **options):
    return Outline(graph.report(CONFIG, **options).html)


def test_a_report_tells_steps_questions_changes_and_errors(graph):
    graph.invoke({"n": 2, "seen": []}, CONFIG)
    text = told(graph).text()
    assert "sub" in text
    assert "<b>go on?</b>" in text  # as text, not as a tag
    assert "in the subgraph sub" in text
    assert "- 2 + 3" in text
    assert "after 0 items + count 2" in text
    with pytest.raises(ValueError, match="too many"):
        graph.invoke(Command(resume="yes"), CONFIG)
    text = told(graph).text()
    assert "fragile failed step 2 : ValueError('<i>too many</i>')" in text


def test_a_wide_step_is_told_in_one_line():
    made = builder(work=lambda state: {"seen": [state["n"]]})
    made.add_conditional_edges(
        START, lambda state: [Send("work", {"n": i}) for i in range(300)], ["work"]
    )
    graph = made.compile(checkpointer=InMemorySaver())
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    text = told(graph).text()
    assert "work ×300 seen" in text
    assert "and 250 more tasks" in text


def test_a_report_has_the_picture_of_the_run(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    assert graph.draw(CONFIG, xray=True).svg in graph.report(CONFIG).html


def test_branches_are_told_apart(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    graph.invoke(Command(resume="yes"), CONFIG)
    assert "Another branch" not in told(graph).text()
    early = list(graph.get_state_history(CONFIG))[-2]
    graph.invoke(None, early.config)
    text = told(graph).text()
    assert "1 other branches" in text
    assert "Another branch left at step 0" in text


def test_a_report_asks_nobody_and_runs_nothing(graph, monkeypatch):
    graph.invoke({"n": 0, "seen": ["<script>alert(1)</script>"]}, CONFIG)
    monkeypatch.setattr(socket, "socket", None)
    page = told(graph)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    links = [value for name, value in page.attributes if name in {"href", "src"}]
    assert all(value.startswith("#") for value in links)
    [policy] = [v for k, v in page.attributes if k == "content" and "default-src" in v]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


HOSTILE = [
    "</pre></details><script>alert(1)</script>",
    "\x00\x1b[2J\ud800 \u202e",
    {"</script>": "<!--"},
    b"\xff<svg/onload=x>",
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_any_value_is_shown_as_text(value):
    graph = asking(InMemorySaver())
    graph.invoke({"n": 0, "seen": [value]}, CONFIG)
    page = told(graph)
    assert "script" not in page.tags
    page.text().encode()


def test_spaces_in_values_are_kept():
    graph = asking(InMemorySaver())
    graph.invoke({"n": 0, "seen": ["def f():\n    return  1"]}, CONFIG)
    assert "\n    return  1" in graph.report(CONFIG).html


def test_a_name_cannot_leave_its_place():
    evil = '"><script>alert(1)</script>'
    made = builder(**{evil: count})
    made.add_edge(START, evil)
    graph = made.compile(checkpointer=InMemorySaver(), name=evil)
    config = {"configurable": {"thread_id": evil}}
    graph.invoke({"n": 0, "seen": []}, config)
    page = Outline(graph.report(config).html)
    assert "script" not in page.tags
    assert f"thread {evil}" in page.text()


def looping(saver, size):
    def step(state):
        return {"n": state["n"] + 1, "seen": ["x" * size]}

    made = builder(step=step)
    made.add_edge(START, "step")
    made.add_conditional_edges(
        "step", lambda state: "step" if state["n"] < 300 else END, ["step", END]
    )
    return made.compile(checkpointer=saver)


@pytest.mark.slow
def test_a_report_of_a_long_thread_with_large_values_is_bounded():
    graph = looping(InMemorySaver(), 3000)
    graph.invoke({"n": 0, "seen": []}, {**CONFIG, "recursion_limit": 1000})
    report = graph.report(CONFIG)
    assert len(report.html) < 6_000_000
    assert "(cut here: the value is longer)" in report.html
    assert 302 == len(re.findall('<details class="step"', report.html))


def test_a_report_can_be_of_the_newest_checkpoints_only():
    graph = looping(InMemorySaver(), 3)
    graph.invoke({"n": 280, "seen": []}, CONFIG)
    report = graph.report(CONFIG, limit=5)
    assert "Older checkpoints are left out." in report.html
    assert 5 == len(re.findall('<details class="step"', report.html))


def test_pruned_threads_have_reports(graph):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    graph.invoke(Command(resume="yes"), CONFIG)
    graph.checkpointer.prune(["t"])
    assert "sub" in told(graph).text()
    assert ("waiting", 0) == ran(graph)["sub"]


def test_a_report_is_a_file_a_text_and_a_frame_in_a_notebook(graph, tmp_path):
    graph.invoke({"n": 0, "seen": []}, CONFIG)
    report = graph.report(CONFIG)
    file = report.save(tmp_path / "report.html")
    assert str(report) == report.html == file.read_text("utf-8")
    frame = report._repr_html_()
    assert frame.startswith("<iframe sandbox srcdoc=")
    assert 1 == frame.count('srcdoc="')
    assert "<details" not in frame
