"""What is handed to decorators, constructors and `compile()` is looked at there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from towpath import (
    CachePolicy,
    InMemorySaver,
    RetryPolicy,
    StateGraph,
    entrypoint,
    task,
)
from towpath.cache.memory import InMemoryCache
from towpath.channels import EphemeralValue, LastValue
from towpath.errors import TowpathError
from towpath.pregel import NodeBuilder, Pregel
from towpath.store.memory import InMemoryStore


class State(TypedDict, total=False):
    text: str


def write(_: State) -> State:
    return {"text": "done"}


async def wait(_: Any) -> State:
    return {"text": "done"}


def builder() -> StateGraph[State]:
    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_edge("__start__", "write")
    return graph


def raw(**given: Any) -> Any:
    node = NodeBuilder().subscribe_only("a").do(str).write_to("b")
    return Pregel(
        nodes={"n": node},
        channels={"a": EphemeralValue(str), "b": LastValue(str)},
        input_channels="a",
        output_channels="b",
        **given,
    )


Take = Callable[[Any], Any]
TAKERS: dict[str, tuple[str, Take]] = {
    "compile checkpointer": ("TP-606", lambda x: builder().compile(checkpointer=x)),
    "compile store": ("TP-608", lambda x: builder().compile(store=x)),
    "compile cache": ("TP-609", lambda x: builder().compile(cache=x)),
    "compile transformers": ("TP-614", lambda x: builder().compile(transformers=x)),
    "node retry": ("TP-605", lambda x: builder().add_node("n", wait, retry_policy=x)),
    "node cache": ("TP-605", lambda x: builder().add_node("n", wait, cache_policy=x)),
    "node trace": ("TP-605", lambda x: builder().add_node("n", wait, trace_policy=x)),
    "node metadata": ("TP-101", lambda x: builder().add_node("n", wait, metadata=x)),
    "handler": (
        "TP-101",
        lambda x: builder().add_node("n", wait, error_handler=x),
    ),
    "node action": ("TP-101", lambda x: builder().add_node("n", x)),
    "default retry": ("TP-605", lambda x: builder().set_node_defaults(retry_policy=x)),
    "default cache": ("TP-605", lambda x: builder().set_node_defaults(cache_policy=x)),
    "branch": ("TP-101", lambda x: builder().add_conditional_edges("write", x)),
    "entrypoint checkpointer": ("TP-606", lambda x: entrypoint(checkpointer=x)(wait)),
    "entrypoint store": ("TP-608", lambda x: entrypoint(store=x)(wait)),
    "entrypoint cache": ("TP-609", lambda x: entrypoint(cache=x)(wait)),
    "entrypoint retry": ("TP-605", lambda x: entrypoint(retry_policy=x)(wait)),
    "entrypoint policy": ("TP-605", lambda x: entrypoint(cache_policy=x)(wait)),
    "entrypoint function": ("TP-101", lambda x: entrypoint()(x)),
    "task retry": ("TP-605", lambda x: task(retry_policy=x)(wait)),
    "task policy": ("TP-605", lambda x: task(cache_policy=x)(wait)),
    "task function": ("TP-101", lambda x: task(x)),
    "raw checkpointer": ("TP-606", lambda x: raw(checkpointer=x)),
    "raw store": ("TP-608", lambda x: raw(store=x)),
    "raw cache": ("TP-609", lambda x: raw(cache=x)),
    "raw retry": ("TP-605", lambda x: raw(retry_policy=x)),
    "raw policy": ("TP-605", lambda x: raw(cache_policy=x)),
    "raw node retry": ("TP-605", lambda x: NodeBuilder().add_retry_policies(x)),
    "raw node cache": ("TP-605", lambda x: NodeBuilder().add_cache_policy(x)),
    "raw node action": ("TP-101", lambda x: NodeBuilder().do(x)),
    "control": ("TP-610", lambda x: builder().compile().invoke({}, control=x)),
    "codec": ("TP-503", lambda x: InMemorySaver(serde=x)),
    "cache codec": ("TP-503", lambda x: InMemoryCache(serde=x)),
}
WRONG = [3, "y", object(), [object()], {"a": 1}]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_wrong_kind_of_object_is_a_type_error_with_a_code(
    taker: str, wrong: Any
) -> None:
    if taker == "node metadata" and wrong == {"a": 1}:
        return  # that is metadata
    code, take = TAKERS[taker]
    with pytest.raises(TypeError) as caught:
        take(wrong)
    assert isinstance(caught.value, TowpathError)
    assert code == caught.value.code


@pytest.mark.parametrize("wrong", ["soon", object(), [1], {}])
@pytest.mark.parametrize(
    "take",
    [
        lambda x: builder().add_node("n", wait, timeout=x),
        lambda x: builder().set_node_defaults(timeout=x),
        lambda x: entrypoint(timeout=x)(wait),
        lambda x: task(timeout=x)(wait),
        lambda x: NodeBuilder().set_timeout(x),
        lambda x: raw(step_timeout=x),
    ],
)
def test_a_time_limit_that_is_no_number_is_refused(take: Take, wrong: Any) -> None:
    with pytest.raises(TypeError, match="TP-605"):
        take(wrong)


@pytest.mark.parametrize("wrong", [3, object(), int])
@pytest.mark.parametrize(
    "take",
    [
        lambda x: builder().compile(interrupt_before=x),
        lambda x: builder().compile(interrupt_after=x),
        lambda x: builder().compile().invoke({}, interrupt_before=x),
        lambda x: builder().add_conditional_edges(x, write),
        lambda x: builder().add_conditional_edges("write", write, x),
    ],
)
def test_names_that_are_none_are_refused(take: Take, wrong: Any) -> None:
    with pytest.raises(TypeError, match="TP-101"):
        take(wrong)


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(max_attempts="3"),  # type: ignore[arg-type]
        RetryPolicy(retry_on=3),  # type: ignore[arg-type]
        RetryPolicy(retry_on=int),  # type: ignore[arg-type]
        RetryPolicy(retry_on=[ValueError, "x"]),  # type: ignore[list-item]
    ],
)
def test_fields_of_policies_are_looked_at(policy: RetryPolicy) -> None:
    with pytest.raises(TypeError, match="TP-605"):
        builder().add_node("n", wait, retry_policy=policy)


@pytest.mark.parametrize(
    "policy",
    [CachePolicy(ttl="x"), CachePolicy(key_func="k")],  # type: ignore[arg-type]
)
def test_fields_of_cache_policies_are_looked_at(policy: CachePolicy[Any]) -> None:
    with pytest.raises(TypeError, match="TP-605"):
        builder().add_node("n", wait, cache_policy=policy)


@pytest.mark.parametrize("wrong", [3, "State", {"text": str}])
@pytest.mark.parametrize(
    "take",
    [
        lambda x: StateGraph(x),
        lambda x: StateGraph(State, context_schema=x),
        lambda x: StateGraph(State, input_schema=x),
        lambda x: StateGraph(State, output_schema=x),
        lambda x: builder().add_node("n", wait, input_schema=x),
        lambda x: entrypoint(context_schema=x)(wait),
    ],
)
def test_a_schema_is_no_value(take: Take, wrong: Any) -> None:
    with pytest.raises(TowpathError, match="schema is a class"):
        take(wrong)


def test_what_fits_is_taken() -> None:
    graph = builder()
    policies = [RetryPolicy(retry_on=(ValueError, KeyError)), RetryPolicy()]
    graph.add_node("n", wait, retry_policy=policies, cache_policy=CachePolicy(ttl=3))
    graph.add_conditional_edges("write", lambda _: "n", ["n"])
    app = graph.compile(
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
        cache=InMemoryCache(),
        interrupt_before="n",
    )
    thread = {"configurable": {"thread_id": "1"}}
    assert {"text": "done"} == app.invoke({"text": ""}, thread)
    assert ("n",) == app.get_state(thread).next


def test_an_unknown_projection_is_named() -> None:
    run = builder().compile().stream_events({"text": ""}, version="v3")
    with pytest.raises(KeyError, match=r"TP-613.*'mesages'[\s\S]*messages"):
        list(run.interleave("mesages"))
    with pytest.raises(KeyError, match=r"TP-613.*lifecycle"):
        run.extensions["nothing"]
    assert run.extensions.get("nothing") is None
