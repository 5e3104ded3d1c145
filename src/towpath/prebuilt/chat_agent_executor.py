"""`create_react_agent`: a model that calls tools until it has its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from langchain_core.language_models import LanguageModelInput, LanguageModelLike
from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableLike
from langchain_core.tools import BaseTool

from towpath.errors import InvalidGraphError
from towpath.graph.state import CompiledStateGraph, renamed
from towpath.prebuilt.agent_graph import Parts, Wiring, schema_of
from towpath.prebuilt.agent_model import Chooser, _should_bind_tools
from towpath.prebuilt.agent_state import (
    AgentState,
    AgentStatePydantic,
    AgentStateWithStructuredResponse,
    AgentStateWithStructuredResponsePydantic,
    StructuredResponse,
    StructuredResponseSchema,
)
from towpath.prebuilt.tool_node import ToolNode
from towpath.store.base import BaseStore
from towpath.types import Checkpointer

__all__ = (
    "AgentState",
    "AgentStatePydantic",
    "AgentStateWithStructuredResponse",
    "AgentStateWithStructuredResponsePydantic",
    "Prompt",
    "StateSchemaType",
    "StructuredResponse",
    "StructuredResponseSchema",
    "_should_bind_tools",
    "create_react_agent",
    "create_tool_calling_executor",
)

StateSchema = TypeVar("StateSchema", bound=AgentState | AgentStatePydantic)
StateSchemaType: TypeAlias = type[StateSchema]
Prompt: TypeAlias = (
    SystemMessage
    | str
    | Callable[[StateSchema], LanguageModelInput]
    | Runnable[StateSchema, LanguageModelInput]
)


def create_react_agent(
    model: str | LanguageModelLike | Chooser,
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]] | ToolNode,
    *,
    prompt: Prompt[Any] | None = None,
    response_format: StructuredResponseSchema
    | tuple[str, StructuredResponseSchema]
    | None = None,
    pre_model_hook: RunnableLike[Any, Any] | None = None,
    post_model_hook: RunnableLike[Any, Any] | None = None,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: list[str] | None = None,
    interrupt_after: list[str] | None = None,
    debug: bool = False,
    version: Literal["v1", "v2"] = "v2",
    name: str | None = None,
    **deprecated_kwargs: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make an agent: the model speaks, its tool calls are run, it speaks again.

    `model` is a chat model, "provider:model" (made by langchain), or a function
    `(state, runtime) -> model`, which binds the tools itself. Of `tools`, dicts
    are the provider's own and only shown to the model. `prompt` is a system
    message, or makes the model's input from the state. With `response_format`
    (a schema, or a prompt and a schema) one more call of the model puts the
    last answer into `structured_response`.

    `pre_model_hook` runs before every turn and may return
    `llm_input_messages`, which the model gets in place of `messages`;
    `post_model_hook` runs after it and may answer calls itself.

    `version="v2"` makes each call a task of its own, `"v1"` runs those of one
    message in one node.

    Raises:
        InvalidGraphError: something of this fits badly together (TP-101).
    """
    former = {"config_schema": "context_schema"}
    given = renamed("create_react_agent", deprecated_kwargs, former)
    if version not in ("v1", "v2"):
        raise InvalidGraphError(
            f"there is no version {version} of agents", hint="'v1' or 'v2'"
        )
    context = given.get("context_schema", context_schema)
    schema = schema_of(state_schema, structured=response_format is not None)
    parts = Parts(model, tools, prompt, name)
    wiring = Wiring(parts, schema, context, each=version == "v2")
    wiring.add_nodes(pre_model_hook, post_model_hook, response_format)
    wiring.add_edges()
    return wiring.builder.compile(
        checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        name=name,
    )


create_tool_calling_executor = create_react_agent
