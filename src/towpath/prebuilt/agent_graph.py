"""How the parts of an agent hang together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NotRequired, get_type_hints

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from pydantic import BaseModel, create_model
from typing_extensions import TypedDict

from towpath.checkpoint.serde.registry import register_schema
from towpath.constants import END
from towpath.errors import InvalidGraphError
from towpath.graph.state import StateGraph
from towpath.prebuilt.agent_model import Chosen, ModelNode, StructureNode
from towpath.prebuilt.agent_state import AgentState, AgentStateWithStructuredResponse
from towpath.prebuilt.injection import field_of
from towpath.prebuilt.tool_node import ToolNode
from towpath.types import Send


def schema_of(given: Any, *, structured: bool) -> Any:
    """The class of an agent's state.

    Raises:
        InvalidGraphError: it lacks what every agent reads or writes (TP-101).
    """
    own = AgentStateWithStructuredResponse if structured else AgentState
    schema = given or own
    required = {"messages", "remaining_steps"}
    if structured:
        required.add("structured_response")
    missing = required - set(get_type_hints(schema))
    if missing:
        raise InvalidGraphError(
            f"Missing required key(s) {sorted(missing)} in state_schema",
            hint=f"inherit from {own.__name__}",
        )
    return schema


class Parts:
    """What an agent is made of: the model's side, and the tools'."""

    def __init__(self, model: Any, tools: Any, prompt: Any, name: str | None) -> None:
        if isinstance(tools, ToolNode):
            self.tool_node = tools
            builtin: list[Any] = []
        else:
            builtin = [tool for tool in tools if isinstance(tool, dict)]
            self.tool_node = ToolNode([t for t in tools if not isinstance(t, dict)])
        own = list(self.tool_node.tools_by_name.values())
        self.returning = frozenset(tool.name for tool in own if tool.return_direct)
        self.has_tools = bool(own)
        self.chosen = Chosen.of(model, prompt, [*own, *builtin])
        self.name = name


class Wiring:
    """Puts the parts of an agent into a graph.

    `each` sends every call to the tool node by itself.
    """

    def __init__(
        self, parts: Parts, schema: Any, context_schema: Any, *, each: bool
    ) -> None:
        self.parts = parts
        self.schema = schema
        self.each = each
        self.entry = "agent"
        self.hooked = False
        self.structured = False
        self.builder: StateGraph[Any, Any, Any, Any] = StateGraph(
            schema, context_schema=context_schema
        )

    def add_nodes(self, before: Any, after: Any, response_format: Any) -> None:
        parts, builder = self.parts, self.builder
        spoken = ModelNode(parts.chosen, parts.name)
        given = self.schema if before is None else with_model_input(self.schema)
        builder.add_node("agent", spoken, input_schema=given)
        if parts.has_tools:
            builder.add_node("tools", parts.tool_node)
        if before is not None:
            builder.add_node("pre_model_hook", before)
            builder.add_edge("pre_model_hook", "agent")
            self.entry = "pre_model_hook"
        if after is not None:
            builder.add_node("post_model_hook", after)
            self.hooked = True
        if response_format is not None:
            structure = StructureNode(parts.chosen, response_format)
            register_schema(structure.schema)
            builder.add_node("generate_structured_response", structure)
            self.structured = True

    def add_edges(self) -> None:
        builder, parts = self.builder, self.parts
        builder.set_entry_point(self.entry)
        speaker = "agent"
        if self.hooked:
            builder.add_edge("agent", "post_model_hook")
            speaker = "post_model_hook"
        last = "generate_structured_response" if self.structured else END
        if self.structured:
            builder.add_edge(last, END)
        if not parts.has_tools:
            builder.add_edge(speaker, last)
            return
        ends = ["tools", last, *([self.entry] if self.hooked else [])]
        builder.add_conditional_edges(speaker, self.router(last), ends)
        if parts.returning:
            builder.add_conditional_edges("tools", self.after_tools, [self.entry, END])
        else:
            builder.add_edge("tools", self.entry)

    def router(self, last: str) -> Callable[[Any], Any]:
        def after_model(state: Any) -> Any:
            """Lead to the tools that are called, else on."""
            messages = field_of(state, "messages")
            pending = pending_calls(messages)
            if not pending:
                hook_answered = self.hooked and isinstance(messages[-1], ToolMessage)
                return self.entry if hook_answered else last
            if not (self.each or self.hooked):
                return "tools"
            # Without the state, which the node reads: stored with every call, it
            # would make a long conversation's storage grow with its square.
            several = [[call] for call in pending] if self.each else [pending]
            return [Send("tools", calls) for calls in several]

        return after_model

    def after_tools(self, state: Any) -> str:
        """End the run when a tool's result is the answer."""
        for message in reversed(field_of(state, "messages")):
            if isinstance(message, AIMessage):
                called = {call["name"] for call in message.tool_calls}
                return self.entry if called.isdisjoint(self.parts.returning) else END
        return self.entry


def pending_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the model's last message that nothing answers yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [c for c in message.tool_calls if c["id"] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []


def with_model_input(schema: Any) -> Any:
    """The state with the messages that a hook means for the model alone."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return create_model(
            "CallModelInputSchema",
            llm_input_messages=(list[AnyMessage] | None, None),
            __base__=schema,
        )
    return TypedDict(  # type: ignore[operator] # made at run time
        "CallModelInputSchema",
        {
            **get_type_hints(schema, include_extras=True),
            "llm_input_messages": NotRequired[list[AnyMessage]],
        },
    )
