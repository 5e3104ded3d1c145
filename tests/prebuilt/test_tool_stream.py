"""The calls of tools as an event stream tells them, beside the peer's."""

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from tests.programs.both import on_both, thread

from towpath.testing.api import Api
from towpath.testing.models import calling


def graph(lib: Api, *calls: tuple[str, dict], saver: Any = None, **options: Any) -> Any:
    """A graph that runs these calls, one after the other."""

    @tool
    def add(a: int, b: int, runtime: lib.ToolRuntime) -> int:
        "Add, and tell of it."
        for part in ("adding", str(a), str(b)):
            runtime.emit_output_delta(part)
        return a + b

    @tool
    def fail() -> int:
        "Fail."
        raise ValueError("bad")

    @tool
    def ask(runtime: lib.ToolRuntime) -> str:
        "Ask a person."
        runtime.emit_output_delta("asking")
        return lib.interrupt("?")

    @tool
    def command(runtime: lib.ToolRuntime) -> Any:
        "Return a command."
        done = ToolMessage("done", tool_call_id=runtime.tool_call_id, id="m")
        return lib.Command(update={"messages": [done]})

    tools = lib.ToolNode([add, fail, ask, command], **options)
    builder = lib.StateGraph(lib.MessagesState)
    for index, call in enumerate(calls):
        turn = calling(call, id=f"turn{index}")
        builder.add_node(f"say{index}", lambda state, turn=turn: {"messages": [turn]})
        builder.add_node(f"tools{index}", tools)
        builder.add_edge(f"tools{index - 1}" if index else lib.START, f"say{index}")
        builder.add_edge(f"say{index}", f"tools{index}")
    return builder.compile(checkpointer=saver, transformers=[lib.ToolCallTransformer])


ADD = ("add", {"a": 1, "b": 2})
HI = {"messages": [("user", "hi")]}


def told(call: Any, deltas: list[Any]) -> tuple[Any, ...]:
    output = call.output if isinstance(call.output, str) else type(call.output).__name__
    end = (output, call.error, call.completed)
    return call.tool_name, call.tool_call_id, call.input, deltas, end


@on_both
def test_a_stream_has_a_handle_for_each_call(lib: Api) -> object:
    app = graph(lib, ADD, ("fail", {}), ("command", {}), handle_tool_errors=True)
    stream = app.stream_events(HI, thread(), version="v3")
    return [told(call, list(call.output_deltas)) for call in stream.tool_calls]


@on_both
async def test_a_stream_of_an_async_run_has_them_too(lib: Api) -> object:
    app = graph(lib, ADD, ("fail", {}), ("command", {}), handle_tool_errors=True)
    stream = await app.astream_events(HI, thread(), version="v3")
    found = []
    async for call in stream.tool_calls:
        found.append(told(call, [delta async for delta in call.output_deltas]))
    return found


@on_both
def test_a_call_that_asks_is_over_without_an_output(lib: Api) -> object:
    stream = graph(lib, ("ask", {}), saver=lib.InMemorySaver()).stream_events(
        HI, thread(), version="v3"
    )
    calls = [(call, list(call.output_deltas)) for call in stream.tool_calls]
    return [told(call, deltas) for call, deltas in calls]


@on_both
def test_a_failing_run_ends_the_stream_of_its_calls(lib: Api) -> object:
    app = graph(lib, ("fail", {}), handle_tool_errors=False)
    stream = app.stream_events(HI, thread(), version="v3")
    found = []
    try:
        for call in stream.tool_calls:
            found.append((call, list(call.output_deltas)))
    except ValueError as error:
        return str(error), [told(call, deltas) for call, deltas in found]
    return "no error"


@on_both
def test_calls_of_a_subgraph_are_in_its_own_stream(lib: Api) -> object:
    builder = lib.StateGraph(lib.MessagesState)
    builder.add_node("inner", graph(lib, ADD))
    builder.add_edge(lib.START, "inner")
    app = builder.compile(transformers=[lib.ToolCallTransformer])
    above = app.stream_events(HI, version="v3")
    within = app.stream_events(HI, version="v3")
    return [call.tool_name for call in above.tool_calls], [
        [call.tool_name for call in inner.tool_calls] for inner in within.subgraphs
    ]
