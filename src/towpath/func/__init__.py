"""The functional API: durable workflows as plain functions.

An `entrypoint` is a function that becomes a graph; a `task` is a function whose
result is recorded when it has finished, so that a workflow that runs again after
an interrupt, a retry or a crash goes through its code from the start and finds
what its tasks returned.

>>> from towpath.func import entrypoint, task
>>> @task
... def square(x: int) -> int:
...     return x * x
>>> @entrypoint()
... def total(numbers: list[int]) -> int:
...     futures = [square(n) for n in numbers]
...     return sum(future.result() for future in futures)
>>> total.invoke([1, 2, 3])
14
"""

from towpath.call.children import AsyncTaskError
from towpath.call.children import TaskFuture as SyncAsyncFuture
from towpath.func.entrypoints import entrypoint
from towpath.func.tasks import TaskFunction, task

_TaskFunction = TaskFunction

__all__ = ("AsyncTaskError", "SyncAsyncFuture", "TaskFunction", "entrypoint", "task")
