"""A process that is killed loses nothing that was stored, and leaves nothing.

For every commit of a conversation, the process that holds it is killed right
before the database hears of that commit, and right after the database has it;
another goes on to the end.
"""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import closing

import pytest

from towpath.drive.common import BACKLOG
from towpath.testing.rows import row_counts, strays

from .deadly import (
    WIDTH,
    Diary,
    Errand,
    Server,
    make_graph,
    open_saver,
    outcome,
    saved_tasks,
)

pytestmark = pytest.mark.slow

LATE = {"sync": 0, "async": BACKLOG + 1}
"""How many commits may be under way behind a run."""


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "db.sqlite")
    return request.getfixturevalue("postgres")


class Telling:
    """One conversation, over as many processes as it takes."""

    def __init__(self, server, saver, log, errand) -> None:
        self.server, self.saver, self.log = server, saver, log
        self.errand = {**errand, "log": str(log)}
        self.stored: set[str] = set()

    def go_on(self, **death):
        """Have a process go on; no task runs whose result was stored before."""
        known = len(self.begun())
        ended = self.server.send(Errand(**self.errand, **death))
        assert ended.get("signal") in (None, signal.SIGKILL)
        again = self.stored & {line.split()[2] for line in self.begun()[known:]}
        assert not again, f"ran again though stored: {again}, {death}"
        self.stored |= saved_tasks(self.saver)
        return ended

    def begun(self) -> list[str]:
        lines = self.log.read_text().split("\n") if self.log.exists() else []
        return [line for line in lines if line.startswith("begin")]

    def names(self) -> Counter[str]:
        return Counter(line.split()[1] for line in self.begun())

    def end(self):
        """Return what came of it, and leave not a row."""
        found = outcome(make_graph(Diary(str(self.log)), self.saver))
        assert [] == strays(self.saver)
        self.saver.delete_thread("t")
        assert {0} == set(row_counts(self.saver).values())
        return found


def moments(commits: int, durability: str) -> list[tuple[int, bool]]:
    """When to die: before and after each commit, or in turn, for it takes long."""
    if durability == "sync":
        return [(n, before) for n in range(commits) for before in (True, False)]
    return [(n, n % 2 == 0) for n in range(commits)]


@pytest.mark.parametrize(
    ("durability", "colour"),
    [("sync", "sync"), ("async", "sync"), ("async", "loop"), ("exit", "loop")],
)
def test_a_conversation_survives_a_kill_at_every_commit(
    server, place, tmp_path, durability, colour
):
    errand = {"place": place, "durability": durability, "colour": colour}
    with closing(open_saver(place)) as saver:
        whole = Telling(server, saver, tmp_path / "whole.log", errand)
        commits = whole.go_on()["commits"]
        once, expected = whole.names(), whole.end()
        for number, (at, before) in enumerate(moments(commits, durability)):
            where = f"killed {'before' if before else 'after'} commit {at} of {commits}"
            telling = Telling(server, saver, tmp_path / f"{number}.log", errand)
            telling.go_on(dies_at=at, before=before)
            deaths = 1
            if number % 5 == 0:  # misfortunes never come alone
                telling.go_on(dies_at=number % 4, before=before)
                deaths += 1
            telling.go_on()
            again = telling.names() - once
            assert expected == telling.end(), where
            if durability != "exit":
                # Only what was under way, and its commits, could be lost.
                assert again.total() <= (WIDTH + LATE[durability]) * deaths, where
