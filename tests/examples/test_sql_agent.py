"""The SQL agent: errors teach the model, and its queries can do no harm."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, run, towpath

from towpath.testing import FrozenClock

pytest.importorskip("langchain_core")

PROGRAM = EXAMPLES / "sql_agent.py"


@pytest.mark.slow
def test_an_error_goes_back_to_the_model_and_a_dropped_line_does_not(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, PROGRAM)
    assert 0 == done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert "write_query: attempt 2, as the model was not there" in lines
    assert "run_query: no such column: artist" in lines
    assert "run_query: 1 rows" in lines
    assert lines[-1].startswith("answer: name, sold: ")


@pytest.mark.slow
def test_the_command_line_runs_it_and_keeps_what_failed(tmp_path: Path) -> None:
    given = ("--input", '{"question": "Who has bought nothing?"}', "--thread", "q")
    done = towpath(tmp_path, "run", "sql_agent", *given)
    assert 0 == done.returncode, done.stderr
    assert '"answer": "name: Sofja."' in done.stdout
    assert "syntax error" in done.stdout
    assert "more than 50 rows" in done.stdout


def test_questions_of_one_thread_do_not_share_their_failures(example) -> None:
    from towpath import InMemorySaver

    graph = example("sql_agent").build(InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    clock = FrozenClock()
    first = clock.invoke(graph, {"question": "Who has bought nothing?"}, thread)
    second = clock.invoke(
        graph, {"question": "How many albums of each genre are there?"}, thread
    )
    assert 2 == len(first["failed"])
    assert [] == second["failed"]
    assert "genre, albums: folk, 4; jazz, 4; rock, 4." == second["answer"]


def test_the_model_is_asked_four_times_and_no_more(example) -> None:
    module = example("sql_agent")
    done = FrozenClock().invoke(module.build(), {"question": "Delete all sales."})
    assert module.ATTEMPTS_MAX == len(done["failed"])
    assert done["answer"].startswith("No query worked in 4 attempts: ")
    with closing(sqlite3.connect(module.RECORDS)) as database:
        assert (300,) == database.execute("SELECT COUNT(*) FROM sales").fetchone()


def test_a_database_that_is_locked_is_tried_again_and_no_fault_of_the_query(
    example, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("sql_agent")
    query, calls = module.query, []

    def locked_once(*given):
        calls.append(given)
        if len(calls) == 1:
            raise sqlite3.OperationalError("database is locked")
        return query(*given)

    monkeypatch.setattr(module, "query", locked_once)
    question = "How many albums of each genre are there?"
    done = FrozenClock().invoke(module.build(), {"question": question})
    assert [] == done["failed"]
    assert 2 == len(calls)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM sales", "not authorized"),
        ("CREATE TABLE t (x)", "not authorized"),
        ("ATTACH 'other.db' AS other", "not authorized"),
        ("SELECT * FROM pragma_table_info('sales')", "not authorized"),
        ("PRAGMA writable_schema = 1", "not authorized"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT 1; DROP TABLE sales", "one statement"),
        ("SELECT * FROM sales", "more than 50 rows"),
        ("SELECT PRINTF('%.*c', 1000000000, 'x')", "not authorized"),
        ("SELECT printf('%.*c', 1000000000, 'x')", "not authorized"),
        ("SELECT hex(zeroblob(60000))", "too big"),
        ("SELECT '\0'", "null character"),
        ("SELECT ?", "binding"),
        ("", "no query"),
        ("Here you are!", "syntax error"),
    ],
)
def test_a_query_that_is_wrong_or_does_more_than_read_is_refused(
    example, sql: str, reason: str
) -> None:
    module = example("sql_agent")
    module.make_records(module.RECORDS)
    before = module.RECORDS.read_bytes()
    with pytest.raises(module.QueryError, match=reason):
        module.query(module.RECORDS, sql)
    assert before == module.RECORDS.read_bytes()
    assert not Path("other.db").exists()


def test_a_query_without_an_end_is_ended(
    example, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("sql_agent")
    module.make_records(module.RECORDS)
    monkeypatch.setattr(module, "TIME_MAX_S", 0.05)
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT COUNT(*) FROM n"
    )
    with pytest.raises(module.QueryError, match=r"more than 0\.05 seconds"):
        module.query(module.RECORDS, endless)
