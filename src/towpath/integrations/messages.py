"""The `messages` stream: tokens of chat models, and messages that nodes return.

`MessageTap` is a callback handler. langchain makes a chat model stream when
one of its handlers has `tap_output_iter`, so an `invoke` in a node streams as
well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.outputs import ChatGenerationChunk, LLMResult

from towpath.call.scope import RunScope
from towpath.constants import TAG_NOSTREAM
from towpath.step.tasks import Task

OURS: Final = ("seq:step:", "graph:step:")
"""How tags begin that say where in the graph something runs."""


class Tap(BaseCallbackHandler):
    """Sends what it hears in one run's nodes to those who stream that run."""

    run_inline = True  # in the order of the tokens, also in async runs
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True
    mode = "tools"

    def __init__(self, scope: RunScope) -> None:
        self.scope = scope
        self.ns = scope.req.path

    def tell(self, what: Any) -> None:
        self.scope.emit((self.ns, self.mode, what))


class MessageTap(Tap):
    """Sends the messages of one run's nodes.

    `outer` is the tap of a run further out that this one's messages go to as
    well: what one of them has sent is not sent again by the other.
    """

    mode = "messages"

    def __init__(self, scope: RunScope, outer: MessageTap | None = None) -> None:
        super().__init__(scope)
        self.models: dict[UUID, dict[str, Any]] = {}
        self.streaming: set[UUID] = set()
        self.seen: set[str] = set() if outer is None else outer.seen

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:
        del run_id
        return output

    def tap_output_aiter(self, run_id: UUID, output: Any) -> Any:
        del run_id
        return output

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        del serialized, messages, kwargs
        tags = tags or []
        if TAG_NOSTREAM in tags:
            return
        shown = [tag for tag in tags if not tag.startswith(OURS)]
        self.models[run_id] = {**(metadata or {}), **({"tags": shown} if shown else {})}

    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: Any = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        del token, kwargs
        metadata = self.models.get(run_id)
        if metadata is None or not isinstance(chunk, ChatGenerationChunk):
            return
        message = chunk.message
        if run_id not in self.streaming:
            self.streaming.add(run_id)
            if message.id is not None:
                self.seen.add(message.id)
        self.tell((message, metadata))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        del kwargs
        metadata = self.models.pop(run_id, None)
        if metadata is None:
            return
        streamed = run_id in self.streaming
        self.streaming.discard(run_id)
        for generations in response.generations:
            message = getattr(generations[0], "message", None) if generations else None
            if isinstance(message, BaseMessage) and not streamed:
                self.once(message, metadata)

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        del error, kwargs
        self.models.pop(run_id, None)
        self.streaming.discard(run_id)

    def returned(self, task: Task, metadata: dict[str, Any]) -> None:
        """Send the messages among a task's writes that were not sent before.

        What the task was given is not news.
        """
        given: frozenset[Any] | None = None
        for _, value in task.writes:
            for message in messages_in(value):
                if message.id is not None and message.id not in self.seen:
                    if given is None:
                        given = ids_in(task.input)
                    if message.id in given:
                        continue
                self.once(message, metadata)

    def pushed(self, message: BaseMessage, metadata: dict[str, Any]) -> None:
        """Send a message that a node pushes before it returns."""
        self.once(message, metadata)

    def once(self, message: BaseMessage, metadata: dict[str, Any]) -> None:
        if isinstance(message, RemoveMessage) or message.id in self.seen:
            return
        if message.id is None:
            # On the message itself, so that the state has it under the same id.
            message.id = str(uuid4())
        self.seen.add(message.id)
        self.tell((message, metadata))


def messages_in(value: Any) -> Iterable[BaseMessage]:
    """The message that a value is, or those in a list."""
    if isinstance(value, BaseMessage):
        return (value,)
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, BaseMessage)]
    return ()


def ids_in(given: Any) -> frozenset[Any]:
    """The ids of the messages in what a task was given."""
    if isinstance(given, Mapping):
        values: Iterable[Any] = given.values()
    elif hasattr(given, "__dict__"):
        values = vars(given).values()
    else:
        values = (given,)
    return frozenset(message.id for value in values for message in messages_in(value))


def without_taps(callbacks: Any) -> Any:
    """Callbacks without the taps of runs further out; a lone handler as a list."""
    if not hasattr(callbacks, "handlers"):
        callbacks = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
        return [handler for handler in callbacks if not isinstance(handler, Tap)]
    if not any(isinstance(handler, Tap) for handler in callbacks.handlers):
        return callbacks
    kept = callbacks.copy()
    kept.handlers = without_taps(callbacks.handlers)
    kept.inheritable_handlers = without_taps(callbacks.inheritable_handlers)
    return kept if kept.handlers else None
