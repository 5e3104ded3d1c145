"""Every public name of the peer's is there, with its parameters."""

import inspect
from importlib import import_module

import pytest

NAMES = {
    "prebuilt": (
        "create_react_agent ToolNode tools_condition ValidationNode InjectedState "
        "InjectedStore ToolRuntime ToolCallTransformer"
    ),
    "prebuilt.chat_agent_executor": (
        "create_react_agent create_tool_calling_executor AgentState AgentStatePydantic "
        "AgentStateWithStructuredResponse AgentStateWithStructuredResponsePydantic "
        "_should_bind_tools Prompt StateSchema StateSchemaType StructuredResponse "
        "StructuredResponseSchema ToolNode"
    ),
    "prebuilt.interrupt": (
        "HumanInterruptConfig ActionRequest HumanInterrupt HumanResponse"
    ),
    "prebuilt.tool_node": (
        "TOOL_MESSAGE_BLOCK_TYPES INVALID_TOOL_NAME_ERROR_TEMPLATE "
        "TOOL_CALL_ERROR_TEMPLATE TOOL_EXECUTION_ERROR_TEMPLATE "
        "TOOL_INVOCATION_ERROR_TEMPLATE ToolCallRequest ToolCallWithContext "
        "ToolCallWrapper AsyncToolCallWrapper msg_content_output ToolInvocationError "
        "ToolNode tools_condition ToolRuntime InjectedState InjectedStore"
    ),
    "prebuilt.tool_validator": "ValidationNode",
}
EVERY = [(home, name) for home, names in NAMES.items() for name in names.split()]


def parameters(value):
    """The parameters of a function or constructor: name, kind, and constant default."""
    if not callable(value) or not hasattr(value, "__module__"):
        return value if isinstance(value, str | tuple) else None
    if getattr(value, "__total__", None) is not None:
        return sorted(value.__annotations__)
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return None
    function = value.__init__ if inspect.isclass(value) else value
    found = inspect.signature(function).parameters.values()
    constant = (bool, str, int, type(None), inspect.Parameter.empty)
    return [
        (p.name, p.kind, p.default if isinstance(p.default, constant) else "...")
        for p in found
    ]


@pytest.mark.differential
@pytest.mark.parametrize(("home", "name"), EVERY)
def test_a_public_name_takes_what_the_peers_takes(home, name):
    ours = getattr(import_module(f"towpath.{home}"), name)
    theirs = getattr(import_module(f"langgraph.{home}"), name)

    assert parameters(theirs) == parameters(ours)


def test_the_package_does_not_come_with_the_rest(printed_apart):
    program = (
        "import sys, towpath, towpath.graph, towpath.pregel.main\n"
        "print('towpath.prebuilt' in sys.modules, 'langchain_core' in sys.modules)"
    )
    assert "False False" == printed_apart(program).strip()
