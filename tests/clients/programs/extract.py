"""`trustcall`: extraction with validation, patches and repair."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, field_validator
from scripted import Scripted, calls, show
from trustcall import create_extractor


class Person(BaseModel):
    """A person."""

    name: str
    age: int

    @field_validator("age")
    @classmethod
    def positive(cls, age: int) -> int:
        if age < 0:
            raise ValueError("nobody is that young")
        return age


def patched(messages: list) -> object:
    ids = [m.tool_call_id for m in messages if m.type == "tool"]
    patch = {"op": "replace", "path": "/age", "value": 7}
    return calls(
        (
            "PatchFunctionErrors",
            {"json_doc_id": ids[-1], "planned_edits": "age", "patches": [patch]},
        )
    )


def extractor(*replies: object) -> object:
    return create_extractor(
        Scripted(replies=list(replies)), tools=[Person], tool_choice="Person"
    )


show(good=extractor(calls(("Person", {"name": "Ann", "age": 3}))).invoke("Ann is 3"))
mended = extractor(calls(("Person", {"name": "Ann", "age": -3})), patched)
show(mended=mended.invoke({"messages": [("user", "Ann is 7")]})["responses"])


def updated(messages: list) -> object:
    patch = {"op": "replace", "path": "/age", "value": 4}
    return calls(
        (
            "PatchDoc",
            {"json_doc_id": "Person", "planned_edits": "older", "patches": [patch]},
        )
    )


async def later() -> None:
    given = {
        "messages": [("user", "Ann is 4 now")],
        "existing": {"Person": {"name": "Ann", "age": 3}},
    }
    result = await extractor(updated).ainvoke(given)
    show(updated=result["responses"], metadata=result["response_metadata"])


asyncio.run(later())
