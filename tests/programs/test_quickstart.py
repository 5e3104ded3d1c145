"""First programs: state, reducers, schemas, messages, configuration.

Like the programs they stand for, these modules keep annotations as objects.
"""

import operator
from dataclasses import dataclass
from typing import Annotated, Literal

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread


@on_both
def test_a_chatbot_answers_and_remembers(lib: Api) -> object:
    model = GenericFakeChatModel(messages=iter([AIMessage("hi"), AIMessage("Ada")]))

    def chat(state: lib.MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node("chat", chat)
    graph.add_edge(lib.START, "chat")
    app = graph.compile(checkpointer=lib.InMemorySaver())

    first = app.invoke({"messages": [("user", "I am Ada")]}, thread())
    second = app.invoke({"messages": [{"role": "user", "content": "who?"}]}, thread())
    other = app.get_state(thread("2"))
    return first["messages"], second["messages"], other


@on_both
def test_an_agent_loops_over_its_tools(lib: Api) -> object:
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "call-1"}
    script = iter([AIMessage("", tool_calls=[call]), AIMessage("it is 3")])
    model = GenericFakeChatModel(messages=script)

    class State(TypedDict):
        messages: Annotated[list, lib.add_messages]
        calls: int

    def llm(state: State):
        answer = model.invoke(state["messages"])
        return {"messages": [answer], "calls": state.get("calls", 0) + 1}

    def tools(state: State):
        return {
            "messages": [
                ToolMessage(content=add.invoke(one["args"]), tool_call_id=one["id"])
                for one in state["messages"][-1].tool_calls
            ]
        }

    def more(state: State) -> Literal["tools", "__end__"]:
        return "tools" if state["messages"][-1].tool_calls else lib.END

    graph = lib.StateGraph(State)
    graph.add_node("llm", llm)
    graph.add_node("tools", tools)
    graph.add_edge(lib.START, "llm")
    graph.add_conditional_edges("llm", more, ["tools", lib.END])
    graph.add_edge("tools", "llm")
    app = graph.compile()
    return list(app.stream({"messages": "1+2?"}, stream_mode="updates"))


@on_both
def test_messages_are_replaced_and_removed(lib: Api) -> object:
    def shorten(state: lib.MessagesState):
        old = state["messages"][:-2]
        return {"messages": [RemoveMessage(id=one.id) for one in old]}

    def correct(state: lib.MessagesState):
        last = state["messages"][-1]
        return {"messages": [HumanMessage(last.content.upper(), id=last.id)]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_sequence([shorten, correct])
    graph.add_edge(lib.START, "shorten")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    given = [HumanMessage(text, id=text) for text in "abcd"]
    result = app.invoke({"messages": given}, thread())
    wipe = RemoveMessage(id=lib.REMOVE_ALL_MESSAGES)
    app.update_state(thread(), {"messages": [wipe, HumanMessage("new", id="n")]})
    return result, app.get_state(thread()).values


@on_both
def test_reducers_fold_the_updates(lib: Api) -> object:
    class State(TypedDict):
        foo: int
        bar: Annotated[list[str], operator.add]

    def one(state: State):
        return {"foo": 2}

    def two(state: State):
        return {"bar": ["bye"]}

    graph = lib.StateGraph(State)
    graph.add_sequence([one, two])
    graph.add_edge(lib.START, "one")
    return graph.compile().invoke({"foo": 1, "bar": ["hi"]})


@on_both
def test_a_reducer_is_bypassed_by_overwrite(lib: Api) -> object:
    class State(TypedDict):
        items: Annotated[list, operator.add]

    def add(state: State):
        return {"items": ["more"]}

    def replace(state: State):
        return {"items": lib.Overwrite(["only"])}

    graph = lib.StateGraph(State)
    graph.add_sequence([add, replace])
    graph.add_edge(lib.START, "add")
    return list(graph.compile().stream({"items": ["first"]}, stream_mode="values"))


@on_both
def test_input_output_and_private_schemas(lib: Api) -> object:
    class Question(TypedDict):
        question: str

    class Answer(TypedDict):
        answer: str

    class Overall(Question, Answer):
        notes: str

    class Hidden(TypedDict):
        draft: str

    def think(state: Question) -> Hidden:
        return {"draft": state["question"] + "!"}

    def note(state: Hidden) -> Overall:
        return {"notes": f"keys {sorted(state)}", "answer": state["draft"]}

    def answer(state: Overall) -> Answer:
        return {"answer": state["answer"] + state["notes"]}

    graph = lib.StateGraph(Overall, input_schema=Question, output_schema=Answer)
    graph.add_sequence([think, note, answer])
    graph.add_edge(lib.START, "think")
    graph.add_edge("answer", lib.END)
    app = graph.compile()
    return app.invoke({"question": "q"}), list(app.stream({"question": "q"}))


@on_both
def test_a_pydantic_state_reaches_nodes_as_a_model(lib: Api) -> object:
    class Address(BaseModel):
        city: str

    class Person(BaseModel):
        name: str
        age: int
        address: Address

    seen = []

    def birthday(state: Person):
        seen.append((type(state).__name__, type(state.address).__name__))
        return {"age": state.age + 1}

    graph = lib.StateGraph(Person)
    graph.add_node(birthday)
    graph.add_edge(lib.START, "birthday")
    app = graph.compile()
    given = {"name": "Ada", "age": "36", "address": {"city": "London"}}
    result = app.invoke(given)
    return seen, result["age"]


@on_both
def test_a_pydantic_state_rejects_bad_input(lib: Api) -> object:
    class State(BaseModel):
        age: int

    graph = lib.StateGraph(State)
    graph.add_node("read", lambda state: {"age": state.age})
    graph.add_edge(lib.START, "read")
    app = graph.compile()
    try:
        app.invoke({"age": "old"})
    except ValueError:
        return "rejected"
    return "accepted"


@on_both
def test_a_dataclass_state_has_defaults(lib: Api) -> object:
    @dataclass
    class State:
        name: str
        greeting: str = "hello"

    def greet(state: State):
        return {"greeting": f"{state.greeting}, {state.name}"}

    graph = lib.StateGraph(State)
    graph.add_node(greet)
    graph.add_edge(lib.START, "greet")
    app = graph.compile()
    return app.invoke({"name": "Ada"}), app.invoke(State("Bob", "bye"))


@on_both
def test_nodes_read_the_config(lib: Api) -> object:
    class State(TypedDict):
        text: str

    def node(state: State, config: RunnableConfig):
        chosen = config["configurable"].get("language", "en")
        return {"text": f"{state['text']} in {chosen} for {sorted(config['tags'])}"}

    graph = lib.StateGraph(State)
    graph.add_node(node)
    graph.add_edge(lib.START, "node")
    app = graph.compile()
    german = {"configurable": {"language": "de"}, "tags": ["a"]}
    bound = app.with_config(configurable={"language": "fr"}, tags=["b"])
    return (
        app.invoke({"text": "hi"}, german),
        bound.invoke({"text": "hi"}),
        bound.invoke({"text": "hi"}, german),
    )


@on_both
def test_nodes_read_the_runtime_context(lib: Api) -> object:
    @dataclass
    class Context:
        user: str
        level: int = 1

    class State(TypedDict):
        log: Annotated[list, operator.add]

    Runtime = lib.Runtime

    def by_parameter(state: State, runtime: Runtime[Context]):
        return {"log": [runtime.context.user]}

    def by_call(state: State):
        return {"log": [lib.get_runtime(Context).context.level]}

    graph = lib.StateGraph(State, context_schema=Context)
    graph.add_sequence([by_parameter, by_call])
    graph.add_edge(lib.START, "by_parameter")
    app = graph.compile()
    return (
        app.invoke({"log": []}, context=Context("ada")),
        app.invoke({"log": []}, context={"user": "bob", "level": 3}),
    )


@on_both
def test_runnables_are_nodes(lib: Api) -> object:
    class State(TypedDict):
        n: int

    double = RunnableLambda(lambda state: {"n": state["n"] * 2})
    chain = double | RunnableLambda(lambda update: {"n": update["n"] + 1})
    graph = lib.StateGraph(State)
    graph.add_node("double", double)
    graph.add_node("chain", chain)
    graph.add_edge(lib.START, "double")
    graph.add_edge("double", "chain")
    return graph.compile().invoke({"n": 2})


@on_both
def test_the_old_names_of_entry_and_finish_work(lib: Api) -> object:
    class State(TypedDict):
        n: int

    graph = lib.StateGraph(State)
    graph.add_node("a", lambda state: {"n": state["n"] + 1})
    graph.add_node("b", lambda state: {"n": state["n"] * 10})
    graph.set_conditional_entry_point(lambda state: "a" if state["n"] else "b")
    graph.add_edge("a", "b")
    graph.set_finish_point("b")
    app = graph.compile(name="old")
    return app.name, app.invoke({"n": 0}), app.invoke({"n": 2})
