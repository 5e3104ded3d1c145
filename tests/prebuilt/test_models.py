"""The scripted model says its lines, whole or word by word."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from towpath.testing.models import ScriptedChatModel, ScriptOverError, calling


def test_lines_come_in_order_over_all_copies():
    model = ScriptedChatModel(script=["one", AIMessage("two", id="2"), ValueError("3")])
    bound = model.bind_tools([lambda_tool()])

    assert "one" == model.invoke("hi").content
    assert "2" == bound.invoke("hi").id
    with pytest.raises(ValueError, match="3"):
        model.invoke("hi")
    with pytest.raises(ScriptOverError):
        model.invoke("hi")
    assert [False, True, False] == ["tools" in o for o in model.options[:3]]


def lambda_tool():
    def look(where: str) -> str:
        "Look somewhere."
        return where

    return look


def test_a_line_may_depend_on_the_conversation():
    model = ScriptedChatModel(again=lambda messages: f"you said {messages[-1].content}")

    said = [model.invoke([HumanMessage(text)]).content for text in ("a", "b")]

    assert ["you said a", "you said b"] == said


@pytest.mark.parametrize("text", ["", "one", "one two  three ", " \n", "a\nb"])
async def test_streamed_pieces_add_up_to_the_whole(text):
    whole = calling(("look", {"where": "é"}), text=text)
    whole.id = "m"
    model = ScriptedChatModel(script=[whole, whole])

    pieces = list(model.stream("hi"))
    added = pieces[0]
    for piece in pieces[1:]:
        added += piece
    awaited = [piece async for piece in model.astream("hi")]

    assert (text, whole.tool_calls, "m") == (added.content, added.tool_calls, added.id)
    assert [p.content for p in pieces] == [p.content for p in awaited]


def test_the_script_cannot_be_changed_by_whoever_hears_it():
    model = ScriptedChatModel(again=AIMessage("said"))

    model.invoke("hi").content = "changed"

    assert "said" == model.invoke("hi").content


def test_structured_answers_have_their_form():
    class Form(BaseModel):
        x: int

    model = ScriptedChatModel(structured=[{"x": 1}, {"x": 2}])

    assert Form(x=1) == model.with_structured_output(Form).invoke("hi")
    raw = model.with_structured_output(Form, include_raw=True).invoke("hi")
    assert Form(x=2) == raw["parsed"]
    with pytest.raises(ScriptOverError):
        model.with_structured_output(Form).invoke("hi")
