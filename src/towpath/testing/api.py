"""The public names of a graph library, found by name.

A program written over an `Api` runs on Towpath or on another library with the
same interface: "only the import changed". The differential tests build one
graph description twice this way and compare what can be observed. Names are
looked up late, so that loading costs nothing and a missing feature fails only
the test that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "graph": "StateGraph START END MessagesState add_messages",
    "types": (
        "CachePolicy Command Interrupt Overwrite RetryPolicy Send StateSnapshot "
        "StateUpdate TimeoutPolicy interrupt"
    ),
    "checkpoint.memory": "InMemorySaver",
    "checkpoint.postgres": "PostgresSaver",
    "checkpoint.postgres.aio": "AsyncPostgresSaver",
    "checkpoint.sqlite": "SqliteSaver",
    "checkpoint.sqlite.aio": "AsyncSqliteSaver",
    "store.memory": "InMemoryStore",
    "cache.memory": "InMemoryCache",
    "config": "get_config get_store get_stream_writer",
    "runtime": "RunControl Runtime get_runtime",
    "stream": (
        "CheckpointsTransformer CustomTransformer DebugTransformer StreamChannel "
        "StreamTransformer TasksTransformer UpdatesTransformer"
    ),
    "stream._mux": "StreamMux",
    "stream.transformers": (
        "LifecycleTransformer MessagesTransformer SubgraphTransformer ValuesTransformer"
    ),
    "managed": "IsLastStep RemainingSteps",
    "func": "entrypoint task",
    "graph.message": "REMOVE_ALL_MESSAGES push_message",
    "prebuilt": (
        "InjectedState InjectedStore ToolCallTransformer ToolNode ToolRuntime "
        "ValidationNode create_react_agent tools_condition"
    ),
    "prebuilt.chat_agent_executor": (
        "AgentState AgentStatePydantic AgentStateWithStructuredResponse"
    ),
    "prebuilt.tool_node": (
        "ToolCallWithContext ToolInvocationError msg_content_output"
    ),
    "channels": (
        "AnyValue BaseChannel BinaryOperatorAggregate DeltaChannel EphemeralValue "
        "LastValue Topic UntrackedValue"
    ),
    "errors": (
        "EmptyInputError GraphDrained GraphInterrupt GraphRecursionError "
        "InvalidUpdateError NodeError NodeTimeoutError"
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


class Api:
    """One library's public names as attributes, and how it compiles a graph."""

    def __init__(self, package: str, **compile_options: object) -> None:
        self.package = package
        self._compile_options = compile_options

    def __repr__(self) -> str:
        return f"Api({self.package!r})"

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(name)
        return getattr(import_module(f"{self.package}.{_HOME[name]}"), name)

    def compile(self, builder: Any, **options: object) -> Any:
        """Compile `builder` with this library's own options added."""
        return builder.compile(**options, **self._compile_options)


def load(package: str, *, preset: str | None = None) -> Api:
    """Return the names of `package`; `preset` names a constant of its semantics."""
    if preset is None:
        return Api(package)
    return Api(
        package, semantics=getattr(import_module(f"{package}.semantics"), preset)
    )
