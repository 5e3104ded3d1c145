"""The same under asyncio."""

import asyncio
import gc
import operator
from typing import Annotated

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from towpath.testing.api import Api
from towpath.testing.normal import stream

from .both import on_both, thread


class Log(TypedDict):
    log: Annotated[list, operator.add]


def logs(name: str):
    """Return a coroutine node that logs its name."""

    async def node(state: Log):
        await asyncio.sleep(0)
        return {"log": [name]}

    return node


@on_both
async def test_coroutines_are_nodes_and_branches(lib: Api) -> object:
    async def route(state: Log):
        await asyncio.sleep(0)
        return ["b", lib.Send("c", {"log": ["sent"]})]

    graph = lib.StateGraph(Log)
    for name in "abc":
        graph.add_node(name, logs(name))
    graph.add_node("plain", lambda state: {"log": ["plain"]})
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", route, ["b", "c"])
    graph.add_edge(["b", "c"], "plain")
    app = graph.compile()
    modes = ["updates", "values"]
    chunks = [
        ((), *chunk) async for chunk in app.astream({"log": []}, stream_mode=modes)
    ]
    return await app.ainvoke({"log": []}), stream(chunks)


@on_both
def test_coroutine_nodes_need_an_asynchronous_run(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_node("a", logs("a"))
    graph.add_edge(lib.START, "a")
    try:
        return graph.compile().invoke({"log": []})
    except TypeError:
        return "error"


@on_both
async def test_a_person_answers_an_asynchronous_run(lib: Api) -> object:
    async def ask(state: Log):
        first = lib.interrupt("first?")
        await asyncio.sleep(0)
        return {"log": [first, lib.interrupt("second?")]}

    graph = lib.StateGraph(Log)
    graph.add_node(ask)
    graph.add_edge(lib.START, "ask")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    seen = [await app.ainvoke({"log": []}, thread())]
    seen.append(await app.aget_state(thread()))
    for answer in "ab":
        seen.append(await app.ainvoke(lib.Command(resume=answer), thread()))
    seen.append([one async for one in app.aget_state_history(thread())])
    return seen


@on_both
async def test_state_is_edited_asynchronously(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    for name in "ab":
        graph.add_node(name, logs(name))
    graph.add_edge(lib.START, "a")
    graph.add_edge("a", "b")
    app = graph.compile(checkpointer=lib.InMemorySaver(), interrupt_before=["b"])
    await app.ainvoke({"log": []}, thread())
    await app.aupdate_state(thread(), {"log": ["edit"]})
    update = lib.StateUpdate({"log": ["bulk"]}, as_node="a")
    await app.abulk_update_state(thread(), [[update]])
    return await app.ainvoke(None, thread()), await app.aget_state(thread())


@on_both
async def test_tokens_are_streamed_while_they_come(lib: Api) -> object:
    model = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))

    async def call(state: lib.MessagesState):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = lib.StateGraph(lib.MessagesState)
    graph.add_node(call)
    graph.add_edge(lib.START, "call")
    app = graph.compile()
    given = {"messages": [("user", "count")]}
    return [
        (message.content, metadata["langgraph_node"])
        async for message, metadata in app.astream(given, stream_mode="messages")
    ]


@on_both
async def test_children_stream_from_asynchronous_nodes(lib: Api) -> object:
    child = lib.StateGraph(Log)
    child.add_node("inner", logs("inner"))
    child.add_edge(lib.START, "inner")
    compiled = child.compile()

    async def outer(state: Log):
        lib.get_stream_writer()("calling")
        return {"log": (await compiled.ainvoke({"log": ["x"]}))["log"]}

    graph = lib.StateGraph(Log)
    graph.add_node(outer)
    graph.add_edge(lib.START, "outer")
    app = graph.compile()
    chunks = app.astream({"log": []}, stream_mode=["updates", "custom"], subgraphs=True)
    return stream([chunk async for chunk in chunks])


@on_both
async def test_many_runs_go_on_at_once(lib: Api) -> object:
    graph = lib.StateGraph(Log)
    graph.add_sequence([("a", logs("a")), ("b", logs("b"))])
    graph.add_edge(lib.START, "a")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    runs = [app.ainvoke({"log": [n]}, thread(str(n))) for n in range(10)]
    together = await asyncio.gather(*runs)
    return together, await app.abatch(
        [{"log": ["x"]}, {"log": ["y"]}], [thread("x"), thread("y")]
    )


@on_both
async def test_a_cancelled_run_is_continued(lib: Api) -> object:
    started = asyncio.Event()
    patient = [True]

    async def wait(state: Log):
        started.set()
        if patient and patient.pop():
            await asyncio.sleep(60)
        return {"log": ["waited"]}

    graph = lib.StateGraph(Log)
    graph.add_sequence([("first", logs("first")), ("wait", wait)])
    graph.add_edge(lib.START, "first")
    app = graph.compile(checkpointer=lib.InMemorySaver())
    run = asyncio.ensure_future(app.ainvoke({"log": []}, thread()))
    await started.wait()
    run.cancel()
    try:
        await run
    except asyncio.CancelledError:
        pass
    state = await app.aget_state(thread())
    return state.next, state.values, await app.ainvoke(None, thread())


def cancels_its_task(wait):
    async def node(state: Log):
        asyncio.current_task().cancel()
        await wait()
        return {"log": ["never"]}

    return node


async def hears_of_it(state: Log):
    asyncio.current_task().cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return {"log": ["heard"]}


async def at_its_end(state: Log):
    asyncio.current_task().cancel()
    return {"log": ["never"]}


async def raises(state: Log):
    raise asyncio.CancelledError


async def cancels_another(state: Log):
    other = asyncio.ensure_future(asyncio.sleep(60))
    other.cancel()
    await other


async def outcome(run):
    """How a run ends, and whether who awaits it is cancelled after it."""
    try:
        told = await run
    except BaseException as error:
        told = type(error).__name__, type(error.__cause__).__name__
    left = asyncio.current_task().cancelling()
    await asyncio.sleep(0)
    return told, left


def held_up(lib: Api, *nodes):
    """A graph of these nodes side by side, one of which may be a graph."""
    graph = lib.StateGraph(Log)
    for index, node in enumerate(nodes):
        graph.add_node(f"n{index}", node)
        graph.add_edge(lib.START, f"n{index}")
    return graph.compile()


SELVES = (
    cancels_its_task(lambda: asyncio.sleep(0)),
    cancels_its_task(lambda: asyncio.sleep(60)),
    hears_of_it,
    raises,
    cancels_another,
)


@on_both
async def test_a_node_that_cancels_itself_is_told_from_a_cancelled_run(
    lib: Api,
) -> object:
    seen = []
    for node in (*SELVES, at_its_end):
        alone = held_up(lib, node)
        for app in (alone, held_up(lib, alone), held_up(lib, logs("beside"), node)):
            seen.append(await outcome(app.ainvoke({"log": []})))
    return seen


@on_both
async def test_a_node_that_cancels_its_caller_cancels_that(lib: Api) -> object:
    """Although it may run in the asyncio task of the caller."""
    seen = []
    for nodes in ((), (logs("beside"),)):
        caller: list = []

        async def cancels(state: Log, caller=caller):
            caller[0].cancel()
            await asyncio.sleep(60)

        app = held_up(lib, cancels, *nodes)
        for graph in (app, held_up(lib, app)):
            caller[:] = [asyncio.ensure_future(graph.ainvoke({"log": []}))]
            try:
                await caller[0]
            except BaseException as error:
                seen.append((type(error).__name__, caller[0].cancelled()))
    return seen


@on_both
async def test_so_is_a_router_and_a_task(lib: Api) -> object:
    async def router(state: Log):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    graph = lib.StateGraph(Log)
    graph.add_node("a", logs("a"))
    graph.add_edge(lib.START, "a")
    graph.add_conditional_edges("a", router, ["a"])

    @lib.task
    async def work():
        await SELVES[0]({})

    @lib.entrypoint()
    async def flow(_):
        return await outcome(work())

    return [
        await outcome(graph.compile().ainvoke({"log": []})),
        await outcome(flow.ainvoke(1)),
    ]


@on_both
async def test_a_run_that_is_cancelled_from_outside_says_no_more_than_that(
    lib: Api,
) -> object:
    started = asyncio.Event()

    async def waits(state: Log):
        started.set()
        await asyncio.sleep(60)

    seen = []
    alone = held_up(lib, waits)
    for app in (alone, held_up(lib, waits, logs("beside")), held_up(lib, alone)):
        started.clear()
        run = asyncio.ensure_future(app.ainvoke({"log": []}))
        await started.wait()
        run.cancel()
        try:
            await run
        except BaseException as error:
            seen.append(type(error).__name__)
        try:
            await asyncio.wait_for(app.ainvoke({"log": []}), 0.01)
        except BaseException as error:
            seen.append(type(error).__name__)
    return seen


@on_both
def test_a_loop_that_ends_cancels_the_runs_that_are_left_in_it(lib: Api) -> object:
    complaints: list[dict] = []

    async def main(app):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, told: complaints.append(told))
        run = loop.create_task(app.ainvoke({"log": []}))
        for _ in range(20):
            await asyncio.sleep(0)
        return run

    async def waits(state: Log):
        await asyncio.sleep(60)

    runs = [
        asyncio.run(main(held_up(lib, *nodes)))
        for nodes in ([waits], [waits, waits], [held_up(lib, waits, waits)])
    ]
    return [run.cancelled() for run in runs], complaints


@on_both
def test_only_failures_of_tasks_that_nobody_awaits_are_complained_of(
    lib: Api,
) -> object:
    """Of what is given up with its run, there is nothing to say."""
    started = 0

    @lib.task
    async def waits():
        nonlocal started
        started += 1
        await asyncio.sleep(60)

    @lib.task
    async def fails():
        raise ValueError("unseen")

    async def forgets(_):
        waits()
        waits()
        return "done"

    async def goes_on(_):
        waits()
        kept = waits()
        await kept

    async def looks_away(_):
        fails()
        await asyncio.sleep(0.01)

    async def main(flow, cancels):
        complaints: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, told: complaints.append(told["message"])
        )
        run = asyncio.ensure_future(flow.ainvoke(1, thread()))
        while cancels and started < 2:
            await asyncio.sleep(0)
        if cancels:
            run.cancel()
        told = await outcome(run)
        gc.collect()
        await asyncio.sleep(0)
        return told[0], complaints

    seen = []
    for function, cancels in ((forgets, True), (goes_on, True), (looks_away, False)):
        for saver in (None, lib.InMemorySaver()):
            started = 0
            flow = lib.entrypoint(checkpointer=saver)(function)
            seen.append(asyncio.run(main(flow, cancels)))
    return seen
