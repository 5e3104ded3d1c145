"""Workflows as functions: entrypoints, tasks, futures."""

from __future__ import annotations

from typing import Any, assert_type

from towpath import InMemorySaver, RetryPolicy, Runtime, entrypoint, interrupt, task
from towpath.func import SyncAsyncFuture
from towpath.pregel import Pregel
from towpath.types import GraphOutput


@task
def square(n: int) -> int:
    return n * n


@task(retry_policy=RetryPolicy(), name="word")
def word(n: int, *, upper: bool = False) -> str:
    return str(n)


@task
async def asquare(n: int) -> int:
    return n * n


@entrypoint(checkpointer=InMemorySaver())
def total(numbers: list[int], *, previous: int | None = None) -> int:
    futures = [square(n) for n in numbers]
    assert_type(futures, list[SyncAsyncFuture[int]])
    assert_type(futures[0].result(), int)
    assert_type(word(1, upper=True).result(), str)
    square("1")  # error: arg-type
    square()  # error: call-arg
    word(1, lower=True)  # error: call-arg
    futures[0].result().upper()  # error: attr-defined
    return sum(future.result() for future in futures)


@entrypoint(context_schema=str)
async def atotal(numbers: list[int], runtime: Runtime[str]) -> int:
    assert_type(runtime.context, str)
    assert_type(await asquare(1), int)
    return await asquare(2)


@entrypoint()
def keeps(n: int) -> entrypoint.final[str, int]:
    assert_type(interrupt("go on?"), Any)
    assert_type(interrupt("go on?", response_schema=bool), bool)
    assert_type(interrupt("go on?", response_schema={"type": "boolean"}, key="x"), Any)
    interrupt("how many?", response_schema=int).upper()  # error: attr-defined
    return entrypoint.final(value="x", save=n)


assert_type(total, Pregel[None, None, list[int], int])
assert_type(atotal, Pregel[None, str, list[int], int])
assert_type(keeps, Pregel[None, None, int, str])
assert_type(total.invoke([1], version="v2"), GraphOutput[int])
assert_type(keeps.invoke(1, version="v2").value, str)
# The result, or a dict with the question that it stopped on.
assert_type(total.invoke([1]), Any)
total.invoke([1, 2])
total.invoke(None)
total.invoke(["1"])  # error: list-item
atotal.invoke([1], context=1)  # error: call-overload
task(retries=1)  # a former name, warned of when it runs
task("square")  # error: call-overload
