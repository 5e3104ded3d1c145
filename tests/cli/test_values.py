"""What options mean, and how values are shown."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum

import pytest

from towpath.cli.outcome import explain
from towpath.cli.plain import outline, to_json, to_plain
from towpath.cli.problem import Problem, nearest
from towpath.cli.storage import without_password
from towpath.cli.tally import Row, Tally, path
from towpath.cli.words import read_answers, read_config


class Question:
    def __init__(self, id: str) -> None:
        self.id = id


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: object


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, "red"),
        (Point(1, (2, {3})), {"x": 1, "y": [2, [3]]}),
        (Pair(1, None), {"left": 1, "right": None}),
        ({1: b"x"}, {"1": "b'x'"}),
        (float("nan"), "nan"),
        (ValueError("no"), "ValueError: no"),
        (Point, repr(Point)),
    ],
)
def test_any_value_can_be_shown(value, plain):
    assert plain == to_plain(value)


def test_text_that_cannot_be_encoded_is_escaped():
    assert '"\\udcff"' == to_json("\udcff")
    assert '"é"' == to_json("é")


def test_a_value_that_holds_itself_is_cut_off():
    knot: list[object] = []
    knot.append(knot)
    assert "..." in to_json(knot)


def test_config_merges_objects_and_pairs():
    words = ['{"tags": ["a"], "configurable": {"x": 1}}', "y=2", "z=text"]
    config = read_config(words, "t")
    expected = {"x": 1, "y": 2, "z": "text", "thread_id": "t"}
    assert {"tags": ["a"], "configurable": expected} == config


@pytest.mark.parametrize("word", ["a=b=c", "=1", '{"configurable": 3}', "{", "@none"])
def test_wrong_config_is_refused(word):
    if word == "a=b=c":
        assert "b=c" == read_config([word], "t")["configurable"]["a"]
        return
    with pytest.raises(Problem):
        read_config([word], "t")


@pytest.mark.parametrize("answer", ['"a=b"', '{"k": "v=w"}', "null", "[1]"])
def test_a_bare_answer_belongs_to_the_only_question(answer):
    assert {"abc": json.loads(answer)} == read_answers([answer], [Question("abc")])


def test_an_answer_is_bound_by_the_beginning_of_an_id():
    questions = [Question("abc"), Question("abd")]
    answers = read_answers(["abc=1", 'abd="x=y"'], questions)
    assert {"abc": 1, "abd": "x=y"} == answers


@pytest.mark.parametrize(
    "words", [["ab=1"], ["zz=1"], ["abc=1", "abc=2"], ["abc=x"], ["1"]]
)
def test_wrong_answers_are_refused(words):
    with pytest.raises(Problem):
        read_answers(words, [Question("abc"), Question("abd")])


def test_nearest_names_close_ones_or_all():
    assert "did you mean 'straight'?" == nearest("strait", ["straight", "other"])
    assert "there are 'a', 'b'" == nearest("zzz", ["b", "a"])
    assert nearest("x", []) is None


def test_an_error_is_explained_with_its_notes():
    error = ValueError("no")
    error.add_note("a note")
    error.add_note("During task with name 'a' and id '0-1' (step 3)")
    error.add_note("During task with name '__start__' and id '0-1' (step 0)")
    assert ["ValueError: no", "a note", "in node `a`, step 3"] == explain(error)


def test_a_task_that_starts_while_none_runs_opens_a_step():
    tally = Tally(0)
    a, b, c = ({"id": name, "name": "n"} for name in "abc")
    assert [True, False] == [tally.start((), a), tally.start((), b)]
    tally.start(("n:1",), {"id": "x", "name": "inner"})
    tally.finish((), a)
    tally.finish((), {**b, "error": "E"})
    assert (2, 1, 1) == (
        tally.rows["n"].total,
        tally.rows["n"].done,
        tally.rows["n"].failed,
    )
    assert "n/inner" in tally.rows
    assert tally.start((), c)
    assert (2, ["n"]) == (tally.step, list(tally.rows))


def test_a_resumed_step_counts_what_had_ended():
    a, b, c = ({"id": name, "name": "n"} for name in "abc")
    tally = Tally(0, {"a": True, "b": False})
    assert [True, False] == [tally.start((), a), tally.start((), b)]
    assert (2, 1) == (tally.rows["n"].total, tally.rows["n"].ended)
    tally.finish((), b)
    assert 2 == tally.rows["n"].ended
    assert tally.start((), c)
    assert (2, 1) == (tally.step, tally.rows["n"].total)


def test_a_row_tells_what_did_not_end_well():
    assert "n x3 asks" == str(Row("n", total=3, done=1, waiting=2))
    assert "n failed" == str(Row("n", total=1, failed=1))


def test_an_outline_has_a_line_for_each_key():
    text = outline({"path": "x", "many": list(range(100))}, 30)
    assert ['path: "x"', "many: [0, 1, 2, 3, 4, 5,  ..."] == text.splitlines()


def test_names_in_subgraphs_leave_out_ids():
    assert "a/b/c" == path(("a:1", "b:2"), "c")


@pytest.mark.parametrize(
    ("db", "shown"),
    [
        ("threads.db", "threads.db"),
        ("postgresql://ann:secret@host/x", "postgresql://ann@host/x"),
        ("host=h user=ann password=secret dbname=x", "host=h user=ann dbname=x"),
        ("host=h password='a \\' secret' dbname=x", "host=h dbname=x"),
    ],
)
def test_a_password_is_not_shown(db, shown):
    assert shown == without_password(db)
