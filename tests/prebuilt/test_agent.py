"""`create_react_agent` beside the peer's: messages, drawings, streams, answers."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel
from tests.programs.both import on_both, thread
from typing_extensions import TypedDict

from towpath.testing.api import Api
from towpath.testing.models import ScriptedChatModel, calling

VERSIONS = ("v1", "v2")
HI = {"messages": [("user", "hi")]}


@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


@tool(return_direct=True)
def final(a: int) -> int:
    "Give the answer itself."
    return a


def two_calls() -> AIMessage:
    return calling(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}))


def scripted(*lines: Any, **more: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=lines or (two_calls(), "done"), **more)


def said(message: BaseMessage) -> tuple[Any, ...]:
    """A message without its id."""
    calls = [(c["name"], c["args"]) for c in getattr(message, "tool_calls", ())]
    return message.type, message.content, message.name, calls


def told(state: Any) -> Any:
    """The messages of a state without their ids, and the rest."""
    rest = {k: v for k, v in state.items() if k not in ("messages", "__interrupt__")}
    return [said(message) for message in state["messages"]], rest


def heard(model: ScriptedChatModel) -> list[list[tuple[str, Any]]]:
    return [[(m.type, m.content) for m in prompt] for prompt in model.prompts]


def drawn(agent: Any) -> Any:
    graph = agent.get_graph().to_json()
    nodes = sorted((n["id"], str(n.get("metadata"))) for n in graph["nodes"])
    edges = [(e["source"], e["target"], "conditional" in e) for e in graph["edges"]]
    return nodes, sorted(edges)


def refusal(build: Any) -> str:
    """Which public kind of error it is."""
    try:
        build()
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        kinds = (RuntimeError, TypeError, ImportError, ValueError)
        return next(kind.__name__ for kind in kinds if isinstance(error, kind))
    return "none"


# -- shapes -------------------------------------------------------------------


def hooks(lib: Api) -> dict[str, dict[str, Any]]:
    before = {"pre_model_hook": lambda state: {"messages": []}}
    after = {"post_model_hook": lambda state: {}}
    form = {"response_format": dict}
    return {
        "plain": {},
        "before": before,
        "after": after,
        "form": form,
        "all": {**before, **after, **form},
    }


@on_both
def test_agents_of_every_shape(lib: Api) -> object:
    found = []
    for tools in ([], [add], [add, final]):
        for name, options in hooks(lib).items():
            model = scripted(*(("done",) if not tools else ()), structured=[{"x": 1}])
            agent = lib.create_react_agent(model, tools, **options)
            found.append((name, drawn(agent), told(agent.invoke(HI)), heard(model)))
    return found


@on_both
def test_agents_that_run_all_tools_in_one_node(lib: Api) -> object:
    found = []
    for name, options in hooks(lib).items():
        if "post_model_hook" in options:
            continue  # the peer fails there
        model = scripted(structured=[{"x": 1}])
        agent = lib.create_react_agent(model, [add, final], version="v1", **options)
        found.append((name, drawn(agent), told(agent.invoke(HI)), heard(model)))
    return found


def test_a_hook_after_the_model_works_in_both_versions():
    from towpath.prebuilt import create_react_agent

    agents = [
        create_react_agent(
            scripted(), [add], post_model_hook=lambda state: {}, version=version
        )
        for version in VERSIONS
    ]
    first, second = (told(agent.invoke(HI)) for agent in agents)

    assert first == second
    assert ["3", "7"] == [content for kind, content, *_ in first[0] if kind == "tool"]


@on_both
async def test_agents_of_both_colours_stream_the_same_updates(lib: Api) -> object:
    found = []
    for version in VERSIONS:
        options = {"version": version, "response_format": dict}
        make = lambda options=options: lib.create_react_agent(
            scripted(structured=[{"x": 1}]), [add], **options
        )
        blocking = list(make().stream(HI, stream_mode="updates"))
        awaited = [c async for c in make().astream(HI, stream_mode="updates")]
        for chunks in (blocking, awaited):
            shown = [
                (n, told({"messages": [], **u})) for c in chunks for n, u in c.items()
            ]
            found.append(sorted(shown, key=str))  # results come as the tools finish
    return found


@on_both
def test_tokens_are_streamed(lib: Api) -> object:
    agent = lib.create_react_agent(scripted(two_calls(), "one two three"), [add])
    chunks = list(agent.stream(HI, stream_mode="messages"))
    shown = [(c.type, c.content, m["langgraph_node"]) for c, m in chunks]
    # Results come as the tools finish.
    return [c for c in shown if c[0] != "tool"], sorted(
        c for c in shown if c[0] == "tool"
    )


@on_both
def test_a_run_ends_where_the_tool_is_the_answer(lib: Api) -> object:
    found = []
    for version in VERSIONS:
        for script in (
            calling(("final", {"a": 1})),
            calling(("final", {"a": "x"})),
            calling(("final", {"a": 1}), ("add", {"a": 1, "b": 2})),
            calling(("add", {"a": 1, "b": 2}), ("final", {"a": 1})),
        ):
            model = scripted(script, "done", structured=[{"x": 1}])
            agent = lib.create_react_agent(
                model, [final, add], version=version, response_format=dict
            )
            found.append(told(agent.invoke(HI)))
    return found


@on_both
def test_an_agent_says_when_it_is_short_of_steps(lib: Api) -> object:
    found = []
    for version in VERSIONS:
        for call in (two_calls(), calling(("final", {"a": 1}))):
            for limit in (2, 3, 4, 5):
                agent = lib.create_react_agent(
                    ScriptedChatModel(again=call), [add, final], version=version
                )
                try:
                    found.append(told(agent.invoke(HI, {"recursion_limit": limit})))
                except RecursionError:
                    found.append("too many steps")
    return found


@on_both
def test_an_agent_stops_where_it_is_told_to(lib: Api) -> object:
    found = []
    for version in VERSIONS:
        agent = lib.create_react_agent(
            scripted(),
            [add],
            checkpointer=lib.InMemorySaver(),
            interrupt_before=["tools"],
            interrupt_after=["agent"],
            version=version,
        )
        found.append(told(agent.invoke(HI, thread())))
        found.append(agent.get_state(thread()).next)
        found.append(told(agent.invoke(None, thread())))
    return found


@on_both
def test_an_agent_and_its_messages_have_its_name(lib: Api) -> object:
    agent = lib.create_react_agent(scripted(), [add], name="bob")
    nameless = lib.create_react_agent(scripted(), [add])
    return agent.name, told(agent.invoke(HI)), nameless.name


# -- prompts ------------------------------------------------------------------


@on_both
def test_prompts_of_every_form(lib: Api) -> object:
    template = ChatPromptTemplate.from_messages(
        [("system", "template"), ("placeholder", "{messages}")]
    )
    prompts = (
        None,
        "text",
        SystemMessage("message"),
        lambda state: [SystemMessage("function"), *state["messages"]],
        lambda state: [HumanMessage(str(sorted(state)))],
        RunnableLambda(lambda state: [HumanMessage(f"runnable {len(state)}")]),
        template,
    )
    found = []
    for prompt in prompts:
        model = scripted("done")
        lib.create_react_agent(model, [add], prompt=prompt).invoke(HI)
        found.append(heard(model))
    return found


@on_both
def test_a_prompt_is_given_what_nodes_are_given(lib: Api) -> object:
    def prompt(state, config, *, store):
        return [HumanMessage(f"{config['metadata']['z']} {type(store).__name__}")]

    model = scripted("done")
    agent = lib.create_react_agent(
        model, [add], prompt=prompt, store=lib.InMemoryStore()
    )
    agent.invoke(HI, {"metadata": {"z": 1}})
    return heard(model)


@on_both
async def test_an_async_prompt(lib: Api) -> object:
    async def prompt(state):
        return [SystemMessage("async"), *state["messages"]]

    model = scripted("done")
    agent = lib.create_react_agent(model, [add], prompt=prompt)
    await agent.ainvoke(HI)
    return heard(model), refusal(lambda: agent.invoke(HI))


@on_both
def test_a_hook_may_choose_what_the_model_hears(lib: Api) -> object:
    class Pydantic(lib.AgentStatePydantic):
        more: int = 1

    found = []
    for schema in (None, Pydantic):
        model = scripted("done")
        agent = lib.create_react_agent(
            model,
            [add],
            prompt="text",
            pre_model_hook=lambda state: {"llm_input_messages": [HumanMessage("only")]},
            state_schema=schema,
        )
        found.append((told(agent.invoke(HI)), heard(model)))
    return found


@on_both
async def test_hooks_of_every_kind(lib: Api) -> object:
    async def awaited(state):
        return {"llm_input_messages": [HumanMessage("awaited")]}

    def given(state, config, runtime: lib.Runtime):
        told = f"{config['metadata']['z']} {runtime.context}"
        return {"llm_input_messages": [HumanMessage(told)]}

    runnable = RunnableLambda(
        lambda state: {"llm_input_messages": [HumanMessage("runnable")]}
    )
    found = []
    for hook in (awaited, given, runnable):
        model = scripted("done")
        agent = lib.create_react_agent(
            model, [add], pre_model_hook=hook, post_model_hook=runnable
        )
        await agent.ainvoke(HI, {"metadata": {"z": 1}}, context="here")
        found.append(heard(model))
    return found


def after_hooks() -> list[Any]:
    def last(state):
        return state["messages"][-1]

    def calls(state):
        return getattr(last(state), "tool_calls", ())

    def replace(state):
        return {"messages": [RemoveMessage(last(state).id), AIMessage("no")]}

    def answer(count):
        def hook(state):
            answered = [ToolMessage("x", tool_call_id=c["id"]) for c in calls(state)]
            return {"messages": answered[:count]}

        return hook

    return [replace, answer(1), answer(2)]


@on_both
def test_a_hook_after_the_model_may_answer_calls(lib: Api) -> object:
    found = []
    for hook in after_hooks():
        agent = lib.create_react_agent(scripted(), [add], post_model_hook=hook)
        found.append(told(agent.invoke(HI)))
    return found


# -- models -------------------------------------------------------------------


@on_both
def test_models_that_have_tools_already(lib: Api) -> object:
    make = lib.create_react_agent
    model = scripted("done")
    behind = RunnableLambda(lambda given: given) | scripted("done").bind_tools([add])
    return [
        told(make(model.bind_tools([add]), [add]).invoke(HI)),
        told(make(behind, [add]).invoke(HI)),
        refusal(lambda: make(model.bind_tools([final]), [add])),
        refusal(lambda: make(model.bind_tools([final, add]), [add])),
        told(make(RunnableLambda(lambda given: AIMessage("said")), []).invoke(HI)),
        refusal(lambda: make("nobody:nothing", [add])),
    ]


@on_both
def test_a_providers_own_tools_are_shown_to_the_model_alone(lib: Api) -> object:
    model = scripted("done", "done")
    search = {"type": "web_search"}
    both = lib.create_react_agent(model, [add, search])
    only = lib.create_react_agent(model, [search])
    both.invoke(HI)
    only.invoke(HI)
    shown = [[sorted(t) for t in options["tools"]] for options in model.options]
    return shown, sorted(only.nodes), sorted(both.nodes)


def test_what_was_bound_to_a_model_stays_bound():
    """The peer drops it, and binds the tools to the bare model."""
    from towpath.prebuilt import create_react_agent

    model = scripted("done", "done")
    create_react_agent(model.bind(stop=["x"], top=1), [add]).invoke(HI)
    behind = RunnableLambda(lambda given: given) | model
    create_react_agent(behind, [add]).invoke(HI)

    assert [1, None] == [options.get("top") for options in model.options]
    assert [1, 1] == [len(options["tools"]) for options in model.options]


@on_both
async def test_a_function_chooses_the_model(lib: Api) -> object:
    first, second = scripted(two_calls(), two_calls()), scripted("two", "two")
    seen = []

    def choose(state, runtime):
        seen.append((sorted(state), runtime.context))
        few = len(state["messages"]) < 2
        return first.bind_tools([add]) if few else second

    async def achoose(state, runtime):
        return choose(state, runtime)

    options = {"context_schema": dict, "prompt": "text"}
    blocking = lib.create_react_agent(choose, [add], **options)
    awaited = lib.create_react_agent(achoose, [add], **options)
    return [
        told(blocking.invoke(HI, context={"k": 1})),
        told(await awaited.ainvoke(HI, context={"k": 2})),
        refusal(lambda: awaited.invoke(HI)),
        [len(options.get("tools", ())) for options in first.options],
        [heard(model) for model in (first, second)],
        seen,
    ]


class Form(BaseModel):
    x: int


@on_both
async def test_answers_in_a_given_form(lib: Api) -> object:
    found = []
    for form in (Form, dict, ("as a form", Form)):
        for wrap in (
            lambda model: model,
            lambda model: model.bind_tools([add]),
            lambda model: RunnableLambda(lambda given: given) | model.bind_tools([add]),
            lambda model: lambda state, runtime: model,
        ):
            model = scripted("done", "done", structured=[{"x": 1}, {"x": 2}])
            agent = lib.create_react_agent(
                wrap(model), [add], response_format=form, prompt="text"
            )
            found.append(told(agent.invoke(HI)))
            found.append(told(await agent.ainvoke(HI)))
            found.append(
                [[(m.type, m.content) for m in p] for p in model.structured_prompts]
            )
    return found


# -- states -------------------------------------------------------------------


@on_both
def test_states_of_every_kind(lib: Api) -> object:
    class Extended(lib.AgentState):
        more: int

    class Pydantic(lib.AgentStatePydantic):
        more: int = 1

    class Structured(lib.AgentStateWithStructuredResponse):
        more: int

    class Nothing(TypedDict):
        more: int

    class NoSteps(TypedDict):
        messages: Annotated[list, lib.add_messages]

    def run(schema, **options):
        model = scripted(structured=[{"x": 1}])
        agent = lib.create_react_agent(model, [add], state_schema=schema, **options)
        return told(agent.invoke({**HI, "more": 3}))

    return [
        run(Extended),
        run(Pydantic),
        run(Structured, response_format=dict),
        *(
            refusal(lambda s=schema, o=options: run(s, **o))
            for schema, options in (
                (Nothing, {}),
                (NoSteps, {}),
                (Extended, {"response_format": dict}),
            )
        ),
        sorted(lib.AgentState.__required_keys__),
        sorted(lib.AgentState.__annotations__),
    ]


@on_both
def test_tools_of_an_agent_read_and_write_its_state(lib: Api) -> object:
    class State(lib.AgentState):
        user: str

    @tool
    def rename(name: str, runtime: lib.ToolRuntime) -> lib.Command:
        "Rename the user."
        done = ToolMessage("renamed", tool_call_id=runtime.tool_call_id)
        return lib.Command(update={"user": name, "messages": [done]})

    @tool
    def whoami(user: Annotated[str, lib.InjectedState("user")]) -> str:
        "Who it is."
        return user

    found = []
    for version in VERSIONS:
        model = scripted(
            calling(("rename", {"name": "Bob"}), ("whoami", {})),
            calling(("whoami", {}), id="again"),
            "done",
        )
        agent = lib.create_react_agent(
            model, [rename, whoami], state_schema=State, version=version
        )
        found.append(told(agent.invoke({**HI, "user": "Ada"})))
    return found


@on_both
def test_what_cannot_be_an_agent_is_refused(lib: Api) -> object:
    make = lib.create_react_agent
    return [
        refusal(lambda: make(scripted(), [add], version="v3")),
        refusal(lambda: make(scripted(), [add], unknown=1)),
        refusal(lambda: make(scripted(), [add], prompt=3)),
        refusal(lambda: make(scripted(), [add]).invoke({"messages": [two_calls()]})),
    ]


@on_both
def test_a_tool_node_of_ones_own(lib: Api) -> object:
    node = lib.ToolNode([add], name="other", handle_tool_errors="oops")
    script = calling(("add", {"a": "x", "b": 1}))
    agent = lib.create_react_agent(scripted(script, "done"), node)
    return told(agent.invoke(HI)), drawn(agent)


@on_both
def test_a_person_answers_a_question_of_each_call(lib: Api) -> object:
    @tool
    def ask(question: str) -> str:
        "Ask a person."
        return lib.interrupt(question)

    script = calling(("ask", {"question": "A"}), ("ask", {"question": "B"}))
    agent = lib.create_react_agent(
        scripted(script, "done"), [ask], checkpointer=lib.InMemorySaver()
    )
    paused = agent.invoke(HI, thread())["__interrupt__"]
    answers = {question.id: f"to {question.value}" for question in paused}
    done = agent.invoke(lib.Command(resume=answers), thread())
    return sorted(question.value for question in paused), told(done)


def test_a_failing_tool_leaves_a_conversation_that_can_go_on():
    """The peer raises, and refuses the thread from then on."""
    from towpath.checkpoint.memory import InMemorySaver
    from towpath.prebuilt import create_react_agent

    @tool
    def fail() -> str:
        "Fail."
        raise ConnectionError("no network")

    model = scripted(calling(("fail", {})), "It failed.", "Hello.")
    agent = create_react_agent(model, [fail], checkpointer=InMemorySaver())
    agent.invoke(HI, thread())
    state = agent.invoke({"messages": [("user", "go on")]}, thread())

    assert "Hello." == state["messages"][-1].content
    assert "error" == state["messages"][2].status


@dataclass
class Chart:
    points: list[int]


def test_answers_and_artifacts_of_ones_own_classes_are_stored():
    from towpath.checkpoint.sqlite import SqliteSaver
    from towpath.prebuilt import create_react_agent

    @tool(response_format="content_and_artifact")
    def draw(n: int) -> tuple[str, Chart]:
        "Draw a chart."
        return "drawn", Chart([n])

    turn = calling(("draw", {"n": 1}), ("draw", {"n": 2}))
    for version in VERSIONS:
        with SqliteSaver.from_conn_string(":memory:") as saver:
            model = scripted(turn, "done", structured=[{"x": 1}])
            agent = create_react_agent(
                model, [draw], response_format=Form, checkpointer=saver, version=version
            )
            agent.invoke(HI, thread())
            values = agent.get_state(thread()).values

        charts = [m.artifact for m in values["messages"] if m.type == "tool"]
        assert [Chart([1]), Chart([2])] == charts
        assert Form(x=1) == values["structured_response"]


def test_a_json_schema_is_a_form_of_answers():
    from towpath.prebuilt import create_react_agent

    form = {"title": "Form", "type": "object", "properties": {"x": {"type": "integer"}}}
    model = scripted("done", structured=[{"x": 1}])
    agent = create_react_agent(model, [], response_format=form)

    assert {"x": 1} == agent.invoke(HI)["structured_response"]


def test_former_names_of_arguments_warn():
    from towpath.prebuilt import create_react_agent
    from towpath.warnings import LangGraphDeprecatedSinceV10

    with pytest.warns(LangGraphDeprecatedSinceV10):
        create_react_agent(scripted(), [add], config_schema=dict)
