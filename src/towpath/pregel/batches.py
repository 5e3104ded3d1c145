"""Several runs of a graph at once."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from towpath.errors import InvalidUpdateError
from towpath.pregel.verbs import InvokeOptions, Keyed
from towpath.types import GraphOutput
from towpath.typing import ContextT, InputT, OutputT, StateT

if TYPE_CHECKING:
    from towpath.types import Command

Configs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


def configs_of(config: Configs, count: int) -> list[Mapping[str, Any] | None]:
    """One config per input.

    Raises:
        InvalidUpdateError: a list of another length than the inputs.
    """
    if config is None or isinstance(config, Mapping):
        return [config] * count
    if len(config) != count:
        raise InvalidUpdateError(
            f"{count} inputs, but {len(config)} configs",
            hint="give one config for all, or one for each input",
        )
    return list(config)


def width_of(configs: Sequence[Mapping[str, Any] | None], count: int) -> int:
    """How many runs may go on at once."""
    first = configs[0] if configs else None
    return (first or {}).get("max_concurrency") or min(32, count) or 1


class BatchVerbs(Generic[StateT, ContextT, InputT, OutputT]):
    """The verbs that take several inputs."""

    invoke: Any
    ainvoke: Any

    @overload
    def batch(
        self,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: Literal[False] = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[GraphOutput[OutputT]]: ...
    @overload
    def batch(
        self: Keyed,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[dict[str, Any]]: ...
    @overload
    def batch(
        self,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: bool = ...,
        stream_mode: Any = ...,
        output_keys: Any = ...,
        version: Literal["v1", "v2"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[Any]: ...
    def batch(
        self: Any,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Run every input and return the outputs in their order."""
        found = self.batch_as_completed(
            inputs, config, return_exceptions=return_exceptions, **kwargs
        )
        outputs = dict(found)
        return [outputs[index] for index in range(len(inputs))]

    @overload
    async def abatch(
        self,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: Literal[False] = ...,
        version: Literal["v2"],
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[GraphOutput[OutputT]]: ...
    @overload
    async def abatch(
        self: Keyed,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: Literal[False] = ...,
        version: Literal["v1"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[dict[str, Any]]: ...
    @overload
    async def abatch(
        self,
        inputs: Sequence[InputT | Command[Any] | None],
        config: Configs = ...,
        *,
        return_exceptions: bool = ...,
        stream_mode: Any = ...,
        output_keys: Any = ...,
        version: Literal["v1", "v2"] = ...,
        **options: Unpack[InvokeOptions[ContextT]],
    ) -> list[Any]: ...
    async def abatch(
        self: Any,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Async twin of `batch`."""
        found = self.abatch_as_completed(
            inputs, config, return_exceptions=return_exceptions, **kwargs
        )
        outputs = {index: output async for index, output in found}
        return [outputs[index] for index in range(len(inputs))]

    def batch_as_completed(
        self,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> Iterator[tuple[int, Any]]:
        """Run every input and yield `(index, output)` as they end."""
        configs = configs_of(config, len(inputs))
        with ThreadPoolExecutor(width_of(configs, len(inputs))) as pool:
            running: dict[Future[Any], int] = {}
            for index, given in enumerate(inputs):
                call = partial(self.invoke, given, configs[index], **kwargs)
                running[pool.submit(copy_context().run, call)] = index
            for job in as_completed(running):
                yield running[job], outcome_of(job, return_exceptions)

    async def abatch_as_completed(
        self,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> AsyncIterator[tuple[int, Any]]:
        """Async twin of `batch_as_completed`."""
        configs = configs_of(config, len(inputs))
        call = partial(self.ainvoke, **kwargs)
        jobs = started(call, inputs, configs, return_exceptions)
        try:
            for job in asyncio.as_completed(jobs):
                yield await job
        finally:
            for running in jobs:
                running.cancel()


def started(
    call: Callable[..., Awaitable[Any]],
    inputs: Sequence[Any],
    configs: Sequence[Mapping[str, Any] | None],
    return_exceptions: bool,
) -> list[asyncio.Task[tuple[int, Any]]]:
    """One asyncio task per input; as many at once as the configs allow."""
    gate = asyncio.Semaphore(width_of(configs, len(inputs)))

    async def one(index: int) -> tuple[int, Any]:
        async with gate:
            try:
                return index, await call(inputs[index], configs[index])
            except Exception as error:
                if return_exceptions:
                    return index, error
                raise

    return [asyncio.ensure_future(one(index)) for index in range(len(inputs))]


def outcome_of(job: Future[Any], return_exceptions: bool) -> Any:
    error = job.exception()
    if error is None:
        return job.result()
    if return_exceptions and isinstance(error, Exception):
        return error
    raise error
