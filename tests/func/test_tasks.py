"""Tasks: what they return, how often they run, and what they may do."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypedDict

import pytest

from towpath import START, Command, InMemorySaver, RetryPolicy, StateGraph, interrupt
from towpath.cache.memory import InMemoryCache
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import (
    ColourError,
    InvalidCheckpointerError,
    InvalidPolicyError,
    NodeCancelledError,
    NodeTimeoutError,
    OutsideNodeError,
    SerializationError,
    StepTimeoutError,
)
from towpath.func import AsyncTaskError, entrypoint, task
from towpath.types import CachePolicy, TimeoutPolicy

THREAD = {"configurable": {"thread_id": "1"}}
AT_ONCE = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=ValueError)


async def async_identity(value: Any) -> Any:
    return value


class Calls(Counter[Any]):
    """How often what was called."""

    def task(self, name: str, does: Callable[..., Any] = lambda *args: args) -> Any:
        """A task that counts its calls."""

        def run(*args: Any) -> Any:
            self[name] += 1
            return does(*args)

        return task(name=name)(run)


@pytest.fixture(params=["invoke", "ainvoke"])
def invoke(request: Any) -> Callable[..., Any]:
    """Run a graph to its end, in either colour."""

    def run(graph: Any, *args: Any, **options: Any) -> Any:
        if request.param == "invoke":
            return graph.invoke(*args, **options)
        return asyncio.run(graph.ainvoke(*args, **options))

    return run


def test_finished_task_is_not_run_again_when_the_workflow_resumes(
    invoke: Any, tmp_path: Any
) -> None:
    calls = Calls()
    work = calls.task("work", lambda x: x + 1)
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:

        def made() -> Any:
            @entrypoint(checkpointer=saver)
            def flow(x: int) -> Any:
                first = work(x).result()
                answer = interrupt("go on?")
                return [first, answer, work(first).result()]

            return flow

        made().invoke(1, THREAD)
        done = made().invoke(Command(resume="yes"), THREAD)

    assert [2, "yes", 3] == done
    assert {"work": 2} == calls


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_finished_task_is_not_run_again_when_its_parent_is_retried(
    invoke: Any, saver: Any
) -> None:
    calls = Calls()
    work = calls.task("work", lambda: [1])

    @entrypoint(checkpointer=saver, retry_policy=AT_ONCE)
    def flow(_: Any) -> Any:
        found = work().result()
        found.append(2)  # changes the result, not what was recorded of it
        calls["flow"] += 1
        if calls["flow"] < 3:
            raise ValueError
        return found

    assert [1, 2] == invoke(flow, 0, THREAD)
    assert {"work": 1, "flow": 3} == calls


def test_call_whose_name_changed_gets_no_result_of_another(invoke: Any) -> None:
    saver, calls = InMemorySaver(), Calls()

    def made(*names: str) -> Any:
        @entrypoint(checkpointer=saver)
        def flow(_: Any) -> Any:
            found = [calls.task(n, lambda n=n: n)().result() for n in names]
            return [*found, interrupt("?")]

        return flow

    invoke(made("a", "b"), 0, THREAD)

    assert ["b", "a", 1] == invoke(made("b", "a"), Command(resume=1), THREAD)
    assert {"a": 2, "b": 2} == calls


def test_questions_of_parallel_tasks_all_surface_and_get_their_own_answers(
    invoke: Any,
) -> None:
    calls = Calls()
    ask = calls.task("ask", interrupt)
    work = calls.task("work")

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        futures = [ask("a?"), work(), ask("b?")]
        return [future.result() for future in futures]

    asked = invoke(flow, 0, THREAD)["__interrupt__"]
    answers = {question.id: question.value.upper() for question in asked}
    left = invoke(flow, Command(resume={asked[1].id: "B?"}), THREAD)["__interrupt__"]
    done = invoke(flow, Command(resume=answers[asked[0].id]), THREAD)

    assert ["a?", "b?"] == [question.value for question in asked]
    assert ["a?"] == [question.value for question in left]
    assert ["A?", (), "B?"] == done
    assert {"ask": 4, "work": 1} == calls


def test_question_that_nobody_looks_at_stays_asked(invoke: Any) -> None:
    ask = task(name="ask")(interrupt)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> str:
        ask("really?")
        return "done"

    paused = invoke(flow, 0, THREAD)

    assert ["really?"] == [question.value for question in paused["__interrupt__"]]
    assert "done" == invoke(flow, Command(resume="yes"), THREAD)


def test_tasks_call_tasks(invoke: Any) -> None:
    calls = Calls()
    leaf = calls.task("leaf", lambda n: n)
    middle = calls.task("middle", lambda n: leaf(n).result() + leaf(n + 1).result())

    @entrypoint(checkpointer=InMemorySaver())
    def flow(n: int) -> Any:
        total = sum(future.result() for future in [middle(n), middle(n + 10)])
        return [total, interrupt("?")]

    invoke(flow, 1, THREAD)

    assert [1 + 2 + 11 + 12, "x"] == invoke(flow, Command(resume="x"), THREAD)
    assert {"leaf": 4, "middle": 2} == calls


@pytest.mark.parametrize("width", [1, 2, 3])
def test_width_bounds_tasks_that_run_and_not_those_that_wait(
    invoke: Any, width: int
) -> None:
    lock, running, most = threading.Lock(), 0, 0

    @task
    def leaf() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1

    @task
    def middle() -> None:
        for future in [leaf(), leaf()]:
            future.result()

    @entrypoint()
    def flow(_: Any) -> None:
        for future in [middle() for _ in range(4)]:
            future.result()

    invoke(flow, 0, {"max_concurrency": width})

    assert 1 <= most <= width


def test_tasks_are_called_from_nodes_and_from_threads_of_theirs(invoke: Any) -> None:
    class State(TypedDict, total=False):
        found: list[int]

    calls = Calls()
    work = calls.task("work", lambda n: n)

    def node(_: State) -> Any:
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(lambda n: work(n).result(), range(4)))
        interrupt("?")
        return {"found": found}

    builder = StateGraph(State)
    for name in ("one", "two"):
        builder.add_node(name, node if name == "one" else lambda _: None)
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    invoke(graph, {}, THREAD)

    assert {"found": [0, 1, 2, 3]} == invoke(graph, Command(resume=1), THREAD)
    assert {"work": 4} == calls


def test_failure_of_a_task_is_its_callers(invoke: Any) -> None:
    def fails() -> None:
        raise KeyError("missing")

    boom = task(name="boom")(fails)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(how: str) -> str:
        future = boom()
        if how == "ignored":
            return how
        try:
            future.result()
        except KeyError:
            if how == "caught":
                return how
            raise
        return "never"

    assert "caught" == invoke(flow, "caught", THREAD)
    assert "ignored" == invoke(flow, "ignored", THREAD)
    with pytest.raises(KeyError) as raised:
        invoke(flow, "raised", THREAD)
    assert ["boom", "flow"] == [note.split("'")[1] for note in raised.value.__notes__]


def test_failed_task_runs_again_and_its_finished_siblings_do_not(invoke: Any) -> None:
    calls = Calls()
    work = calls.task("work")

    def fails_once() -> str:
        if calls["flaky"] == 1:
            raise KeyError
        return "ok"

    flaky = calls.task("flaky", fails_once)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        return [work().result(), flaky().result()]

    with pytest.raises(KeyError):
        invoke(flow, 0, THREAD)

    assert [(), "ok"] == invoke(flow, None, THREAD)
    assert {"work": 1, "flaky": 2} == calls


def test_task_is_tried_again_as_its_policy_says(invoke: Any) -> None:
    attempts = []

    @task(retry_policy=AT_ONCE)
    def flaky() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError
        return len(attempts)

    @entrypoint()
    def flow(_: Any) -> int:
        return flaky().result()

    assert 3 == invoke(flow, 0)


def test_result_that_cannot_be_stored_fails_the_run(invoke: Any) -> None:
    class Opaque:
        pass

    @task
    def work() -> Any:
        return Opaque()

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        return str(work().result())

    with pytest.raises(SerializationError):
        invoke(flow, 0, THREAD)


def test_cached_result_is_used_until_the_cache_is_cleared(invoke: Any) -> None:
    calls = Calls()
    cache = InMemoryCache()

    @task(cache_policy=CachePolicy())
    def work(n: int, *, plus: int = 0) -> int:
        calls["work"] += 1
        return n + plus

    @entrypoint(cache=cache)
    def flow(n: int) -> list[int]:
        return [work(n).result(), work(n).result(), work(n, plus=1).result()]

    for _ in range(2):
        assert [1, 1, 2] == invoke(flow, 1)
    assert {"work": 2} == calls
    work.clear_cache(cache)
    invoke(flow, 1)

    assert {"work": 4} == calls


@pytest.mark.parametrize(
    "found", [None, (), [("x", 1)], ["__return__"], [("__return__", 2, 3)], [5, 5]]
)
def test_what_a_cache_has_is_not_used_unless_it_is_a_result(
    invoke: Any, found: Any
) -> None:
    cache = Always(found)

    @task(cache_policy=CachePolicy())
    def work(x: int) -> int:
        return x + 1

    @entrypoint(cache=cache)
    def flow(x: int) -> int:
        return work(x).result()

    assert 2 == invoke(flow, 1)


class Always(InMemoryCache):
    """A cache that has the same for every key."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def get(self, keys: Any) -> Any:
        return dict.fromkeys(keys, self.found)

    async def aget(self, keys: Any) -> Any:
        return self.get(keys)


class Failing(InMemoryCache):
    """A cache whose operations fail."""

    def __init__(self, error: BaseException, *operations: str) -> None:
        super().__init__()

        def fail(given: Any) -> Any:
            raise error

        async def afail(given: Any) -> Any:
            raise error

        for operation in operations:
            setattr(self, operation, fail)
            setattr(self, f"a{operation}", afail)


@pytest.mark.parametrize("operation", ["get", "set"])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt("now")])
def test_cache_that_fails_ends_the_run_and_the_wait_of_its_tasks(
    invoke: Any, operation: str, error: BaseException
) -> None:
    over = threading.Event()

    @task(cache_policy=CachePolicy())
    def work(x: int) -> int:
        return x + 1

    @entrypoint(cache=Failing(error, operation))
    def flow(x: int) -> int:
        try:
            futures = [work(x), work(x)]  # the same arguments
            return sum(future.result() for future in futures)
        finally:
            over.set()

    with pytest.raises(type(error), match=str(error)):
        invoke(flow, 1)
    assert over.wait(5)


def test_policy_that_fails_ends_the_run_and_the_wait_of_its_task(invoke: Any) -> None:
    def choose(error: Exception) -> bool:
        raise LookupError("of the policy")

    @task(retry_policy=RetryPolicy(retry_on=choose))
    def work(x: int) -> int:
        raise ValueError(x)

    @task
    def outer(x: int) -> int:
        work(x)  # holds its caller until it is settled
        return x

    @entrypoint()
    def flow(x: int) -> int:
        return outer(x).result()

    with pytest.raises(LookupError, match="of the policy"):
        invoke(flow, 1)


def test_key_that_fails_is_the_callers_and_an_exit_is_the_runs(invoke: Any) -> None:
    def run(error: BaseException) -> Any:
        def key(x: int) -> str:
            raise error

        @task(cache_policy=CachePolicy(key_func=key))
        def work(x: int) -> int:
            return x

        @entrypoint(cache=InMemoryCache())
        def flow(x: int) -> str:
            try:
                return str(work(x).result())
            except LookupError as raised:
                return f"caught {raised}"

        return invoke(flow, 1)

    assert "caught 'key'" == run(LookupError("'key'"))
    with pytest.raises(KeyboardInterrupt):
        run(KeyboardInterrupt())


def test_slow_task_that_nobody_waits_for_is_waited_for_by_the_run(invoke: Any) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), []

    @task
    def slow() -> None:
        began.set()
        may_end.wait(10)
        ended.append(1)

    @entrypoint()
    def flow(_: Any) -> str:
        slow()
        assert began.wait(10)
        threading.Thread(target=may_end.set).start()
        return "done"

    assert "done" == invoke(flow, 0)
    assert [1] == ended


def test_task_sees_the_contextvars_of_its_caller(invoke: Any) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="")
    read = task(name="read")(variable.get)

    @entrypoint()
    def flow(_: Any) -> Any:
        variable.set("set by the workflow")
        return read().result()

    assert "set by the workflow" == invoke(flow, 0)


def test_call_after_the_end_of_the_node_is_refused(invoke: Any) -> None:
    work, late, outcome = task(name="work")(int), threading.Event(), []

    def call_late() -> None:
        late.wait(10)
        try:
            work().result(10)
        except NodeCancelledError as error:
            outcome.append(error)

    threads = []

    @entrypoint()
    def flow(_: Any) -> None:
        threads.append(threading.Thread(target=call_late))
        threads[0].start()

    invoke(flow, 0)
    late.set()
    threads[0].join(10)

    assert ["TP-404"] == [error.code for error in outcome]


def test_task_outside_of_a_node_says_so() -> None:
    with pytest.raises(OutsideNodeError, match="`work`"):
        task(name="work")(int)()


def test_async_task_in_a_blocking_run_is_refused_at_the_call() -> None:
    @task
    async def work() -> None: ...

    @entrypoint()
    def flow(_: Any) -> Any:
        return work().result()

    with pytest.raises(AsyncTaskError) as raised:
        flow.invoke(0)

    assert isinstance(raised.value, RuntimeError)
    assert isinstance(raised.value, ColourError)
    assert None is asyncio.run(flow.ainvoke(0))


def test_async_workflow_awaits_async_and_blocking_tasks() -> None:
    @task
    async def square(n: int) -> int:
        await asyncio.sleep(0)
        return n * n

    half = task(name="half")(lambda n: n // 2)

    @entrypoint()
    async def flow(n: int) -> list[int]:
        return await asyncio.gather(square(n), half(n), square(n + 1))

    assert [16, 2, 25] == asyncio.run(flow.ainvoke(4))


def test_task_whose_caller_stops_waiting_is_cancelled() -> None:
    ended = []

    @task
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    @entrypoint()
    async def flow(_: Any) -> str:
        waiting = asyncio.ensure_future(slow())
        await asyncio.sleep(0.01)
        waiting.cancel()
        return "done"

    assert "done" == asyncio.run(flow.ainvoke(0))
    assert ["cancelled"] == ended


@pytest.mark.parametrize("turns", range(6))
def test_a_task_can_be_given_up_at_any_turn_of_the_loop(turns: int) -> None:
    """One whose code was not entered yet is over as well: the run comes to its end."""
    work = task(name="work")(async_identity)

    @entrypoint()
    async def flow(_: Any) -> str:
        waiting = asyncio.ensure_future(work(1))
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        return "done"

    async def main() -> str:
        async with asyncio.timeout(10):
            done: str = await flow.ainvoke(0)
            return done

    assert "done" == asyncio.run(main())


@pytest.mark.parametrize("turns", range(6))
def test_a_run_can_be_cancelled_at_any_turn_of_the_loop(turns: int) -> None:
    work = task(name="work")(async_identity)

    @entrypoint()
    async def flow(_: Any) -> Any:
        return await asyncio.gather(work(1), work(2))

    async def main() -> None:
        async with asyncio.timeout(10):
            running = asyncio.ensure_future(flow.ainvoke(0))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(main())


def test_cancelled_run_records_what_had_finished() -> None:
    calls = Calls()
    work = calls.task("work")
    saver, asleep = InMemorySaver(), asyncio.Event()

    @entrypoint(checkpointer=saver)
    async def flow(_: Any) -> str:
        await work()
        if calls["flow"] == 0:
            calls["flow"] = 1
            asleep.set()
            await asyncio.Event().wait()
        return "done"

    async def main() -> str:
        running = asyncio.ensure_future(flow.ainvoke(0, THREAD))
        await asleep.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        done: str = await flow.ainvoke(None, THREAD)
        return done

    assert "done" == asyncio.run(main())
    assert {"work": 1, "flow": 1} == calls


def test_results_come_out_of_a_stream_while_the_workflow_runs() -> None:
    told = threading.Event()
    work = task(name="work")(lambda: "result")

    @entrypoint()
    def flow(_: Any) -> bool:
        work().result()
        return told.wait(10)

    chunks = []
    for chunk in flow.stream(0):
        chunks.append(chunk)
        told.set()

    assert [{"work": "result"}, {"flow": True}] == chunks


def test_state_of_a_paused_workflow_can_be_edited_and_goes_on(invoke: Any) -> None:
    calls = Calls()
    work = calls.task("work", lambda n: n)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(n: int, *, previous: Any = None) -> Any:
        found = work(n).result()
        return [found, interrupt("?"), previous]

    invoke(flow, 1, THREAD)
    invoke(flow, Command(resume="a"), THREAD)
    invoke(flow, 2, THREAD)

    assert [2, "b", [1, "a", None]] == invoke(flow, Command(resume="b"), THREAD)
    flow.update_state(THREAD, "edited")
    assert "edited" == flow.get_state(THREAD).values
    invoke(flow, 3, THREAD)
    assert [3, "c", "edited"] == invoke(flow, Command(resume="c"), THREAD)
    assert {"work": 3} == calls


class Gates:
    """Lets threads go on in an order that differs from run to run."""

    def __init__(self, *order: int) -> None:
        self.order = list(order)
        self.turn = threading.Condition()

    def wait(self, n: int) -> None:
        with self.turn:
            assert self.turn.wait_for(lambda: self.order[0] == n, 10)

    def next(self) -> None:
        with self.turn:
            self.order.pop(0)
            self.turn.notify_all()


def test_calls_from_threads_get_their_own_results_in_any_order(invoke: Any) -> None:
    calls = Calls()
    work = calls.task("work", lambda n: n)
    saver = InMemorySaver()

    def made(*order: int) -> Any:
        gates = Gates(*order)

        def one(n: int) -> Any:
            gates.wait(n)
            future = work(n)
            gates.next()
            return future.result()

        @entrypoint(checkpointer=saver)
        def flow(_: Any) -> Any:
            with ThreadPoolExecutor() as pool:
                found = list(pool.map(one, range(3)))
            return [found, interrupt("?")]

        return flow

    invoke(made(0, 1, 2), 0, THREAD)
    done = invoke(made(2, 0, 1), Command(resume=1), THREAD)

    assert [[0, 1, 2], 1] == done
    assert {"work": 3} == calls


def test_calls_from_asyncio_tasks_get_their_own_results_in_any_order() -> None:
    calls = Calls()
    work = calls.task("work", lambda n: n)
    saver = InMemorySaver()

    def made(*order: int) -> Any:
        async def one(n: int) -> Any:
            for _ in range(order[n]):
                await asyncio.sleep(0)
            return await work(n)

        @entrypoint(checkpointer=saver)
        async def flow(_: Any) -> Any:
            found = await asyncio.gather(*map(one, range(3)))
            return [found, interrupt("?")]

        return flow

    asyncio.run(made(0, 3, 6).ainvoke(0, THREAD))
    done = asyncio.run(made(6, 3, 0).ainvoke(Command(resume=1), THREAD))

    assert [[0, 1, 2], 1] == done
    assert {"work": 3} == calls


def test_arguments_that_cannot_be_written_down_are_told_apart_by_order(
    invoke: Any,
) -> None:
    work = task(name="work")(lambda lock: type(lock).__name__)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        with ThreadPoolExecutor() as pool:
            return pool.submit(lambda: work(threading.Lock()).result()).result()

    assert "lock" == invoke(flow, 0, THREAD)


def test_question_of_a_nested_workflow_does_not_repeat_its_tasks(invoke: Any) -> None:
    calls = Calls()
    work = calls.task("work", lambda n: n)

    @entrypoint()
    def inner(n: int) -> Any:
        return [work(n).result(), interrupt("inner?")]

    @entrypoint(checkpointer=InMemorySaver())
    def outer(n: int) -> Any:
        return [work(n + 1).result(), inner.invoke(n)]

    asked = invoke(outer, 1, THREAD)["__interrupt__"]

    assert ["inner?"] == [question.value for question in asked]
    assert [2, [1, "x"]] == invoke(outer, Command(resume="x"), THREAD)
    assert {"work": 2} == calls


def test_edit_of_a_paused_graph_keeps_what_its_tasks_returned(invoke: Any) -> None:
    class State(TypedDict, total=False):
        n: int
        found: list[Any]

    calls = Calls()
    work = calls.task("work", lambda: "done")

    def node(state: State) -> Any:
        return {"found": [work().result(), interrupt("?"), state["n"]]}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver())
    invoke(graph, {"n": 1}, THREAD)
    graph.update_state(THREAD, {"n": 2})

    done = invoke(graph, Command(resume="x"), THREAD)

    assert ["done", "x", 2] == done["found"]
    assert {"work": 1} == calls


def test_time_limit_of_a_step_lets_go_of_those_that_wait_for_tasks(
    invoke: Any,
) -> None:
    may_end, outcome, over = threading.Event(), [], threading.Event()

    @task
    def slow() -> None:
        may_end.wait(10)

    @entrypoint()
    def flow(_: Any) -> None:
        try:
            slow().result(10)
        except NodeCancelledError as error:
            outcome.append(error.code)
        finally:
            over.set()

    flow.step_timeout = 0.02
    with pytest.raises(StepTimeoutError):
        invoke(flow, 0)
    assert over.wait(10)
    may_end.set()

    assert ["TP-404"] == outcome


def test_async_task_over_its_time_limit_is_tried_again() -> None:
    attempts = []

    @task(timeout=0.02, retry_policy=AT_ONCE._replace(retry_on=NodeTimeoutError))
    async def slow() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            await asyncio.Event().wait()
        return "in time"

    @entrypoint()
    async def flow(_: Any) -> Any:
        return await slow()

    assert "in time" == asyncio.run(flow.ainvoke(0))
    assert 2 == len(attempts)


def test_async_task_over_its_time_limit_fails_its_caller() -> None:
    @task(timeout=0.02)
    async def slow() -> None:
        await asyncio.Event().wait()

    @entrypoint()
    async def flow(_: Any) -> str:
        with pytest.raises(NodeTimeoutError):
            await slow()
        return "went on"

    assert "went on" == asyncio.run(flow.ainvoke(0))


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_results_are_found_again_with_every_durability(
    invoke: Any, durability: str
) -> None:
    calls = Calls()
    work = calls.task("work", lambda: 1)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        return [work().result(), interrupt("?")]

    invoke(flow, 0, THREAD, durability=durability)
    done = invoke(flow, Command(resume=2), THREAD, durability=durability)

    assert [1, 2] == done
    assert {"work": 1} == calls


@pytest.mark.parametrize("make", [task, entrypoint])
def test_what_is_no_retry_policy_is_refused_where_it_is_given(make: Any) -> None:
    with pytest.raises(InvalidPolicyError, match="not 3"):
        make(retry_policy=3)


def test_what_is_no_checkpointer_is_refused_where_it_is_given() -> None:
    with pytest.raises(InvalidCheckpointerError, match="Received str"):
        entrypoint(checkpointer="threads.db")  # type: ignore[arg-type]


def test_future_that_is_returned_is_an_error_that_says_to_wait() -> None:
    @task
    def work() -> int:
        return 1

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: Any) -> Any:
        return {"work": work()}

    with pytest.raises(SerializationError) as caught:
        flow.invoke(0, THREAD)
    assert "result()" in (caught.value.hint or "")


def test_retried_caller_waits_for_what_still_runs_and_does_not_repeat_it() -> None:
    calls, began = Calls(), []

    @task
    async def slow() -> str:
        began.append(1)
        await asyncio.sleep(0.03)
        return "slow"

    @entrypoint(retry_policy=AT_ONCE._replace(retry_on=NodeTimeoutError))
    async def flow(_: Any) -> Any:
        calls["flow"] += 1
        future = slow()
        if calls["flow"] == 1:
            await asyncio.shield(asyncio.Event().wait())
        return await future

    node = flow.plan_of_graph.nodes["flow"]
    node.timeout = TimeoutPolicy(run_timeout=0.01)
    node.retry = (AT_ONCE._replace(retry_on=NodeTimeoutError, max_attempts=9),)

    async def main() -> Any:
        return await flow.ainvoke(0)

    assert "slow" == asyncio.run(main())


def test_an_unfinished_future_says_that_it_is_to_be_awaited() -> None:
    @task
    async def slow() -> int:
        await asyncio.sleep(0)
        return 1

    @entrypoint()
    async def flow(_: int) -> int:
        return slow().result()

    with pytest.raises(asyncio.InvalidStateError) as caught:
        asyncio.run(flow.ainvoke(1))
    assert any("`await future`" in note for note in caught.value.__notes__)
