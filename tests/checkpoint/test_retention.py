"""What is kept of threads over time: laws, races, and the space it takes."""

from __future__ import annotations

import operator
import sqlite3
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath import START, Command, StateGraph, interrupt
from towpath.checkpoint.base import Affected, empty_checkpoint
from towpath.checkpoint.base.id import first_id_at
from towpath.checkpoint.base.model import Address
from towpath.checkpoint.layout import in_row
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.reading import Scope, page
from towpath.checkpoint.serde.keyring import Keyring
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.checkpoint.sqlite.connection import Connections
from towpath.constants import INTERRUPT
from towpath.testing.conformance_colours import Blocking
from towpath.testing.conformance_retention import (
    line,
    moment_of,
    parent_of,
    read,
    whole,
)
from towpath.testing.conformance_saver import Branch, at, id_of, ids, values
from towpath.testing.rows import row_counts, strays

# Laws

histories = st.lists(
    st.tuples(
        st.sampled_from(["", "child"]),
        st.integers(0, 30),  # which checkpoint of the namespace it is put on
        st.dictionaries(
            st.sampled_from("abc"), st.none() | st.integers(0, 3), max_size=2
        ),
        st.booleans(),  # whether a question is open there
    ),
    min_size=1,
    max_size=12,
)
options = st.fixed_dictionaries(
    {"keep": st.integers(1, 3)},
    optional={
        "older_than": st.integers(0, 12),
        "keep_forks": st.booleans(),
        "keep_ancestors": st.booleans(),
    },
)
runs = st.sampled_from("rs")


def embedded(stack):
    return [InMemorySaver(), stack.enter_context(SqliteSaver(":memory:"))]


@settings(max_examples=80, deadline=None)
@given(histories, options)
def test_after_pruning_what_stays_reads_as_before_and_nothing_else_is_left(
    history, chosen
):
    check(history, chosen, embedded)


@pytest.mark.slow
def test_so_it_is_in_postgres(postgres):
    from towpath.checkpoint.postgres import PostgresSaver

    with PostgresSaver(postgres) as saver:

        def emptied(stack):
            stack.callback(saver.delete_thread, "t")
            return [InMemorySaver(), saver]

        @settings(max_examples=15, deadline=None)
        @given(histories, options)
        def law(history, chosen):
            check(history, chosen, emptied)

        law()


def check(history, chosen, open_savers):
    with ExitStack() as stack:
        savers = open_savers(stack)
        made = [build(saver, history) for saver in savers][0]
        if "older_than" in chosen:
            _, since = made[chosen["older_than"] % len(made)]
            chosen = {**chosen, "older_than": moment_of(since)}
        expected = survivors(savers[0], made, **chosen)
        counts = []
        for saver in savers:
            before = {place(found): found for found in saver.list(whole("t"))}
            counts.append(saver.prune(["t"], **chosen))
            after = {place(found): found for found in saver.list(whole("t"))}
            assert expected == after.keys()
            assert read(before[key] for key in after) == read(after.values())
            for (ns, _), found in after.items():
                parent = parent_of(before[ns, id_of(found.config)])
                kept = parent if (ns, parent) in expected else None
                assert kept == parent_of(found)
            if isinstance(saver, SqliteSaver):
                assert_no_orphans(saver.conn)
        one, other = counts
        assert (one.threads, one.checkpoints, one.writes, one.cells) == (
            *(other.threads, other.checkpoints, other.writes, other.cells),
        )


def build(saver, history):
    """Put a history into a saver, under the same ids in each; return the places."""
    made, values_at, versions_at = [], {}, {}
    for number, (ns, on, changed, asks) in enumerate(history):
        mine = [key for space, key in made if space == ns]
        parent = mine[on % len(mine)] if mine else None
        grown = [*values_at.get(parent, {}).get("list", []), number]
        checkpoint = empty_checkpoint()
        checkpoint["id"] = key = first_id_at(DAY_ONE + timedelta(seconds=number)) + TAIL
        values_at[key] = {**values_at.get(parent, {}), **changed, "list": grown}
        versions_at[key] = {
            **versions_at.get(parent, {}),
            **dict.fromkeys([*changed, "list"], number + 1),
        }
        checkpoint["channel_values"] = values_at[key]
        checkpoint["channel_versions"] = versions_at[key]
        above = [key for space, key in made if space == ""]
        parents = {"": above[-1]} if ns and above else {}
        config = saver.put(at("t", ns, parent), checkpoint, {"parents": parents}, {})
        saver.put_writes(config, [(INTERRUPT if asks else "w", number)], "task")
        made.append((ns, key))
    return made


DAY_ONE = datetime(2026, 1, 1, tzinfo=UTC)
TAIL = "8000-000000000000"


def place(found):
    return found.config["configurable"]["checkpoint_ns"], id_of(found.config)


def survivors(saver, made, **chosen):
    """Say once more, step by step and from the outside, what is to stay."""
    found = {place(one): one for one in saver.list(whole("t"))}
    parents = {key: (key[0], parent_of(one)) for key, one in found.items()}
    kept = set()
    for ns in {ns for ns, _ in made}:
        mine = sorted(key for key in found if key[0] == ns)
        stay = set(mine[-chosen["keep"] :])
        if "older_than" in chosen:
            stay |= {key for key in mine if moment_of(key[1]) >= chosen["older_than"]}
        if chosen.get("keep_forks"):
            stay |= {key for key in mine if key not in parents.values()}
        if chosen.get("keep_ancestors"):
            for key in stay - ancestry(mine[-1], parents):
                stay |= ancestry(key, parents)
        kept |= stay
    for key in [key for key in kept if key[0]]:
        for above in found[key].metadata["parents"].items():
            writes = found[above].pending_writes
            if any(channel == INTERRUPT for _, channel, _ in writes):
                kept.add(above)
    return kept


def ancestry(key, parents):
    found = set()
    while key in parents:
        found.add(key)
        key = parents[key]
    return found


ORPHANS = (
    """SELECT count(*) FROM towpath_writes w WHERE NOT EXISTS (SELECT 1 FROM
    towpath_checkpoints c WHERE c.space = w.space AND c.id = w.checkpoint)""",
    """SELECT count(*) FROM towpath_spaces s WHERE NOT EXISTS
    (SELECT 1 FROM towpath_checkpoints c WHERE c.space = s.id)""",
    """SELECT count(*) FROM towpath_cells k WHERE NOT EXISTS
    (SELECT 1 FROM towpath_spaces s WHERE s.id = k.id >> 32)""",
)


def assert_no_orphans(connection):
    for query in ORPHANS:
        assert [(0,)] == connection.execute(query).fetchall()
    # What reading needs, and no more: of each checkpoint, and what it builds on.
    found, _ = Connections(connection).read(page(SCOPE, None, 1000))
    links = {}
    for stored in found:
        for link in stored.cells.values():
            links |= {id(step): step for step in link.chain()}
    needed = [one for one in links.values() if not in_row((one.tag, one.data))]
    [(kept,)] = connection.execute("SELECT count(*) FROM towpath_cells").fetchall()
    assert kept == len(needed)


SCOPE = Scope(Address("t", None, None), None, None)


# Runs that go on meanwhile


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_pruning_while_a_run_goes_on_takes_nothing_from_it(kind, tmp_path):
    with ExitStack() as stack:
        if kind == "memory":
            saver = other = InMemorySaver()
        else:
            path = str(tmp_path / "threads.db")
            saver = stack.enter_context(SqliteSaver(path, synchronous="OFF"))
            other = stack.enter_context(SqliteSaver(path, synchronous="OFF"))
        over = threading.Event()

        def clean() -> None:
            while not over.is_set():
                other.prune(["t"])
                other.sweep(ttl=timedelta(hours=1))

        cleaner = threading.Thread(target=clean)
        cleaner.start()
        try:
            branch = Branch(Blocking(saver), at())
            grown: list[int] = []
            for number in range(150):
                grown = [*grown, number]
                config = branch.put(
                    {"grown": grown, f"k{number % 7}": number},
                    writes=[("task", "", [("w", number)])] if number else None,
                )
                saver.put_writes(config, [("x", number)], "task")
                found = saver.get_tuple(config)
                assert grown == values(found)["grown"]
                assert [("task", "x", number)] == found.pending_writes
        finally:
            over.set()
            cleaner.join()
        assert values(saver.get_tuple(at())) == branch.values


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def nested():
    """Build a graph that asks twice, the second time in a subgraph."""

    def ask(state: State) -> State:
        return {"log": [interrupt("inside?")]}

    def first(state: State) -> State:
        return {"log": [interrupt("outside?")]}

    inner = StateGraph(State).add_node("before", lambda _: {"log": ["b"]})
    inner.add_node("ask", ask).add_edge(START, "before").add_edge("before", "ask")
    outer = StateGraph(State).add_node("first", first).add_node("sub", inner.compile())
    return outer.add_edge(START, "first").add_edge("first", "sub")


@pytest.fixture(
    params=[
        InMemorySaver,
        lambda: SqliteSaver(":memory:"),
        lambda: SqliteSaver(":memory:", encryption=Keyring(b"k" * 32)),
    ],
    ids=["memory", "sqlite", "sealed"],
)
def opened(request):
    return request.param


def test_a_thread_that_waits_is_pruned_and_goes_on(opened):
    thread = {"configurable": {"thread_id": "t"}}
    with opened() as saver:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, thread)
        saver.prune()
        graph.invoke(Command(resume="one"), thread)
        removed = saver.prune()
        assert removed.checkpoints > 0
        assert Affected() == saver.sweep(NEXT_YEAR, ttl=timedelta(days=1))
        assert 1 == len(graph.get_state(thread).interrupts)
        done = graph.invoke(Command(resume="two"), thread)
        assert ["one", "b", "two"] == done["log"]
        assert 1 == saver.sweep(NEXT_YEAR, ttl=timedelta(days=1)).threads


def test_a_question_on_an_older_branch_survives_pruning():
    thread = {"configurable": {"thread_id": "t"}}
    saver = InMemorySaver()
    graph = nested().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread)
    graph.invoke(Command(resume="one"), thread)
    asking = graph.get_state(thread)
    graph.update_state(asking.config, {"log": ["aside"]}, as_node="sub")
    removed = saver.prune()
    assert removed.checkpoints > 0
    now = graph.get_state(asking.config)
    assert 1 == len(now.interrupts)
    assert (asking.values, asking.interrupts) == (now.values, now.interrupts)


def test_pruned_threads_do_not_grow_with_the_calls_of_subgraphs(opened):
    """Whether or not the calls asked something that was answered since."""
    thread = {"configurable": {"thread_id": "t"}}
    with opened() as saver:
        graph = nested().compile(checkpointer=saver)
        sizes = []
        for _ in range(3):
            graph.invoke({"log": []}, thread)
            graph.invoke(Command(resume="one"), thread)
            graph.invoke(Command(resume="two"), thread)
            saver.prune()
            sizes.append(len(list(saver.list(whole("t")))))
        assert [1, 1, 1] == sizes


NEXT_YEAR = datetime.now(UTC) + timedelta(days=366)


# Age


def test_a_checkpoint_whose_id_has_no_time_has_no_age():
    saver = InMemorySaver()
    checkpoint = {**empty_checkpoint(), "id": "0-of-my-own"}
    saver.put(at(), checkpoint, {}, {})
    assert Affected() == saver.sweep(ttl=timedelta(0), waiting=True)
    newer = saver.put(at(id="0-of-my-own"), empty_checkpoint(), {}, {})
    assert Affected() == saver.prune(older_than=timedelta(0))
    assert [id_of(newer), "0-of-my-own"] == ids(saver.list(at()))


def test_a_saver_has_a_time_to_live_or_the_call_has():
    saver = InMemorySaver(ttl=timedelta(days=2))
    [made] = line(Blocking(saver), "t", 1)
    assert Affected() == saver.sweep(moment_of(made) + timedelta(days=1))
    assert 1 == saver.sweep(moment_of(made) + timedelta(days=3)).threads
    with pytest.raises(ValueError, match="ttl"):
        InMemorySaver().sweep()
    with pytest.raises(ValueError, match="time zone"):
        saver.sweep(datetime(2026, 1, 1))  # noqa: DTZ001


# Space


def test_a_vacuum_gives_space_back(tmp_path):
    path = tmp_path / "threads.db"
    with SqliteSaver(str(path), synchronous="OFF") as saver:
        branch = Branch(Blocking(saver), at())
        for number in range(100):
            branch.put({"big": bytes([number]) * 10_000})
        saver.prune(["t"])
        before = taken(path)
        given_back = saver.vacuum()
        assert given_back > 900_000
        assert before - given_back == taken(path)
        assert {"big": b"c" * 10_000} == values(saver.get_tuple(at()))


def taken(path: Path) -> int:
    # The index of the log is not the database's to give back.
    files = {*path.parent.glob(f"{path.name}*")} - {path.with_name(f"{path.name}-shm")}
    return sum(file.stat().st_size for file in files)


def test_a_connection_of_the_callers_can_be_vacuumed():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    saver = SqliteSaver(connection)
    line(Blocking(saver), "t", 3)
    saver.delete_thread("t")
    assert saver.vacuum() >= 0
    connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def sql_saver(request):
    """A saver of every SQL database."""
    if request.param == "sqlite":
        saver = SqliteSaver(":memory:")
    else:
        dsn = request.getfixturevalue("postgres")
        from towpath.checkpoint.postgres import PostgresSaver

        saver = PostgresSaver(dsn)
    with saver:
        yield saver


@pytest.mark.parametrize("how", ["delete_thread", "prune", "delete_for_runs"])
def test_deleting_leaves_no_orphans(sql_saver, how):
    branch = Branch(Blocking(sql_saver), at())
    for number in range(3):
        values = {"a": f"{number:040}", f"k{number}": "k" * 40}
        config = branch.put(values, {"run_id": "r"})
        sql_saver.put_writes(config, [("x", 1)], "task")
    Branch(Blocking(sql_saver), at("other")).put({"other": "x" * 40})
    if how == "delete_thread":
        sql_saver.delete_thread("t")
        expected = {"spaces": 1, "checkpoints": 1, "cells": 1, "writes": 0}
    elif how == "prune":
        sql_saver.prune(["t"])
        expected = {"spaces": 2, "checkpoints": 2, "cells": 5, "writes": 1}
    else:
        sql_saver.delete_for_runs(["r"])
        expected = {"spaces": 1, "checkpoints": 1, "cells": 1, "writes": 0}
    counts = row_counts(sql_saver)
    assert expected == {table: counts[table] for table in expected}
    assert [] == list(strays(sql_saver))
