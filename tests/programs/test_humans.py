"""A person in the loop: approve, edit, answer until it is right."""

import operator
from typing import Annotated, Literal

from langchain_core.messages import AIMessage, ToolMessage
from typing_extensions import TypedDict

from towpath.testing.api import Api

from .both import on_both, thread
from .guides import Log


class Note(TypedDict):
    text: str


@on_both
def test_a_person_answers_a_question(lib: Api) -> object:
    def human(state: Note):
        answer = lib.interrupt({"revise": state["text"]})
        return {"text": answer}

    graph = lib.StateGraph(Note)
    graph.add_node(human)
    graph.add_edge(lib.START, "human")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    paused = app.invoke({"text": "draft"}, thread())
    state = app.get_state(thread())
    done = app.invoke(lib.Command(resume="final"), thread())
    return paused, state, done, app.get_state(thread())


@on_both
def test_a_person_approves_or_rejects(lib: Api) -> object:
    Command = lib.Command

    class State(TypedDict):
        output: str
        decision: str

    def approval(state: State) -> Command[Literal["publish", "discard"]]:
        if lib.interrupt({"question": "publish?", "output": state["output"]}):
            return Command(goto="publish", update={"decision": "yes"})
        return Command(goto="discard", update={"decision": "no"})

    graph = lib.StateGraph(State)
    graph.add_node("draft", lambda state: {"output": "a text"})
    graph.add_node(approval)
    graph.add_node("publish", lambda state: {"output": state["output"] + " is out"})
    graph.add_node("discard", lambda state: {"output": ""})
    graph.add_edge(lib.START, "draft")
    graph.add_edge("draft", "approval")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for name, answer in (("1", True), ("2", False)):
        seen.append(app.invoke({}, thread(name)))
        seen.append(list(app.stream(Command(resume=answer), thread(name))))
        seen.append(app.get_state(thread(name)).values)
    return seen


@on_both
def test_a_question_is_asked_until_the_answer_is_valid(lib: Api) -> object:
    class State(TypedDict):
        age: int

    def ask(state: State):
        question = "how old?"
        while True:
            answer = lib.interrupt(question)
            if isinstance(answer, int) and answer > 0:
                return {"age": answer}
            question = f"{answer!r} is no age"

    graph = lib.StateGraph(State)
    graph.add_node(ask)
    graph.add_edge(lib.START, "ask")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({}, thread())]
    for answer in ("old", -1, 36):
        seen.append(app.invoke(lib.Command(resume=answer), thread()))
    return seen


@on_both
def test_several_people_are_asked_at_once(lib: Api) -> object:
    class State(TypedDict):
        answers: Annotated[list, operator.add]

    def ask(name: str):
        def node(state: State):
            return {"answers": [(name, lib.interrupt(f"{name}?"))]}

        return node

    graph = lib.StateGraph(State)
    for name in ("ada", "bob"):
        graph.add_node(name, ask(name))
        graph.add_edge(lib.START, name)
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.invoke({"answers": []}, thread())
    pending = app.get_state(thread()).interrupts
    answers = {one.id: f"re {one.value}" for one in pending}
    done = app.invoke(lib.Command(resume=answers), thread())
    return len(pending), done


@on_both
def test_one_node_asks_two_questions(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]

    def form(state: State):
        name = lib.interrupt("name?")
        city = lib.interrupt(f"{name}'s city?")
        return {"log": [name, city]}

    graph = lib.StateGraph(State)
    graph.add_node(form)
    graph.add_edge(lib.START, "form")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"log": []}, thread())]
    for answer in ("Ada", "London"):
        seen.append(app.invoke(lib.Command(resume=answer), thread()))
    return seen


@on_both
def test_an_answer_comes_with_an_update_and_a_goto(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]

    def ask(state: State):
        return {"log": [lib.interrupt("?")]}

    graph = lib.StateGraph(State)
    graph.add_node(ask)
    graph.add_node("end", lambda state: {"log": [f"end of {len(state['log'])}"]})
    graph.add_edge(lib.START, "ask")
    graph.add_edge("ask", "end")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    return app.invoke(lib.Command(resume="a", update={"log": ["u"]}), thread())


@on_both
def test_a_person_reviews_a_tool_call(lib: Api) -> object:
    Command = lib.Command

    def llm(state: lib.MessagesState):
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage("done", id="done")]}
        call = {"name": "buy", "args": {"n": 1}, "id": "c1"}
        return {"messages": [AIMessage("", tool_calls=[call], id="ask")]}

    def review(state: lib.MessagesState) -> Command[Literal["llm", "run"]]:
        last = state["messages"][-1]
        verdict = lib.interrupt({"call": last.tool_calls[0]["args"]})
        if verdict["action"] == "edit":
            call = {**last.tool_calls[0], "args": verdict["args"]}
            edited = AIMessage("", tool_calls=[call], id=last.id)
            return Command(goto="run", update={"messages": [edited]})
        refusal = ToolMessage("refused", tool_call_id="c1", id="no")
        return Command(goto="llm", update={"messages": [refusal]})

    def run(state: lib.MessagesState):
        call = state["messages"][-1].tool_calls[0]
        text = f"bought {call['args']['n']}"
        return {"messages": [ToolMessage(text, tool_call_id=call["id"], id="ok")]}

    def route(state: lib.MessagesState) -> Literal["review", "__end__"]:
        return "review" if state["messages"][-1].tool_calls else "__end__"

    graph = lib.StateGraph(lib.MessagesState)
    for node in (llm, review, run):
        graph.add_node(node)
    graph.add_edge(lib.START, "llm")
    graph.add_conditional_edges("llm", route)
    graph.add_edge("run", "llm")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for name, verdict in (
        ("1", {"action": "edit", "args": {"n": 5}}),
        ("2", {"action": "refuse"}),
    ):
        app.invoke({"messages": [("user", "buy")]}, thread(name))
        result = app.invoke(Command(resume=verdict), thread(name))
        seen.append([(one.type, one.content) for one in result["messages"]])
    return seen


@on_both
def test_static_breakpoints_stop_before_and_after(lib: Api) -> object:
    class State(TypedDict):
        log: Annotated[list, operator.add]

    graph = lib.StateGraph(State)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    app = graph.compile(
        checkpointer=lib.InMemorySaver(), interrupt_before=["b"], interrupt_after=["b"]
    )
    seen = []
    for given in ({"log": []}, None, None):
        seen.append(list(app.stream(given, thread())))
        seen.append(app.get_state(thread()).next)
    once = graph.compile(checkpointer=lib.InMemorySaver())
    seen.append(once.invoke({"log": []}, thread(), interrupt_before="*"))
    seen.append(once.invoke(None, thread(), interrupt_after=["a"]))
    return seen


@on_both
def test_a_person_edits_the_state_at_a_breakpoint(lib: Api) -> object:
    class State(TypedDict):
        text: str

    graph = lib.StateGraph(State)
    graph.add_node("draft", lambda state: {"text": "draft"})
    graph.add_node("send", lambda state: {"text": f"sent {state['text']}"})
    graph.add_edge(lib.START, "draft")
    graph.add_edge("draft", "send")
    app = graph.compile(checkpointer=lib.InMemorySaver(), interrupt_before=["send"])
    app.invoke({"text": ""}, thread())
    app.update_state(thread(), {"text": "edited"})
    between = app.get_state(thread())
    app.update_state(thread(), {"text": "as draft"}, as_node="draft")
    return between, app.invoke(None, thread()), app.get_state(thread())


def asking_in_order(lib: Api, names: str, asks: str):
    """Nodes added in this order, beside each other by edges, and sent to."""

    def node(name):
        def work(state):
            if name in asks:
                lib.interrupt(name)
            return {"log": [name]}

        return work

    graph = lib.StateGraph(Log)
    graph.add_node("start", lambda state: None)
    graph.add_edge(lib.START, "start")
    for name in names:
        graph.add_node(name, node(name))
        graph.add_edge("start", name)
    graph.add_conditional_edges(
        "start", lambda state: [lib.Send(n, {"log": []}) for n in names], [*names]
    )
    return graph.compile(checkpointer=lib.InMemorySaver())


@on_both
def test_a_stopped_step_goes_on_in_the_order_of_a_new_one(lib: Api) -> object:
    """What is sent in the order sent, then nodes by name, however they were added."""
    seen = []
    for asks in ("zax", "a", "x"):
        for mode in ("tasks", "checkpoints", "updates"):
            app = asking_in_order(lib, "zax", asks)
            app.invoke({"log": []}, thread())
            state = app.get_state(thread())
            seen.append((state.next, [t.name for t in state.tasks]))
            answers = lib.Command(resume={i.id: 1 for i in state.interrupts})
            chunks = list(app.stream(answers, thread(), stream_mode=mode))
            if mode == "tasks":
                seen.append([c["name"] for c in chunks if "input" in c])
            elif mode == "checkpoints":
                seen += [(c["next"], [t["name"] for t in c["tasks"]]) for c in chunks]
            else:
                seen.append([c for c in chunks if "__metadata__" in c])
    return seen


@on_both
def test_so_does_a_step_that_a_breakpoint_stopped(lib: Api) -> object:
    app = asking_in_order(lib, "zax", "")
    app.invoke({"log": []}, thread(), interrupt_before=["z"])
    seen = [app.get_state(thread()).next]
    chunks = app.stream(None, thread(), stream_mode="tasks")
    return seen, [chunk["name"] for chunk in chunks if "input" in chunk]
