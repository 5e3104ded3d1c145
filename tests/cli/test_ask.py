"""Answers typed at a prompt, in the form that a question's schema wants."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from towpath.cli.ask import OMITTED, Form, answer_hint, answer_to, misfit
from towpath.types import Interrupt


def read(schema: dict[str, Any], text: str) -> Any:
    return Form(schema).read(schema, text)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "integer"}, " 12 ", 12),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, '"quoted"', "quoted"),
        ({"type": "null"}, "null", None),
        ({"enum": ["send", "drop"]}, "s", "send"),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": "go"}, "go", "go"),
        ({"type": "array", "items": {"type": "integer"}}, "1, 2", [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "[3]", [3]),
        ({"type": "array"}, "", []),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "7", 7),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "x", "x"),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, "7", 7),
        ({"allOf": [{"type": "boolean"}]}, "y", True),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "5", 5),
        ({}, "[1]", [1]),
        ({}, "plain text", "plain text"),
    ],
)
def test_a_line_becomes_the_value_that_is_wanted(schema, text, value):
    found = read(schema, text)
    assert (value, type(value)) == (found, type(found))


@pytest.mark.parametrize(
    ("schema", "text", "said"),
    [
        ({"type": "boolean"}, "perhaps", "yes or no"),
        ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "number"}, "many", "a number"),
        ({"enum": ["send", "save"]}, "s", "one of send, save"),
        ({"enum": ["send", "drop"]}, "", "one of send, drop"),
        ({"type": "integer", "minimum": 3}, "2", "at least 3"),
        ({"type": "string", "pattern": "^a"}, "b", "in the form"),
        ({"type": "array", "maxItems": 1}, "a, b", "at most 1 items"),
        ({"type": "object"}, "a", "an object, as JSON"),
        ({"type": "object"}, "[]", "an object, as JSON"),
        ({"type": ["integer", "boolean"]}, "x", "a whole number, or yes or no"),
    ],
)
def test_what_does_not_fit_is_told(schema, text, said):
    with pytest.raises(ValueError, match=said):
        read(schema, text)


def asked(question: Interrupt, *typed: str) -> tuple[Any, str]:
    """Answer a question at a prompt."""
    found: list[Any] = []

    @click.command()
    def command() -> None:
        found.append(answer_to(question, many=False))

    result = CliRunner().invoke(command, input="\n".join(typed) + "\n")
    assert 0 == result.exit_code, result.output
    return found[0], result.output


def test_a_question_without_a_schema_takes_json_or_text():
    question = Interrupt("go?")
    assert [1] == asked(question, "[1]")[0]
    assert "later" == asked(question, "later")[0]


def test_a_prompt_says_what_may_be_typed_and_asks_until_it_fits():
    question = Interrupt("how many?", response_schema={"type": "integer", "minimum": 1})
    value, shown = asked(question, "none", "0", "3")
    assert 3 == value
    assert "answer (whole number, at least 1): " in shown
    assert "a whole number" in shown
    assert 3 == shown.count("answer (")


SCHEMA = {
    "type": "object",
    "title": "Review",
    "properties": {
        "approved": {"type": "boolean", "description": "Is it good?"},
        "score": {"type": "integer", "default": 3},
        "remark": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "author": {"$ref": "#/$defs/Person"},
    },
    "required": ["approved", "author"],
    "$defs": {
        "Person": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }
    },
}


def test_the_fields_of_an_object_are_asked_one_by_one():
    value, shown = asked(
        Interrupt("review", response_schema=SCHEMA), "y", "", "", "Ada"
    )
    assert {"approved": True, "score": 3, "author": {"name": "Ada"}} == value
    assert "Is it good? (y/n)" in shown
    assert "[3]" in shown


def test_what_may_be_left_out_is():
    assert (
        OMITTED
        not in asked(Interrupt("?", response_schema=SCHEMA), "n", "5", "fine", "Ada")[
            0
        ].values()
    )


LIST = {"type": "array", "items": {"type": "boolean"}}
FIELDS = (
    "{approved: y/n, score: whole number, remark: text or null, author: {name: text}}"
)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        (None, ""),
        ({"enum": ["send", 1]}, "send/1"),
        (LIST, "list of y/n, with commas"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number or null"),
        (SCHEMA, FIELDS),
    ],
)
def test_a_question_says_what_may_be_answered(schema, hint):
    assert hint == answer_hint(Interrupt("?", response_schema=schema))


def test_of_several_questions_the_prompt_says_which():
    found: list[Any] = []

    @click.command()
    def command() -> None:
        found.append(answer_to(Interrupt("a?", id="abc"), many=True))

    shown = CliRunner().invoke(command, input="1\n").output
    assert "answer to abc: " in shown


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"enum": ["send", 2]}, "later", "one of send, 2"),
        ({"enum": ["send", 2]}, 2, None),
        ({"type": "integer", "minimum": 3}, 2, "at least 3"),
        ({"type": "integer", "minimum": 3}, "2", None),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"const": 1}}}, 2, "one of 1"),
        (None, 2, None),
    ],
)
def test_a_value_is_judged_by_choices_and_limits_alone(schema, value, wanted):
    """What has another type, a node may convert."""
    assert wanted == misfit(Interrupt("?", id="1", response_schema=schema), value)
