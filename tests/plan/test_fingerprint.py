"""Types by name, and whether values fit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NewType,
    Optional,
    Protocol,
    Required,
    TypedDict,
)

import pytest

from towpath.plan.fingerprint import Description, fits, read, type_text

UserId = NewType("UserId", int)


class Reads(Protocol):
    def read(self) -> str: ...


class Movie(TypedDict):
    title: str


@pytest.mark.parametrize(
    ("typ", "expected"),
    [
        (int, "int"),
        (Any, "Any"),
        (None, "None"),
        (list[str], "list[str]"),
        (dict[str, list[int]], "dict[str,list[int]]"),
        (str | None, "None|str"),
        (Optional[str], "None|str"),  # noqa: UP045 - the other spelling
        (Literal["a", 1], "Literal['a',1]"),
        (Annotated[str, "doc"], "str"),
        (Required[int], "int"),
        (Callable[[int, str], None], "Callable[int,str,None]"),
        (ForwardRef("module.Movie"), "Movie"),
        ("Movie", "Movie"),
        (Movie, "Movie"),
        (UserId, "UserId"),
        (Sequence[Movie], "Sequence[Movie]"),
    ],
)
def test_a_type_s_text_is_its_name_wherever_it_lies(typ: Any, expected: str) -> None:
    assert expected == type_text(typ)


@pytest.mark.parametrize(
    ("value", "typ", "expected"),
    [
        (1, int, True),
        ("1", int, False),
        (1, float, True),
        (1.5, complex, True),
        (1.5, int, False),
        (None, None, True),
        (1, None, False),
        (None, str | None, True),
        (1, str | None, False),
        ("a", Literal["a"], True),
        ("b", Literal["a"], False),
        (1, UserId, True),
        ("1", UserId, False),
        ({}, Movie, True),
        ([], Movie, False),
        ([1], list[str], True),
        ((), list[str], False),
        ((), Sequence[str], True),
        ("a", Annotated[str, "doc"], True),
        (1, Annotated[str, "doc"], False),
        (1, Required[str], False),
        (1, Any, True),
        (1, Reads, True),
        (1, "Movie", True),
    ],
)
def test_a_value_fits_by_its_outermost_shape(
    value: Any, typ: Any, expected: bool
) -> None:
    assert expected is fits(value, typ)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", '{"keys": {}}'])
def test_a_text_of_another_form_is_none(text: str | None) -> None:
    assert read(text) is None


def test_a_text_is_read() -> None:
    text = '{"keys":{"a":"LastValue int"},"nodes":["n"],"wires":"0"}'
    assert Description(None, {"a": "LastValue int"}, ["n"]) == read(text)
