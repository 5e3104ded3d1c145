"""The plain pipeline: nothing lost, nothing twice, and no model anywhere."""

from __future__ import annotations

import csv
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, run, stop_after, towpath

PROGRAM = EXAMPLES / "etl.py"
HEADER = "order_id,customer,ordered_on,amount,currency\n"
LOADED = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
import etl

code = etl.main([])
print(sorted(name for name in sys.modules if name.startswith("lang")))
sys.exit(code)
"""


def orders(folder: Path) -> list[tuple[object, ...]]:
    query = "SELECT order_id, customer, ordered_on, cents, currency, line FROM orders"
    with closing(sqlite3.connect(folder / "orders.db")) as database:
        return sorted(database.execute(query).fetchall())


def rejects(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def load(module, folder: Path, text: str | bytes, rows: int = 2):
    path = folder / "in.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = module.build().invoke({"path": str(path), "batch_rows": rows})
    return done["report"]


@pytest.mark.slow
def test_a_sample_is_loaded_without_langchain_and_loading_again_changes_nothing(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        done = run(tmp_path, "-c", LOADED)
        assert 0 == done.returncode, done.stderr
        assert done.stdout.endswith("\n[]\n")
        assert "report: 4949 good rows, 51 bad ones" in done.stdout
        assert 4949 == len(orders(tmp_path))
    bad = rejects(tmp_path / "orders.rejects.csv")
    assert 51 == len(bad)
    assert {
        "amount is not a number",
        "amount is not an amount of money",
        "ordered_on is not a date",
        "customer is missing",
        "currency is unknown",
    } == {one["reason"] for one in bad}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["example", "towpath resume"])
def test_killed_and_resumed_it_loads_what_an_undisturbed_run_loads(
    tmp_path: Path, example, way: str
) -> None:
    module = example("etl")
    source = tmp_path / "orders.csv"
    module.sample(source, rows=600)
    module.build().invoke({"path": str(source)})
    undisturbed = orders(tmp_path)
    (tmp_path / "orders.db").unlink()

    start = [PROGRAM, source, "--batch-rows", 10, "--slow", 0.05, "--thread", "t"]
    start += ["--log", tmp_path / "log"]
    resumed = ["-m", "towpath.cli", "resume", f"{PROGRAM}:graph", "--thread", "t"]
    seed = random.randrange(1 << 32)
    count = random.Random(seed).randint(8, 30)
    stop_after(tmp_path, tmp_path / "log", count, *start)
    assert 0 < len(orders(tmp_path)) < len(undisturbed), f"seed {seed}"
    done = run(tmp_path, *(start if way == "example" else resumed))
    assert 0 == done.returncode, f"seed {seed}: {done.stderr}"
    assert undisturbed == orders(tmp_path), f"seed {seed}"


@pytest.mark.parametrize(
    "words", [["missing.csv"], ["."], ["other.csv", "--batch-rows", "0"]]
)
def test_wrong_words_are_refused_before_anything_runs(
    example, words: list[str]
) -> None:
    Path("other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match="2"):
        example("etl").main(words)
    assert not Path("towpath.db").exists()


def test_a_file_of_another_kind_is_refused_until_it_is_mended(
    example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, path = example("etl"), tmp_path / "in.csv"
    path.write_text("a,b\n1,2\n")
    assert 1 == module.main([str(path)])
    assert "must begin with order_id,customer" in capsys.readouterr().err
    assert not (tmp_path / "orders.db").exists()
    path.write_text(HEADER + "1,Ada,2026-01-31,12.50,EUR\n")
    assert 0 == module.main([str(path)])
    assert 1 == len(orders(tmp_path))


@pytest.mark.slow
def test_the_command_line_runs_it(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(HEADER + "1,Ada,2026-01-31,12.50,EUR\n")
    done = towpath(tmp_path, "run", "etl", "--input", '{"path": "in.csv"}')
    assert 0 == done.returncode, done.stderr
    assert [(1, "Ada", "2026-01-31", 1250, "EUR", 2)] == orders(tmp_path)


def test_whatever_a_row_holds_it_is_loaded_or_aside(example, tmp_path: Path) -> None:
    rows = [
        b'1,"Ada, or ""A"",\nof London",2026-01-31,12.50,EUR',
        b"2,Bob,2026-02-30,1,EUR",
        b"3,\xff\xfe,2026-01-31,1,EUR",
        b"",
        b"4,Cy,2026-01-31,1e-9,EUR",
        b"5,Di,2026-01-31,NaN,EUR",
        b"6,Ed,2026-01-31,1e999999999,EUR",
        b"7,Fy,2026-01-31,1",
        b'8,"never closed,2026-01-31,1,EUR',
        b"\xef\xbc\x99,Gil,2026-01-31,1,EUR",
        b"99999999999999999999,Hal,2026-01-31,1,EUR",
        b"10,  Ida ,2026-01-31,0.07,USD",
        b"11,Joe,1066-10-14,1,EUR",
    ]
    text = b"\xef\xbb\xbf" + HEADER.encode() + b"\n".join(rows)
    report = load(example("etl"), tmp_path, text)
    assert [
        (1, 'Ada, or "A",\nof London', "2026-01-31", 1250, "EUR", 2),
        (10, "Ida", "2026-01-31", 7, "USD", 14),
    ] == orders(tmp_path)
    assert 12 == report["rows"]
    assert 10 == report["rejected"] == len(rejects(Path(report["rejects"])))
    assert 1 == report["reasons"]["not CSV: unexpected end of data"]


def test_of_several_rows_with_one_number_the_last_counts(
    example, tmp_path: Path
) -> None:
    module = example("etl")
    rows = [f"7,Ada,2026-01-31,{n},EUR\n" for n in range(1, 41)]
    for _ in range(3):
        load(module, tmp_path, HEADER + "".join(rows), rows=3)
        assert [(7, "Ada", "2026-01-31", 4000, "EUR", 41)] == orders(tmp_path)
    # A newer file counts more than an older one, whatever its lines are.
    load(module, tmp_path, HEADER + rows[2])
    assert [(7, "Ada", "2026-01-31", 300, "EUR", 2)] == orders(tmp_path)


def test_a_file_without_rows_is_loaded_and_one_that_changes_is_not(
    example, tmp_path: Path
) -> None:
    module = example("etl")
    assert 0 == load(module, tmp_path, HEADER)["rows"]
    path = tmp_path / "in.csv"
    job = module.Job(
        batch=module.Batch(offset=0, line=1, rows=1),
        source=module.plan({"path": str(path)})["source"],
        database="orders.db",
        slow_s=0,
        log=None,
    )
    path.write_text(HEADER + "1,Ada,2026-01-31,1,EUR\n")
    with pytest.raises(ValueError, match="changed meanwhile"):
        module.load(job)


def test_a_database_that_cannot_be_opened_is_left_closed(
    example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several batches open a new one at once; SQLite may tell one that it is locked."""
    path = tmp_path / "orders.db"
    path.write_bytes(b"this is no database, but long enough to be taken for one" * 20)
    opened: list[sqlite3.Connection] = []

    def connect(*args, **options) -> sqlite3.Connection:
        opened.append(real(*args, **options))
        return opened[-1]

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        example("etl").connect(str(path))
    [database] = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")
