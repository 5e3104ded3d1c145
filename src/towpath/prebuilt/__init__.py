"""Nodes and agents that are ready to use, on langchain's messages and tools."""

try:
    import langchain_core
except ModuleNotFoundError as missing:
    raise ImportError(
        "towpath.prebuilt works on langchain's messages and tools: "
        "pip install towpath[langchain]"
    ) from missing

import towpath.integrations.langchain  # tools may return commands then
from towpath.prebuilt.chat_agent_executor import create_react_agent
from towpath.prebuilt.tool_call_transformer import ToolCallTransformer
from towpath.prebuilt.tool_node import (
    InjectedState,
    InjectedStore,
    ToolNode,
    ToolRuntime,
    tools_condition,
)
from towpath.prebuilt.tool_validator import ValidationNode

__all__ = (
    "InjectedState",
    "InjectedStore",
    "ToolCallTransformer",
    "ToolNode",
    "ToolRuntime",
    "ValidationNode",
    "create_react_agent",
    "tools_condition",
)
