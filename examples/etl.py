"""Load a CSV file of orders into SQLite: a plain pipeline, without any model.

    python examples/etl.py [ORDERS.csv]

The file is cut into batches without being held in memory. Each batch is a task of
its own: it reads its rows, validates them, and writes the good ones and the bad ones
into the database in one transaction. At the end the bad rows are in a CSV file, each
with its line and what is wrong with it:

    plan -> load (one per batch) -> report

Killed at any point, the program goes on with the batches that are not done. A batch
that was under way is loaded again, which changes nothing: rows are written by their
order's number, and of several rows of a file with one number the last one counts, in
whatever order the batches run. So a file may also be loaded twice.
"""

from __future__ import annotations

import csv
import hashlib
import operator
import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any, TypedDict

from program import Lines, Program, parser, run, thread_of
from towpath import END, START, Overwrite, RetryPolicy, Send, StateGraph
from towpath.types import Checkpointer

SUMMARY = "Load a CSV file of orders into SQLite, durably and without duplicates."
COLUMNS = ("order_id", "customer", "ordered_on", "amount", "currency")
CURRENCIES = {"EUR", "GBP", "USD"}
FIRST_DAY = date(2000, 1, 1)
CENTS_MAX = 10**15
AT_ONCE = 4
"""Batches at the same time: SQLite lets one write while others are read."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    order_id INTEGER PRIMARY KEY, customer TEXT NOT NULL, ordered_on TEXT NOT NULL,
    cents INTEGER NOT NULL, currency TEXT NOT NULL, file TEXT NOT NULL, line INTEGER
);
CREATE TABLE IF NOT EXISTS rejects (
    file TEXT, line INTEGER, reason TEXT NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (file, line)
);
"""
# The same row again changes nothing; an earlier row of the file does not win.
UPSERT = """
INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (order_id) DO UPDATE SET
    customer = excluded.customer, ordered_on = excluded.ordered_on,
    cents = excluded.cents, currency = excluded.currency,
    file = excluded.file, line = excluded.line
WHERE excluded.file <> orders.file OR excluded.line > orders.line
"""


class Source(TypedDict):
    """A file, as it was when the work was planned."""

    path: str
    digest: str
    size: int
    changed_ns: int


class Batch(TypedDict):
    """Where some rows begin, and how many they are."""

    offset: int
    line: int
    rows: int


class Job(TypedDict):
    """The state of one `load` task: it sees this and nothing of the others."""

    batch: Batch
    source: Source
    database: str
    slow_s: float
    log: str | None


class Tally(TypedDict):
    line: int
    rows: int
    reasons: dict[str, int]


class Report(TypedDict):
    """What came of it: how many rows, how many of them bad, why, and where they are."""

    rows: int
    rejected: int
    reasons: dict[str, int]
    rejects: str


class Load(TypedDict, total=False):
    """The state of the pipeline; the first five are its input."""

    path: str
    database: str
    batch_rows: int
    slow_s: float
    log: str | None
    source: Source
    batches: list[Batch]
    tallies: Annotated[list[Tally], operator.add]
    report: Report


# ------------------------------------------------------------------- cut the file


def plan(state: Load) -> dict[str, Any]:
    """Find where each batch begins, and remember which file it was."""
    path, size = Path(state["path"]).resolve(), state.get("batch_rows", 500)
    if size < 1:
        raise ValueError("batch_rows is less than 1")
    seen = path.stat()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    source = Source(
        path=str(path), digest=digest, size=seen.st_size, changed_ns=seen.st_mtime_ns
    )
    # A thread may load again: its former tallies must not be added to.
    return {
        "source": source,
        "database": str(Path(state.get("database") or "orders.db").resolve()),
        "batches": list(cuts(source, size)),
        "tallies": Overwrite([]),
    }


def cuts(source: Source, size: int) -> Iterator[Batch]:
    """Read through the file and yield where each batch begins."""
    with opened(source) as file:
        records = Records(file)
        header = next(records, None)
        if header is None or header.fields != list(COLUMNS):
            raise ValueError(f"{source['path']!r} must begin with {','.join(COLUMNS)}")
        while True:
            offset, line = records.offset, records.line
            rows = sum(1 for _ in islice(records, size))
            if not rows:
                return
            yield Batch(offset=offset, line=line, rows=rows)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file: the line it begins in, its fields, or why it has none."""

    line: int
    fields: list[str]
    fault: str | None = None


class Records:
    """The records of a CSV file from some offset on; `offset` is where the next is.

    A record may have several lines, when they are quoted. Where a quote is never
    closed, only its own line is lost: reading goes on in the next one.
    """

    def __init__(self, file: IO[bytes], line: int = 1) -> None:
        self.file, self.line = file, line
        self.offset = file.tell()

    def lines(self) -> Iterator[str]:
        while raw := self.file.readline():
            encoding = "utf-8" if self.offset else "utf-8-sig"
            self.offset += len(raw)
            self.line += 1
            yield raw.decode(encoding, "replace")

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while True:
            offset, line = self.offset, self.line
            try:
                fields = next(csv.reader(self.lines(), strict=True))
            except csv.Error as error:
                self.file.seek(offset)
                self.offset, self.line = offset, line
                return Record(line, [next(self.lines()).strip()], f"not CSV: {error}")
            if fields:
                return Record(line, fields)


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """Open the file, unless it is another one by now."""
    path = Path(source["path"])
    seen = path.stat()
    if (seen.st_size, seen.st_mtime_ns) != (source["size"], source["changed_ns"]):
        raise ValueError(f"{path.name} changed meanwhile: use another --thread")
    with path.open("rb") as file:
        yield file


def fan_out(state: Load) -> list[Send] | str:
    """Send every batch to a task of its own."""
    jobs = [
        Job(
            batch=batch,
            source=state["source"],
            database=state["database"],
            slow_s=state.get("slow_s", 0.0),
            log=state.get("log"),
        )
        for batch in state["batches"]
    ]
    return [Send("load", job) for job in jobs] or "report"


# ------------------------------------------------------------------- load a batch


def load(job: Job) -> dict[str, list[Tally]]:
    """Validate the rows of a batch and write them, all or none."""
    if job["log"]:
        with Path(job["log"]).open("a", encoding="utf-8") as log:
            log.write(f"{job['batch']['line']}\n")
    time.sleep(job["slow_s"])
    batch, file = job["batch"], job["source"]["digest"]
    good: list[tuple[Any, ...]] = []
    bad: list[tuple[str, int, str, str]] = []
    for record in rows_of(job["source"], batch):
        try:
            good.append((*validated(record), file, record.line))
        except ValueError as error:
            bad.append((file, record.line, str(error), as_csv(record.fields)))
    with closing(connect(job["database"])) as database, database:
        database.executemany(UPSERT, good)
        database.executemany("INSERT OR REPLACE INTO rejects VALUES (?, ?, ?, ?)", bad)
    reasons = dict(Counter(reason for _, _, reason, _ in bad))
    return {"tallies": [Tally(line=batch["line"], rows=batch["rows"], reasons=reasons)]}


def rows_of(source: Source, batch: Batch) -> Iterator[Record]:
    """Read the rows of a batch."""
    with opened(source) as file:
        file.seek(batch["offset"])
        yield from islice(Records(file, batch["line"]), batch["rows"])


def validated(record: Record) -> tuple[int, str, str, int, str]:
    """Return a row for the database.

    Raises:
        ValueError: says what is wrong with the record.
    """
    if record.fault:
        raise ValueError(record.fault)
    if len(record.fields) != len(COLUMNS):
        raise ValueError(f"not {len(COLUMNS)} fields")
    if any("\ufffd" in field for field in record.fields):
        raise ValueError("not UTF-8")
    number, customer, day, amount, currency = map(str.strip, record.fields)
    if not (number.isascii() and number.isdigit() and 0 < int(number) < 2**63):
        raise ValueError("order_id is not a number")
    if not customer:
        raise ValueError("customer is missing")
    if currency not in CURRENCIES:
        raise ValueError("currency is unknown")
    return int(number), customer, day_of(day), cents_of(amount), currency


def day_of(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError("ordered_on is not a date") from None
    if not FIRST_DAY <= day <= datetime.now(UTC).date() + timedelta(days=1):
        raise ValueError("ordered_on is out of range")
    return day.isoformat()


def cents_of(text: str) -> int:
    try:
        cents = Decimal(text) * 100
        if 0 <= cents <= CENTS_MAX and cents == int(cents):
            return int(cents)
    except ArithmeticError:
        raise ValueError("amount is not a number") from None
    raise ValueError("amount is not an amount of money")


def as_csv(fields: list[str]) -> str:
    """Write a row as it may have been read, so that it can be mended and loaded."""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def connect(path: str) -> sqlite3.Connection:
    """Open the database that is loaded into; batches wait for each other."""
    database = sqlite3.connect(path, timeout=30)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


# ------------------------------------------------------------------------- report


def report(state: Load) -> dict[str, Report]:
    """Write the bad rows into a file beside the good ones, whole or not at all."""
    source = state["source"]
    target = Path(source["path"]).with_suffix(".rejects.csv")
    draft = target.with_name(f".{target.name}.draft")
    query = "SELECT line, reason, record FROM rejects WHERE file = ? ORDER BY line"
    with (
        closing(connect(state["database"])) as database,
        draft.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(("line", "reason", "record"))
        writer.writerows(database.execute(query, (source["digest"],)))
    draft.replace(target)
    reasons: Counter[str] = Counter()
    for tally in state["tallies"]:
        reasons.update(tally["reasons"])
    return {
        "report": Report(
            rows=sum(tally["rows"] for tally in state["tallies"]),
            rejected=reasons.total(),
            reasons=dict(reasons.most_common()),
            rejects=str(target),
        )
    }


# ---------------------------------------------------------------------- the graph


def build(checkpointer: Checkpointer = None) -> Any:
    """Wire the nodes."""
    builder = StateGraph(Load)
    builder.add_node("plan", plan)
    busy = RetryPolicy(initial_interval=0.1, max_attempts=5, retry_on=is_busy)
    builder.add_node("load", load, retry_policy=busy)
    builder.add_node("report", report)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["load", "report"])
    builder.add_edge("load", "report")
    builder.add_edge("report", END)
    compiled = builder.compile(checkpointer=checkpointer)
    return compiled.with_config(max_concurrency=AT_ONCE)


graph = build()


# -------------------------------------------------------------------- the program


def sample(path: Path, rows: int = 5000) -> None:
    """Write a file of orders, some of which are wrong."""
    chance = random.Random(7)  # noqa: S311 - the same file every time
    customers = ["Ada", "Grace", 'Kay "K"', "Edsger,\nTexel"]
    faults = [
        {"amount": "12,50"},
        {"amount": "-3"},
        {"ordered_on": "31.12.2025"},
        {"customer": " "},
        {"currency": "BTC"},
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number in range(1, rows + 1):
            day = date(2025, 1, 1) + timedelta(days=number % 365)
            row = {
                "order_id": str(number),
                "customer": chance.choice(customers),
                "ordered_on": day.isoformat(),
                "amount": f"{chance.randrange(100, 100_000) / 100:.2f}",
                "currency": chance.choice(sorted(CURRENCIES)),
            }
            if number % 97 == 0:
                row |= chance.choice(faults)
            writer.writerow(row)


def show(node: str, update: Any) -> Lines:
    """Tell what a node did."""
    if node == "plan":
        rows = sum(batch["rows"] for batch in update["batches"])
        yield f"plan: {rows} rows in {len(update['batches'])} batches"
    elif node == "load":
        tally = update["tallies"][0]
        bad = sum(tally["reasons"].values())
        yield f"load: {tally['rows']} rows from line {tally['line']} on, {bad} bad"
    elif node == "report":
        told = update["report"]
        good = told["rows"] - told["rejected"]
        yield f"report: {good} good rows, {told['rejected']} bad ones"
        for reason, count in told["reasons"].items():
            yield f"  {count:>5}  {reason}"
        yield f"bad rows: {told['rejects']}"


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done."""
    options = parser(SUMMARY)
    option = options.add_argument
    option("path", nargs="?", type=Path, help="CSV file (default: makes a sample)")
    option("--database", type=Path, default=Path("orders.db"), help="where orders go")
    option("--batch-rows", type=int, default=500, metavar="N", help="rows of a batch")
    option(
        "--slow", type=float, default=0.0, metavar="S", help="seconds more per batch"
    )
    option("--log", type=Path, help="append the first line of every batch begun")
    args = options.parse_args(words)
    if args.path is None:
        args.path = Path("orders.csv")
        if not args.path.exists():
            sample(args.path)
            print(f"made a sample: {args.path}")
    if not args.path.is_file():
        options.error(f"there is no file {str(args.path)!r}")
    if args.batch_rows < 1:
        options.error("--batch-rows: at least 1")
    path = str(args.path.resolve())
    args.thread = args.thread or thread_of("etl", path)
    values = {
        "path": path,
        "database": str(args.database.resolve()),
        "batch_rows": args.batch_rows,
        "slow_s": args.slow,
        "log": args.log and str(args.log.resolve()),
    }
    return run(Program(__file__, build, show, key="path"), values, args)


if __name__ == "__main__":
    sys.exit(main())
