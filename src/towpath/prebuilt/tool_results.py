"""What a tool returned becomes what its node writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import (
    BaseMessage,
    RemoveMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)

from towpath.graph.message import REMOVE_ALL_MESSAGES
from towpath.prebuilt.errors import ToolResultError
from towpath.prebuilt.tool_calls import Batch
from towpath.types import Command, Send

TOOL_MESSAGE_BLOCK_TYPES: Final = (
    "text",
    "image_url",
    "image",
    "json",
    "search_result",
    "custom_tool_call_output",
    "document",
    "file",
)
"""The kinds of content blocks that a tool message may hold."""

Part: TypeAlias = ToolMessage | Command[Any]
Result: TypeAlias = Part | list[Part]

HINT: Final = (
    'return Command(update={"messages": [ToolMessage("done", '
    "tool_call_id=tool_call_id)], ...})"
)


def msg_content_output(output: Any) -> str | list[dict[str, Any]]:
    """What a tool gave as the content of a message: text, blocks, or JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(
        isinstance(block, dict) and block.get("type") in TOOL_MESSAGE_BLOCK_TYPES
        for block in output
    ):
        return output
    try:
        return json.dumps(output, ensure_ascii=False)
    except Exception:  # a user's value may refuse in any way
        return str(output)


def checked(returned: Any, call: ToolCall, batch: Batch, key: str) -> Result:
    """The result of a call, once it is sure that it answers the call.

    Raises:
        ToolResultError: it does not (TP-221).
    """
    if isinstance(returned, list):
        parts = [part for one in returned for part in several(one, call, batch, key)]
        answers = sum(answered(part, call, key) for part in parts)
        if answers != 1:
            raise ToolResultError(
                f"tool `{call['name']}` returned a list with {answers} messages for "
                f"the call '{call['id']}', which needs exactly one",
                hint=HINT,
            )
        return parts
    if isinstance(returned, Command):
        return checked_command(returned, call, batch, key, alone=True)
    if isinstance(returned, ToolMessage):
        returned.content = msg_content_output(returned.content)  # type: ignore[assignment] # lists are invariant
        return returned
    raise ToolResultError(
        f"tool `{call['name']}` gave {type(returned).__name__}, which is no message "
        "that answers a call",
        hint="a call needs an `id`, and a tool returns a value, a ToolMessage or a "
        "Command",
    )


def several(one: Any, call: ToolCall, batch: Batch, key: str) -> Iterable[Part]:
    """An element of a returned list, checked by itself."""
    if isinstance(one, Command):
        return (checked_command(one, call, batch, key, alone=False),)
    if isinstance(one, ToolMessage):
        return (one,)
    raise ToolResultError(
        f"tool `{call['name']}` returned a list that holds {type(one).__name__}",
        hint="a list of ToolMessages and Commands",
    )


def answered(part: Part, call: ToolCall, key: str) -> int:
    """How many messages of a part answer the call."""
    messages = [part] if isinstance(part, ToolMessage) else messages_of(part, key)
    return sum(
        isinstance(m, ToolMessage) and m.tool_call_id == call["id"] for m in messages
    )


def messages_of(command: Command[Any], key: str) -> Sequence[Any]:
    """The messages that a command writes."""
    update = command.update
    if isinstance(update, Mapping):
        update = update.get(key, ())
    return update if isinstance(update, list) else ()


def checked_command(
    command: Command[Any], call: ToolCall, batch: Batch, key: str, *, alone: bool
) -> Command[Any]:
    """A tool's command with its messages as messages; `alone`, it must answer."""
    update = command.update
    if isinstance(update, dict):
        if batch.bare:
            raise misfit(call, "a dict", "a dict with messages")
        given = update.get(key, [])
        messages = named(given if isinstance(given, list) else [given], call)
        if key in update:
            command = replace(command, update={**update, key: messages})
    elif isinstance(update, list):
        if not batch.bare:
            raise misfit(call, "a list of messages", "a list of messages")
        messages = named(update, call)
        command = replace(command, update=messages)
    else:
        return command
    # What goes to a graph above is answered there, or on the way back.
    if alone and command.graph is None and not settled(messages, call):
        raise ToolResultError(
            f"tool `{call['name']}` returned a Command without a ToolMessage that "
            f"answers the call '{call['id']}': {messages}",
            hint=HINT,
        )
    return command


def misfit(call: ToolCall, update: str, given: str) -> ToolResultError:
    return ToolResultError(
        f"tool `{call['name']}` returned a Command whose update is {update}, which "
        f"fits only a tool node that was given {given}"
    )


def named(messages: Any, call: ToolCall) -> list[BaseMessage]:
    """Messages as such; those that answer the call say which tool did."""
    found = []
    for message in convert_to_messages(messages):
        ours = isinstance(message, ToolMessage) and message.tool_call_id == call["id"]
        own = ours and message.name is None
        found.append(
            message.model_copy(update={"name": call["name"]}) if own else message
        )
    return found


def settled(messages: Sequence[BaseMessage], call: ToolCall) -> bool:
    """Whether the call is answered, or taken out of the conversation."""
    if any(
        isinstance(m, RemoveMessage) and m.id == REMOVE_ALL_MESSAGES for m in messages
    ):
        return True
    return any(
        isinstance(m, ToolMessage) and m.tool_call_id == call["id"] for m in messages
    )


def combined(results: Iterable[Result], batch: Batch, key: str) -> Any:
    """What the node returns for all its calls, in their order.

    Where commands are among the results it is a list of updates and commands.
    Commands that only send to the graph above become one.
    """
    parts: list[Any] = []
    for result in results:
        parts.extend(result if isinstance(result, list) else [result])
    if not any(isinstance(part, Command) for part in parts):
        return parts if batch.bare else {key: parts}
    sends: list[Send] = []
    several: list[Any] = []
    for part in parts:
        if not isinstance(part, Command):
            several.append([part] if batch.bare else {key: [part]})
        elif only_sends_up(part):
            sends.extend(cast("Sequence[Send]", part.goto))
        else:
            several.append(part)
    if sends:
        several.append(Command(graph=Command.PARENT, goto=sends))
    return several


def only_sends_up(command: Command[Any]) -> bool:
    """Whether a command does nothing but send to the graph above."""
    return (
        command.graph == Command.PARENT
        and not command.update
        and isinstance(command.goto, list)
        and all(isinstance(target, Send) for target in command.goto)
    )
