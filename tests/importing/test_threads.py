"""Threads of LangGraph go on here, as they would have gone on there."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import Annotated

import pytest
from tests.programs.both import thread
from typing_extensions import TypedDict

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.postgres import PostgresSaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.importing import ThreadImportError, import_threads, open_source
from towpath.testing.api import load
from towpath.testing.normal import Placeholders
from towpath.warnings import TowpathWarning

from . import graphs
from .graphs import line, say

PEER, OURS = load("langgraph"), load("towpath")
pytestmark = pytest.mark.differential
CONFIG = thread()


@contextmanager
def peer_file(path):
    """The peer's saver on a file."""
    with PEER.SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


@pytest.fixture(params=["memory", "sqlite"])
def target(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "new.db")) as saver:
            yield saver


def answers(graph, lib, by):
    """Answer what is open: bare, or by the ids of the questions."""
    open_ = graph.get_state(CONFIG).interrupts
    if by == "value":
        return lib.Command(resume="yes")
    return lib.Command(resume={each.id: f"to {each.value}" for each in open_})


def finish(graph, lib, by):
    """Go on until nothing is asked; return the last state."""
    for _ in range(5):
        if not graph.get_state(CONFIG).next:
            break
        asks = graph.get_state(CONFIG).interrupts
        graph.invoke(answers(graph, lib, by) if asks else None, CONFIG)
    return graph.get_state(CONFIG)


def history(graph):
    plain = Placeholders()
    return [
        plain.value((each.values, each.next, each.metadata["step"]))
        for each in graph.get_state_history(CONFIG)
    ]


SITUATIONS = [
    (graphs.one_question, "value"),
    (graphs.one_question, "id"),
    (graphs.two_in_a_node, "value"),
    (graphs.beside_finished, "id"),
    (graphs.in_a_subgraph, "value"),
    (graphs.in_a_subgraph, "id"),
    (graphs.deep_down, "id"),
    (graphs.called_in_a_node, "value"),
    (graphs.after_a_failure, "value"),
    (graphs.among_sends, "value"),
    (graphs.beside_a_goto, "id"),
    (graphs.before_a_deferred, "value"),
]


@pytest.mark.parametrize(
    ("make", "by"), SITUATIONS, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_paused_thread_goes_on_as_at_the_peer(tmp_path, target, make, by):
    """The same end, the same questions by id, and nothing runs that had finished."""
    old, copy = tmp_path / "old.db", tmp_path / "copy.db"
    runs = []
    with peer_file(old) as saver:
        graph = make(PEER, saver, runs)
        try:
            graph.invoke({"n": 1, "log": ["in"]}, CONFIG)
        except ValueError:
            assert make is graphs.after_a_failure
    shutil.copy(old, copy)
    before = list(runs)

    with open_source(f"sqlite:///{old}") as source:
        told = import_threads(source, target)
        again = import_threads(source, target)
    here = make(OURS, target, runs)
    paused = here.get_state(CONFIG, subgraphs=True)
    states = history(here)
    ended = finish(here, OURS, by)
    ran_here = runs[len(before) :]

    runs[:] = before
    with peer_file(copy) as saver:
        there = make(PEER, saver, runs)
        expected = there.get_state(CONFIG, subgraphs=True)
        assert history(there) == states
        assert finish(there, PEER, by).values == ended.values
    assert runs[len(before) :] == ran_here
    assert [t.id for t in expected.tasks] == [t.id for t in paused.tasks]
    assert [i.id for i in expected.interrupts] == [i.id for i in paused.interrupts]
    assert expected.next == paused.next
    assert (len(states) <= told[0].checkpoints, []) == (True, told[0].unbound)
    assert (0, 0) == (again[0].checkpoints, again[0].writes)


def test_a_second_question_of_a_node_keeps_the_first_answer(tmp_path, target):
    old, runs = tmp_path / "old.db", []
    with peer_file(old) as saver:
        graph = graphs.two_in_a_node(PEER, saver, runs)
        graph.invoke({"log": []}, CONFIG)
        graph.invoke(PEER.Command(resume="one"), CONFIG)
        asked = graph.get_state(CONFIG).interrupts[0]
    with open_source(str(old)) as source:
        import_threads(source, target)
    here = graphs.two_in_a_node(OURS, target, runs)
    found = here.get_state(CONFIG).interrupts[0]
    assert (asked.id, asked.value) == (found.id, found.value)
    answered = here.invoke(OURS.Command(resume={asked.id: "two"}), CONFIG)
    assert ["one", "two", "end"] == answered["log"]


@pytest.mark.parametrize(
    "make", [graphs.beside_finished, graphs.in_a_subgraph, graphs.deep_down]
)
def test_an_edit_of_an_imported_thread_keeps_what_is_open_and_done(make, target):
    saver, runs = PEER.InMemorySaver(), []
    there = make(PEER, saver, runs)
    there.invoke({"log": []}, CONFIG)
    asked = [each.id for each in there.get_state(CONFIG).interrupts]
    done = len(runs)
    import_threads(saver, target)
    here = make(OURS, target, runs)
    here.update_state(CONFIG, {"log": ["edited"]})
    assert asked == [each.id for each in here.get_state(CONFIG).interrupts]
    assert "edited" in finish(here, OURS, "id").values["log"]
    assert not {"side", "fan", "x", "a"} & set(runs[done:])


def test_a_finished_conversation_goes_on_with_its_history(tmp_path, target):
    old, runs = tmp_path / "old.db", []
    with peer_file(old) as saver:
        graph = line(PEER, saver, a=say(runs, "a"), b=say(runs, "b"))
        for turn in range(3):
            graph.invoke({"n": turn, "log": [f"turn {turn}"]}, CONFIG)
        states = history(graph)
    with open_source(str(old)) as source:
        told = import_threads(source, target)
    here = line(OURS, target, a=say(runs, "a"), b=say(runs, "b"))
    assert states == history(here)
    assert len(states) == told[0].checkpoints
    ended = here.invoke({"log": ["turn 3"]}, CONFIG)
    assert ["turn 3", "a", "b"] == ended["log"][-3:]
    past = list(here.get_state_history(CONFIG))[-2]
    assert ["turn 0", "a", "b"] == here.invoke(None, past.config)["log"]


def test_messages_and_a_delta_channel_are_kept(tmp_path, target):
    from langchain_core.messages import AIMessage, HumanMessage

    def gather(state, writes):
        return [*(state or []), *(each for write in writes for each in write)]

    def make(lib, saver):
        messages = Annotated[list, lib.add_messages]
        notes = Annotated[list, lib.DeltaChannel(gather, list)]
        often = lib.DeltaChannel(gather, list, snapshot_frequency=2)
        few = Annotated[list, often]
        keys = {"messages": messages, "notes": notes, "few": few}
        Chat = TypedDict("Chat", keys, total=False)

        def reply(state):
            count = len(state["messages"])
            message = AIMessage(f"re {count}", id=f"a{count}")
            return {"messages": [message], "notes": [count], "few": [count]}

        graph = lib.StateGraph(Chat)
        graph.add_node("reply", reply)
        graph.add_edge(lib.START, "reply")
        return graph.compile(checkpointer=saver)

    old = tmp_path / "old.db"
    turns = [{"messages": [HumanMessage(f"t{n}", id=f"h{n}")]} for n in range(4)]
    with peer_file(old) as saver:
        graph = make(PEER, saver)
        for turn in turns[:3]:
            graph.invoke(turn, CONFIG)
    shutil.copy(old, tmp_path / "copy.db")
    with open_source(str(old)) as source:
        import_threads(source, target)
    here = make(OURS, target)
    with peer_file(tmp_path / "copy.db") as saver:
        there = make(PEER, saver)
        assert history(there) == history(here)
        expected = there.invoke(turns[3], CONFIG)
    assert expected == here.invoke(turns[3], CONFIG)


def test_a_breakpoint_and_an_edit_are_kept(tmp_path, target):
    old, runs = tmp_path / "old.db", []

    def make(lib, saver):
        graph = lib.StateGraph(graphs.State)
        for name in ("a", "b", "c"):
            graph.add_node(name, say(runs, name))
        graph.add_edge(lib.START, "a")
        graph.add_edge("a", "b")
        graph.add_edge("b", "c")
        return graph.compile(checkpointer=saver, interrupt_before=["b", "c"])

    with peer_file(old) as saver:
        graph = make(PEER, saver)
        graph.invoke({"log": []}, CONFIG)
        graph.update_state(CONFIG, {"log": ["edited"]})
    with open_source(str(old)) as source:
        import_threads(source, target)
    here = make(OURS, target)
    assert ("b",) == here.get_state(CONFIG).next
    assert ["a", "edited", "b"] == here.invoke(None, CONFIG)["log"]
    assert ("c",) == here.get_state(CONFIG).next


def test_news_are_brought_and_a_thread_with_two_ends_is_refused(tmp_path, target):
    old, runs = tmp_path / "old.db", []

    def make(lib, saver):
        return line(lib, saver, a=say(runs, "a"))

    def more():
        with peer_file(old) as saver:
            make(PEER, saver).invoke({"log": ["more"]}, CONFIG)

    def brought():
        with open_source(str(old)) as source:
            return import_threads(source, target)[0].checkpoints

    more()
    assert 3 == brought()
    more()
    assert 3 == brought()
    here = make(OURS, target)
    here.invoke({"log": ["here"]}, CONFIG)
    assert 0 == brought()
    more()
    with pytest.raises(ThreadImportError, match="both places"):
        brought()
    assert "here" in here.get_state(CONFIG).values["log"]


def test_a_value_that_cannot_be_stored_is_named(tmp_path):
    source, target = InMemorySaver(), InMemorySaver()
    from towpath.checkpoint.base import empty_checkpoint

    class Odd:
        pass

    class Holding(type(source)):
        def get_tuple(self, config):
            saved = super().get_tuple(config)
            saved.checkpoint["channel_values"]["odd"] = Odd()
            return saved

    source = Holding()
    checkpoint = {**empty_checkpoint(), "channel_versions": {"odd": 1}}
    place = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    source.put(place, checkpoint, {"source": "input", "step": -1}, {})
    with pytest.raises(ThreadImportError) as caught:
        import_threads(source, target)
    text = str(caught.value)
    assert all(word in text for word in ("'1'", checkpoint["id"], "odd"))


def test_a_paused_entrypoint_is_imported_without_the_results_of_its_tasks(target):
    saver = PEER.InMemorySaver()

    @PEER.task
    def double(n):
        return n * 2

    @PEER.entrypoint(checkpointer=saver)
    def flow(n):
        return [double(n).result(), PEER.interrupt("go on?")]

    flow.invoke(4, CONFIG)
    told = import_threads(saver, target)
    asked = target.get_tuple(CONFIG).pending_writes
    assert (1, 2) == (told[0].questions, len(told[0].unbound))
    assert {type(v[0]) for _, c, v in asked if c == "__interrupt__"} == {OURS.Interrupt}


def test_a_dry_run_stores_nothing(tmp_path, target):
    old, runs = tmp_path / "old.db", []
    with peer_file(old) as saver:
        graphs.one_question(PEER, saver, runs).invoke({"log": []}, CONFIG)
    with open_source(str(old)) as source:
        told = import_threads(source, target, dry_run=True)
        assert [] == list(target.list(None))
        assert told == import_threads(source, target)
    assert 1 == told[0].questions


def test_reading_leaves_the_old_database_alone(tmp_path):
    old, runs = tmp_path / "old.db", []
    with peer_file(old) as saver:
        graphs.one_question(PEER, saver, runs).invoke({"log": []}, CONFIG)
    before = old.read_bytes()
    with open_source(str(old)) as source:
        import_threads(source, InMemorySaver())
    assert before == old.read_bytes()


def test_threads_move_between_our_own_savers(tmp_path):
    runs, memory = [], InMemorySaver()
    graphs.beside_finished(OURS, memory, runs).invoke({"log": []}, CONFIG)
    done = list(runs)
    with SqliteSaver.from_conn_string(str(tmp_path / "new.db")) as target:
        import_threads(memory, target)
        graph = graphs.beside_finished(OURS, target, runs)
        finish(graph, OURS, "id")
    assert sorted(["asked", "asked", "end"]) == sorted(runs[len(done) :])


def test_what_is_no_database_of_theirs_is_said(tmp_path):
    empty = tmp_path / "other.db"
    with closing(sqlite3.connect(empty)) as made:
        made.execute("CREATE TABLE other (x)")
    (tmp_path / "text.db").write_text("not a database at all, only words")
    for url in (
        str(empty), str(tmp_path / "none.db"), "mysql://x", str(tmp_path / "text.db"),
    ):  # fmt: skip
        with pytest.raises(ThreadImportError), open_source(url):
            pass


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    import sys

    old, runs = tmp_path / "old.db", []
    with peer_file(old) as saver:
        graphs.one_question(PEER, saver, runs).invoke({"log": []}, CONFIG)
    with open_source(str(old)) as source:
        monkeypatch.setitem(sys.modules, "langgraph.graph", None)
        with pytest.raises(ThreadImportError, match="only langgraph"):
            import_threads(source, InMemorySaver())
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite", None)
    with pytest.raises(ThreadImportError, match="langgraph-checkpoint-sqlite"):
        with open_source(str(old)):
            pass


def test_postgres_is_read_through_its_package(postgres, tmp_path):
    runs = []
    with PEER.PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        graph = graphs.beside_finished(PEER, saver, runs)
        graph.invoke({"log": []}, CONFIG)
    done = list(runs)
    target = InMemorySaver()
    with PEER.PostgresSaver.from_conn_string(postgres) as source:
        told = import_threads(source, target)
    here = graphs.beside_finished(OURS, target, runs)
    assert ([], 2) == (told[0].unbound, told[0].questions)
    assert "end" == finish(here, OURS, "id").values["log"][-1]
    assert sorted(["asked", "asked", "end"]) == sorted(runs[len(done) :])


# -- a database of the peer's that is opened as one of ours -------------------


def test_who_opens_the_peers_database_is_told_how_to_import_it(tmp_path):
    path = tmp_path / "old.db"
    with peer_file(path) as saver:
        graphs.one_question(PEER, saver, []).invoke({}, CONFIG)
    with pytest.warns(TowpathWarning, match="towpath import"), SqliteSaver(path) as own:
        own.setup()
    with pytest.warns(TowpathWarning, match="towpath import"), SqliteSaver(path) as own:
        graphs.one_question(OURS, own, []).invoke({}, CONFIG)
    with SqliteSaver(path) as own:  # there are threads of ours: it is known
        assert own.get_tuple(CONFIG) is not None


def test_so_it_is_on_a_server(postgres):
    with PEER.PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        graphs.one_question(PEER, saver, []).invoke({}, CONFIG)
    with (
        pytest.warns(TowpathWarning, match="towpath import"),
        PostgresSaver.from_conn_string(postgres),
    ):
        pass


def test_tables_of_other_programs_are_nobodys_threads(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE checkpoints (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO checkpoints VALUES (1, 'gate')")
        connection.commit()
    with SqliteSaver(path) as saver:
        assert [] == list(saver.list(None))
