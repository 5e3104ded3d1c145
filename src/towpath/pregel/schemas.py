"""What a graph takes and gives, as types, pydantic models and JSON schemas."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from towpath.context import RunnableConfig
from towpath.plan import Plan
from towpath.schema.models import fields_model, json_schema, value_model
from towpath.warnings import LangGraphDeprecatedSinceV10


class SchemaVerbs:
    """The verbs that tell what a graph takes and gives.

    They need pydantic; nothing else does that is not given a pydantic model.
    """

    name: str
    plan_of_graph: Plan

    @property
    def InputType(self) -> Any:  # noqa: N802 - the public name
        """The schema of the input."""
        return self.plan_of_graph.input_schema

    @property
    def OutputType(self) -> Any:  # noqa: N802 - the public name
        """The schema of the output."""
        return self.plan_of_graph.output_schema

    @property
    def input_schema(self) -> Any:
        return self.get_input_schema()

    @property
    def output_schema(self) -> Any:
        return self.get_output_schema()

    def get_input_schema(self, config: Mapping[str, Any] | None = None) -> Any:
        """A pydantic model of the input."""
        del config
        plan, title = self.plan_of_graph, f"{self.name}Input"
        if plan.inlets is None or isinstance(plan.inlets, str):
            return value_model(self.InputType, title)
        types = {key: plan.channels[key].UpdateType for key in plan.inlets}
        return fields_model(title, {key: (of, None) for key, of in types.items()})

    def get_output_schema(self, config: Mapping[str, Any] | None = None) -> Any:
        """A pydantic model of the output; a key that was never written is None."""
        del config
        plan, title = self.plan_of_graph, f"{self.name}Output"
        if isinstance(plan.output_keys, str):
            return value_model(self.OutputType, title)
        channels = {key: plan.channels[key] for key in plan.output_keys}
        fields = {key: (channel.ValueType, None) for key, channel in channels.items()}
        return fields_model(title, fields)

    def get_input_jsonschema(
        self, config: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The JSON schema of the input."""
        del config
        if self.plan_of_graph.inlets is not None:
            return plain(self.get_input_schema())
        return json_schema(self.InputType, f"{self.name}Input")

    def get_output_jsonschema(
        self, config: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The JSON schema of the output."""
        del config
        if self.plan_of_graph.inlets is not None:
            return plain(self.get_output_schema())
        return json_schema(self.OutputType, f"{self.name}Output")

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The JSON schema of the run's context; None if the graph takes none."""
        schema = self.plan_of_graph.context_schema
        return None if schema is None else json_schema(schema, schema.__name__)

    def config_schema(self, *, include: Sequence[str] | None = None) -> Any:
        """A pydantic model of the config. Deprecated."""
        warn("`config_schema`", " for the relevant schema")
        schema = self.plan_of_graph.context_schema
        fields: dict[str, tuple[Any, Any]] = {}
        if schema is not None:
            fields["configurable"] = (schema, None)
        hints = config_hints()
        fields.update((key, (hints[key], None)) for key in include or ())
        return fields_model(f"{self.name}Config", fields)

    def get_config_jsonschema(
        self, *, include: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The JSON schema of the config. Deprecated."""
        warn("`get_config_jsonschema`", "")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
            model = self.config_schema(include=include)
        return plain(model)


def plain(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema()
    return schema


def warn(what: str, purpose: str) -> None:
    warnings.warn(
        f"{what} is deprecated. Use `get_context_jsonschema`{purpose} instead.",
        LangGraphDeprecatedSinceV10,
        stacklevel=3,
    )


def config_hints() -> dict[str, Any]:
    """The types of a config's keys that are plain data."""
    found: dict[str, Any] = {
        "tags": list[str],
        "metadata": dict[str, Any],
        "run_name": str,
        "max_concurrency": int,
        "recursion_limit": int,
        "configurable": dict[str, Any],
    }
    return {key: found.get(key, Any) for key in RunnableConfig.__annotations__}
