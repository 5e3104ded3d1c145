"""Answer questions about a database: a model writes SQL and learns from its errors.

    python examples/sql_agent.py ["QUESTION"]

The example makes `records.db`, a shop for records, and lets the model ask it. Two kinds
of trouble are told apart: SQL that the database refuses goes back to the model with
the error, a few times; a line that drops, or a database that is locked, is not the
model's fault, and the node is tried again by its retry policy:

    prepare -> write_query <-> run_query -> answer

What a model writes is not to be trusted: the database is opened read-only, anything
but reading is refused before it runs, and a query has limits of time, rows and size.
Without a key for a model, a script asks, which makes mistakes and whose line drops at
the beginning: see models.py.
"""

from __future__ import annotations

import operator
import re
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage

import models
from program import Lines, Program, parser, run, thread_of
from towpath import END, START, Command, Overwrite, RetryPolicy, Runtime, StateGraph
from towpath.types import Checkpointer

SUMMARY = "Answer questions about a database, with SQL that a model writes."
RECORDS = Path("records.db")
ATTEMPTS_MAX = 4
ROWS_MAX = 50
TIME_MAX_S = 5.0
VALUE_MAX_BYTES = 100_000
SHOWN_MAX = 200
SCHEMA = """\
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE albums (
    id INTEGER PRIMARY KEY, artist_id INTEGER REFERENCES artists, title TEXT,
    genre TEXT, price_cents INTEGER
);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE sales (
    id INTEGER PRIMARY KEY, album_id INTEGER REFERENCES albums,
    customer_id INTEGER REFERENCES customers, sold_on TEXT, quantity INTEGER
);
"""
ROWS = """\
INSERT INTO artists VALUES (1, 'The Lock Keepers', 'UK'), (2, 'Canal Street', 'NL'),
    (3, 'Narrow Boats', 'UK'), (4, 'Les Péniches', 'FR');
INSERT INTO customers VALUES (1, 'Ada', 'London'), (2, 'Blaise', 'Paris'),
    (3, 'Edsger', 'Austin'), (4, 'Grace', 'New York'), (5, 'Sofja', 'Stockholm');
WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT 12)
INSERT INTO albums SELECT n, 1 + n % 4, 'Volume ' || n,
    CASE n % 3 WHEN 0 THEN 'folk' WHEN 1 THEN 'jazz' ELSE 'rock' END, 900 + n * 7 % 50
    FROM counted;
WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT 300)
INSERT INTO sales SELECT n, 1 + n * n % 12, 1 + n * 5 % 4,
    date('2024-01-01', (n * 17 % 730) || ' days'), 1 + n % 3
    FROM counted;
"""
WRITE = f"""\
Write one SQL query for SQLite that answers the question. The tables are:

{SCHEMA}
Write the query alone, without explaining it. Only reading is allowed. Of earlier
attempts you are told what was wrong with them."""
ANSWER = "Answer the question in one or two sentences, from the result of the query."


class Attempt(TypedDict):
    """A query that the database refused, and why."""

    sql: str
    error: str


class State(TypedDict, total=False):
    """The state; the question is the input."""

    question: str
    sql: str
    failed: Annotated[list[Attempt], operator.add]
    columns: list[str]
    rows: list[list[Any]]
    answer: str


# --------------------------------------------------------------------------- nodes


def prepare(_state: State) -> dict[str, Any]:
    """Make the database, and forget the attempts at an earlier question."""
    if not RECORDS.exists():
        make_records(RECORDS)
    return {"failed": Overwrite([]), "columns": [], "rows": [], "sql": "", "answer": ""}


def write_query(state: State, runtime: Runtime[None]) -> dict[str, str]:
    """Let the model write a query, knowing what was wrong with the last ones."""
    if runtime.execution_info and (nth := runtime.execution_info.node_attempt) > 1:
        runtime.stream_writer(f"write_query: attempt {nth}, as the model was not there")
    failed = "".join(
        f"\n\nThis failed:\n{one['sql']}\nError: {one['error']}"
        for one in state["failed"]
    )
    said = models.ask(script, WRITE, f"Question: {state['question']}{failed}")
    fenced = re.search(r"```(?:\w+\n)?(.*?)```", said, re.DOTALL)
    return {"sql": (fenced[1] if fenced else said).strip()}


def run_query(state: State) -> Command[Literal["write_query", "answer"]]:
    """Run the query. What the database says against it goes back to the model."""
    try:
        columns, rows = query(RECORDS, state["sql"])
    except QueryError as error:
        failed = [Attempt(sql=state["sql"], error=str(error))]
        is_last = len(state["failed"]) + 1 == ATTEMPTS_MAX
        return Command(
            update={"failed": failed}, goto="answer" if is_last else "write_query"
        )
    return Command(update={"columns": columns, "rows": rows}, goto="answer")


def answer(state: State) -> dict[str, str]:
    """Put the result into words, or say that there is none."""
    if not state["columns"]:
        last = state["failed"][-1]["error"]
        return {"answer": f"No query worked in {ATTEMPTS_MAX} attempts: {last}"}
    table = (state["columns"], *state["rows"])
    rows = [", ".join(str(value)[:SHOWN_MAX] for value in row) for row in table]
    text = "\n".join([f"Question: {state['question']}", "Result:", *rows])
    return {"answer": models.ask(script, ANSWER, text)}


# ----------------------------------------------------------------- untrusted queries


class QueryError(Exception):
    """The query is wrong, not allowed, or too much; the text is for its author."""


READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
# No limit stops a function while it works, and these work as long as they are told.
ENDLESS = {"printf", "format", "load_extension"}


def allowed(action: int, _first: str | None, name: str | None, *_: object) -> int:
    """Tell SQLite whether a query may do something."""
    is_function = action == sqlite3.SQLITE_FUNCTION and name not in ENDLESS
    may = action in READING or is_function
    return sqlite3.SQLITE_OK if may else sqlite3.SQLITE_DENY


def query(path: Path, sql: str) -> tuple[list[str], list[list[Any]]]:
    """Run one query that may only read, within limits.

    Raises:
        QueryError: says what was wrong with it.
        sqlite3.OperationalError: the database is locked.
    """
    address = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=1)) as database:
        database.set_authorizer(allowed)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES)
        until = time.monotonic() + TIME_MAX_S
        database.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        try:
            cursor = database.execute(sql)
            rows = cursor.fetchmany(ROWS_MAX + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if is_locked(error):
                raise
            raise QueryError(reason(error, until)) from error
    if cursor.description is None:
        raise QueryError("that is no query: it returns no columns")
    if len(rows) > ROWS_MAX:
        raise QueryError(f"more than {ROWS_MAX} rows: sum up, or use LIMIT")
    return [column[0] for column in cursor.description], list(map(list, rows))


def reason(error: Exception, until: float) -> str:
    """Say what was wrong, also where SQLite says it briefly."""
    if str(error) == "interrupted" and time.monotonic() > until:
        return f"the query took more than {TIME_MAX_S:g} seconds"
    return str(error)


def is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


# -------------------------------------------------------------------- the database


def make_records(path: Path) -> None:
    """Make the same database every time, whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    with closing(sqlite3.connect(draft)) as database:
        database.executescript(SCHEMA + ROWS)
    draft.replace(path)


# ------------------------------------------------------------ what the script says

KNOWN: dict[str, Sequence[str]] = {
    "Which artist sold most in 2025?": (
        "SELECT artist, SUM(amount) FROM sales WHERE year = 2025 GROUP BY artist",
        """
SELECT artists.name, SUM(sales.quantity) AS sold
FROM sales JOIN albums ON albums.id = album_id JOIN artists ON artists.id = artist_id
WHERE sold_on LIKE '2025-%' GROUP BY artists.id ORDER BY sold DESC LIMIT 1""",
    ),
    "How many albums of each genre are there?": (
        "```sql\nSELECT genre, COUNT(*) AS albums FROM albums GROUP BY genre\n```",
    ),
    "Who has bought nothing?": (
        "SELECT name FROM customers WHERE NOT IN sales",
        "SELECT * FROM sales, sales AS more",
        """
SELECT name FROM customers
WHERE id NOT IN (SELECT customer_id FROM sales)""",
    ),
    "Delete all sales.": ("DELETE FROM sales", "DROP TABLE sales", "VACUUM"),
}
EXAMPLE = next(iter(KNOWN))
dropped: list[bool] = []
"""Whether the line has dropped in this process."""


def script(messages: list[BaseMessage]) -> str:
    """Do what a model would do, for a few questions, and not at the first attempt."""
    if not dropped:
        dropped.append(True)
        raise ConnectionError("the line dropped")
    system, text = (str(message.content) for message in messages)
    question, *rest = text.removeprefix("Question: ").splitlines()
    if system == ANSWER:
        columns, *rows = rest[1:]
        return f"{columns}: {'; '.join(rows) or 'none'}."
    known = "; ".join(KNOWN)
    unknown = (f"SELECT 'The script knows only this: {known}' AS note",)
    queries = KNOWN.get(question, unknown)
    return queries[min(text.count("This failed:"), len(queries) - 1)].strip()


# ----------------------------------------------------------------------- the graph


def build(checkpointer: Checkpointer = None) -> Any:
    """Wire the nodes."""
    locked = RetryPolicy(initial_interval=0.2, max_attempts=5, retry_on=is_locked)
    builder = StateGraph(State)
    builder.add_node("prepare", prepare)
    builder.add_node("write_query", write_query, retry_policy=models.RETRY)
    builder.add_node("run_query", run_query, retry_policy=locked)
    builder.add_node("answer", answer, retry_policy=models.RETRY)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "write_query")
    builder.add_edge("write_query", "run_query")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=checkpointer)


graph = build()


# --------------------------------------------------------------------- the program


def show(node: str, update: Any) -> Lines:
    """Tell what a node did."""
    if node == "write_query":
        yield f"write_query: {' '.join(update['sql'].split())}"
    elif node == "run_query":
        failed = update.get("failed")
        said = failed[0]["error"] if failed else f"{len(update['rows'])} rows"
        yield f"run_query: {said}"
    elif node == "answer":
        yield f"answer: {update['answer']}"


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done."""
    options = parser(SUMMARY)
    models.add_option(options)
    options.add_argument(
        "question",
        nargs="?",
        default=EXAMPLE,
        help=f"any, with a model; without one: {' '.join(KNOWN)}",
    )
    args = options.parse_args(words)
    if not args.question.strip():
        options.error("the question is empty")
    models.choose(args, options)
    args.thread = args.thread or thread_of("sql", args.question)
    values = {"question": args.question}
    return run(Program(__file__, build, show, key="question"), values, args)


if __name__ == "__main__":
    sys.exit(main())
