"""What earlier versions stored is read as it was, and the threads go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.golden import story

from towpath.checkpoint.programs import MIGRATIONS
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.testing.rows import strays

HERE = Path(__file__).parent
FOLDERS = sorted(HERE.glob("tables_*"))


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


def check(saver, expected):
    assert json.loads(expected.read_text("utf-8")) == story.told(saver)
    assert [] == strays(saver)
    logs = story.go_on(saver)
    assert ["told now"] == logs["waits"][-1:]
    assert ["edited", "told late"] == logs["edited"][-2:]
    assert ["told here"] == logs["forked"][-1:]
    assert ["anew", "after", "said 2", "more", "said 4"] == logs["long"]
    # The lasting subgraph was called once before, with one line in and one out.
    assert "leaf of 3" == logs["done"][-1]
    assert [] == strays(saver)


@pytest.mark.slow
def test_a_file_of_sqlite(folder, tmp_path):
    path = tmp_path / "threads.sqlite"
    shutil.copy(folder / "threads.sqlite", path)
    with SqliteSaver(str(path)) as saver:
        check(saver, folder / "sqlite.json")


@pytest.mark.slow
def test_a_dump_of_postgres(folder, postgres):
    import psycopg

    from towpath.checkpoint.postgres import PostgresSaver

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute((folder / "threads.sql").read_bytes())
    with PostgresSaver(postgres) as saver:
        check(saver, folder / "postgres.json")


def test_there_is_one_of_each_version_of_the_tables():
    """If this fails: `make golden`, and check the new folder in."""
    made = {folder.name.split("_")[1] for folder in FOLDERS}
    assert {str(number + 1) for number in range(len(MIGRATIONS))} == made
