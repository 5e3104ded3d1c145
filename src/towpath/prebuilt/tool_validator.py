"""`ValidationNode`: checks the calls of a model without running anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool, create_schema_from_function
from pydantic import BaseModel, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from towpath.errors import nearest
from towpath.prebuilt.errors import ToolInputError

__all__ = ("ValidationNode",)

FormatError = Callable[[BaseException, ToolCall, type[BaseModel]], str]


def _default_format_error(
    error: BaseException, call: ToolCall, schema: type[BaseModel]
) -> str:
    """Tell the model what is wrong, and that it is to answer again."""
    del call, schema
    return f"{error!r}\n\nRespond after fixing all validation errors."


class ValidationNode(Runnable[Any, Any]):
    """Validates the arguments of the calls in the last message.

    A call that is right is answered with its arguments as JSON, one that is
    not with the errors, so that the model can call again. A schema is a
    pydantic model, a tool, or a function.

    Raises:
        ToolInputError: there is no last message of a model, or it calls
            something that has no schema (TP-220).
    """

    def __init__(
        self,
        schemas: Sequence[BaseTool | type[BaseModel] | Callable[..., Any]],
        *,
        format_error: FormatError | None = None,
        name: str = "validation",
        tags: list[str] | None = None,
    ) -> None:
        self.name = name
        self.tags = tags
        self._format_error = format_error or _default_format_error
        self.schemas_by_name = dict(named_schema(schema) for schema in schemas)

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Validate the calls of the last message."""
        del config, kwargs
        bare = isinstance(input, list)
        messages = input if bare else messages_of(input)
        if not messages:
            raise ToolInputError("No message found in input")
        last = messages[-1]
        if not isinstance(last, AIMessage):
            raise ToolInputError("Last message is not an AIMessage")
        answers = [self._answer(call) for call in last.tool_calls]
        return answers if bare else {"messages": answers}

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Async twin of `invoke`: validators are the user's, and may take time."""
        return await run_in_executor(config, self.invoke, input, config, **kwargs)

    def _answer(self, call: ToolCall) -> ToolMessage:
        name = call["name"]
        schema = self.schemas_by_name.get(name)
        if schema is None:
            raise UnknownSchemaError(
                f"a model called `{name}`, which has no schema."
                f"{nearest(name, self.schemas_by_name)}"
            )
        content, invalid = self._validated(schema, call)
        return ToolMessage(
            content,
            name=name,
            tool_call_id=call["id"],
            additional_kwargs={"is_error": True} if invalid else {},
        )

    def _validated(self, schema: Any, call: ToolCall) -> tuple[str, bool]:
        try:
            if issubclass(schema, BaseModelV1):
                return schema.validate(call["args"]).json(), False
            return schema.model_validate(call["args"]).model_dump_json(), False
        except (ValidationError, ValidationErrorV1) as error:
            return self._format_error(error, call, schema), True


class UnknownSchemaError(ToolInputError, KeyError):
    """A model called what no schema was given for."""


def messages_of(given: Any) -> Any:
    if isinstance(given, dict):
        return given.get("messages", [])
    return getattr(given, "messages", [])


def named_schema(schema: Any) -> tuple[str, Any]:
    """A schema with the name that models call it by.

    Raises:
        TypeError: the tool's schema is JSON.
        ValueError: it is nothing that has one.
    """
    if isinstance(schema, BaseTool):
        arguments = schema.args_schema
        if not isinstance(arguments, type):
            raise TypeError(f"tool `{schema.name}` has no pydantic schema")
        return schema.name, arguments
    if isinstance(schema, type) and issubclass(schema, BaseModel | BaseModelV1):
        return schema.__name__, schema
    if callable(schema):
        return schema.__name__, create_schema_from_function("Validation", schema)
    raise ValueError(
        "Unsupported input to ValidationNode. Expected BaseModel, tool or function. "
        f"Got: {type(schema)}."
    )
