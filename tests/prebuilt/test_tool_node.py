"""`ToolNode` beside the peer's: inputs, results, errors, what tools are given."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    ToolException,
    tool,
)
from pydantic import BaseModel
from tests.programs.both import on_both

from towpath.testing.api import Api
from towpath.testing.models import calling


def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


@tool
def boom(a: int) -> int:
    "Fail."
    raise ValueError("bad")


@tool
def refuse(a: int) -> int:
    "Fail as tools do."
    raise ToolException("refused")


@tool(response_format="content_and_artifact")
def report(a: int):
    "Give an artifact."
    return "content", {"a": a}


@tool
async def later(a: int) -> int:
    "Answer later."
    return a * 2


ADD = ("add", {"a": 1, "b": 2})
TWO = calling(ADD, ("add", {"a": 3, "b": 4}))


@dataclass
class Plain:
    messages: list


class Model(BaseModel):
    messages: list = []
    key: str = "value"


def node(lib: Api, *tools: Any, **options: Any) -> Any:
    """A tool node; the peer's knows no run here, and wants to be told so."""
    config = {"configurable": {"__pregel_runtime": lib.Runtime()}}
    made = lib.ToolNode(list(tools), **options)

    def run(given: Any) -> Any:
        return made.invoke(given, config)

    run.later = lambda given: made.ainvoke(given, config)
    return run


def asked(*calls: tuple[str, dict], **more: Any) -> dict:
    return {"messages": [calling(*calls)], **more}


def outcome(run: Any, given: Any) -> Any:
    """What comes of it; of an error, which of the public kinds it is."""
    kinds = (KeyError, ValueError, TypeError, NotImplementedError, ToolException)
    try:
        return run(given)
    except kinds as error:
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))


# -- inputs -------------------------------------------------------------------


@on_both
def test_every_form_of_input_is_answered_in_its_form(lib: Api) -> object:
    run = node(lib, add)
    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "x", "type": "tool_call"}
    return [
        run({"messages": [TWO]}),
        run([TWO]),
        run([call]),
        run(Plain([TWO])),
        run(Model(messages=[TWO])),
        run({"messages": [TWO, HumanMessage("more", id="1")]}),
        run({"messages": [AIMessage("nothing to do")]}),
        run({"__type": "tool_call_with_context", "tool_call": call, "state": {}}),
        node(lib, add, messages_key="talk")({"talk": [TWO]}),
    ]


@on_both
def test_an_input_without_a_models_message_is_a_value_error(lib: Api) -> object:
    run = node(lib, add)
    human = [HumanMessage("x", id="1")]
    inputs = ({"messages": []}, {"other": []}, {"messages": human}, human)
    return [outcome(run, given) for given in inputs]


@on_both
async def test_the_async_node_does_the_same(lib: Api) -> object:
    run = node(lib, add, later, report)
    given = asked(ADD, ("later", {"a": 4}), ("report", {"a": 1}), ("none", {}))
    return await run.later(given), await run.later([TWO])


@on_both
def test_results_become_content(lib: Api) -> object:
    values = (
        *("text", 3, 2.5, None, True, [1, 2], ["a"], [], ("a", 1), {"k": 1}, {1: int}),
        *(b"x", {"é": 1}, [{"type": "text", "text": "t"}], [{"type": "other"}]),
    )

    @tool
    def give(i: int):
        "Give a value."
        return values[i]

    calls = [("give", {"i": i}) for i in range(len(values))]
    contents = [lib.msg_content_output(value) for value in values]
    return node(lib, give)(asked(*calls)), contents


@on_both
def test_a_tools_own_message_is_kept(lib: Api) -> object:
    @tool
    def own(a: int, at: Annotated[str, InjectedToolCallId]):
        "Answer by itself."
        return ToolMessage("mine", tool_call_id=at, name="me", status="error", id="m")

    return node(lib, own, report)(asked(("own", {"a": 1}), ("report", {"a": 2})))


@on_both
def test_a_node_shows_its_name_and_its_tools(lib: Api) -> object:
    made = lib.ToolNode([add, boom], name="box", tags=["t"])
    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(made)
    graph.add_node("other", made)
    graph.add_edge(lib.START, "box")
    drawn = graph.compile().get_graph()
    metadata = {name: n.metadata for name, n in drawn.nodes.items()}
    return made.name, made.tags, list(made.tools_by_name), metadata


# -- errors -------------------------------------------------------------------


def only_value(error: ValueError) -> str:
    return f"value {error}"


def only_type(error: TypeError) -> str:
    return f"type {error}"


def either(error: TypeError | ValueError) -> str:
    return f"either {error}"


HANDLING = (
    *(True, False, "oops", ValueError, TypeError, (ValueError, KeyError), (TypeError,)),
    *(only_value, only_type, either, lambda error: f"any {error}"),
)


@on_both
def test_errors_become_messages_as_they_are_handled(lib: Api) -> object:
    calls = asked(("boom", {"a": 1})), asked(("refuse", {"a": 1}))
    wrong = asked(("boom", {"a": "x"}))
    found = []
    for handling in HANDLING:
        run = node(lib, boom, refuse, handle_tool_errors=handling)
        for given in (calls[0], wrong):
            found.append(outcome(run, given))
    found.append(node(lib, refuse, handle_tool_errors=True)(calls[1]))
    return found


@on_both
def test_wrong_arguments_are_told_to_the_model_by_default(lib: Api) -> object:
    run = node(lib, add, boom)
    return run(asked(("add", {"a": "x"}), ("boom", {"b": 1}), ("nothing", {"a": 1})))


@on_both
def test_a_handler_of_wrong_arguments_sees_which(lib: Api) -> object:
    seen = []

    def handler(error) -> str:
        seen.append((error.tool_name, error.tool_kwargs, len(error.filtered_errors)))
        return error.message

    handler.__annotations__["error"] = lib.ToolInvocationError
    run = node(lib, add, handle_tool_errors=handler)
    return run(asked(("add", {"a": "x"}))), seen


@on_both
def test_a_tools_own_handlers_come_first(lib: Api) -> object:
    own = refuse.model_copy()
    own.handle_tool_error = "handled"
    own.handle_validation_error = "checked"
    return node(lib, own)(asked(("refuse", {"a": 1}), ("refuse", {"a": "x"})))


@on_both
def test_an_async_tool_in_a_blocking_run_is_an_error(lib: Api) -> object:
    return outcome(node(lib, later), asked(("later", {"a": 1})))


def test_every_error_is_a_message_by_default():
    """The peer raises, and leaves a call in the conversation without an answer."""
    from towpath.prebuilt import ToolNode

    done = ToolNode([boom, refuse, add])
    first, second, third = done.invoke(
        [calling(("boom", {"a": 1}), ADD, ("refuse", {"a": 1}))]
    )

    assert ["error", "success", "error"] == [m.status for m in (first, second, third)]
    assert "ValueError('bad')" in first.content
    assert "ToolException('refused')" in third.content


@pytest.mark.parametrize(("failures", "status"), [(2, "success"), (5, "error")])
def test_a_node_with_a_retry_policy_is_tried_again_first(failures, status):
    from towpath import START, RetryPolicy, StateGraph
    from towpath.graph import MessagesState
    from towpath.prebuilt import ToolNode

    left = [failures]

    @tool
    def flaky() -> str:
        "Fail some times."
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionError("gone")
        return "there"

    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3)
    graph.add_node("tools", ToolNode([flaky]), retry_policy=policy)
    graph.add_edge(START, "tools")
    done = graph.compile().invoke(asked(("flaky", {})))

    assert status == done["messages"][-1].status


def test_a_handler_may_be_any_callable():
    from towpath.prebuilt import ToolNode

    class Handler:
        def __call__(self, error: ValueError) -> str:
            return "handled"

    run = ToolNode([boom], handle_tool_errors=Handler())

    assert "handled" == run.invoke([calling(("boom", {"a": 1}))])[0].content


def test_a_handler_of_anything_but_errors_is_refused_when_the_node_is_made():
    from towpath.prebuilt import ToolNode

    def handler(error: int) -> str:
        return ""

    with pytest.raises(ValueError, match="annotated"):
        ToolNode([boom], handle_tool_errors=handler)


# -- what tools are given -----------------------------------------------------


def with_everything(lib: Api) -> list[BaseTool]:
    @tool
    def whole(a: int, state: Annotated[Any, lib.InjectedState]) -> str:
        "The whole state."
        return str(sorted(state) if isinstance(state, dict) else dict(state))

    @tool
    def field(a: int, key: Annotated[str, lib.InjectedState("key")]) -> str:
        "A field."
        return key

    @tool
    def maybe(a: int, key: Annotated[str, lib.InjectedState("key")] = "none") -> str:
        "A field with a default."
        return key

    @tool
    def kept(a: int, store: Annotated[Any, lib.InjectedStore()]) -> str:
        "The store."
        return type(store).__name__

    @tool
    def which(a: int, at: Annotated[str, InjectedToolCallId]) -> str:
        "The call."
        return at

    @tool
    def run(a: int, runtime: lib.ToolRuntime) -> str:
        "The runtime."
        told = (runtime.tool_call_id, type(runtime.state).__name__, runtime.context)
        names = [t.name for t in runtime.tools]
        return str((*told, names, runtime.execution_info is None))

    @tool
    def unsaid(a: int, runtime) -> str:
        "The runtime by its name."
        return runtime.tool_call_id

    return [whole, field, maybe, kept, which, run, unsaid]


NAMES = ("whole", "field", "maybe", "kept", "which", "run", "unsaid")


@on_both
def test_tools_are_given_what_models_do_not_see(lib: Api) -> object:
    tools = with_everything(lib)
    found = []
    for name in NAMES:
        run = node(lib, *tools)
        forged = {"a": 1, "key": "forged", "at": "z", "store": 1, "runtime": 1}
        for given in (
            asked((name, {"a": 1}), key="K"),
            asked((name, {"a": 1})),
            asked((name, {"a": "x"}), key="K"),
            asked((name, forged), key="K"),
            [calling((name, {"a": 1}))],
            Model(messages=[calling((name, {"a": 1}))]),
        ):
            found.append((name, outcome(run, given)))
    return found


@on_both
def test_a_graph_gives_its_store_and_context_to_tools(lib: Api) -> object:
    class State(lib.MessagesState):
        key: str

    graph = lib.StateGraph(State, context_schema=dict)
    graph.add_node("tools", lib.ToolNode(with_everything(lib)))
    graph.add_edge(lib.START, "tools")
    app = graph.compile(store=lib.InMemoryStore())
    calls = asked(*((name, {"a": 1}) for name in NAMES), key="K")
    return app.invoke(calls, context={"who": "me"})


@on_both
def test_a_schema_of_its_own_does_not_hide_what_the_function_wants(lib: Api) -> object:
    class Args(BaseModel):
        a: int

    class Wanting(BaseModel):
        a: int
        key: Annotated[str, lib.InjectedState("key")]

    json_schema = {
        "title": "t",
        "description": "d",
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    }

    @tool(args_schema=Args)
    def one(
        a, runtime: lib.ToolRuntime, state: Annotated[dict, lib.InjectedState]
    ) -> str:
        "One."
        return f"{runtime.tool_call_id} {sorted(state)}"

    @tool(args_schema=json_schema)
    def two(a, runtime: lib.ToolRuntime[dict, dict]) -> str:
        "Two."
        return runtime.tool_call_id

    @tool(args_schema=Wanting)
    def three(a, key) -> str:
        "Three."
        return key

    class Four(BaseTool):
        name: str = "four"
        description: str = "Four."

        def _run(self, a: int, state: Annotated[dict, lib.InjectedState]) -> str:
            return str(sorted(state))

    calls = [(name, {"a": 1}) for name in ("one", "two", "three", "four")]
    return node(lib, one, two, three, Four())(asked(*calls, key="K"))


@on_both
def test_an_argument_kept_from_models_is_not_taken_from_them(lib: Api) -> object:
    @tool
    def hidden(a: int, secret: Annotated[str, InjectedToolArg]) -> str:
        "Hidden."
        return secret

    return node(lib, hidden)(asked(("hidden", {"a": 1, "secret": "forged"})))


def test_the_parameter_of_a_runtime_may_have_any_name():
    from towpath.prebuilt import ToolNode, ToolRuntime

    @tool
    def which(a: int, rt: ToolRuntime, more: ToolRuntime | None = None) -> str:
        "Which call it is."
        return f"{rt.tool_call_id} {more is rt}"

    done = ToolNode([which]).invoke([calling(("which", {"a": 1}))])

    assert "call-1 True" == done[0].content


def test_a_parameter_named_runtime_may_be_the_models():
    from towpath.prebuilt import ToolNode

    @tool
    def find_film(runtime: int) -> str:
        "Find a film of so many minutes."
        return str(runtime)

    done = ToolNode([find_film]).invoke([calling(("find_film", {"runtime": 90}))])

    assert "90" == done[0].content


def test_a_state_that_does_not_fit_a_tool_is_told_in_full():
    from towpath.prebuilt import InjectedState, ToolNode

    @tool
    def count(n: Annotated[int, InjectedState("n")]) -> int:
        "Count."
        return n

    done = ToolNode([count]).invoke(asked(("count", {}), n="many"))

    assert "n: Input should be a valid integer" in done["messages"][0].content


@on_both
def test_calls_sent_to_a_node_find_the_state(lib: Api) -> object:
    class State(lib.MessagesState):
        key: str

    def build(arg: Any) -> Any:
        graph = lib.StateGraph(State)
        graph.add_node("tools", lib.ToolNode(with_everything(lib)))
        sends = lambda state: [lib.Send("tools", arg)]
        graph.add_conditional_edges(lib.START, sends, ["tools"])
        return graph.compile().invoke({"messages": [], "key": "K"})

    call = {"name": "field", "args": {"a": 1}, "id": "x", "type": "tool_call"}
    whole = {**call, "name": "whole"}
    context = lib.ToolCallWithContext(
        __type="tool_call_with_context", tool_call=call, state={"key": "sent"}
    )
    return build([call]), build([whole]), build(context)


# -- commands -----------------------------------------------------------------


def commanding(give: Any) -> BaseTool:
    @tool
    def act(a: int, at: Annotated[str, InjectedToolCallId]):
        "Return what the test wants."
        return give(at)

    return act


def commands(lib: Api) -> dict[str, Any]:
    Command, Send = lib.Command, lib.Send
    done = lambda at: ToolMessage("done", tool_call_id=at, id="m")
    up = Command.PARENT
    return {
        "answered": lambda at: Command(update={"messages": [done(at)], "key": "new"}),
        "bare": lambda at: Command(update=[done(at)]),
        "unanswered": lambda at: Command(update={"key": "new"}),
        "another": lambda at: Command(update={"messages": [done("z")]}),
        "goto": lambda at: Command(goto="there"),
        "with more": lambda at: Command(
            update={"messages": [done(at), HumanMessage("h", id="h")]}
        ),
        "removal": lambda at: Command(
            update={"messages": [RemoveMessage("__remove_all__")]}
        ),
        "up": lambda at: Command(graph=up, goto="b", update={"messages": [done(at)]}),
        "up unanswered": lambda at: Command(graph=up, update={"key": "new"}),
        "up sends": lambda at: Command(graph=up, goto=[Send("b", 1)]),
        "list": lambda at: [Command(update={"key": "new"}), done(at)],
        "list of commands": lambda at: [
            Command(update={"messages": [done(at)]}),
            Command(update={"key": "new"}),
        ],
        "list unanswered": lambda at: [Command(update={"key": "new"})],
        "list answered twice": lambda at: [done(at), done(at)],
    }


@on_both
def test_commands_are_checked_and_combined(lib: Api) -> object:
    found = []
    for name, give in commands(lib).items():
        run = node(lib, commanding(give), add)
        for given in (
            asked(("act", {"a": 1})),
            asked(ADD, ("act", {"a": 1}), ("act", {"a": 2}), ADD),
            [calling(("act", {"a": 1}), ADD)],
        ):
            found.append((name, outcome(run, given)))
    return found


@on_both
def test_a_graph_obeys_the_commands_of_tools(lib: Api) -> object:
    class State(lib.MessagesState):
        key: str

    found = []
    for name in ("answered", "with more", "list", "list of commands"):
        graph = lib.StateGraph(State)
        graph.add_node("tools", lib.ToolNode([commanding(commands(lib)[name]), add]))
        graph.add_edge(lib.START, "tools")
        calls = calling(("act", {"a": 1}), ADD)
        calls.id = "ai"
        found.append(graph.compile().invoke({"messages": [calls], "key": "old"}))
    return found


@on_both
def test_a_bad_command_is_a_message_where_all_errors_are(lib: Api) -> object:
    give = commands(lib)["unanswered"]
    run = node(lib, commanding(give), handle_tool_errors=lambda error: "handled")
    return run(asked(("act", {"a": 1})))


def test_updates_for_the_parent_are_not_lost_among_sends():
    """The peer merges commands that send to the parent, and drops their updates."""
    from towpath.prebuilt import ToolNode
    from towpath.types import Command, Send

    give = lambda at: Command(
        graph=Command.PARENT, goto=[Send("b", at)], update={"key": at}
    )
    found = ToolNode([commanding(give)]).invoke(
        asked(("act", {"a": 1}), ("act", {"a": 2}))
    )

    assert [{"key": "call-1"}, {"key": "call-2"}] == [c.update for c in found]


@on_both
def test_a_graph_whose_whole_state_is_messages(lib: Api) -> object:
    from importlib import import_module

    give = commands(lib)["bare"]
    graph = import_module(f"{lib.package}.graph").MessageGraph()
    graph.add_node("tools", lib.ToolNode([add, commanding(give)]))
    graph.add_edge(lib.START, "tools")
    graph.add_conditional_edges("tools", lib.tools_condition)
    turn = calling(ADD, ("act", {"a": 1}), ADD)
    return [(m.type, m.content) for m in graph.compile().invoke([turn])]


# -- wrappers -----------------------------------------------------------------


@on_both
def test_a_wrapper_sees_and_changes_calls(lib: Api) -> object:
    seen = []

    @tool
    def new(a: int, key: Annotated[str, lib.InjectedState("key")]) -> str:
        "Not among the node's tools."
        return f"new {a} {key}"

    def wrap(request, execute):
        call, known = request.tool_call, request.tool
        seen.append((call["name"], known and known.name, request.runtime.tool_call_id))
        if call["name"] == "new":
            return execute(request.override(tool=new, state={"key": "other"}))
        if call["name"] == "add":
            again = execute(request).content, execute(request).content
            return ToolMessage(str(again), tool_call_id=call["id"])
        if call["name"] == "skip":
            return ToolMessage("skipped", tool_call_id=call["id"])
        if call["name"] == "go":
            return lib.Command(goto="there")
        return execute(request)

    run = node(lib, add, wrap_tool_call=wrap)
    calls = [(name, {"a": 1, "b": 2}) for name in ("add", "new", "skip", "no")]
    found = run(asked(*calls, key="K")), run(asked(("go", {})))
    return found, sorted(seen, key=str)


def test_a_wrapper_may_put_a_name_right():
    from towpath.prebuilt import ToolNode

    def wrap(request, execute):
        call = {**request.tool_call, "name": "add"}
        return execute(request.override(tool_call=call))

    run = ToolNode([add], wrap_tool_call=wrap)

    assert "3" == run.invoke([calling(("ad", {"a": 1, "b": 2}))])[0].content


@on_both
def test_a_wrapper_gets_errors_as_they_are_handled(lib: Api) -> object:
    def wrap(request, execute):
        try:
            return ToolMessage(
                f"saw {execute(request).content}", tool_call_id=request.tool_call["id"]
            )
        except Exception as error:
            return ToolMessage(repr(error), tool_call_id=request.tool_call["id"])

    def fail(request, execute):
        raise ValueError("wrapper")

    calls = asked(("boom", {"a": 1})), asked(("boom", {"a": "x"}))
    handled = node(lib, boom, wrap_tool_call=wrap, handle_tool_errors=True)
    failing = node(lib, boom, wrap_tool_call=fail, handle_tool_errors=True)
    default = node(lib, boom, wrap_tool_call=wrap)
    raising = node(lib, boom, wrap_tool_call=fail)
    through = node(lib, boom, wrap_tool_call=lambda request, execute: execute(request))
    runs = (handled, failing, default, raising, through)
    return [outcome(run, given) for run in runs for given in calls]


@on_both
async def test_wrappers_of_both_colours(lib: Api) -> object:
    async def awrap(request, execute):
        answer = await execute(request)
        answer.content += "!"
        return answer

    def wrap(request, execute):
        answer = execute(request)
        answer.content += "?"
        return answer

    given = asked(ADD)
    awaiting = node(lib, add, awrap_tool_call=awrap)
    blocking = node(lib, add, wrap_tool_call=wrap)
    both = node(lib, add, wrap_tool_call=wrap, awrap_tool_call=awrap)
    return [
        *(run(given) for run in (awaiting, blocking, both)),
        *[await run.later(given) for run in (awaiting, blocking, both)],
    ]


# -- beside the node ----------------------------------------------------------


@on_both
def test_the_condition_leads_to_tools_that_are_called(lib: Api) -> object:
    condition = lib.tools_condition
    called, said = calling(ADD), AIMessage("hi")
    return [
        *(condition([m]) for m in (called, said, HumanMessage("x"))),
        condition({"messages": [called]}),
        condition({"messages": [called, said]}),
        condition(Model(messages=[called])),
        condition({"talk": [called]}, messages_key="talk"),
        outcome(condition, {"messages": []}),
        outcome(condition, {"other": 1}),
    ]


class Answer(BaseModel):
    "An answer."

    a: int


@on_both
def test_a_validation_node_checks_calls(lib: Api) -> object:
    run = lib.ValidationNode([Answer, boom, add])
    told = lib.ValidationNode(
        [Answer], format_error=lambda e, call, s: f"{call['name']} {s.__name__}"
    )
    right = ("Answer", {"a": 1}), ("boom", {"a": 2}), ADD
    wrong = calling(("Answer", {"a": "x"}))
    kept = [m.additional_kwargs for m in told.invoke([wrong])]
    return [
        run.invoke(asked(*right)),
        run.invoke([calling(*right)]),
        run.invoke([wrong])[0].status,
        told.invoke([wrong]),
        kept,
        sorted(run.schemas_by_name),
        run.name,
        *(
            outcome(run.invoke, given)
            for given in (
                {"messages": []},
                {},
                [HumanMessage("x")],
                [calling(("z", {}))],
            )
        ),
    ]


@on_both
async def test_a_validation_node_is_awaited_too(lib: Api) -> object:
    return await lib.ValidationNode([Answer]).ainvoke(asked(("Answer", {"a": 1})))
