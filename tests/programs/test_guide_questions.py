"""How-tos of people in the loop: several questions, deep ones, early answers."""

import operator
from typing import Annotated, Literal

from typing_extensions import TypedDict

from towpath.testing.api import Api

from . import guides
from .both import on_both, on_drop_in, thread
from .guides import Log, tried


def asks(lib: Api, *questions: str):
    def node(state):
        return {"log": [lib.interrupt(question) for question in questions]}

    return node


def chained(lib: Api, *nodes, **options):
    return guides.chained(lib, Log, *nodes, **options)


def beside(lib: Api, *nodes, **options):
    graph = lib.StateGraph(Log)
    for name, node in nodes:
        graph.add_node(name, node)
        graph.add_edge(lib.START, name)
    return graph.compile(**options)


def open_in(app, config=None):
    """What is asked, and where."""
    state = app.get_state(config or thread(), subgraphs=True)
    tasks = [(t.name, [i.value for i in t.interrupts]) for t in state.tasks]
    return state.next, [i.value for i in state.interrupts], tasks


def ids_of(app, config=None):
    return {i.value: i.id for i in app.get_state(config or thread()).interrupts}


@on_drop_in
def test_a_nested_question_is_answered_plainly(lib: Api) -> object:
    deep = chained(lib, ("deep", asks(lib, "deep?")))
    middle = chained(lib, ("before", lambda s: {"log": ["m"]}), ("deep_one", deep))
    app = chained(
        lib,
        ("a", lambda s: {"log": ["a"]}),
        ("middle", middle),
        ("z", lambda s: {"log": ["z"]}),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": []}, thread()), open_in(app)]
    seen += [app.invoke(lib.Command(resume="yes"), thread()), open_in(app)]
    return seen, list(app.get_state_history(thread()))


@on_both
def test_a_nested_question_is_answered_by_id(lib: Api) -> object:
    deep = chained(lib, ("deep", asks(lib, "one?", "two?")))
    app = chained(
        lib,
        ("middle", chained(lib, ("deep_one", deep))),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": []}, thread())]
    for answer in ("first", "second"):
        (id_,) = ids_of(app).values()
        seen.append(app.invoke(lib.Command(resume={id_: answer}), thread()))
        seen.append(open_in(app))
    return seen


@on_both
def test_questions_at_several_depths_are_answered_one_by_one(lib: Api) -> object:
    seen = []
    for order in (["top?", "low?"], ["low?", "top?"]):
        low = chained(lib, ("deep", asks(lib, "low?")))
        app = beside(
            lib,
            ("top", asks(lib, "top?")),
            ("low", low),
            checkpointer=lib.InMemorySaver(),
        )
        app.invoke({"log": []}, thread())
        for question in order:
            answer = {ids_of(app)[question]: f"{question} yes"}
            seen.append(app.invoke(lib.Command(resume=answer), thread()))
            seen.append(open_in(app))
    return seen


@on_both
def test_questions_at_several_depths_are_answered_at_once(lib: Api) -> object:
    def low(name):
        return chained(lib, ("deep", asks(lib, f"{name}?", f"{name} then?")))

    app = beside(
        lib,
        ("a", low("a")),
        ("b", low("b")),
        ("c", asks(lib, "c?")),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [sorted(i.value for i in app.invoke({"log": []}, thread())["__interrupt__"])]
    while ids := ids_of(app):
        answers = {id_: f"{value} yes" for value, id_ in ids.items()}
        told = app.invoke(lib.Command(resume=answers), thread())
        seen.append((told["log"], sorted(ids)))
    return seen


@on_drop_in
def test_a_bare_answer_to_several_questions_is_refused(lib: Api) -> object:
    low = chained(lib, ("deep", asks(lib, "low?")))
    app = beside(
        lib, ("top", asks(lib, "top?")), ("low", low), checkpointer=lib.InMemorySaver()
    )
    app.invoke({"log": []}, thread())
    seen = [
        type(tried(lambda: app.invoke(lib.Command(resume="x"), thread()))).__mro__[-4:]
    ]
    return len(seen), open_in(app)


@on_drop_in
def test_an_answer_given_before_the_question(lib: Api) -> object:
    """`Command(resume=...)` on a thread that has not asked yet."""
    seen = []
    for inner in (False, True):
        ask = asks(lib, "q?")
        node = chained(lib, ("deep", ask)) if inner else ask
        app = chained(
            lib,
            ("a", lambda s: {"log": ["a"]}),
            ("ask", node),
            checkpointer=lib.InMemorySaver(),
            interrupt_before=["ask"],
        )
        seen.append(app.invoke({"log": []}, thread()))
        seen.append(
            tried(lambda app=app: app.invoke(lib.Command(resume="early"), thread()))
        )
        seen.append(open_in(app))
        seen.append(tried(lambda app=app: app.invoke(None, thread())))
    return seen


@on_drop_in
def test_an_early_answer_for_a_subgraph_that_asks_twice(lib: Api) -> object:
    low = chained(lib, ("one", asks(lib, "one?")), ("two", asks(lib, "two?")))
    app = chained(
        lib,
        ("a", lambda s: {"log": ["a"]}),
        ("low", low),
        checkpointer=lib.InMemorySaver(),
        interrupt_before=["low"],
    )
    seen = [app.invoke({"log": []}, thread())]
    for answer in ("early", "late", "later"):
        seen.append(tried(lambda a=answer: app.invoke(lib.Command(resume=a), thread())))
        seen.append(open_in(app))
    return seen


@on_drop_in
def test_an_early_answer_for_two_that_ask_in_their_turn(lib: Api) -> object:
    app = chained(
        lib,
        ("a", asks(lib, "a?")),
        ("b", asks(lib, "b?")),
        checkpointer=lib.InMemorySaver(),
        interrupt_before=["a"],
    )
    seen = [app.invoke({"log": []}, thread())]
    for answer in ("1", "2", "3"):
        seen.append(tried(lambda a=answer: app.invoke(lib.Command(resume=a), thread())))
        seen.append(open_in(app))
    return seen


@on_both
def test_a_question_in_each_sent_task(lib: Api) -> object:
    class State(TypedDict):
        items: list
        log: Annotated[list, operator.add]

    def one(item):
        return {"log": [[item, lib.interrupt(f"keep {item}?")]]}

    graph = lib.StateGraph(State)
    graph.add_node("one", one)
    graph.add_conditional_edges(
        lib.START, lambda s: [lib.Send("one", item) for item in s["items"]], ["one"]
    )
    app = graph.compile(checkpointer=lib.InMemorySaver())
    told = app.invoke({"items": ["a", "b", "c"], "log": []}, thread())
    seen = [sorted(i.value for i in told["__interrupt__"])]
    ids = ids_of(app)
    told = app.invoke(lib.Command(resume={ids["keep b?"]: "B"}), thread())
    seen += [told["log"], sorted(i.value for i in told["__interrupt__"])]
    rest = {ids[f"keep {x}?"]: x.upper() for x in "ac"}
    seen.append(app.invoke(lib.Command(resume=rest), thread()))
    return seen, open_in(app)


@on_both
def test_a_tool_call_is_edited_before_it_runs(lib: Api) -> object:
    class State(TypedDict):
        call: dict
        result: str

    def review(state) -> lib.Command[Literal["run", "ask_again"]]:
        review = lib.interrupt({"call": state["call"]})
        if review["type"] == "edit":
            return lib.Command(goto="run", update={"call": review["call"]})
        if review["type"] == "reject":
            return lib.Command(goto="ask_again", update={"result": review["why"]})
        return lib.Command(goto="run")

    def run(state):
        return {"result": f"ran {state['call']}"}

    def again(state):
        return {"result": f"asked again: {state['result']}"}

    graph = lib.StateGraph(State)
    graph.add_node("review", review)
    graph.add_node("run", run)
    graph.add_node("ask_again", again)
    graph.add_edge(lib.START, "review")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = []
    for n, answer in enumerate(
        [
            {"type": "ok"},
            {"type": "edit", "call": {"x": 2}},
            {"type": "reject", "why": "no"},
        ]
    ):
        cfg = thread(str(n))
        seen.append(list(app.stream({"call": {"x": 1}}, cfg, stream_mode="updates")))
        step = lib.Command(resume=answer)
        seen.append(list(app.stream(step, cfg, stream_mode=["updates", "values"])))
    return seen


@on_both
def test_an_input_is_validated_in_a_loop(lib: Api) -> object:
    class State(TypedDict):
        age: int
        tries: int

    def ask(state):
        question, tries = "age?", 0
        while True:
            answer = lib.interrupt(question)
            tries += 1
            if isinstance(answer, int) and answer > 0:
                return {"age": answer, "tries": tries}
            question = f"{answer!r} is no age"

    graph = lib.StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(lib.START, "ask")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"age": 0}, thread())]
    for answer in ("x", -1, 30):
        seen.append(app.invoke(lib.Command(resume=answer), thread()))
        seen.append(open_in(app))
    return seen


@on_both
def test_breakpoints_inside_a_subgraph(lib: Api) -> object:
    low = chained(
        lib,
        ("one", lambda s: {"log": ["one"]}),
        ("two", lambda s: {"log": ["two"]}),
        interrupt_before=["two"],
    )
    app = chained(
        lib,
        ("low", low),
        ("z", lambda s: {"log": ["z"]}),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [list(app.stream({"log": []}, thread(), subgraphs=True)), open_in(app)]
    state = app.get_state(thread(), subgraphs=True)
    seen.append((state.tasks[0].state.next, state.tasks[0].state.values))
    seen.append(list(app.stream(None, thread(), subgraphs=True)))
    return seen, open_in(app)


@on_both
def test_a_breakpoint_is_given_with_a_run(lib: Api) -> object:
    app = chained(
        lib,
        *((n, lambda s, n=n: {"log": [n]}) for n in "abc"),
        checkpointer=lib.InMemorySaver(),
    )
    seen = [app.invoke({"log": []}, thread(), interrupt_before=["b"]), open_in(app)]
    seen += [app.invoke(None, thread(), interrupt_after=["b"]), open_in(app)]
    seen += [app.invoke(None, thread()), open_in(app)]
    seen += [
        app.invoke({"log": ["again"]}, thread(), interrupt_before="*"),
        open_in(app),
    ]
    seen += [app.invoke(None, thread(), interrupt_after="*"), open_in(app)]
    return seen


@on_both
def test_a_question_is_withdrawn_by_an_edit(lib: Api) -> object:
    app = chained(
        lib,
        ("ask", asks(lib, "q?")),
        ("z", lambda s: {"log": ["z"]}),
        checkpointer=lib.InMemorySaver(),
    )
    app.invoke({"log": []}, thread())
    config = app.update_state(thread(), {"log": ["edited"]}, as_node="ask")
    seen = [open_in(app), app.invoke(None, config), open_in(app)]
    return seen, [(s.values, s.next) for s in app.get_state_history(thread())]


@on_both
def test_a_question_survives_an_update(lib: Api) -> object:
    app = chained(lib, ("ask", asks(lib, "q?")), checkpointer=lib.InMemorySaver())
    app.invoke({"log": ["in"]}, thread())
    app.update_state(thread(), {"log": ["edited"]})
    seen = [app.get_state(thread()).next, app.get_state(thread()).values]
    seen.append(app.invoke(lib.Command(resume="yes"), thread()))
    return seen


@on_both
def test_answers_go_through_a_stream_of_every_mode(lib: Api) -> object:
    low = chained(lib, ("deep", asks(lib, "q?")))
    app = chained(lib, ("low", low), checkpointer=lib.InMemorySaver())
    modes = ["values", "updates", "tasks", "checkpoints", "custom", "messages"]
    given = ({"log": []}, lib.Command(resume="yes"))
    return [
        list(app.stream(each, thread(), stream_mode=modes, subgraphs=subgraphs))
        for each in given
        for subgraphs in (True,)
    ]


@on_both
def test_a_question_from_a_tool_like_helper(lib: Api) -> object:
    def approve(what):
        answer = lib.interrupt({"action": what})
        return answer.get("ok", False)

    def node(state):
        done = [what for what in ("mail", "pay") if approve(what)]
        return {"log": done}

    app = chained(lib, ("node", node), checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"log": []}, thread())]
    for answer in ({"ok": True}, {"ok": False}):
        seen.append(app.invoke(lib.Command(resume=answer), thread()))
    return seen


@on_both
async def test_async_questions_at_two_depths(lib: Api) -> object:
    async def ask(state):
        return {"log": [lib.interrupt("deep?")]}

    async def top(state):
        return {"log": [lib.interrupt("top?")]}

    low = chained(lib, ("deep", ask))
    app = beside(lib, ("low", low), ("top", top), checkpointer=lib.InMemorySaver())
    first = await app.ainvoke({"log": []}, thread())
    state = await app.aget_state(thread())
    answers = {i.id: i.value.upper() for i in state.interrupts}
    last = await app.ainvoke(lib.Command(resume=answers), thread())
    return sorted(i.value for i in first["__interrupt__"]), last


@on_both
def test_a_graph_called_in_a_node_asks(lib: Api) -> object:
    low = chained(lib, ("deep", asks(lib, "deep?")))
    ran = []

    def caller(state):
        ran.append("caller")
        found = low.invoke({"log": []})
        return {"log": [*found["log"], lib.interrupt("after?")]}

    app = chained(lib, ("caller", caller), checkpointer=lib.InMemorySaver())
    seen = [app.invoke({"log": []}, thread())]
    for answer in ("d", "a"):
        seen.append(app.invoke(lib.Command(resume=answer), thread()))
    return seen, ran


@on_both
def test_a_resumed_branch_from_the_past(lib: Api) -> object:
    app = chained(
        lib,
        ("ask", asks(lib, "q?")),
        ("z", lambda s: {"log": ["z"]}),
        checkpointer=lib.InMemorySaver(),
    )
    app.invoke({"log": []}, thread())
    app.invoke(lib.Command(resume="first"), thread())
    asked = next(s for s in app.get_state_history(thread()) if s.next == ("ask",))
    seen = [app.invoke(None, asked.config), open_in(app)]
    seen += [app.invoke(lib.Command(resume="second"), thread()), open_in(app)]
    return seen, len(list(app.get_state_history(thread())))


def of_number(lib: Api, *questions: str):
    def node(state):
        return {"log": [lib.interrupt(q, response_schema=int) for q in questions]}

    return node


@on_both
def test_a_refused_answer_leaves_its_question_open(lib: Api) -> object:
    inner = chained(lib, ("deep", of_number(lib, "deep?")))
    parts = (("plain", of_number(lib, "a?", "b?")), ("nested", inner))
    seen = []
    for name, node in parts:
        app = chained(lib, (name, node), checkpointer=lib.InMemorySaver())
        app.invoke({"log": []}, thread())
        for answer in ("x", "y", 1, "z", 2):
            if app.get_state(thread()).next:
                told = tried(
                    lambda a=app, b=answer: a.invoke(lib.Command(resume=b), thread())
                )
                seen += [type(told).__name__, open_in(app)]
        seen.append(app.get_state(thread()).values)
    return seen


@on_drop_in
def test_a_question_is_shown_until_its_task_has_finished(lib: Api) -> object:
    def fails(state):
        raise ValueError(lib.interrupt("a?"))

    app = chained(lib, ("fails", fails), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    seen = []
    for given in (lib.Command(resume="x"), lib.Command(resume="y"), None):
        seen += [tried(lambda g=given: app.invoke(g, thread())), open_in(app)]
    return seen


@on_drop_in
def test_a_refused_answer_is_given_again_until_another_comes(lib: Api) -> object:
    app = chained(lib, ("ask", of_number(lib, "a?")), checkpointer=lib.InMemorySaver())
    app.invoke({"log": []}, thread())
    seen = []
    for given in (lib.Command(resume="x"), None, lib.Command(resume=1)):
        seen.append(tried(lambda g=given: app.invoke(g, thread())))
    return [one if isinstance(one, dict) else type(one).__name__ for one in seen]


def routed(lib: Api, nodes: dict, colour: str):
    """Nodes side by side, each with so many branches that ask."""
    graph = lib.StateGraph(Log)

    def add(name, branches):
        def node(state):
            return {"log": [name]}

        async def anode(state):
            return {"log": [name]}

        graph.add_node(name, anode if colour == "async" else node)
        graph.add_edge(lib.START, name)
        for index in range(branches):
            graph.add_conditional_edges(name, *asking(name, index))

    def asking(name, index):
        def route(state):
            return lib.interrupt(f"{name}{index}: {state['log']}")

        async def aroute(state):
            return route(state)

        path = aroute if colour == "async" else route
        path.__name__ = f"route{index}"
        return path, {"go": "last"}

    for name, branches in nodes.items():
        add(name, branches)
    graph.add_node("last", lambda state: {"log": ["last"]})
    return graph


async def told(app, given, mode, colour):
    options = {"stream_mode": mode}
    if colour == "sync":
        return list(app.stream(given, thread(), **options))
    return [chunk async for chunk in app.astream(given, thread(), **options)]


@on_both
async def test_a_branch_asks_after_its_node_has_written(lib: Api) -> object:
    seen = []
    for colour in ("sync", "async"):
        for nodes in ({"n": 1}, {"n": 1, "m": 0}, {"n": 2}):
            for mode in ("values", "updates"):
                app = routed(lib, nodes, colour).compile(
                    checkpointer=lib.InMemorySaver()
                )
                chunks = await told(app, {"log": ["in"]}, mode, colour)
                seen.append(sorted(chunks, key=repr) if "m" in nodes else chunks)
                seen.append(open_in(app))
                while app.get_state(thread()).interrupts:
                    answer = lib.Command(resume="go")
                    chunks = await told(app, answer, mode, colour)
                    seen.append(sorted(chunks, key=repr))
                seen.append(app.get_state(thread()).values)
    return seen


@on_drop_in
def test_a_run_that_stops_at_a_branch_returns_what_its_node_wrote(lib: Api) -> object:
    app = routed(lib, {"n": 1, "m": 0}, "sync").compile()
    inner = lib.StateGraph(Log)
    inner.add_node("sub", app)
    inner.add_edge(lib.START, "sub")
    seen = []
    for graph in (routed(lib, {"z": 1, "m": 0, "a": 0}, "sync"), inner):
        app = graph.compile(checkpointer=lib.InMemorySaver())
        seen += [app.invoke({"log": ["in"]}, thread()), app.get_state(thread()).values]
        seen.append(app.invoke(lib.Command(resume="go"), thread()))
    return seen
