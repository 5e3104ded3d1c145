"""Ask a person for an answer in the form that the question wants.

A question's `response_schema` is JSON schema. What a line can hold is asked for in
a line, and asked again until it fits: yes or no, a number, a choice, a text, a list
with commas. Of an object, each field is asked for in turn. What a schema says beyond
that is left to the node, which judges every answer itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from towpath.cli import words

Schema = Mapping[str, Any]
YES: Final = {"y": True, "yes": True, "true": True, "1": True}
NO: Final = {"n": False, "no": False, "false": False, "0": False}
DEPTH_MAX: Final = 8
OMITTED: Final = object()
"""Nothing was typed where nothing need be."""


def answer_to(question: Any, *, many: bool) -> Any:
    """Ask for the answer to a question."""
    label = f"answer to {question.id}" if many else "answer"
    schema = getattr(question, "response_schema", None)
    if isinstance(schema, Mapping):
        return Form(schema).value(label, schema, 0)
    if known := words.known_answers(question.value):
        label = f"{label} ({known})"
    return words.loose(click.prompt(label, err=True))


class Form:
    """Prompts for a value that a schema describes; `root` holds its definitions."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def value(self, label: str, schema: Schema, depth: int) -> Any:
        """Ask for one value, and for the fields of an object one by one."""
        schema = self.resolved(schema)
        fields = schema.get("properties")
        if isinstance(fields, Mapping) and fields and depth < DEPTH_MAX:
            return self.fields(label, schema, depth)
        return self.line(label, schema, required=True)

    def fields(self, label: str, schema: Schema, depth: int) -> dict[str, Any]:
        """Ask for every field of an object; what is left empty is left out."""
        title = schema.get("description") or schema.get("title")
        click.echo(f"{label}{f': {title}' if title else ''}", err=True)
        needed = schema.get("required", ())
        found = {}
        for name, inner in schema["properties"].items():
            field, path = self.resolved(inner), f"  {name}"
            if name in needed and field.get("properties"):
                found[name] = self.value(path, field, depth + 1)
                continue
            value = self.line(path, field, required=name in needed)
            if value is not OMITTED:
                found[name] = value
        return found

    def line(self, label: str, schema: Schema, *, required: bool) -> Any:
        """Ask for a value that fits into a line, until it fits the schema."""
        if "const" in schema and required:
            return schema["const"]
        hint = hint_of(schema, self.resolved)
        default = None if required else ""
        if "default" in schema:
            default = json.dumps(schema["default"], ensure_ascii=False)
            required = False
        shown = f"{label} ({hint})" if hint else label
        said = schema.get("description") or schema.get("title")
        if said and label != "answer":
            shown = f"{label}: {said}" + (f" ({hint})" if hint else "")

        def read(text: str) -> Any:
            if not text and not required:
                return schema.get("default", OMITTED)
            if not required and "default" in schema and text == default:
                return schema["default"]
            try:
                return self.read(schema, text)
            except ValueError as error:
                raise click.BadParameter(str(error)) from None

        return click.prompt(
            shown,
            default=default,
            show_default=bool(default),
            value_proc=read,
            err=True,
        )

    def read(self, schema: Schema, text: str) -> Any:
        """Turn what was typed into a value.

        Raises:
            ValueError: says what the schema wants instead.
        """
        schema = self.resolved(schema)
        if (choices := choices_of(schema)) is not None:
            return chosen(choices, text)
        faults = []
        for variant in self.variants(schema):
            try:
                return self.read_one(variant, text)
            except ValueError as error:
                faults.append(str(error))
        raise ValueError(", or ".join(dict.fromkeys(faults)))

    def read_one(self, schema: Schema, text: str) -> Any:
        """Read a value of one type."""
        if (choices := choices_of(schema)) is not None:
            return chosen(choices, text)
        kind = schema.get("type")
        if kind == "array" and not text.lstrip().startswith("["):
            inner = schema.get("items")
            inner = inner if isinstance(inner, Mapping) else {}
            parts = [part.strip() for part in text.split(",")] if text.strip() else []
            value: Any = [self.read(inner, part) for part in parts]
        else:
            value = READERS.get(str(kind), words.loose)(text)
        check(schema, value)
        return value

    def variants(self, schema: Schema) -> list[Schema]:
        """List the types a value may have; text comes last, for it takes anything."""
        several: list[Schema] = [
            {**schema, **self.resolved(one)}
            for one in schema.get("anyOf") or schema.get("oneOf") or ()
        ]
        types = schema.get("type")
        if not several and isinstance(types, Sequence) and not isinstance(types, str):
            several = [{**schema, "type": one} for one in types]
        return sorted(several or [schema], key=lambda one: one.get("type") == "string")

    def resolved(self, schema: Any) -> Schema:
        """Follow a reference to the definitions of the schema."""
        found: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(DEPTH_MAX):
            inner = found.get("allOf")
            if isinstance(inner, Sequence) and len(inner) == 1:
                found |= inner[0]
            reference = found.pop("$ref", None)
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            found = {**self.definition(reference), **found}
        return found

    def definition(self, reference: str) -> Schema:
        """Return what a reference into the schema stands for."""
        found: Any = self.root
        for part in reference[2:].split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}


def choices_of(schema: Schema) -> list[Any] | None:
    """Return the values that a schema lists."""
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return list(listed) if isinstance(listed, Sequence) else None


def shown_choice(choice: Any) -> str:
    """Write a choice as it is typed."""
    return choice if isinstance(choice, str) else json.dumps(choice)


def chosen(choices: Sequence[Any], text: str) -> Any:
    """Find the choice that was typed; the beginning of only one will do.

    Raises:
        ValueError: lists the choices.
    """
    shown = {shown_choice(one): one for one in choices}
    word = text.strip()
    near = [one for one in shown if one.lower().startswith(word.lower())]
    if word not in shown and (not word or len(near) != 1):
        raise ValueError(f"one of {', '.join(shown)}")
    return shown[word if word in shown else near[0]]


def read_boolean(text: str) -> bool:
    """Read yes or no."""
    found = {**YES, **NO}.get(text.strip().lower())
    if found is None:
        raise ValueError("yes or no")
    return found


def read_number(make: Callable[[str], Any], wanted: str, text: str) -> Any:
    """Read a number."""
    try:
        return make(text.strip())
    except ValueError:
        raise ValueError(wanted) from None


def read_text(text: str) -> str:
    """Take a text as it stands, or out of JSON's quotes."""
    value = words.loose(text) if text.startswith('"') and text.endswith('"') else text
    return value if isinstance(value, str) else text


def read_null(text: str) -> None:
    """Read nothing."""
    if text.strip().lower() not in ("", "null", "none"):
        raise ValueError("null")


def read_json(kind: type, wanted: str, text: str) -> Any:
    """Read JSON of one type."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{wanted}; this is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise ValueError(wanted)  # noqa: TRY004 - what was typed, not a program
    return value


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "boolean": read_boolean,
    "integer": partial(read_number, int, "a whole number"),
    "number": partial(read_number, float, "a number"),
    "string": read_text,
    "null": read_null,
    "array": partial(read_json, list, "a list"),
    "object": partial(read_json, dict, "an object, as JSON"),
}

LIMITS: Final[Mapping[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    "minimum": ("at least {}", lambda value, limit: value >= limit),
    "maximum": ("at most {}", lambda value, limit: value <= limit),
    "exclusiveMinimum": ("more than {}", lambda value, limit: value > limit),
    "exclusiveMaximum": ("less than {}", lambda value, limit: value < limit),
    "minLength": ("at least {} letters", lambda value, limit: len(value) >= limit),
    "maxLength": ("at most {} letters", lambda value, limit: len(value) <= limit),
    "minItems": ("at least {} items", lambda value, limit: len(value) >= limit),
    "maxItems": ("at most {} items", lambda value, limit: len(value) <= limit),
    "pattern": ("in the form {}", lambda value, form: fits(form, value)),
}


def fits(form: str, value: str) -> bool:
    """Tell whether a text has a form; one that Python cannot read holds for all."""
    try:
        return re.search(form, value) is not None
    except re.error:
        return True


def check(schema: Schema, value: Any) -> None:
    """Refuse a value beyond the limits of its schema.

    Raises:
        ValueError: says which limit.
    """
    for name, (wanted, holds) in LIMITS.items():
        if name not in schema:
            continue
        try:
            is_within = holds(value, schema[name])
        except TypeError:  # a limit for values of another type
            continue
        if not is_within:
            raise ValueError(wanted.format(schema[name]))


def misfit(question: Any, value: Any) -> str | None:
    """Say what a question wants instead of a value; None where the value may do.

    Only choices and limits are looked at: what has another type, the node may convert.
    """
    schema = getattr(question, "response_schema", None)
    if not isinstance(schema, Mapping):
        return None
    schema = Form(schema).resolved(schema)
    choices = choices_of(schema)
    if choices is not None and value not in choices:
        return f"one of {', '.join(map(shown_choice, choices))}"
    try:
        check(schema, value)
    except ValueError as error:
        return str(error)
    return None


def answer_hint(question: Any) -> str:
    """Say what may be answered to a question; nothing where it does not say."""
    schema = getattr(question, "response_schema", None)
    if not isinstance(schema, Mapping):
        return ""
    form = Form(schema)
    return hint_of(form.resolved(schema), form.resolved)


def hint_of(schema: Schema, resolved: Callable[[Any], Schema]) -> str:
    """Say what may be typed."""
    if (choices := choices_of(schema)) is not None:
        return "/".join(map(shown_choice, choices))
    if several := schema.get("anyOf") or schema.get("oneOf"):
        hints = (hint_of(resolved(one), resolved) for one in several)
        return " or ".join(dict.fromkeys(filter(None, hints)))
    kind = schema.get("type")
    if fields := schema.get("properties"):
        named = (
            f"{name}: {hint_of(resolved(one), resolved) or 'anything'}"
            for name, one in fields.items()
        )
        return f"{{{', '.join(named)}}}"
    if kind == "array":
        inner = hint_of(resolved(schema.get("items")), resolved)
        return f"list of {inner}, with commas" if inner else "list, with commas"
    names = {
        "boolean": "y/n",
        "integer": "whole number",
        "number": "number",
        "string": schema.get("format", "text"),
        "null": "null",
        "object": "JSON object",
    }
    limits = [
        wanted.format(schema[k]) for k, (wanted, _) in LIMITS.items() if k in schema
    ]
    return ", ".join([names.get(str(kind), ""), *limits]).strip(", ")
