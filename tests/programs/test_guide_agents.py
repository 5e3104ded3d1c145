"""How-tos of agents: tools, their errors and state, hooks, structured output."""

import operator
from typing import Annotated, Any

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from pydantic import BaseModel

from towpath.testing.api import Api
from towpath.testing.models import ScriptedChatModel

from .both import on_both, thread
from .guides import tried


def calls(*several, content=""):
    """A message of a model that calls tools: (name, args, id)."""
    return AIMessage(
        content,
        id="ai-" + "-".join(id_ for _, _, id_ in several),
        tool_calls=[
            {"name": name, "args": args, "id": id_, "type": "tool_call"}
            for name, args, id_ in several
        ],
    )


def brief(messages):
    return [
        (
            type(m).__name__,
            m.content,
            getattr(m, "name", None),
            getattr(m, "status", None),
            [c["name"] for c in getattr(m, "tool_calls", [])],
        )
        for m in messages
    ]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


def scripted(*messages):
    return ScriptedChatModel(script=list(messages))


def human(text="hi"):
    return {"messages": [HumanMessage(text, id="h")]}


# -- tool nodes ------------------------------------------------------------------


def tools_graph(lib: Api, tools, schema=None, **options):
    graph = lib.StateGraph(schema or lib.MessagesState)
    graph.add_node("tools", lib.ToolNode(tools, **options))
    graph.add_edge(lib.START, "tools")
    return graph.compile()


@on_both
def test_tools_are_called_in_parallel(lib: Api) -> object:
    app = tools_graph(lib, [add])
    asked = calls(("add", {"a": 1, "b": 2}, "1"), ("add", {"a": 3, "b": 4}, "2"))
    found = app.invoke({"messages": [asked]})
    return [(m.content, m.tool_call_id) for m in found["messages"][1:]]


@on_both
def test_errors_of_tools_become_messages_as_asked(lib: Api) -> object:
    def handler(error: ValueError) -> str:
        return f"handled {error}"

    def other(error: KeyError) -> str:
        return "never"

    seen = []
    asked = calls(("fail", {"why": "w"}, "1"))
    for handling in (
        True,
        False,
        "a text",
        handler,
        other,
        (ValueError,),
        (KeyError,),
        ValueError,
    ):
        app = tools_graph(lib, [fail], handle_tool_errors=handling)
        found = tried(
            lambda app=app: app.invoke({"messages": [asked]})["messages"][-1:]
        )
        seen.append(found if isinstance(found, Exception) else brief(found))
    return seen


@on_both
def test_wrong_calls_become_messages(lib: Api) -> object:
    seen = []
    for name, args in (
        ("add", {"a": "x"}),
        ("add", {}),
        ("nothing", {}),
        ("add", {"a": 1, "b": 2, "c": 3}),
    ):
        app = tools_graph(lib, [add])
        asked = calls((name, args, "1"))
        found = tried(lambda app=app, m=asked: app.invoke({"messages": [m]}))
        if isinstance(found, Exception):
            seen.append(found)
        else:
            last = found["messages"][-1]
            seen.append((last.status, last.name, last.content[:40]))
    return seen


@on_both
def test_tools_read_state_and_store(lib: Api) -> object:
    @tool
    def whole(x: int, state: Annotated[dict, lib.InjectedState]) -> str:
        """Read the state."""
        return f"{x} {sorted(state)}"

    @tool
    def one(x: int, user: Annotated[str, lib.InjectedState("user")]) -> str:
        """Read a key."""
        return f"{x} {user}"

    @tool
    def kept(x: int, store: Annotated[Any, lib.InjectedStore()]) -> str:
        """Read the store."""
        return f"{x} {store.get(('a',), 'k').value}"

    class State(lib.MessagesState):
        user: str

    store = lib.InMemoryStore()
    store.put(("a",), "k", {"v": 1})
    graph = lib.StateGraph(State)
    graph.add_node("tools", lib.ToolNode([whole, one, kept]))
    graph.add_edge(lib.START, "tools")
    app = graph.compile(store=store)
    asked = calls(
        *((t.name, {"x": n}, str(n)) for n, t in enumerate((whole, one, kept)))
    )
    found = app.invoke({"messages": [asked], "user": "ada"})
    return [m.content for m in found["messages"][1:]], sorted(
        whole.tool_call_schema.model_json_schema()["properties"]
    )


@on_both
def test_tools_with_a_runtime(lib: Api) -> object:
    def look(x: int, runtime) -> str:
        """Look around."""
        runtime.stream_writer({"x": x})
        return f"{x} {runtime.tool_call_id} {sorted(runtime.state)} {runtime.context}"

    look.__annotations__["runtime"] = lib.ToolRuntime
    made = tool(look)
    graph = lib.StateGraph(lib.MessagesState, context_schema=dict)
    graph.add_node("tools", lib.ToolNode([made]))
    graph.add_edge(lib.START, "tools")
    app = graph.compile()
    asked = calls(("look", {"x": 1}, "c1"))
    modes = ["custom", "values"]
    chunks = list(
        app.stream({"messages": [asked]}, stream_mode=modes, context={"u": 1})
    )
    return [c if mode == "custom" else brief(c["messages"]) for mode, c in chunks]


@on_both
def test_tools_return_commands(lib: Api) -> object:
    class State(lib.MessagesState):
        user: str

    @tool
    def learn(name: str, tool_call_id: Annotated[str, InjectedToolCallId]):
        """Learn a name."""
        return lib.Command(
            update={
                "user": name,
                "messages": [ToolMessage("learnt", tool_call_id=tool_call_id)],
            }
        )

    @tool
    def leave(tool_call_id: Annotated[str, InjectedToolCallId]):
        """Hand over."""
        return lib.Command(
            goto="other",
            update={"messages": [ToolMessage("bye", tool_call_id=tool_call_id)]},
        )

    graph = lib.StateGraph(State)
    graph.add_node("tools", lib.ToolNode([learn, leave, add]))
    graph.add_node("other", lambda s: {"messages": [AIMessage("other", id="o")]})
    graph.add_edge(lib.START, "tools")
    app = graph.compile()
    seen = []
    for several in (
        [("learn", {"name": "ada"}, "1"), ("add", {"a": 1, "b": 1}, "2")],
        [("leave", {}, "1")],
    ):
        found = app.invoke({"messages": [calls(*several)]})
        seen.append((found.get("user"), brief(found["messages"])))
    return seen


@on_both
def test_a_tool_returns_content_and_an_artifact(lib: Api) -> object:
    @tool(response_format="content_and_artifact")
    def both(x: int):
        """Return both."""
        return f"content {x}", {"artifact": x}

    @tool
    def parts() -> list:
        """Return parts."""
        return [{"type": "text", "text": "a"}, "b"]

    @tool
    def table() -> dict:
        """Return a dict."""
        return {"a": 1, "b": [None, 2.5], "ü": "ß"}

    app = tools_graph(lib, [both, parts, table])
    found = app.invoke(
        {
            "messages": [
                calls(("both", {"x": 1}, "1"), ("parts", {}, "2"), ("table", {}, "3"))
            ]
        }
    )
    return [(m.content, m.artifact) for m in found["messages"][1:]]


@on_both
def test_a_tool_node_takes_a_list_a_dict_and_a_model(lib: Api) -> object:
    asked = calls(("add", {"a": 1, "b": 2}, "1"))

    class State(BaseModel):
        chat: Annotated[list, operator.add] = []

    graph = lib.StateGraph(State)
    graph.add_node("tools", lib.ToolNode([add], messages_key="chat"))
    graph.add_edge(lib.START, "tools")
    found = graph.compile().invoke({"chat": [asked]})
    bare = lib.StateGraph(Annotated[list, operator.add])
    bare.add_node("tools", lib.ToolNode([add]))
    bare.add_edge(lib.START, "tools")
    return brief(found["chat"]), brief(bare.compile().invoke([asked]))


@on_both
def test_the_condition_of_tools(lib: Api) -> object:
    asked = calls(("add", {}, "1"))
    return [
        lib.tools_condition({"messages": [asked]}),
        lib.tools_condition({"messages": [AIMessage("x")]}),
        lib.tools_condition([asked]),
        lib.tools_condition({"chat": [asked]}, messages_key="chat"),
    ]


@on_both
def test_a_tool_node_is_a_runnable(lib: Api) -> object:
    node = lib.ToolNode([add])
    return (
        isinstance(node, Runnable),
        node.name,
        sorted(node.tools_by_name),
        (RunnableLambda(lambda x: x) | node) is not None,
        node.get_name(),
    )


@on_both
def test_a_tool_asks_a_person(lib: Api) -> object:
    ran = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        answer = lib.interrupt({"pay": amount})
        return f"paid {answer}"

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("tools", lib.ToolNode([pay, add]))
    graph.add_edge(lib.START, "tools")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    asked = calls(("pay", {"amount": 5}, "1"), ("add", {"a": 1, "b": 1}, "2"))
    first = app.invoke({"messages": [asked]}, thread())
    done = app.invoke(lib.Command(resume="ok"), thread())
    return [i.value for i in first["__interrupt__"]], brief(done["messages"])


# -- agents ----------------------------------------------------------------------


@on_both
def test_an_agent_answers_with_its_tools(lib: Api) -> object:
    model = scripted(calls(("add", {"a": 1, "b": 2}, "1")), AIMessage("three", id="z"))
    app = lib.create_react_agent(model, [add], prompt="Be brief.")
    chunks = list(app.stream(human(), stream_mode="updates"))
    return [(list(c), [brief(v["messages"]) for v in c.values()]) for c in chunks]


@on_both
def test_prompts_of_every_kind(lib: Api) -> object:
    def as_function(state):
        return [SystemMessage("function"), *state["messages"]]

    seen = []
    for prompt in (
        None,
        "text",
        SystemMessage("system"),
        as_function,
        RunnableLambda(as_function),
    ):
        model = scripted(AIMessage("done", id="z"))
        app = lib.create_react_agent(model, [add], prompt=prompt)
        found = app.invoke(human())
        seen.append(brief(found["messages"]))
    return seen


@on_both
def test_hooks_before_and_after_the_model(lib: Api) -> object:
    def trim(state):
        return {"llm_input_messages": state["messages"][-1:]}

    def after(state):
        return {"messages": [AIMessage("after", id="after")]}

    model = scripted(AIMessage("done", id="z"))
    app = lib.create_react_agent(model, [], pre_model_hook=trim, post_model_hook=after)
    chunks = list(app.stream(human(), stream_mode="updates"))
    return [list(c) for c in chunks], sorted(app.get_graph().nodes)


@on_both
def test_a_hook_rewrites_the_history(lib: Api) -> object:
    def summarise(state):
        return {
            "messages": [
                RemoveMessage(lib.REMOVE_ALL_MESSAGES),
                HumanMessage("summary", id="s"),
            ]
        }

    model = scripted(AIMessage("done", id="z"))
    app = lib.create_react_agent(model, [], pre_model_hook=summarise)
    return brief(app.invoke(human())["messages"])


@on_both
def test_structured_answers(lib: Api) -> object:
    class Answer(BaseModel):
        number: int

    model = ScriptedChatModel(
        messages=[AIMessage("three", id="z")], structured=[{"number": 3}]
    )
    app = tried(lambda: lib.create_react_agent(model, [add], response_format=Answer))
    found = tried(lambda: app.invoke(human()))
    if isinstance(found, Exception):
        return type(found).__name__
    return repr(found["structured_response"]), brief(found["messages"])


@on_both
def test_an_agent_with_a_state_of_its_own(lib: Api) -> object:
    class State(lib.AgentState):
        user: str

    @tool
    def who(user: Annotated[str, lib.InjectedState("user")]) -> str:
        """Tell who it is."""
        return user

    model = scripted(calls(("who", {}, "1")), AIMessage("done", id="z"))
    app = lib.create_react_agent(model, [who], state_schema=State)
    found = app.invoke({**human(), "user": "ada"})
    return brief(found["messages"]), found["user"]


@on_both
def test_an_agent_remembers_and_forgets(lib: Api) -> object:
    model = scripted(
        AIMessage("one", id="1"), AIMessage("two", id="2"), AIMessage("three", id="3")
    )
    app = lib.create_react_agent(model, [], checkpointer=lib.InMemorySaver())
    seen = []
    for name, text in (("1", "a"), ("1", "b"), ("2", "c")):
        given = {"messages": [HumanMessage(text, id=text)]}
        seen.append(brief(app.invoke(given, thread(name))["messages"]))
    return seen


@on_both
def test_an_agent_stops_before_its_tools(lib: Api) -> object:
    model = scripted(calls(("add", {"a": 1, "b": 2}, "1")), AIMessage("done", id="z"))
    app = lib.create_react_agent(
        model, [add], checkpointer=lib.InMemorySaver(), interrupt_before=["tools"]
    )
    app.invoke(human(), thread())
    state = app.get_state(thread())
    last = state.values["messages"][-1]
    edited = calls(("add", {"a": 5, "b": 5}, "1"))
    edited.id = last.id
    app.update_state(thread(), {"messages": [edited]})
    seen = [state.next, app.get_state(thread()).next]
    found = app.invoke(None, thread())
    return seen, brief(found["messages"])


@on_both
def test_an_agent_runs_out_of_steps(lib: Api) -> object:
    def loops():
        return scripted(*(calls(("add", {"a": n, "b": n}, str(n))) for n in range(9)))

    seen = []
    for version in ("v1", "v2"):
        app = lib.create_react_agent(loops(), [add], version=version)
        found = tried(lambda a=app: a.invoke(human(), {"recursion_limit": 4}))
        seen.append(
            found if isinstance(found, Exception) else brief(found["messages"])[-1]
        )
    return seen


@on_both
def test_a_tool_returns_directly(lib: Api) -> object:
    @tool(return_direct=True)
    def final(x: int) -> str:
        """Return at once."""
        return f"final {x}"

    model = scripted(calls(("final", {"x": 1}, "1")), AIMessage("never", id="z"))
    app = lib.create_react_agent(model, [final])
    return brief(app.invoke(human())["messages"])


@on_both
def test_a_model_is_chosen_at_run_time(lib: Api) -> object:
    big = scripted(AIMessage("big", id="b"))
    small = scripted(AIMessage("small", id="s"))

    def choose(state, runtime):
        return big if runtime.context["size"] == "big" else small

    app = lib.create_react_agent(choose, [], context_schema=dict)
    return [
        brief(app.invoke(human(), context={"size": size})["messages"])
        for size in ("big", "small")
    ]


@on_both
def test_agents_hand_over_by_tools(lib: Api) -> object:
    @tool
    def to_bob(
        tool_call_id: Annotated[str, InjectedToolCallId],
        state: Annotated[dict, lib.InjectedState],
    ):
        """Hand over to bob."""
        return lib.Command(
            goto="bob",
            graph=lib.Command.PARENT,
            update={
                "messages": [
                    *state["messages"],
                    ToolMessage("over", tool_call_id=tool_call_id, id="t"),
                ]
            },
        )

    alice = lib.create_react_agent(
        scripted(calls(("to_bob", {}, "1"))), [to_bob], name="alice"
    )
    bob = lib.create_react_agent(
        scripted(AIMessage("bob here", id="z")), [], name="bob"
    )
    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("alice", alice, destinations=("bob",))
    graph.add_node("bob", bob)
    graph.add_edge(lib.START, "alice")
    app = graph.compile()
    found = app.invoke(human())
    return brief(found["messages"]), sorted(
        (e.source, e.target) for e in app.get_graph().edges
    )


@on_both
def test_a_broken_history_is_refused(lib: Api) -> object:
    app = lib.create_react_agent(scripted(AIMessage("x")), [add])
    given = {
        "messages": [HumanMessage("a"), calls(("add", {}, "1")), HumanMessage("b")]
    }
    return tried(lambda: app.invoke(given)).__class__.__mro__[-3].__name__
