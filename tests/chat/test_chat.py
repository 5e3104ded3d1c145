"""Chats of plain dicts."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from towpath import START, InMemorySaver, SqliteSaver, StateGraph
from towpath.chat import (
    ChatState,
    InvalidMessageError,
    acollect,
    add_chat,
    collect,
    for_client,
    open_calls,
    push_chunk,
    remove,
    remove_all,
    tool_results,
)
from towpath.errors import OutsideNodeError

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": '{"x": 1}'},
}


def said(id: str, content: str = "", role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content, "id": id}


def contents(chat):
    return [message["content"] for message in chat]


class FromClient:
    """A message as a client's library returns it."""

    role = "assistant"

    def __repr__(self):
        return "FromClient()"

    def model_dump(self, **options):
        assert {"mode": "json", "exclude_none": True} == options
        return {"role": "assistant", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi", [("user", "hi")]),
        (("system", "be brief"), [("system", "be brief")]),
        (("human", "hi"), [("user", "hi")]),
        (("ai", "yes"), [("assistant", "yes")]),
        (
            {"role": "user", "content": [{"type": "text"}]},
            [("user", [{"type": "text"}])],
        ),
        (["a", ("assistant", "b")], [("user", "a"), ("assistant", "b")]),
        (FromClient(), [("assistant", None)]),
        ([], []),
    ],
    ids=repr,
)
def test_what_stands_for_messages_becomes_messages(given, expected):
    chat = add_chat([], given)
    assert expected == [(message["role"], message["content"]) for message in chat]
    ids = [message["id"] for message in chat]
    assert len(ids) == len({id for id in ids if id})


def test_messages_keep_what_a_client_put_in_them():
    [message] = add_chat([], FromClient())
    assert [CALL] == message["tool_calls"]
    [message] = add_chat([], {"role": "user", "content": "hi", "name": "ann", "x": 1})
    assert ("ann", 1) == (message["name"], message["x"])


def test_messages_go_to_the_end_and_replace_those_of_their_id():
    chat = add_chat([said("1", "a"), said("2", "b")], [said("1", "A"), said("3", "c")])
    assert ["A", "b", "c"] == contents(chat)
    chat = add_chat(chat, [said("4", "d"), said("4", "D")])
    assert ["A", "b", "c", "D"] == contents(chat)
    chat = add_chat(chat, {"id": "2", "role": "assistant", "tool_calls": [CALL]})
    assert ["A", None, "c", "D"] == contents(chat)


def test_messages_are_removed():
    chat = [said("1", "a"), said("2", "b"), said("3", "c")]
    assert ["a", "c"] == contents(add_chat(chat, remove("2")))
    assert ["c"] == contents(add_chat(chat, [remove("1"), remove("2")]))
    assert ["x"] == contents(add_chat(chat, ["lost", remove_all(), "x"]))
    assert [] == add_chat(chat, remove_all())
    assert ["a", "B", "c"] == contents(add_chat(chat, [remove("2"), said("2", "B")]))


def test_what_is_not_there_cannot_be_removed():
    with pytest.raises(InvalidMessageError, match="'9'"):
        add_chat([said("1")], remove("9"))
    with pytest.raises(InvalidMessageError, match="'1'"):
        add_chat([said("1")], [remove("1"), remove("1")])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (5, "type int"),
        ({"content": "x"}, "the role None"),
        ({"role": "asistant", "content": "x"}, "Did you mean `assistant`"),
        (("user", "a", "b"), "type tuple"),
        ({"role": "user"}, "content of .* is none"),
        ({"role": "user", "content": 5}, "type int"),
        ({"role": "user", "content": "x", "id": 5}, "the id 5"),
        ({"role": "tool", "content": "x"}, "which call"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "tool_calls"),
        ({"role": "assistant", "tool_calls": "x"}, "tool_calls"),
        ({"role": "remove"}, "which message"),
        (["fine", None], "NoneType"),
    ],
    ids=repr,
)
def test_what_is_no_message_is_refused_by_name(given, why):
    with pytest.raises(InvalidMessageError, match=why) as caught:
        add_chat([], given)
    assert "TP-640" == caught.value.code


def test_what_it_is_given_stays_as_it_is():
    old, new = [said("1", "a")], [{"role": "user", "content": "x"}, said("1", "b")]
    before = copy.deepcopy((old, new))
    add_chat(old, new)
    assert before == (old, new)


def test_a_chat_that_was_set_from_outside_is_put_in_order():
    raw = ["hi", {"role": "assistant", "content": "yes", "id": "1"}]
    chat = add_chat(raw, said("1", "no", "assistant"))
    assert ["hi", "no"] == contents(chat)
    assert all(message["id"] for message in chat)


# In a graph


def echo(state):
    return {"messages": ("assistant", f"echo {state['messages'][-1]['content']}")}


def talking(saver=None, node=echo):
    builder = StateGraph(ChatState)
    builder.add_node("talk", node)
    builder.add_edge(START, "talk")
    return builder.compile(checkpointer=saver)


THREAD = {"configurable": {"thread_id": "t"}}


def test_a_chat_goes_on_over_turns_and_edits():
    graph = talking(InMemorySaver())
    graph.invoke({"messages": "one"}, THREAD)
    chat = graph.invoke({"messages": "two"}, THREAD)["messages"]
    assert ["one", "echo one", "two", "echo two"] == contents(chat)
    graph.update_state(THREAD, {"messages": remove(chat[0]["id"])})
    assert contents(chat[1:]) == contents(graph.get_state(THREAD).values["messages"])


def test_ids_are_the_same_whenever_the_state_is_read():
    graph = talking(InMemorySaver())
    chat = graph.invoke({"messages": ["one", "more"]}, THREAD)["messages"]
    for _ in range(2):
        assert chat == graph.get_state(THREAD).values["messages"]


def test_a_long_chat_is_stored_by_what_is_added(tmp_path):
    path = tmp_path / "chat.db"
    text = "x" * 1000
    with SqliteSaver(str(path), synchronous="OFF") as saver:
        graph = talking(saver, lambda state: {"messages": ("assistant", text)})
        for _ in range(60):
            graph.invoke({"messages": text}, THREAD)
        saver.vacuum()
        assert 120 == len(graph.get_state(THREAD).values["messages"])
    # Whole chats would come to some ninety times the text.
    assert path.stat().st_size < 10 * 120 * len(text)


def test_langchain_is_not_needed(printed_apart):
    program = "import sys, towpath.chat; print('langchain_core' in sys.modules)"
    assert "False" == printed_apart(program).strip()


# With clients


def test_a_client_gets_messages_without_ids():
    chat = add_chat([], ["hi", FromClient()])
    assert [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ] == for_client(chat)
    assert all("id" in message for message in chat)


def test_calls_are_open_until_they_have_results():
    other = {**CALL, "id": "c2", "function": {"name": "g", "arguments": ""}}
    chat = add_chat([], {"role": "assistant", "tool_calls": [CALL, other]})
    assert [
        {"id": "c1", "name": "f", "arguments": {"x": 1}},
        {"id": "c2", "name": "g", "arguments": {}},
    ] == open_calls(chat)
    chat = add_chat(chat, tool_results({"c1": {"km": 3}}))
    assert '{"km": 3}' == chat[-1]["content"]
    assert ["c2"] == [call["id"] for call in open_calls(chat)]
    assert [] == open_calls(add_chat(chat, tool_results({"c2": "done"})))
    assert [] == open_calls(add_chat(chat, ("assistant", "never mind")))
    assert [] == open_calls([])


def test_arguments_that_are_no_json_are_an_error():
    broken = {"id": "c1", "function": {"name": "f", "arguments": "{"}}
    chat = add_chat([], {"role": "assistant", "tool_calls": [broken]})
    with pytest.raises(InvalidMessageError, match="'c1'"):
        open_calls(chat)


def piece(**delta):
    return {"choices": [{"delta": delta}]}


CHUNKS = [
    piece(role="assistant", content=""),
    piece(content="Let me "),
    piece(content="see", refusal=None),
    piece(
        tool_calls=[
            {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}
        ]
    ),
    piece(tool_calls=[{"index": 1, "id": "c2", "function": {"name": "g"}}]),
    piece(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
    piece(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
    {"choices": [], "usage": {"tokens": 9}},
]


def objects(value):
    """Return dicts as a client's library returns them."""
    if isinstance(value, list):
        return [objects(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = SimpleNamespace(**{key: objects(item) for key, item in value.items()})
    made.model_dump = lambda **_: {k: v for k, v in value.items() if v is not None}
    return made


@pytest.mark.parametrize("kind", ["dicts", "objects"])
def test_chunks_are_shown_while_they_come_and_make_a_message(kind):
    chunks = CHUNKS if kind == "dicts" else [objects(chunk) for chunk in CHUNKS]
    graph = talking(node=lambda state: {"messages": collect(chunks)})
    shown, chat = [], []
    for mode, chunk in graph.stream(
        {"messages": "go"}, stream_mode=["custom", "values"]
    ):
        if mode == "custom":
            shown.append(chunk)
        else:
            chat = chunk["messages"]
    message = chat[-1]
    assert {message["id"]} == {each["message"] for each in shown}
    texts = [each["delta"].get("content", "") for each in shown]
    assert "Let me see" == "".join(texts) == message["content"]
    assert ["f", "g"] == [call["name"] for call in open_calls(chat)]
    assert {"x": 1} == open_calls(chat)[0]["arguments"]


async def test_async_chunks_and_plain_texts_do_too():
    async def chunks():
        for text in ("", "a", "b"):
            yield text

    async def node(state):
        return {"messages": await acollect(chunks())}

    graph = talking(node=node)
    shown = [c async for c in graph.astream({"messages": "go"}, stream_mode="custom")]
    assert ["a", "b"] == [each["delta"]["content"] for each in shown]
    assert "ab" == (await graph.ainvoke({"messages": "go"}))["messages"][-1]["content"]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_chunks_are_parts_of_messages(subgraphs):
    def node(state):
        push_chunk("by ", id="m")
        push_chunk({"content": "hand", "extra": 1}, id="m")
        return {"messages": [*collect_all("a", "b"), said("by hand", id="m")]}

    def collect_all(*texts):
        return [collect(texts)]

    def said(text, **more):
        return {"role": "assistant", "content": text, **more}

    inner = talking(node=node)
    graph = talking(node=inner) if subgraphs else inner
    chunks = list(
        graph.stream({"messages": "?"}, stream_mode="messages", subgraphs=subgraphs)
    )
    pairs = [chunk[1] if subgraphs else chunk for chunk in chunks]
    parts = [part for part, _ in pairs]
    assert ["by ", "hand", "a", "b"] == [part["content"] for part in parts]
    assert {"assistant"} == {part["role"] for part in parts}
    assert ["m", "m"] == [part["id"] for part in parts[:2]]
    assert 1 == parts[1]["extra"]
    assert parts[2]["id"] == parts[3]["id"] != "m"
    assert {"talk"} == {about["langgraph_node"] for _, about in pairs}
    if not subgraphs:
        assert graph.invoke({"messages": "?"})["messages"][-1]["id"] == "m"


def test_parts_of_messages_are_no_events():
    graph = talking(node=lambda state: {"messages": collect(["a", "b"])})
    run = graph.stream_events({"messages": "?"}, version="v3")
    assert "ab" == run.output["messages"][-1]["content"]
    assert "messages" not in {event["method"] for event in run}


def test_collecting_is_for_nodes():
    with pytest.raises(OutsideNodeError):
        collect(["a"])


def test_pydantic_is_not_needed_either(printed_apart):
    program = "import sys, towpath.chat; print('pydantic' in sys.modules)"
    assert "False" == printed_apart(program).strip()
