"""LangChain's messages and documents have stored forms."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer

serde = JsonPlusSerializer()

MESSAGES = [
    HumanMessage("hi", id="1"),
    SystemMessage([{"type": "text", "text": "be brief"}]),
    AIMessage(
        "",
        tool_calls=[{"name": "search", "args": {"q": 1}, "id": "c1"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    AIMessageChunk("part"),
    ToolMessage("found", tool_call_id="c1", artifact={"rows": (1, 2)}),
    RemoveMessage(id="1"),
    Document("text", metadata={"page": 3}),
]


@pytest.mark.parametrize(
    "message", MESSAGES, ids=lambda message: type(message).__name__
)
def test_a_message_comes_back_as_it_was(message):
    [back] = serde.loads_typed(serde.dumps_typed([message]))
    assert type(message) is type(back)
    assert message == back
    assert message.model_dump() == back.model_dump()
    assert message.model_fields_set == back.model_fields_set


def test_a_program_that_never_saw_a_message_can_read_one(printed_apart):
    tag, data = serde.dumps_typed([HumanMessage("hi")])
    program = (
        "import sys\n"
        "from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer\n"
        "assert 'langchain_core' not in sys.modules\n"
        f"[message] = JsonPlusSerializer().loads_typed(({tag!r}, {data!r}))\n"
        "print(type(message).__name__, message.content)\n"
    )
    printed = printed_apart(program)
    assert "HumanMessage hi" == printed.strip()


def test_a_class_that_only_has_the_name_of_one_is_none():
    from towpath.errors import SerializationError

    class HumanMessage:  # noqa: F811
        pass

    with pytest.raises(SerializationError):
        serde.dumps_typed(HumanMessage())
