"""A run elsewhere, read as events and projections of them.

The client's own thread streams do the work (`client.threads.stream`): here they
get the face that runs have here. Entering the stream starts the run; leaving it
closes the connection, and the run goes on there unless it was aborted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import fields
from types import TracebackType
from typing import Any, Final, Literal, Self

from towpath.constants import CONF
from towpath.pregel.config import merge
from towpath.pregel.wire import sent_config
from towpath.types import Command

OWN: Final = ("values", "messages", "tool_calls", "subgraphs")
"""The projections that the client's streams have as attributes."""
PLAIN: Final = ("updates", "checkpoints", "tasks", "custom")
"""Those that are the data of the events of one method."""
REFUSED: Final = ("interrupt_before", "interrupt_after", "control", "transformers")
"""Options of such runs here that servers do not take."""
UNSUPPORTED: Final = "RemoteGraph.stream_events(version='v3') does not support {}"


def refuse(version: str, given: Mapping[str, Any]) -> None:
    """Refuse what servers cannot be asked for with such a run.

    Raises:
        NotImplementedError: says which.
    """
    if version != "v3":
        raise NotImplementedError(
            f"RemoteGraph has no events of version {version!r}: give version='v3', "
            "or read the run by stream() or astream()"
        )
    for name in REFUSED:
        if given.get(name):
            raise NotImplementedError(UNSUPPORTED.format(f"`{name}=`"))
    if unknown := sorted(set(given) - {"metadata", *REFUSED}):
        raise NotImplementedError(
            UNSUPPORTED.format(f"{unknown}; it supports `headers` and `metadata`")
        )


def started_with(
    input: Any, config: Mapping[str, Any], metadata: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What a run is started with: an answer is its input.

    Raises:
        NotImplementedError: a command that does more than answer.
    """
    if isinstance(input, Command):
        more = [each.name for each in fields(input) if each.name != "resume"]
        if any(getattr(input, name) for name in more):
            raise NotImplementedError(
                UNSUPPORTED.format("commands other than Command(resume=...)")
            )
        input = input.resume
    return {"input": input, "config": config, "metadata": metadata}


class Reading:
    """The data of a thread's events of one method."""

    def __init__(self, thread: Any, method: str) -> None:
        self._thread = thread
        self._method = method

    def __iter__(self) -> Iterator[Any]:
        for event in self._thread.subscribe([self._method]):
            yield from data_of(event)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._thread.subscribe([self._method]):
            for data in data_of(event):
                yield data


def data_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """The data of an event, if it has any."""
    params = event.get("params") or {}
    return (params["data"],) if "data" in params else ()


class Projections(Mapping[str, Any]):
    """The projections by name; further ones are those of the server's graph."""

    def __init__(self, thread: Any) -> None:
        self._thread = thread

    def __getitem__(self, name: str) -> Any:
        if name in OWN:
            return getattr(self._thread, name)
        if name in PLAIN:
            return Reading(self._thread, name)
        return self._thread.extensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*OWN, *PLAIN))

    def __len__(self) -> int:
        return len(OWN) + len(PLAIN)


class RemoteRun:
    """What both colours share: the client's thread stream, and what it shows."""

    def __init__(self, client: Any, thread: Any, start: dict[str, Any]) -> None:
        self._client = client
        self._thread = thread
        self._start = start
        self._run_id: str | None = None
        self._closed = False

    def _open(self) -> Any:
        """The thread stream, to be entered once.

        Raises:
            RuntimeError: the stream was closed.
        """
        if self._closed:
            raise RuntimeError(f"this {type(self).__name__} was closed already")
        return self._thread

    def _leave(self) -> bool:
        """Note that the stream is closed; whether it was open."""
        was_open, self._closed = not self._closed, True
        return was_open

    @property
    def values(self) -> Any:
        """The states of the run, as they come."""
        return self._thread.values

    @property
    def messages(self) -> Any:
        """The messages of the run's models."""
        return self._thread.messages

    @property
    def subgraphs(self) -> Any:
        """The runs inside the run."""
        return self._thread.subgraphs

    @property
    def tool_calls(self) -> Any:
        """The tool calls of the run."""
        return self._thread.tool_calls

    @property
    def extensions(self) -> Mapping[str, Any]:
        """All projections, by name."""
        return Projections(self._thread)


class RemoteRunStream(RemoteRun):
    """A blocking run elsewhere, as a context manager: `with` starts it."""

    def __enter__(self) -> Self:
        thread = self._open()
        thread.__enter__()
        try:
            self._run_id = thread.run.start(**self._start)["run_id"]
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leave():
            self._thread.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[Any]:
        """Yield every event of the run, as servers tell them."""
        return iter(self._thread.events)

    def interleave(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Items of several projections with their names, in order of arrival."""
        yield from self._thread.interleave_projections(list(names))

    @property
    def output(self) -> Any:
        """The last state of the run; waits for its end."""
        return self._thread.output

    @property
    def interrupted(self) -> bool:
        """Whether the run stopped at a question, so far."""
        interrupted: bool = self._thread.interrupted
        return interrupted

    @property
    def interrupts(self) -> list[Any]:
        """What was asked, so far."""
        return list(self._thread.interrupts)

    def abort(self) -> None:
        """Cancel the run there, and close the stream."""
        if not self._leave():
            return
        try:
            if self._run_id is not None:
                thread_id = self._thread.thread_id
                self._client.runs.cancel(thread_id, self._run_id, wait=False)
        finally:
            self._thread.close()


class AsyncRemoteRunStream(RemoteRun):
    """A run elsewhere that is awaited: `async with` starts it."""

    async def __aenter__(self) -> Self:
        thread = self._open()
        await thread.__aenter__()
        try:
            self._run_id = (await thread.run.start(**self._start))["run_id"]
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leave():
            await self._thread.__aexit__(kind, error, trace)

    def __aiter__(self) -> AsyncIterator[Any]:
        """Yield every event of the run, as servers tell them."""
        events: AsyncIterator[Any] = aiter(self._thread.events)
        return events

    async def output(self) -> Any:
        """The last state of the run; waits for its end."""
        return await self._thread.output

    async def interrupted(self) -> bool:
        """Whether the run stopped at a question, so far."""
        interrupted: bool = self._thread.interrupted
        return interrupted

    async def interrupts(self) -> list[Any]:
        """What was asked, so far."""
        return list(self._thread.interrupts)

    async def abort(self) -> None:
        """Cancel the run there, and close the stream."""
        if not self._leave():
            return
        try:
            if self._run_id is not None:
                thread_id = self._thread.thread_id
                await self._client.runs.cancel(thread_id, self._run_id, wait=False)
        finally:
            await self._thread.close()


class RemoteEventVerbs:
    """The verbs that read a run elsewhere as events."""

    assistant_id: str
    config: Any

    def stream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: Literal["v1", "v2", "v3"] = "v2",
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> RemoteRunStream:
        """Prepare a run there that is read as events: `version="v3"`.

        It starts when the result is entered (`with`). The further keyword that
        servers take is `metadata`.

        Raises:
            NotImplementedError: another version, or what servers do not take.
            ValueError: there is no blocking client.
        """
        refuse(version, kwargs)
        client: Any = self.blocking
        reach, start = self._opened(input, config, headers, kwargs.get("metadata"))
        return RemoteRunStream(client, client.threads.stream(**reach), start)

    async def astream_events(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        version: Literal["v1", "v2", "v3"] = "v2",
        headers: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> AsyncRemoteRunStream:
        """Async twin of `stream_events`: await it, and enter the result."""
        refuse(version, kwargs)
        client: Any = self.looping
        reach, start = self._opened(input, config, headers, kwargs.get("metadata"))
        return AsyncRemoteRunStream(client, client.threads.stream(**reach), start)

    def _opened(
        self,
        input: Any,
        config: Mapping[str, Any] | None,
        headers: dict[str, str] | None,
        metadata: Mapping[str, Any] | None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a thread stream is opened with, and what its run starts with."""
        merged = merge(self.config, config)
        reach = {
            "thread_id": (merged.get(CONF) or {}).get("thread_id"),
            "assistant_id": self.assistant_id,
            "headers": self.traced(headers),
        }
        return reach, started_with(input, sent_config(merged, frozenset()), metadata)

    @property
    def blocking(self) -> Any:
        """The client of blocking calls."""
        raise NotImplementedError

    @property
    def looping(self) -> Any:
        """The client of calls that are awaited."""
        raise NotImplementedError

    def traced(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        """Headers with the trace that runs here, where it is to go on there."""
        raise NotImplementedError
