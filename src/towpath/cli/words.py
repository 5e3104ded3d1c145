"""Read the values of options: JSON texts, configuration and answers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from towpath.cli.problem import Problem
from towpath.context import RunnableConfig


def read_json(option: str, text: str) -> Any:
    """Read JSON given as it is, as `@file`, or as `-` for standard input."""
    source = text
    if text == "-":
        source = sys.stdin.read()
    elif text.startswith("@"):
        try:
            source = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise Problem(f"{option}: cannot read {text[1:]!r}: {reason}") from error
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        raise Problem(
            f"{option} is not JSON: {error}", hint=json_hint(source)
        ) from None


def json_hint(source: str) -> str:
    """Suggest what was probably meant."""
    word = source.strip()
    if len(word) < 60 and word.isprintable() and word and word[0] not in "{[\"'":
        return f"a text is written '{json.dumps(word)}' in a shell"
    return 'quote it for the shell: --input \'{"key": "value"}\', or use @file'


_AGE = re.compile(r"(\d+)\s*([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_age(option: str, text: str) -> timedelta:
    """Read an age such as `90m`, `12h` or `30d`."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise Problem(
            f"{option}: {text!r} is not an age",
            hint="a number and s, m, h, d or w: 30d is thirty days",
        )
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise Problem(f"{option}: {text!r} is too long") from None


def read_config(
    pairs: Iterable[str], thread: str, base: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Merge `--config` words, JSON objects or `name=value`, into the project's.

    A name that every config may have goes beside `configurable`, others into it.
    """
    config: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    for name, value in (base or {}).items():
        if name == "configurable" and isinstance(value, Mapping):
            configurable |= value
        else:
            (config if is_option(name) else configurable)[name] = value
    for pair in pairs:
        if pair.lstrip().startswith(("{", "@")):
            given = read_json("--config", pair)
            if not isinstance(given, dict):
                raise Problem("--config is not a JSON object")
            inner = given.pop("configurable", {})
            if not isinstance(inner, dict):
                raise Problem('--config: "configurable" is not a JSON object')
            config |= given
            configurable |= inner
        else:
            name, equals, value = pair.partition("=")
            if not equals or not name:
                raise Problem(
                    f"--config {pair!r} is neither name=value nor a JSON object"
                )
            home = config if is_option(name) else configurable
            home[name] = loose(value)
    return {**config, "configurable": {**configurable, "thread_id": thread}}


def is_option(name: str) -> bool:
    """Tell an option of the run from a value for `configurable`."""
    known = RunnableConfig.__annotations__.keys() - {"configurable"}
    if name not in known and (near := get_close_matches(name, known, 1, 0.9)):
        raise Problem(
            f"--config: {name!r} looks like {near[0]!r} misspelt",
            hint=f'if it is none, write \'{{"configurable": {{"{name}": ...}}}}\'',
        )
    return name in known


def loose(text: str) -> Any:
    """Read JSON where it is JSON, and take the text as it stands where it is not."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_answers(words: Sequence[str], questions: Sequence[Any]) -> dict[str, Any]:
    """Read `--answer JSON`, or several `--answer ID=JSON`, for the open questions.

    The beginning of an id will do when it fits one question only.
    """
    ids = [question.id for question in questions]
    if not ids:
        raise Problem("--answer: the thread asks nothing", hint="resume without it")
    answers: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        fitting = [known for known in ids if name and known.startswith(name)]
        if not equals or not name.isalnum() or (not fitting and looks_like_json(word)):
            key, text = only_question(ids), word
        elif len(fitting) == 1:
            key = fitting[0]
        else:
            raise Problem(
                f"--answer: {name!r} is the id of {len(fitting)} open questions",
                hint=f"open are {', '.join(ids)}",
            )
        if key in answers:
            raise Problem(f"--answer: two answers to the question {key}")
        answers[key] = read_json("--answer", text)
    return answers


def looks_like_json(word: str) -> bool:
    """Tell JSON from `ID=JSON`."""
    try:
        json.loads(word)
    except ValueError:
        return False
    return True


def known_answers(question: object) -> str | None:
    """Return what a question says can be answered to it."""
    known = question.get("answers") if isinstance(question, Mapping) else None
    return known if isinstance(known, str) else None


def only_question(ids: Sequence[str]) -> str:
    """Return the id that a bare answer means."""
    if len(ids) != 1:
        raise Problem(
            f"a bare --answer with {len(ids)} open questions is ambiguous",
            hint=f"answer each as --answer ID=JSON; open are {', '.join(ids)}",
        )
    return ids[0]
