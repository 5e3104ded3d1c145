"""`task`: a function whose result is recorded as soon as it has finished."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypeVar, overload

from towpath.call.children import TaskFuture, check_name
from towpath.call.scope import TaskContext
from towpath.context import current
from towpath.errors import OutsideNodeError
from towpath.func.functions import (
    limit_of,
    name_of,
    refuse_generators,
    renamed,
    retries,
)
from towpath.given import cache_policy_of
from towpath.kernel.settle import cache_ns
from towpath.plan import NOTHING, NodeSpec
from towpath.plan.arguments import spread
from towpath.plan.identity import identity_of
from towpath.step.children import returned
from towpath.types import CachePolicy, RetryPolicy, TimeoutPolicy

P = ParamSpec("P")
T = TypeVar("T")


class TaskFunction(Generic[P, T]):
    """A task: called in a running node, it starts there and returns a future."""

    def __init__(
        self,
        func: Callable[P, Awaitable[T]] | Callable[P, T],
        *,
        retry_policy: Sequence[RetryPolicy] = (),
        cache_policy: CachePolicy[Callable[P, str | bytes]] | None = None,
        timeout: TimeoutPolicy | None = None,
        name: str | None = None,
    ) -> None:
        self.func = func
        self.retry_policy = retries(retry_policy)
        self.cache_policy = cache_policy_of(cache_policy)
        self.timeout = timeout
        self.spec = NodeSpec(
            name or name_of(func),
            spread(func, name or name_of(func)),
            (),
            NOTHING,
            retry=self.retry_policy,
            cache=cache_policy,
            timeout=timeout,
            identity=identity_of(func) if cache_policy else "",
            emit=returned,
        )
        functools.update_wrapper(self, func)
        self.__name__ = self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Start the task beside the node that runs here; return its future.

        Wait for it with `.result()`; in an async node, await it. It raises what
        the task raised. When the node runs again, the result that was recorded
        is returned, and the function is not called.

        Raises:
            OutsideNodeError: no node is running here (TP-604).
            AsyncTaskError: the task is async, and the run blocking (TP-603).
        """
        context = current.get()
        if not isinstance(context, TaskContext):
            raise OutsideNodeError(
                self.spec.name,
                hint="call a task in an entrypoint, a node or another task; "
                f"`{self.spec.name}.func` is the bare function",
            )
        future: TaskFuture[T] = context.call(self.spec, args, kwargs)
        return future

    def clear_cache(self, cache: Any) -> None:
        """Forget the results that a cache keeps for this task."""
        if self.cache_policy is not None:
            cache.clear([cache_ns(self.spec)])

    async def aclear_cache(self, cache: Any) -> None:
        """Async twin of `clear_cache`."""
        if self.cache_policy is not None:
            await cache.aclear([cache_ns(self.spec)])


@overload
def task(
    func: None = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy[Any] | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **former: Any,
) -> Callable[[Callable[P, Awaitable[T]] | Callable[P, T]], TaskFunction[P, T]]: ...
@overload
def task(func: Callable[P, Awaitable[T]], /) -> TaskFunction[P, T]: ...
@overload
def task(func: Callable[P, T], /) -> TaskFunction[P, T]: ...
def task(
    func: Any = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy[Any] | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **former: Any,
) -> Any:
    """Make a task of a function, sync or async; with or without parentheses.

    Each call in an entrypoint, a node or another task returns a future at once,
    and the calls run concurrently. With a checkpointer, a result is stored before
    the caller gets it: a caller that runs again gets it again. Calls are told
    apart by how many came before in the same caller, and by their names, so a
    caller must make the same calls in the same order as long as a step lasts.

    Raises:
        GeneratorFunctionError: the function is a generator (TP-101).
        InvalidPolicyError: a timeout for a function that is not async (TP-605).
        TypeError: the name is no text.
    """
    if name is not None:
        check_name("task", name)
    former = renamed("task", former, "retry")
    policies = retries(former.get("retry_policy", retry_policy))
    cache_policy = cache_policy_of(cache_policy)

    def made(function: Any) -> TaskFunction[Any, Any]:
        refuse_generators(function, "task")
        return TaskFunction(
            function,
            retry_policy=policies,
            cache_policy=cache_policy,
            timeout=limit_of(timeout, function, "task"),
            name=name,
        )

    return made if func is None else made(func)
