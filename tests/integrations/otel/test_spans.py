"""What a run tells as spans: the whole tree, in every colour."""

import asyncio
import operator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Thread
from typing import Annotated, TypedDict

import pytest
from opentelemetry import trace

from towpath import START, Command, Send, StateGraph, interrupt
from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.checkpoint.sqlite.aio import AsyncSqliteSaver
from towpath.errors import GraphDrained, GraphRecursionError
from towpath.func import entrypoint, task
from towpath.runtime import RunControl
from towpath.semantics import NATIVE
from towpath.testing.simulate import simulate
from towpath.types import CachePolicy, RetryPolicy

from .conftest import lines


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


def thread(name="1", **conf):
    return {"configurable": {"thread_id": name, **conf}}


def build(*nodes, name="graph", edges=(), **options):
    """A chain of nodes, or what `edges` say."""
    builder = StateGraph(State)
    for each in nodes:
        builder.add_node(*each[:2], **(each[2] if len(each) > 2 else {}))
    names = [START, *(each[0] for each in nodes)]
    for source, target in edges or zip(names, names[1:], strict=False):
        builder.add_edge(source, target)
    return builder.compile(name=name, **options)


def says(word):
    return lambda state: {"log": [word]}


def opens(told, word):
    """A node that opens a span of its own."""

    def node(state):
        with told.tracer.start_as_current_span(word):
            return {"log": [word]}

    return node


def asks(state):
    return {"log": [interrupt("secret question")]}


def fails(state):
    raise ValueError("secret reason")


def test_a_chain_is_told_step_by_step_and_what_nodes_open_is_theirs(told, colour):
    graph = build(
        ("a", colour.node(opens(told, "mine"))), ("b", colour.node(says("b")))
    )
    colour.invoke(graph, {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task a
              attempt a
                mine
          superstep 2
            task b
              attempt b
    """)


def test_a_run_hangs_under_the_span_of_its_caller_and_leaves_that_current(told, colour):
    graph = build(("a", colour.node(says("a"))))
    with told.tracer.start_as_current_span("caller") as caller:
        colour.invoke(graph, {"log": []})
        assert trace.get_current_span() is caller
    assert told.tree() == lines("""
        caller
          invoke_agent graph
            superstep 1
              task a
                attempt a
    """)


def test_a_stream_leaves_the_span_of_its_reader_current(told):
    graph = build(("a", says("a")), ("b", says("b")))
    with told.tracer.start_as_current_span("caller") as caller:
        for _ in graph.stream({"log": []}):
            assert trace.get_current_span() is caller


def test_tasks_that_run_side_by_side_are_told_side_by_side(told, colour):
    node = colour.node
    graph = build(
        ("a", node(opens(told, "in a"))),
        ("b", node(opens(told, "in b"))),
        ("c", node(says("c"))),
        edges=[(START, "a"), (START, "b"), (["a", "b"], "c")],
    )
    colour.invoke(graph, {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task a
              attempt a
                in a
            task b
              attempt b
                in b
          superstep 2
            task c
              attempt c
    """)


def test_sent_tasks_each_have_a_span(told, colour):
    builder = StateGraph(State)
    builder.add_node("each", colour.node(opens(told, "mine")))
    sends = [Send("each", {}) for _ in range(3)]
    builder.add_conditional_edges(START, lambda state: sends, ["each"])
    colour.invoke(builder.compile(name="fan"), {"log": []})
    assert told.tree() == lines("""
        invoke_agent fan
          superstep 0
            task __start__
              attempt __start__
          superstep 1
            task each
              attempt each
                mine
            task each
              attempt each
                mine
            task each
              attempt each
                mine
    """)


@pytest.mark.parametrize("keeps", [None, False, True], ids=str)
def test_a_subgraph_runs_under_the_attempt_of_its_node(told, colour, keeps):
    """Whatever persistence it has: inherited, none, or of its own."""
    inner = build(
        ("in", colour.node(opens(told, "mine"))), name="inner", checkpointer=keeps
    )
    outer = build(
        ("sub", inner), ("end", colour.node(says("end"))), checkpointer=InMemorySaver()
    )
    colour.invoke(outer, {"log": []}, thread())
    stores = keeps is not False
    assert told.tree() == [
        line
        for line in lines("""
        invoke_agent graph
          commit input -1
          commit loop 0
          superstep 1
            task sub
              attempt sub
                invoke_agent inner
                  commit input -1
                  commit loop 0
                  superstep 1
                    task in
                      attempt in
                        mine
                    commit loop 1
            commit loop 1
          superstep 2
            task end
              attempt end
            commit loop 2
    """)
        if stores or not line.strip().startswith("commit") or not line[:10].isspace()
    ]


def test_a_graph_called_in_a_node_hangs_under_what_the_node_has_open(told, colour):
    inner = build(("in", says("in")), name="inner")

    def calls(state):
        with told.tracer.start_as_current_span("mine"):
            inner.invoke({"log": []})
        return {"log": ["out"]}

    colour.invoke(build(("calls", colour.node(calls))), {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task calls
              attempt calls
                mine
                  invoke_agent inner
                    superstep 1
                      task in
                        attempt in
    """)


def test_a_span_may_stay_open_while_a_generator_node_yields(told, colour):
    def parts(state):
        with told.tracer.start_as_current_span("whole"):
            for word in ("a", "b"):
                with told.tracer.start_as_current_span(word):
                    yield {"log": [word]}

    async def aparts(state):
        with told.tracer.start_as_current_span("whole"):
            for word in ("a", "b"):
                with told.tracer.start_as_current_span(word):
                    await asyncio.sleep(0)
                    yield {"log": [word]}

    graph = build(("parts", aparts if colour.name == "async" else parts))
    colour.invoke(graph, {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task parts
              attempt parts
                whole
                  a
                  b
    """)


def test_what_a_node_starts_in_threads_hangs_under_it(told, colour):
    def opens_here(word):
        with told.tracer.start_as_current_span(word):
            pass

    def node(state):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(opens_here, "in a pool").result()
        thread = Thread(target=opens_here, args=["in a thread"])
        thread.start()
        thread.join()

    async def anode(state):
        await asyncio.gather(asyncio.to_thread(opens_here, "in a pool"))
        await asyncio.create_task(asyncio.to_thread(opens_here, "in a thread"))

    graph = build(("a", anode if colour.name == "async" else node))
    colour.invoke(graph, {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task a
              attempt a
                in a pool
                in a thread
    """)


def test_a_branch_hangs_under_the_attempt_that_it_follows(told, colour):
    def goes(state):
        with told.tracer.start_as_current_span("deciding"):
            return "b"

    builder = StateGraph(State)
    builder.add_node("a", colour.node(says("a")))
    builder.add_node("b", colour.node(says("b")))
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", goes, ["b"])
    colour.invoke(builder.compile(name="graph"), {"log": []})
    assert told.tree()[:5] == lines("""
        invoke_agent graph
          superstep 1
            task a
              attempt a
                deciding
    """)


def test_each_attempt_has_a_span_and_the_task_ends_with_the_last(told, colour):
    left = [OSError("first"), OSError("second")]

    def flaky(state):
        if left:
            raise left.pop(0)
        return {"log": ["done"]}

    policy = RetryPolicy(
        max_attempts=3, initial_interval=0, jitter=False, retry_on=OSError
    )
    graph = build(("flaky", colour.node(flaky), {"retry_policy": policy}))
    colour.invoke(graph, {"log": []})
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task flaky
              attempt flaky [failed] ! OSError
              attempt flaky #2 [failed] ! OSError
              attempt flaky #3
    """)
    assert 3 == told.total("towpath.task.attempt.duration")


def test_an_error_is_told_where_it_is_raised_and_all_the_way_up(told, colour):
    inner = build(("bad", colour.node(fails)), name="inner")
    with pytest.raises(ValueError, match="secret reason"):
        colour.invoke(build(("sub", inner)), {"log": []})
    attempt = told.span("attempt bad")
    assert ["exception"] == [event.name for event in attempt.events]
    assert "secret reason" == attempt.events[0].attributes["exception.message"]
    assert "secret reason" == attempt.status.description
    assert () == told.span("invoke_agent graph").events
    assert told.tree() == lines("""
        invoke_agent graph [failed] ! ValueError
          superstep 1 [failed] ! ValueError
            task sub [failed] ! ValueError
              attempt sub [failed] ! ValueError
                invoke_agent inner [failed] ! ValueError
                  superstep 1 [failed] ! ValueError
                    task bad [failed] ! ValueError
                      attempt bad [failed] ! ValueError
    """)


def test_texts_of_errors_can_be_left_out(told):
    told.instrument(record_errors=False)
    with pytest.raises(ValueError, match="secret"):
        build(("bad", fails)).invoke({"log": []})
    for span in told.spans():
        assert "secret" not in span.to_json()
        assert "ValueError" == span.attributes["error.type"]


def test_an_error_of_the_run_itself_is_told_by_the_run(told, colour):
    graph = build(("a", colour.node(says("a"))), edges=[(START, "a"), ("a", "a")])
    with pytest.raises(GraphRecursionError):
        colour.invoke(graph, {"log": []}, {"recursion_limit": 1})
    (event,) = told.span("invoke_agent").events
    assert event.attributes["exception.type"].endswith("GraphRecursionError")
    code = told.span("invoke_agent").attributes["towpath.error.code"]
    assert GraphRecursionError.code == code
    assert told.tree() == lines("""
        invoke_agent graph [failed] ! towpath.errors.GraphRecursionError
          superstep 1
            task a
              attempt a
    """)


def test_an_error_handler_is_a_task_beside_the_one_that_failed(told, colour):
    handler = {"error_handler": colour.node(says("handled"))}
    graph = build(("bad", colour.node(fails), handler))
    colour.invoke(graph, {"log": []})
    assert told.tree()[:4] == lines("""
        invoke_agent graph
          superstep 1
            task bad [failed] ! ValueError
              attempt bad [failed] ! ValueError
    """)


def test_a_question_is_no_error_and_its_answer_links_to_the_run_that_asked(
    told, colour
):
    graph = build(("ask", colour.node(asks)), checkpointer=InMemorySaver())
    asked = colour.invoke(graph, {"log": []}, thread())
    question = asked["__interrupt__"][0].id
    parked = told.span("invoke_agent")
    for name in ("invoke_agent", "attempt"):
        (event,) = told.span(name).events
        assert "towpath.interrupt" == event.name
        assert {"towpath.interrupt.id": question} == dict(event.attributes)
    assert "secret" not in "".join(span.to_json() for span in told.spans())
    assert 1 == told.total("towpath.interrupt.open")
    assert told.tree() == lines("""
        invoke_agent graph [interrupt]
          commit input -1
          commit loop 0
          superstep 1 [interrupt]
            task ask [interrupt]
              attempt ask [interrupt]
    """)

    colour.invoke(graph, Command(resume="yes"), thread())
    (link,) = told.span("invoke_agent").links
    assert parked.context.span_id == link.context.span_id
    assert parked.context.trace_id == link.context.trace_id
    assert 0 == told.total("towpath.interrupt.open")
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
            task ask
              attempt ask
            commit loop 1
    """)


def test_another_process_links_to_the_run_that_asked(told, tmp_path):
    def run(given):
        with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
            build(("ask", asks), checkpointer=saver).invoke(given, thread())
        span = told.span("invoke_agent")
        told.exporter.clear()
        return span

    parked, resumed = run({"log": []}), run(Command(resume="yes"))
    assert [parked.context.span_id] == [x.context.span_id for x in resumed.links]


def test_a_failure_that_is_tried_again_links_to_the_run_that_failed(told, colour):
    left = [ValueError("once")]

    def flaky(state):
        if left:
            raise left.pop()
        return {"log": ["done"]}

    graph = build(("flaky", colour.node(flaky)), checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="once"):
        colour.invoke(graph, {"log": []}, thread())
    colour.invoke(graph, None, thread())
    failed, again = told.spans("invoke_agent")
    assert [failed.context.span_id] == [x.context.span_id for x in again.links]


def test_a_question_in_a_subgraph_is_counted_once(told, colour):
    inner = build(("ask", colour.node(asks)), name="inner")
    graph = build(("sub", inner), checkpointer=InMemorySaver())
    colour.invoke(graph, {"log": []}, thread())
    assert 1 == told.total("towpath.interrupt.open")
    assert "".join(line for line in told.tree() if "!" in line) == ""
    colour.invoke(graph, Command(resume="yes"), thread())
    assert 0 == told.total("towpath.interrupt.open")


def test_new_input_gives_up_what_was_asked(told):
    graph = build(("ask", asks), checkpointer=InMemorySaver())
    graph.invoke({"log": []}, thread())
    graph.invoke({"log": []}, thread())
    assert 1 == told.total("towpath.interrupt.open")


def test_a_breakpoint_is_no_error(told, colour):
    graph = build(
        ("a", colour.node(says("a"))),
        ("b", colour.node(says("b"))),
        checkpointer=InMemorySaver(),
        interrupt_before=["b"],
    )
    colour.invoke(graph, {"log": []}, thread())
    assert told.tree()[0] == "invoke_agent graph [interrupt_before]"


def test_a_drained_run_is_no_error(told, colour):
    control = RunControl()

    def drains(state):
        control.request_drain("going down")
        return {"log": ["a"]}

    graph = build(
        ("a", colour.node(drains)),
        ("b", colour.node(says("b"))),
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(GraphDrained):
        colour.invoke(graph, {"log": []}, thread(), control=control)
    assert told.tree() == lines("""
        invoke_agent graph [drained]
          commit input -1
          commit loop 0
          superstep 1
            task a
              attempt a
            commit loop 1
    """)


def test_a_command_for_the_parent_is_no_error(told, colour):
    leaves = colour.node(lambda s: Command(graph=Command.PARENT, goto="end"))
    inner = build(("leaves", leaves), name="inner")
    builder = StateGraph(State)
    builder.add_node("sub", inner, destinations=("end",))
    builder.add_node("end", colour.node(says("end")))
    builder.add_edge(START, "sub")
    colour.invoke(builder.compile(name="graph"), {"log": []})
    assert told.tree()[:8] == lines("""
        invoke_agent graph
          superstep 1
            task sub
              attempt sub
                invoke_agent inner [parent_command]
                  superstep 1 [parent_command]
                    task leaves [parent_command]
                      attempt leaves [parent_command]
    """)


def test_a_stream_that_is_closed_early_ends_its_spans(told):
    graph = build(("a", says("a")), ("b", says("b")))
    steps = graph.stream({"log": []}, stream_mode="updates")
    next(steps)
    steps.close()
    assert told.tree() == lines("""
        invoke_agent graph [closed]
          superstep 1
            task a
              attempt a
          superstep 2 [closed]
            task b [cancelled]
    """)
    assert 0 == told.total("towpath.task.queued")


async def test_an_async_stream_that_is_closed_early_ends_its_spans(told):
    async def node(state):
        return {"log": ["a"]}

    graph = build(("a", node), ("b", node))
    steps = graph.astream({"log": []}, stream_mode="updates")
    await anext(steps)
    await steps.aclose()
    assert told.tree()[0] == "invoke_agent graph [closed]"


async def test_a_cancelled_run_is_no_error(told):
    begun = asyncio.Event()

    async def waits(state):
        begun.set()
        await asyncio.Event().wait()

    graph = build(("waits", waits), ("never", waits))
    run = asyncio.create_task(graph.ainvoke({"log": []}))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert told.tree() == lines("""
        invoke_agent graph [cancelled]
          superstep 1 [cancelled]
            task waits [cancelled]
              attempt waits [cancelled]
    """)
    assert 0 == told.total("towpath.run.active")
    assert 0 == told.total("towpath.task.queued")


async def test_a_task_that_takes_too_long_has_failed_though_it_goes_on(told):
    async def waits(state):
        await asyncio.Event().wait()

    from towpath.errors import NodeTimeoutError

    graph = build(("waits", waits, {"timeout": 0.01}))
    with pytest.raises(NodeTimeoutError):
        await graph.ainvoke({"log": []})
    kind = "towpath.errors.NodeTimeoutError"
    assert told.tree() == lines(f"""
        invoke_agent graph [failed] ! {kind}
          superstep 1 [failed] ! {kind}
            task waits [failed] ! {kind}
              attempt waits [failed] ! {kind}
    """)


def test_tasks_beside_a_failure_end_and_those_not_begun_are_cancelled(told):
    gate = Event()

    def slow(state):
        gate.wait(10)
        return {"log": ["slow"]}

    def bad(state):
        gate.set()
        raise ValueError("bad")

    graph = build(("bad", bad), ("slow", slow), edges=[(START, "bad"), (START, "slow")])
    with pytest.raises(ValueError, match="bad"):
        graph.invoke({"log": []})
    assert told.tree() == lines("""
        invoke_agent graph [failed] ! ValueError
          superstep 1 [failed] ! ValueError
            task bad [failed] ! ValueError
              attempt bad [failed] ! ValueError
            task slow
              attempt slow
    """)


def test_called_tasks_hang_under_what_called_them(told, colour):
    @task
    def double(x):
        with told.tracer.start_as_current_span("inside"):
            return 2 * x

    @entrypoint()
    def flow(x):
        with told.tracer.start_as_current_span("mine"):
            first = double(x).result()
        return double(first).result()

    @entrypoint()
    async def aflow(x):
        with told.tracer.start_as_current_span("mine"):
            first = await double(x)
        return await double(first)

    graph = flow if colour.name == "sync" else aflow
    name = "flow" if colour.name == "sync" else "aflow"
    assert 4 == colour.invoke(graph, 1)
    assert told.tree() == lines(f"""
        invoke_agent LangGraph
          superstep 0
            task {name}
              attempt {name}
                mine
                  task double
                    attempt double
                      inside
                task double
                  attempt double
                    inside
    """)


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["bare", "saved"])
def test_a_step_inside_a_node_is_told(told, saver):
    def node(state, runtime):
        runtime.step("inner", says("x"), state)
        return {"log": []}

    from towpath import Runtime

    node.__annotations__ = {"runtime": Runtime}
    build(("a", node), checkpointer=saver).invoke({"log": []}, thread())
    tree = [each for each in told.tree() if "commit" not in each]
    assert tree == lines("""
        invoke_agent graph
          superstep 1
            task a
              attempt a
                task inner
                  attempt inner
    """)


def test_a_result_from_the_cache_is_counted_and_has_no_task(told, colour):
    from towpath.cache.memory import InMemoryCache

    graph = build(
        ("a", colour.node(says("a")), {"cache_policy": CachePolicy()}),
        cache=InMemoryCache(),
    )
    colour.invoke(graph, {"log": []})
    told.exporter.clear()
    colour.invoke(graph, {"log": []})
    step = told.span("superstep").attributes
    assert (1, 1) == (step["towpath.step.tasks"], step["towpath.step.cached"])
    assert told.tree() == lines("""
        invoke_agent graph
          superstep 1
    """)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_commits_are_told_whenever_they_are_made(told, colour, durability, tmp_path):
    node = colour.node(says("a"))

    def compiled(saver):
        return build(("a", node), ("b", node), checkpointer=saver)

    options = {"durability": durability}
    path = str(tmp_path / "db")
    if colour.name == "sync":
        with SqliteSaver.from_conn_string(path) as saver:
            compiled(saver).invoke({"log": []}, thread(), **options)
    else:

        async def run():
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                await compiled(saver).ainvoke({"log": []}, thread(), **options)

        asyncio.run(run())
    commits = told.spans("commit")
    ids = [span.attributes["towpath.checkpoint.id"] for span in commits]
    assert sorted(ids) == ids
    how = "async" if durability == "async" else "sync"
    assert {how} == {span.attributes["towpath.durability"] for span in commits}
    assert len(commits) == told.total("towpath.commit.duration")
    assert 0 == told.total("towpath.commit.queued")
    if durability == "exit":
        assert told.tree() == lines("""
            invoke_agent graph
              superstep 1
                task a
                  attempt a
              superstep 2
                task b
                  attempt b
              commit loop 2
        """)
    else:
        assert told.tree() == lines("""
            invoke_agent graph
              commit input -1
              commit loop 0
              superstep 1
                task a
                  attempt a
                commit loop 1
              superstep 2
                task b
                  attempt b
                commit loop 2
        """)


def test_what_a_database_tells_hangs_under_what_it_works_for(
    told, colour, tmp_path, monkeypatch
):
    """Commits have a span; reading and recording are a run's and a step's."""
    seen = []

    def current():
        return getattr(trace.get_current_span(), "name", None)

    def watch(saver):
        for name in ("stage_commit", "stage_writes", "end_run"):
            stage = getattr(saver, name)

            class Staged:
                def __init__(self, *args, _stage=stage, _name=name, **kwargs):
                    self.name, self.staged = _name, _stage(*args, **kwargs)

                def run(self):
                    seen.append((self.name, current()))
                    return self.staged.run()

                async def arun(self):
                    seen.append((self.name, current()))
                    return await self.staged.arun()

            monkeypatch.setattr(saver, name, Staged)
        return saver

    # A question is recorded at once; results may go with the commit.
    says_a, asks = colour.node(says("a")), colour.node(lambda _: interrupt("?"))
    nodes = [("a", says_a), ("b", asks)]
    edges = [(START, "a"), ("a", "b")]
    path = str(tmp_path / "db")

    async def run():
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph = build(*nodes, edges=edges, checkpointer=watch(saver))
            await graph.ainvoke({"log": []}, thread())

    if colour.name != "sync":
        asyncio.run(run())
    else:
        with SqliteSaver.from_conn_string(path) as saver:
            graph = build(*nodes, edges=edges, checkpointer=watch(saver))
            graph.invoke({"log": []}, thread())
    assert {
        ("stage_commit", "commit"),
        ("stage_writes", "superstep"),
        ("end_run", "superstep"),  # which the question leaves open
    } == set(seen)


class Plain(InMemorySaver):
    """A saver as others write them: nothing but the methods that all have."""

    capabilities = type(InMemorySaver.capabilities)()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_saver_of_others_is_told_as_well(told, colour, durability):
    graph = build(
        ("a", colour.node(says("a"))),
        ("b", colour.node(says("b"))),
        edges=[(START, "a"), (START, "b")],
        checkpointer=Plain(),
    )
    colour.invoke(graph, {"log": []}, thread(), durability=durability)
    commits = [each.strip() for each in told.tree() if "commit" in each]
    last = ["commit loop 1"]
    if durability != "exit":
        last = ["commit input -1", "commit loop 0", *last]
    assert last == commits
    assert 0 == told.total("towpath.commit.queued")
    history = graph.get_state_history(thread())
    assert len(commits) == sum(1 for _ in history)


def test_a_run_that_goes_on_in_a_copy_tells_the_thread_of_the_copy(told):
    semantics = replace(NATIVE, on_busy="fork")
    graph = build(
        ("a", says("a")),
        ("b", says("b")),
        checkpointer=InMemorySaver(),
        semantics=semantics,
    )
    first = graph.stream({"log": []}, thread())
    next(first)
    graph.invoke({"log": []}, thread())
    first.close()
    closed, copied = told.spans("invoke_agent")
    assert "1" == closed.attributes["gen_ai.conversation.id"]
    assert copied.attributes["gen_ai.conversation.id"].startswith("1/")


def test_a_commit_that_fails_is_an_error_of_its_own(told, monkeypatch):
    saver = InMemorySaver()
    graph = build(("a", says("a")), checkpointer=saver)

    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(saver, "stage_commit", full)
    with pytest.raises(OSError, match="disk full"):
        graph.invoke({"log": []}, thread())
    assert told.tree() == lines("""
        invoke_agent graph [failed] ! OSError
          commit input -1 [failed] ! OSError
    """)
    assert 0 == told.total("towpath.commit.queued")


def test_a_step_that_takes_too_long_ends_what_still_runs(told):
    from towpath.errors import StepTimeoutError

    gate, ended = Event(), Event()

    def slow(state):
        gate.wait(10)
        ended.set()

    graph = build(("a", slow), ("b", slow), edges=[(START, "a"), (START, "b")])
    graph.step_timeout = 0.01
    with pytest.raises(StepTimeoutError):
        graph.invoke({"log": []})
    gate.set()
    assert ended.wait(10)
    kind = "towpath.errors.StepTimeoutError"
    assert told.tree() == lines(f"""
        invoke_agent graph [failed] ! {kind}
          superstep 1 [failed] ! {kind}
            task a [cancelled]
              attempt a [cancelled]
            task b [cancelled]
              attempt b [cancelled]
    """)


def test_what_a_thread_does_that_was_given_up_is_not_told(told):
    """Its run is over: there is nothing that it could hang under."""
    from towpath import Runtime
    from towpath.errors import StepTimeoutError

    gate, ended = Event(), Event()

    def slow(state, runtime: Runtime):
        gate.wait(10)
        try:
            runtime.step("late", says("late"), state)
        finally:
            ended.set()

    slow.__annotations__ = {"runtime": Runtime}
    graph = build(("a", slow))
    graph.step_timeout = 0.01
    with pytest.raises(StepTimeoutError):
        graph.invoke({"log": []})
    before = len(told.spans())
    gate.set()
    assert ended.wait(10)
    assert before == len(told.spans())
    assert [] == told.spans("task late")


def test_errors_that_refuse_to_be_shown_are_told_by_their_class(told):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def node(state):
        raise Mute

    with pytest.raises(Mute):
        build(("a", node)).invoke({"log": []})
    assert 4 == len(told.spans())
    assert "Mute(...)" == told.span("attempt").status.description


def test_a_simulated_run_is_not_told(told):
    """Its time is not real, and there are thousands of them."""
    inner = build(("in", says("in")), name="inner")
    graph = build(("a", says("a")), ("sub", inner), checkpointer=InMemorySaver())
    assert "done" == simulate(graph, {"log": []}, thread()).status
    assert [] == told.spans()
    graph.invoke({"log": []}, thread("2"))
    assert 2 == len(told.spans("invoke_agent"))
