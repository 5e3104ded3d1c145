"""Many processes, the same threads: all is applied once, and nobody is locked out."""

from __future__ import annotations

from contextlib import closing

import pytest

from towpath.testing.laws import crooked
from towpath.testing.rows import strays

from .crowd import (
    Plan,
    Worker,
    config_of,
    input_threads,
    notes,
    open_saver,
    question_threads,
    tell,
    token,
)

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "crowd.sqlite")
    return request.getfixturevalue("postgres")


def check(plan, *, every_run_ended):
    """Each input and each answer is there once, in a history without a branch."""
    with closing(open_saver(plan.place)) as saver:
        graph = notes(saver)
        for thread in [*input_threads(plan), *question_threads(plan)]:
            state = graph.get_state(config_of(thread))
            said = [token(Worker(number), thread) for number in range(plan.workers)]
            assert said == sorted(state.values["seen"])
            if every_run_ended:
                assert plan.workers == state.values["count"]
                assert () == state.next
            history = list(saver.list(config_of(thread)))
            assert [] == list(crooked(history[::-1]))
            parents = [saved.parent_config for saved in history]
            assert history[-1].parent_config is None
            assert len(history) == len({str(parent) for parent in parents})
        assert [] == strays(saver)


def test_every_input_and_every_answer_is_applied_once(place):
    """Among readers that leave listings open, and one that moves SQLite's log."""
    plan = Plan(place, readers=2 if place.endswith("sqlite") else 0)
    assert 0 == tell(plan)["killed"]
    check(plan, every_run_ended=True)


def test_every_input_of_a_killed_process_is_applied_at_most_once(place):
    """So its heir, who looks before it says something again, applies it once."""
    plan = Plan(place, inputs=16, questions=4, killed=3)
    assert plan.killed <= tell(plan)["killed"]
    check(plan, every_run_ended=False)


def test_processes_may_open_a_new_database_at_once(tmp_path):
    tell(Plan(str(tmp_path / "new"), workers=6, inputs=10), "open")
