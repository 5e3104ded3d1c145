"""`ToolNode`: a node that runs the tools which a model called.

The input is looked at first (`tool_calls`): which calls there are, and in what
state they are made. Each call is then a piece of work of its own, and its way is
one program, run blocking or awaited: the wrapper, if there is one, around the
tool; the tool with what the node adds to the arguments (`injection`); the result,
once it is sure that it answers the call (`tool_results`); or the message that an
error becomes (`tool_errors`). Calls of one message run at the same time, and what
comes of them is put together in their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, get_executor_for_config
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as create_tool
from pydantic import BaseModel, ValidationError

from towpath.call.scope import TaskContext
from towpath.constants import (
    CONF,
    CONFIG_KEY_READ_STATE,
    CONFIG_KEY_RUNTIME,
    END,
)
from towpath.context import current
from towpath.errors import GraphBubbleUp
from towpath.integrations.runnable import RunnableCallable
from towpath.prebuilt.durable import begun, surrounding
from towpath.prebuilt.errors import ToolInputError
from towpath.prebuilt.hops import Hop, Program, awaited, blocking
from towpath.prebuilt.injection import (
    ContextT,
    InjectedState,
    InjectedStore,
    StateT,
    ToolRuntime,
    Wanted,
    declare_result,
    field_of,
    filled,
    wanted,
)
from towpath.prebuilt.tool_calls import (
    AsyncToolCallWrapper,
    Batch,
    ToolCallRequest,
    ToolCallWithContext,
    ToolCallWrapper,
    batch_of,
)
from towpath.prebuilt.tool_errors import (
    INVALID_TOOL_NAME_ERROR_TEMPLATE,
    TOOL_CALL_ERROR_TEMPLATE,
    TOOL_EXECUTION_ERROR_TEMPLATE,
    TOOL_INVOCATION_ERROR_TEMPLATE,
    ErrorPolicy,
    Handling,
    ToolInvocationError,
    _default_handle_tool_errors,
    invocation_error,
)
from towpath.prebuilt.tool_results import (
    TOOL_MESSAGE_BLOCK_TYPES,
    Result,
    checked,
    combined,
    msg_content_output,
)
from towpath.runtime import DEFAULT_RUNTIME, Runtime

__all__ = (
    "INVALID_TOOL_NAME_ERROR_TEMPLATE",
    "TOOL_CALL_ERROR_TEMPLATE",
    "TOOL_EXECUTION_ERROR_TEMPLATE",
    "TOOL_INVOCATION_ERROR_TEMPLATE",
    "TOOL_MESSAGE_BLOCK_TYPES",
    "AsyncToolCallWrapper",
    "ContextT",
    "InjectedState",
    "InjectedStore",
    "StateT",
    "ToolCallRequest",
    "ToolCallWithContext",
    "ToolCallWrapper",
    "ToolInvocationError",
    "ToolNode",
    "ToolRuntime",
    "msg_content_output",
    "tools_condition",
)


class ToolNode(Runnable[Any, Any]):
    """Runs the tools that the last message of a model calls.

    It is given the state (a dict, a model or a dataclass with `messages_key`),
    a list of messages, a list of calls, or one `ToolCallWithContext`, and
    returns an update with one `ToolMessage` per call, in the order of the
    calls. Tools may return a `Command` with the message in its update.

    `handle_tool_errors` says which errors become messages for the model: all
    (`True`, and by default), those of some classes, those that a function
    takes, as its parameter is annotated; a text or the function says what the
    message is. `wrap_tool_call(request, execute)` stands around every call; by
    default the errors it lets through are raised, as it was there to take them.

    >>> from langchain_core.messages import AIMessage
    >>> def double(n: int) -> int:
    ...     "Twice the number."
    ...     return 2 * n
    >>> call = {"name": "double", "args": {"n": 21}, "id": "1", "type": "tool_call"}
    >>> asked = {"messages": [AIMessage("", tool_calls=[call])]}
    >>> ToolNode([double]).invoke(asked)["messages"][0].content
    '42'

    Raises:
        ToolInputError: no message of a model, or a field or store that a tool
            wants is missing (TP-220).
        ToolResultError: a tool returned what does not answer its call (TP-221).
    """

    name: str | None = "tools"

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        name: str = "tools",
        tags: list[str] | None = None,
        handle_tool_errors: Handling = _default_handle_tool_errors,
        messages_key: str = "messages",
        wrap_tool_call: ToolCallWrapper | None = None,
        awrap_tool_call: AsyncToolCallWrapper | None = None,
    ) -> None:
        self.name = name
        self.tags = tags
        self._tools_by_name: dict[str, BaseTool] = {}
        for given in tools:
            tool = given if isinstance(given, BaseTool) else create_tool(given)
            declare_result(tool)
            self._tools_by_name[tool.name] = tool
        self._wanted = {n: wanted(t) for n, t in self._tools_by_name.items()}
        self._messages_key = messages_key
        self._handle_tool_errors = handle_tool_errors
        self._wrap_tool_call = wrap_tool_call
        self._awrap_tool_call = awrap_tool_call
        wrapped = wrap_tool_call is not None or awrap_tool_call is not None
        self._errors = ErrorPolicy(handle_tool_errors, wrapped=wrapped)

    def __repr__(self) -> str:
        return f"ToolNode({list(self._tools_by_name)}, name={self.name!r})"

    @property
    def tools_by_name(self) -> dict[str, BaseTool]:
        """The tools, by the names that models call them by."""
        return self._tools_by_name

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Run the tools that are called, each in a thread of its own."""
        batch, requests = self._requests(input, ensure_config(config), kwargs)
        context = surrounding(self, len(requests))
        if context is not None:
            calls = [self._begun(context, request, batch) for request in requests]
            settled = [call.exception() or call.result() for call in calls]
        elif len(requests) < 2:
            settled = [self._run_call(request, batch) for request in requests]
        else:
            with get_executor_for_config(requests[0].runtime.config) as threads:
                calls = [threads.submit(self._run_call, r, batch) for r in requests]
            settled = [call.exception() or call.result() for call in calls]
        return combined(succeeded(settled), batch, self._messages_key)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Run the tools that are called, at the same time."""
        batch, requests = self._requests(input, ensure_config(config), kwargs)
        context = surrounding(self, len(requests))
        if context is None:
            calls = [self._arun_call(request, batch) for request in requests]
        else:
            calls = [self._begun(context, request, batch) for request in requests]
        settled = await asyncio.gather(*calls, return_exceptions=True)
        return combined(succeeded(settled), batch, self._messages_key)

    def _begun(
        self, context: TaskContext, request: ToolCallRequest, batch: Batch
    ) -> Any:
        """One call as a task of the run; its future."""
        return begun(
            context,
            request.tool_call,
            lambda _: self._run_call(request, batch),
            lambda _: self._arun_call(request, batch),
        )

    def _run_call(self, request: ToolCallRequest, batch: Batch) -> Result:
        return blocking(self._attended(request, batch))

    async def _arun_call(self, request: ToolCallRequest, batch: Batch) -> Result:
        return await awaited(self._attended(request, batch))

    def _requests(
        self, given: Any, config: RunnableConfig, kwargs: Mapping[str, Any]
    ) -> tuple[Batch, list[ToolCallRequest]]:
        """The calls in an input, with what their tools may ask for."""
        conf = config.get(CONF) or {}
        runtime: Runtime[Any] = (
            kwargs.get("runtime") or conf.get(CONFIG_KEY_RUNTIME) or DEFAULT_RUNTIME
        )
        read_state = conf.get(CONFIG_KEY_READ_STATE)
        batch = batch_of(given, self._messages_key, read_state)
        batch.task = getattr(current.get(), "task", None)
        tools = list(self._tools_by_name.values())
        requests = []
        for call in batch.calls:
            tool_runtime = ToolRuntime(
                state=batch.state,
                context=runtime.context,
                config=config,
                stream_writer=runtime.stream_writer,
                tool_call_id=call["id"],
                store=kwargs.get("store") or runtime.store,
                tools=tools,
                execution_info=runtime.execution_info,
                server_info=runtime.server_info,
            )
            tool = self._tools_by_name.get(call["name"])
            requests.append(ToolCallRequest(call, tool, batch.state, tool_runtime))
        return batch, requests

    def _attended(self, request: ToolCallRequest, batch: Batch) -> Program[Result]:
        """One call with the wrapper around it."""
        wrap, awrap = self._wrap_tool_call, self._awrap_tool_call
        if wrap is None and awrap is None:
            return (yield from self._executed(request, batch))

        def execute(request: ToolCallRequest) -> Any:
            return blocking(self._executed(request, batch))

        async def aexecute(request: ToolCallRequest) -> Any:
            return await awaited(self._executed(request, batch))

        async def attended() -> Any:
            if awrap is not None:
                return await awrap(request, aexecute)
            assert wrap is not None
            # It may block, and must not block the loop.
            return await asyncio.to_thread(wrap, request, execute)

        def attend() -> Any:
            return execute(request) if wrap is None else wrap(request, execute)

        try:
            return cast("Result", (yield Hop(attend, attended)))
        except Exception as error:
            return self._message_of(error, request.tool_call, batch)

    def _executed(self, request: ToolCallRequest, batch: Batch) -> Program[Result]:
        """One call without a wrapper: find the tool, call it, check its result."""
        call = request.tool_call
        # A wrapper may have put the name right.
        tool = request.tool or self._tools_by_name.get(call["name"])
        if tool is None:
            return self._unknown(call)
        want = self._wants(tool)
        args = call["args"] or {}
        state, runtime = request.state, request.runtime
        complete = filled(tool, want, args, runtime, state, self._messages_key)
        ready = {**call, "args": complete, "type": "tool_call"}
        config = runtime.config
        try:
            try:
                returned = yield Hop(
                    lambda: tool.invoke(ready, config),
                    lambda: tool.ainvoke(ready, config),
                )
            except ValidationError as error:
                raise invocation_error(
                    call["name"], error, args, want.filled
                ) from error
            return checked(returned, call, batch, self._messages_key)
        except Exception as error:
            return self._message_of(error, call, batch)

    def _wants(self, tool: BaseTool) -> Wanted:
        """What a tool wants; a wrapper may have brought one of its own."""
        if self._tools_by_name.get(tool.name) is tool:
            return self._wanted[tool.name]
        return wanted(tool)

    def _unknown(self, call: ToolCall) -> ToolMessage:
        content = INVALID_TOOL_NAME_ERROR_TEMPLATE.format(
            requested_tool=call["name"], available_tools=", ".join(self._tools_by_name)
        )
        return self._failed(content, call)

    def _message_of(
        self, error: Exception, call: ToolCall, batch: Batch
    ) -> ToolMessage:
        """The message that an error becomes, unless it is to be raised."""
        retried = self._errors.default and batch.retried(error)
        if retried or not self._errors.takes(error):
            raise error
        return self._failed(self._errors.content(error), call)

    def _failed(self, content: Any, call: ToolCall) -> ToolMessage:
        return ToolMessage(
            content, name=call["name"], tool_call_id=call["id"], status="error"
        )


def succeeded(settled: Sequence[Result | BaseException]) -> list[Result]:
    """The results of all calls, unless one failed; a failure comes before a question.

    Each call is let run to its end before.
    """
    errors = [one for one in settled if isinstance(one, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, GraphBubbleUp)):
        raise error
    return cast("list[Result]", list(settled))


def tools_condition(
    state: list[AnyMessage] | dict[str, Any] | BaseModel,
    messages_key: str = "messages",
) -> Literal["tools", "__end__"]:
    """Lead to the node `tools` if the last message calls any, else to the end.

    Raises:
        ToolInputError: there is no message (TP-220).
    """
    try:
        messages = state if isinstance(state, list) else field_of(state, messages_key)
    except (KeyError, AttributeError):
        messages = None
    if not messages:
        raise ToolInputError(f"tools_condition found no messages in {state!r}")
    last = messages[-1] if isinstance(messages, list | tuple) else messages
    return "tools" if getattr(last, "tool_calls", None) else END


# Whoever asks whether a node is one of the peer's callables is told yes.
RunnableCallable.register(ToolNode)
