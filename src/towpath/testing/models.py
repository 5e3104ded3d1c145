"""A chat model that says what a script tells it to.

For tests of agents: no network, no keys, the same answers every time.

>>> from towpath.testing.models import ScriptedChatModel, calling
>>> model = ScriptedChatModel(script=[calling(("add", {"a": 1, "b": 2})), "3"])
>>> model.invoke("1 + 2?").tool_calls[0]["args"]
{'a': 1, 'b': 2}
>>> model.invoke("and?").content
'3'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from towpath.testing.scripts import ScriptOverError

Line: TypeAlias = (
    "str | AIMessage | BaseException | Callable[[list[BaseMessage]], Line]"
)
"""What the model does in one turn: say a text or a message, raise an error, or
whatever a function of the conversation returns."""

WORDS: Final = re.compile(r"\s*\S+\s*$|\s*\S+")


class ScriptedChatModel(BaseChatModel):
    """Answers with the lines of `script`, one after the other.

    Calls are counted over all copies of the model, so a model with tools bound
    goes on in the same script. Streamed, an answer comes word by word. Messages
    are copied, so that nobody changes the script.
    """

    script: Sequence[Any] = ()
    """One `Line` a turn; an endless script is a function in `again`."""
    again: Any = None
    """The line that is repeated when the script is over; None: an error."""
    structured: Sequence[Any] = ()
    """What a model made by `with_structured_output` answers, in order."""
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    """Every conversation the model was asked to go on with."""
    options: list[dict[str, Any]] = Field(default_factory=list)
    """With which options, the tools that were bound among them."""
    structured_prompts: list[Any] = Field(default_factory=list)
    """The same for structured answers."""
    _lock: Any = PrivateAttr(default_factory=Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Note the tools; the script decides which of them are called."""
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **kwargs)

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        """A model that answers with the values of `structured`, as `schema`."""
        del kwargs

        def answer(given: Any) -> Any:
            with self._lock:
                turn = len(self.structured_prompts)
                self.structured_prompts.append(given)
            if turn >= len(self.structured):
                raise ScriptOverError(f"{turn} structured answers were asked for")
            value = self.structured[turn]
            if hasattr(schema, "model_validate"):
                value = schema.model_validate(value)
            raw = {"raw": None, "parsed": value, "parsing_error": None}
            return raw if include_raw else value

        return RunnableLambda(answer)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager
        message = self._turn(messages, kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        del stop
        for chunk in pieces(self._turn(messages, kwargs)):
            generation = ChatGenerationChunk(message=chunk)
            if run_manager is not None:
                text = chunk.content if isinstance(chunk.content, str) else ""
                run_manager.on_llm_new_token(text, chunk=generation)
            yield generation

    def _turn(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        with self._lock:
            turn = len(self.prompts)
            self.prompts.append(list(messages))
            self.options.append(options)
        if turn < len(self.script):
            return spoken(self.script[turn], messages)
        if self.again is None:
            raise ScriptOverError(f"the script has {len(self.script)} lines")
        return spoken(self.again, messages)


def spoken(line: Any, messages: list[BaseMessage]) -> AIMessage:
    """What a line of a script says after these messages."""
    if isinstance(line, BaseException):
        raise line
    if isinstance(line, AIMessage):
        return line.model_copy(deep=True)
    if isinstance(line, str):
        return AIMessage(line)
    return spoken(line(messages), messages)


def pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """A message word by word; what is not text comes with the last piece."""
    rest: Any = message.content
    if isinstance(rest, str):
        words = WORDS.findall(rest) or [rest]
        for word in words[:-1]:
            yield AIMessageChunk(content=word, id=message.id)
        rest = words[-1]
    calls = [
        ToolCallChunk(
            name=call["name"],
            args=json.dumps(call["args"]),
            id=call["id"],
            index=index,
            type="tool_call_chunk",
        )
        for index, call in enumerate(message.tool_calls)
    ]
    yield AIMessageChunk(
        content=rest,
        id=message.id,
        name=message.name,
        tool_call_chunks=calls,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
    )


def calling(
    *calls: tuple[str, Mapping[str, Any]], id: str = "call", text: str = ""
) -> AIMessage:
    """A message that calls tools, each given as its name and the arguments.

    The calls have the ids `call-1`, `call-2`, and so on; another turn of the
    same conversation needs another `id`.
    """
    made = [
        ToolCall(name=name, args=dict(args), id=f"{id}-{index}", type="tool_call")
        for index, (name, args) in enumerate(calls, 1)
    ]
    return AIMessage(content=text, tool_calls=made)
