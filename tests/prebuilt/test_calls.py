"""Every call of a tool is a piece of work of its own: recorded, asked, answered."""

import asyncio
import operator
import time
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from towpath import (
    START,
    Command,
    InMemorySaver,
    RetryPolicy,
    Send,
    StateGraph,
    interrupt,
)
from towpath.constants import RETURN
from towpath.graph import MessagesState
from towpath.prebuilt import ToolNode, ToolRuntime, create_react_agent
from towpath.testing.models import ScriptedChatModel, calling

THREAD = {"configurable": {"thread_id": "1"}}
COLOURS = ("blocking", "awaited")
WAYS = ("node", "v1", "v2")


class Runs:
    """Runs a graph in one of the two colours."""

    def __init__(self, graph: Any, colour: str) -> None:
        self.graph, self.colour = graph, colour

    def __call__(self, given: Any) -> Any:
        if self.colour == "blocking":
            return self.graph.invoke(given, THREAD)
        return asyncio.run(self.graph.ainvoke(given, THREAD))


def running(way: str, colour: str, tools: list[Any], turn: Any, **options: Any) -> Runs:
    """A graph in which one message calls tools: a node of its own, or an agent."""
    saver = InMemorySaver()
    if way == "node":
        graph = StateGraph(MessagesState)
        graph.add_node("say", lambda state: {"messages": [turn]})
        graph.add_node("tools", ToolNode(tools, **options))
        graph.add_edge(START, "say")
        graph.add_edge("say", "tools")
        return Runs(graph.compile(checkpointer=saver), colour)
    model = ScriptedChatModel(script=[turn, "done"])
    node = ToolNode(tools, **options)
    agent = create_react_agent(model, node, version=way, checkpointer=saver)
    return Runs(agent, colour)


def answers(state: Any) -> list[Any]:
    return [m.content for m in state["messages"] if isinstance(m, ToolMessage)]


def kept(saver: Any) -> set[str]:
    """The tasks and calls of the step whose results a checkpoint has."""
    writes = saver.get_tuple(THREAD).pending_writes
    return {task for task, channel, _ in writes if channel in (RETURN, "messages")}


def every(test: Any) -> Any:
    """Run a test in every way and colour."""
    by_colour = pytest.mark.parametrize("colour", COLOURS)(test)
    return pytest.mark.parametrize("way", WAYS)(by_colour)


HI = {"messages": [("user", "hi")]}


@every
def test_calls_that_ask_all_stop_and_each_answer_reaches_its_own(way, colour):
    seen = []

    @tool
    def work(n: int) -> int:
        "Work."
        seen.append(n)
        return n

    @tool
    def ask(what: str) -> str:
        "Ask a person."
        return interrupt(what)

    turn = calling(
        ("work", {"n": 1}),
        ("ask", {"what": "a"}),
        ("work", {"n": 2}),
        ("ask", {"what": "b"}),
    )
    run = running(way, colour, [work, ask], turn)
    paused = run(HI)["__interrupt__"]
    by_value = {question.value: question.id for question in paused}
    again = run(Command(resume={by_value["b"]: "to b"}))["__interrupt__"]
    done = run(Command(resume="to a"))

    assert {"a", "b"} == set(by_value)
    assert ["a"] == [question.value for question in again]
    assert ["1", "to a", "2", "to b"] == answers(done)
    assert [1, 2] == sorted(seen)


@every
def test_a_call_may_ask_several_times(way, colour):
    @tool
    def twice(name: str) -> str:
        "Ask two questions."
        return interrupt(f"{name} 1") + interrupt(f"{name} 2")

    turn = calling(("twice", {"name": "a"}), ("twice", {"name": "b"}))
    run = running(way, colour, [twice], turn)
    state = run(HI)
    for _ in range(2):
        asked = state["__interrupt__"]
        state = run(Command(resume={q.id: f"[{q.value}]" for q in asked}))

    assert ["[a 1][a 2]", "[b 1][b 2]"] == answers(state)


@every
def test_a_step_in_a_tool_is_not_repeated_after_a_question(way, colour):
    seen = []

    @tool
    def pay(amount: int, runtime: ToolRuntime) -> str:
        "Pay in two steps."
        runtime.step("reserve", seen.append, amount)
        return f"{interrupt(amount)} {amount}"

    @tool
    async def apay(amount: int, runtime: ToolRuntime) -> str:
        "Pay in two steps."
        await runtime.step("reserve", seen.append, amount)
        return f"{interrupt(amount)} {amount}"

    name = "pay" if colour == "blocking" else "apay"
    turn = calling((name, {"amount": 1}), (name, {"amount": 2}))
    run = running(way, colour, [pay, apay], turn)
    paused = run(HI)["__interrupt__"]
    done = run(Command(resume={question.id: "paid" for question in paused}))

    assert ["paid 1", "paid 2"] == answers(done)
    assert [1, 2] == sorted(seen)


@every
def test_each_call_has_a_key_that_stays_the_same(way, colour):
    keys = []

    @tool
    def pay(amount: int, runtime: ToolRuntime) -> str:
        "Pay."
        keys.append(runtime.idempotency_key)
        return interrupt(amount)

    turn = calling(("pay", {"amount": 1}), ("pay", {"amount": 2}))
    run = running(way, colour, [pay], turn)
    paused = run(HI)["__interrupt__"]
    run(Command(resume={question.id: "paid" for question in paused}))

    assert (4, 2) == (len(keys), len(set(keys)))


@every
def test_an_error_of_one_call_is_nobody_elses(way, colour):
    @tool
    def fail() -> str:
        "Fail."
        raise ValueError("bad")

    @tool
    def ask() -> str:
        "Ask."
        return interrupt("?")

    run = running(way, colour, [fail, ask], calling(("fail", {}), ("ask", {})))
    run(HI)
    done = run(Command(resume="yes"))

    assert "ValueError('bad')" in answers(done)[0]
    assert "yes" == answers(done)[1]


@every
def test_a_finished_call_does_not_run_again_when_the_run_failed(way, colour):
    seen = []
    broken = [True]

    @tool
    def work(n: int) -> int:
        "Work."
        seen.append(n)
        return n

    @tool
    def fail() -> str:
        "Fail once, when the others' results are kept."
        if broken:
            while len(kept(run.graph.checkpointer)) < 2:
                time.sleep(0.002)
            raise ConnectionError(broken.pop())
        return "mended"

    turn = calling(("work", {"n": 1}), ("fail", {}), ("work", {"n": 2}))
    run = running(way, colour, [work, fail], turn, handle_tool_errors=False)
    with pytest.raises(ConnectionError):
        run(HI)
    done = run(None)

    assert ["1", "mended", "2"] == answers(done)
    assert [1, 2] == sorted(seen)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_finished_call_does_not_run_again_when_its_node_is_retried(colour):
    seen = []
    broken = [True, True]

    @tool
    def work(n: int) -> int:
        "Work."
        seen.append(n)
        return n

    @tool
    def fail() -> str:
        "Fail twice."
        if broken:
            raise ConnectionError(broken.pop())
        return "mended"

    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph.add_node("tools", ToolNode([work, fail]), retry_policy=policy)
    graph.add_edge(START, "tools")
    run = Runs(graph.compile(checkpointer=InMemorySaver()), colour)
    turn = calling(("work", {"n": 1}), ("fail", {}), ("work", {"n": 2}))
    done = run({"messages": [turn]})

    assert ["1", "mended", "2"] == answers(done)
    assert [1, 2] == sorted(seen)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("colour", COLOURS)
def test_calls_made_in_the_code_of_a_node_are_not_repeated_with_it(colour, calls):
    seen = []

    @tool
    def work(n: int) -> int:
        "Work."
        seen.append(n)
        return n

    tools = ToolNode([work])
    turn = calling(*[("work", {"n": n}) for n in range(calls)])

    def node(state):
        done = tools.invoke([turn])
        return {"messages": [*done, interrupt("go on?")]}

    async def anode(state):
        done = await tools.ainvoke([turn])
        return {"messages": [*done, interrupt("go on?")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node if colour == "blocking" else anode)
    graph.add_edge(START, "node")
    run = Runs(graph.compile(checkpointer=InMemorySaver()), colour)
    run({"messages": []})
    done = run(Command(resume="yes"))

    assert [str(n) for n in range(calls)] == answers(done)
    assert [*range(calls)] == sorted(seen)


@every
def test_a_wrapper_around_a_call_lets_its_question_pass(way, colour):
    @tool
    def ask() -> str:
        "Ask."
        return interrupt("?")

    def wrap(request, execute):
        return execute(request)

    options = {"wrap_tool_call": wrap, "handle_tool_errors": True}
    run = running(way, colour, [ask], calling(("ask", {}), ("ask", {})), **options)
    paused = run(HI)["__interrupt__"]
    done = run(Command(resume={question.id: "yes" for question in paused}))

    assert ["yes", "yes"] == answers(done)


@every
def test_a_wrapper_may_ask_before_the_tool_runs(way, colour):
    seen = []

    @tool
    def pay(amount: int) -> str:
        "Pay."
        seen.append(amount)
        return "paid"

    def approve(request, execute):
        if interrupt(request.tool_call["args"]):
            return execute(request)
        return ToolMessage("refused", tool_call_id=request.tool_call["id"])

    turn = calling(("pay", {"amount": 1}), ("pay", {"amount": 100}))
    run = running(way, colour, [pay], turn, wrap_tool_call=approve)
    paused = run(HI)["__interrupt__"]
    done = run(Command(resume={q.id: q.value["amount"] < 9 for q in paused}))

    assert ["paid", "refused"] == answers(done)
    assert [1] == seen


@every
def test_what_calls_write_to_the_custom_stream_is_delivered(way, colour):
    @tool
    def tell(what: str, runtime: ToolRuntime) -> str:
        "Tell."
        runtime.stream_writer(what)
        return "told"

    @tool
    async def atell(what: str, runtime: ToolRuntime) -> str:
        "Tell."
        runtime.stream_writer(what)
        return "told"

    name = "tell" if colour == "blocking" else "atell"
    turn = calling((name, {"what": "a"}), (name, {"what": "b"}))
    run = running(way, colour, [tell, atell], turn)

    async def awaited():
        return [c async for c in run.graph.astream(HI, THREAD, stream_mode="custom")]

    if colour == "blocking":
        heard = list(run.graph.stream(HI, THREAD, stream_mode="custom"))
    else:
        heard = asyncio.run(awaited())

    assert ["a", "b"] == sorted(heard)


@every
def test_commands_of_parallel_calls_all_count(way, colour):
    class State(MessagesState):
        seen: Annotated[list, operator.add]

    @tool
    def note(what: str, runtime: ToolRuntime) -> Command:
        "Note."
        done = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
        return Command(update={"seen": [what], "messages": [done]})

    graph = StateGraph(State)
    graph.add_node("tools", ToolNode([note]))
    turn = calling(*(("note", {"what": what}) for what in "abc"))
    if way == "v2":
        sends = [Send("tools", [call]) for call in turn.tool_calls]
        graph.add_conditional_edges(START, lambda state: sends, ["tools"])
    else:
        graph.add_edge(START, "tools")
    run = Runs(graph.compile(checkpointer=InMemorySaver()), colour)

    assert ["a", "b", "c"] == run({"messages": [turn]})["seen"]


@pytest.mark.parametrize(("limit", "expected"), [(None, 5), (2, 2)])
async def test_calls_run_at_the_same_time_up_to_the_limit(limit, expected):
    most, now = 0, 0

    @tool
    async def count() -> str:
        "Count how many run."
        nonlocal most, now
        now += 1
        most = max(most, now)
        for _ in range(10):
            await asyncio.sleep(0)
        now -= 1
        return "counted"

    run = running("v1", "awaited", [count], calling(*[("count", {})] * 5))
    await run.graph.ainvoke(HI, {**THREAD, "max_concurrency": limit})

    assert expected == most
