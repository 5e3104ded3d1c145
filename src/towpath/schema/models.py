"""Schemas -> pydantic models and JSON schemas, for those who show or check them.

Used by verbs that describe a graph, never by a run; pydantic is imported when
one of them is called.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from towpath.schema.pydantic import is_model


def json_schema(schema: Any, title: str) -> dict[str, Any]:
    """The JSON schema of values in a state, input, output or context schema.

    A class that has a name of its own keeps it; `title` names the others.
    """
    from pydantic import TypeAdapter

    found: dict[str, Any]
    if is_model(schema):
        found = schema.model_json_schema()
    elif dataclasses.is_dataclass(schema):
        found = fields_model(title, dataclass_fields(schema)).model_json_schema()
    elif hasattr(schema, "__total__"):
        found = TypeAdapter(accepted(schema)).json_schema()
    else:
        found = TypeAdapter(bare(schema)).json_schema()
        found |= {"title": title, "default": None}
    return found


def dataclass_fields(schema: Any) -> dict[str, tuple[Any, Any]]:
    """The type and the default of every field."""
    hints = typing.get_type_hints(schema, include_extras=True)
    return {f.name: (hints[f.name], start(f)) for f in dataclasses.fields(schema)}


def start(field: dataclasses.Field[Any]) -> Any:
    """The default of a dataclass field; `...` where there is none."""
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return ...


def value_model(schema: Any, title: str) -> Any:
    """The model of a schema: itself, if it is one, or a model of one value."""
    if is_model(schema):
        return schema
    from pydantic import RootModel

    root: Any = RootModel
    return type(title, (root[accepted(bare(schema))],), {"__module__": __name__})


def fields_model(title: str, fields: Mapping[str, tuple[Any, Any]]) -> Any:
    """A model with these fields, each a type and a default."""
    from pydantic import ConfigDict, create_model

    config = ConfigDict(arbitrary_types_allowed=True)
    given: dict[str, Any] = dict(fields)
    return create_model(title, __config__=config, __module__=__name__, **given)


def bare(schema: Any) -> Any:
    """A schema without what `Annotated` says of it: reducers are not pydantic's."""
    return get_args(schema)[0] if get_origin(schema) is typing.Annotated else schema


def accepted(schema: Any) -> Any:
    """A TypedDict of `typing` as one of `typing_extensions`.

    Before Python 3.12 pydantic takes only those.
    """
    # That of `typing_extensions` is no TypedDict for `typing`.
    if sys.version_info >= (3, 12) or not typing.is_typeddict(schema):
        return schema
    import typing_extensions

    hints = typing.get_type_hints(schema, include_extras=True)
    fields = {
        name: typing_extensions.NotRequired[hint]
        if name in schema.__optional_keys__
        and get_origin(hint) is not typing.NotRequired
        else hint
        for name, hint in hints.items()
    }
    make: Any = typing_extensions.TypedDict
    made = make(schema.__name__, fields)
    made.__doc__, made.__module__ = schema.__doc__, schema.__module__
    return made
