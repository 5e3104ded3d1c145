"""Threads, differences, forks and replays: what is kept, and what may be changed."""

from __future__ import annotations

import json

import pytest

from towpath.cli.difference import Change, differences


def lines(result) -> list[dict]:
    assert 0 == result.exit_code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def asked(towpath):
    """A thread that ran `add` and waits for an answer."""
    assert 3 == towpath.run("asking", {"count": 1}, "t").exit_code
    return towpath


def test_threads_tell_status_age_size_and_what_they_wait_for(asked):
    asked.run("straight", {"count": 1}, "u")
    asked.run("straight", {"count": 13}, "v")
    found = {one["id"]: one for one in lines(asked("threads", "--json"))}
    assert {"t": "waiting", "u": "done", "v": "failed"} == {
        name: one["status"] for name, one in found.items()
    }
    assert {"t": ["go?"], "u": [], "v": ["add"]} == {
        name: one["waiting_for"] for name, one in found.items()
    }
    assert all(one["bytes"] > 0 for one in found.values())
    head, *rows = asked("threads").stdout.splitlines()
    assert ["thread", "status", "age", "size"] == head.split("\t")[:4]
    assert any(row.startswith("t\twaiting\t") and row.endswith("go?") for row in rows)


def test_threads_of_one_status_are_listed(asked):
    asked.run("straight", {"count": 1}, "u")
    assert ["t"] == [
        one["id"] for one in lines(asked("threads", "--status", "waiting", "--json"))
    ]


# -- diff ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing"),
        pytest.param({}, {"a": 1}, [Change("a", "added", new=1)], id="added"),
        pytest.param({"a": 1}, {}, [Change("a", "removed", old=1)], id="removed"),
        pytest.param(
            {"a": 1}, {"a": True}, [Change("a", "changed", 1, True)], id="type"
        ),
        pytest.param(
            {"a": [1]}, {"a": [1, 2]}, [Change("a", "grew", new=[2], at=1)], id="grew"
        ),
        pytest.param(
            {"a": [1, 2, 3]},
            {"a": [1, 9, 3]},
            [Change("a", "spliced", [2], [9], at=1)],
            id="inside",
        ),
        pytest.param(
            {"a": [1, 1]},
            {"a": [1]},
            [Change("a", "spliced", [1], [], at=1)],
            id="shrunk",
        ),
        pytest.param(
            {"a": [2]},
            {"a": [1, 2]},
            [Change("a", "spliced", [], [1], at=0)],
            id="front",
        ),
        pytest.param(
            {"a": {"b": 1, "c": 2}},
            {"a": {"b": 3, "c": 2}},
            [Change("a.b", "changed", 1, 3)],
            id="deep",
        ),
        pytest.param(
            {"a": "to"},
            {"a": "towpath"},
            [Change("a", "grew", new="wpath", at=2)],
            id="text",
        ),
    ],
)
def test_differences_tell_the_part_that_changed(old, new, changes):
    assert changes == differences(old, new)


def test_diff_shows_what_changed_by_key(asked):
    shown = asked("diff", "--thread", "t", "0", "1")
    assert 0 == shown.exit_code, shown.output
    assert ["~ count: 1 -> 2", '+ seen: ["add"]'] == sorted(
        shown.stdout.splitlines()[2:], reverse=True
    )


def test_diff_goes_to_the_newest_checkpoint_by_default(asked):
    asked.resume("asking", "t", "--answer", '"yes"')
    (told,) = lines(asked("diff", "--thread", "t", "1", "--json"))
    assert [{"key": "seen", "kind": "grew", "new": ["yes"], "at": 1}] == told["changes"]
    assert (1, 2) == (told["a"]["step"], told["b"]["step"])


def test_a_checkpoint_is_named_by_a_part_of_its_id(asked):
    newest, before, *_ = lines(asked("history", "--thread", "t", "--json"))
    words = [before["checkpoint"], newest["checkpoint"]]
    whole = asked("diff", "--thread", "t", *words)
    unique = next(
        newest["checkpoint"][:n]
        for n in range(1, 40)
        if not before["checkpoint"].startswith(newest["checkpoint"][:n]) and n > 15
    )
    assert whole.stdout == asked("diff", "--thread", "t", words[0], unique).stdout


@pytest.mark.parametrize(
    ("word", "said"), [("99", "has no checkpoint '99'"), ("1", "part of the ids")]
)
def test_a_checkpoint_that_is_not_clear_is_refused(asked, word, said):
    words = [word] if word == "99" else ["1f"]
    refused = asked("diff", "--thread", "t", *words)
    assert 2 == refused.exit_code
    assert said in refused.stderr


# -- fork and replay ----------------------------------------------------------


def test_fork_sets_keys_on_a_branch_and_resume_goes_on_with_it(asked, last):
    forked = asked.fork("asking", "t", "--at", "1", "--set", 'seen=["mine"]')
    assert 0 == forked.exit_code, forked.output
    assert "next runs ask" in forked.stderr
    newest = lines(asked("history", "--thread", "t", "--json"))[0]
    assert forked.stdout.strip() == newest["checkpoint"]
    assert 3 == asked.resume("asking", "t").exit_code, "asked once more, on the branch"
    done = asked.resume("asking", "t", "--answer", "1", "--json")
    assert ["mine", 1] == last(done)["values"]["seen"]


def test_fork_says_so_where_other_nodes_run_next_than_before(towpath):
    towpath.run("routing", {"count": 1}, "t")
    forked = towpath.fork("routing", "t", "--at", "1", "--set", "count=2")
    assert "next runs even: " in forked.stderr
    assert "before, odd was next" in forked.stderr
    assert "--as-node" in forked.stderr
    same = towpath.fork("routing", "t", "--at", "1", "--set", "seen=[]")
    assert "before" not in same.stderr


def test_fork_after_sent_tasks_has_to_name_a_node(towpath):
    towpath.run("joining", {}, "t")
    refused = towpath.fork("joining", "t", "--at", "1", "--set", "count=1")
    assert 2 == refused.exit_code, refused.output
    assert "sent ran last" in refused.stderr
    assert "--as-node says after which node" in refused.stderr
    given = ["--at", "1", "--set", "count=1", "--as-node", "part"]
    assert "next runs left, right" in towpath.fork("joining", "t", *given).stderr


def test_fork_adds_through_the_reducer(asked):
    (told,) = lines(asked.fork("asking", "t", "--add", 'seen=["more"]', "--json"))
    assert ["ask"] == told["next"]
    state = json.loads(asked("state", "--thread", "t", "--json").stdout)
    assert ["add", "more"] == state["values"]["seen"]


def test_fork_acts_as_a_node(asked, last):
    given = ["--set", "seen=[]", "--as-node", "ask", "--json"]
    assert [] == last(asked.fork("asking", "t", *given))["next"]
    state = json.loads(asked("state", "--thread", "t", "--json").stdout)
    assert ([], []) == (state["values"]["seen"], state["next"])


def test_fork_without_changes_copies_the_checkpoint(asked, last):
    (told,) = lines(asked.fork("asking", "t", "--at", "0", "--json"))
    assert ["add"] == told["next"]
    done = asked.resume("asking", "t", "--json")
    assert "waiting" == last(done)["status"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "cuont=1"], "did you mean 'count'"),
        (["--set", "count"], "is not KEY=JSON"),
        (["--set", "count=one"], "is not JSON"),
        (["--set", "count=1", "--add", "count=2"], "given twice"),
        (["--as-node", "asq"], "did you mean 'ask'"),
        (["--at", "77"], "has no checkpoint '77'"),
    ],
)
def test_fork_refuses_what_it_cannot_do_and_changes_nothing(asked, words, said):
    before = asked("history", "--thread", "t").stdout
    refused = asked.fork("asking", "t", *words)
    assert 2 == refused.exit_code, refused.output
    assert said in refused.stderr
    assert before == asked("history", "--thread", "t").stdout


def test_replay_runs_again_on_a_branch(towpath, last):
    towpath.run("straight", {"count": 1}, "t")
    done = towpath.replay("straight", "t", "--at", "0", "--json")
    assert 0 == done.exit_code, done.output
    assert ["add", "later"] == last(done)["values"]["seen"]
    history = lines(towpath("history", "--thread", "t", "--json"))
    assert [3, 2] == [one["step"] for one in history[:2]]
    assert 7 == len(history), "the first run's four, a fork, and two steps"


def test_replay_of_a_question_waits_for_an_answer(asked):
    asked.resume("asking", "t", "--answer", '"yes"')
    again = asked.replay("asking", "t", "--at", "1")
    assert 3 == again.exit_code
    assert "? go?" in again.stdout


def test_replay_from_an_end_is_refused(towpath):
    towpath.run("straight", {"count": 1}, "t")
    refused = towpath.replay("straight", "t", "--at", "2")
    assert 2 == refused.exit_code
    assert "nothing runs after" in refused.stderr


def test_another_answer_may_follow_one_that_was_refused(towpath, last):
    pytest.importorskip("pydantic")
    towpath.run("strict", {}, "t")
    refused = towpath.resume("strict", "t", "--answer", "3")
    assert 1 == refused.exit_code
    assert "bad luck" in refused.stderr
    assert "give another with" in refused.stderr
    done = towpath.resume("strict", "t", "--answer", "4", "--json")
    assert ("done", [4]) == (last(done)["status"], last(done)["values"]["seen"])
