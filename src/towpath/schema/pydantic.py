"""State classes that are pydantic models.

The only module of a run that knows pydantic, and it imports it only when a
schema is a model already, or an answer has to be checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

from towpath.errors import mark_invalid_resume
from towpath.schema.hints import callers_names, unknown_name

__all__ = (
    "answer_schema",
    "check_answer",
    "field_validator",
    "is_model",
    "model_default",
    "model_hints",
    "model_maker",
    "partial_maker",
)


def is_model(cls: Any) -> bool:
    """Tell whether a class is a pydantic model, without importing pydantic."""
    module = sys.modules.get("pydantic.main")
    return (
        module is not None
        and isinstance(cls, type)
        and issubclass(cls, module.BaseModel)
    )


def model_hints(model: Any) -> dict[str, Any]:
    """Return the type of every field, with its metadata as `Annotated`.

    pydantic takes `Annotated` apart and resolves the type variables of a
    generic model; this puts the parts together again.

    Raises:
        InvalidGraphError: a name in an annotation cannot be found (TP-101).
    """
    if not model.__pydantic_complete__:
        _complete(model)
    return {
        name: Annotated[field.annotation, *field.metadata]
        if field.metadata
        else field.annotation
        for name, field in model.model_fields.items()
    }


def _complete(model: Any) -> None:
    """Resolve what the model could not when its class was made."""
    try:
        if model.model_rebuild(raise_errors=False):
            return
        model.model_rebuild(_types_namespace=callers_names())
    except NameError as error:
        raise unknown_name(model, error) from error


def model_default(model: Any, name: str) -> Callable[[], Any] | None:
    """Return what makes a field's default; None if it has none of its own."""
    field = model.model_fields[name]
    if field.is_required() or field.default_factory_takes_validated_data:
        return None
    return lambda: field.get_default(call_default_factory=True)


def model_maker(model: Any) -> Callable[[dict[str, Any]], Any]:
    """Return what makes an instance of values by field name.

    Raises:
        pydantic.ValidationError: when called with values that do not fit.
    """
    validate = model.model_validate
    if any(field.validation_alias for field in model.model_fields.values()):
        return lambda values: validate(values, by_alias=True, by_name=True)
    make: Callable[[dict[str, Any]], Any] = validate
    return make


def partial_maker(model: Any) -> Callable[[dict[str, Any]], Any]:
    """Return what makes an instance of the values that are there.

    A required field that nobody wrote yet is absent from the instance; those
    that are there are validated, one by one.

    Raises:
        pydantic.ValidationError: when called with values that do not fit.
    """
    make, validate = model_maker(model), field_validator(model)

    def partial(values: dict[str, Any]) -> Any:
        try:
            return make(values)
        except ValueError as error:
            if validate is None or not _only_missing(error, values):
                raise
        fields = {key: validate(key, value) for key, value in values.items()}
        return model.model_construct(set(fields), **fields)

    return partial


def _only_missing(error: Any, values: dict[str, Any]) -> bool:
    """Tell whether nothing is wrong but that keys of the state are not there."""
    problems = error.errors(include_url=False) if hasattr(error, "errors") else []
    return bool(problems) and all(
        p["type"] == "missing" and len(p["loc"]) == 1 and p["loc"][0] not in values
        for p in problems
    )


def field_validator(model: Any) -> Callable[[str, Any], Any] | None:
    """Return what validates a value by the rules of one field of a model.

    The validators of the field run, those of the whole model do not: a state
    is written key by key, and it is whole only when a node reads it.
    """
    found = _fields_schema(model.__pydantic_core_schema__)
    if found is None:
        return None
    from pydantic_core import SchemaValidator

    check = SchemaValidator(*found).validate_assignment

    def validate(name: str, value: Any) -> Any:
        try:
            fields: Any = check({}, name, value)  # a tuple: values, extras, names
        except KeyError:
            # A validator that looks at other fields judges only a whole state.
            return value
        return fields[0][name]

    return validate


def _fields_schema(schema: Any) -> tuple[Any, Any] | None:
    """Find the part of a model's core schema that describes its fields."""
    definitions = schema.get("definitions", ())
    by_ref = {definition["ref"]: definition for definition in definitions}
    inner: Any = schema
    config: dict[str, Any] = {}
    while inner["type"] != "model-fields":
        config = inner.get("config", config)
        ref = inner.get("schema_ref") if inner["type"] == "definition-ref" else None
        inner = inner.get("schema") if ref is None else by_ref.get(ref)
        if inner is None:
            return None
    # A frozen field may not be assigned, but it may be written.
    fields = {
        name: {**field, "frozen": False} for name, field in inner["fields"].items()
    }
    inner = {**inner, "fields": fields}
    if definitions:
        inner = {"type": "definitions", "schema": inner, "definitions": definitions}
    return inner, {**config, "frozen": False}


# -- answers ------------------------------------------------------------------


def answer_schema(schema: Any) -> Any:
    """Return the JSON schema of an answer, for the question to carry.

    A schema that is JSON already, or that pydantic cannot describe, stays.
    """
    adapter = _adapter(schema)
    return schema if adapter is None else adapter.json_schema()


def check_answer(schema: Any, value: Any) -> Any:
    """Return an answer in the form that `response_schema` asks for.

    Raises:
        pydantic.ValidationError: it does not fit; `is_invalid_resume` is true.
    """
    adapter = _adapter(schema)
    if adapter is None:
        return value
    try:
        return adapter.validate_python(value)
    except ValueError as error:
        mark_invalid_resume(error)
        raise


def _adapter(schema: Any) -> Any:
    if schema is None or isinstance(schema, dict):
        return None
    try:
        from pydantic import PydanticUserError, TypeAdapter
    except ImportError:  # without pydantic an answer is taken as it is
        return None
    try:
        return TypeAdapter(schema)
    except PydanticUserError:  # a TypedDict of `typing`, before Python 3.12
        return None
