"""A graph tells what it takes and gives, as the peer does."""

import dataclasses
import operator
import sys
import typing
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import NotRequired, TypedDict

from towpath import START, StateGraph
from towpath.testing.api import load
from towpath.warnings import LangGraphDeprecatedSinceV10

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Words(TypedDict):
    """Words of a text."""

    words: Annotated[list[str], operator.add]
    note: NotRequired[str]


class Few(TypedDict, total=False):
    note: str


@dataclasses.dataclass
class Record:
    words: list[str]
    note: str = "none"
    more: list[int] = dataclasses.field(default_factory=list)


class Model(BaseModel):
    """A model."""

    words: list[str]
    note: str = Field("none", description="what to keep in mind")


@dataclasses.dataclass
class Settings:
    user: str
    depth: int = 3


CASES: dict[str, dict[str, Any]] = {
    "typed dict": {"state_schema": Words},
    "input, output, context": {
        "state_schema": Words,
        "input_schema": Few,
        "output_schema": Few,
        "context_schema": Settings,
    },
    "dataclass": {"state_schema": Record, "context_schema": Few},
    "model": {"state_schema": Model, "context_schema": Model},
    "bare value": {"state_schema": Annotated[list, operator.add]},
}


def compiled(lib, options):
    builder = lib.StateGraph(**options)
    builder.add_node("step", lambda state: None)
    builder.add_edge(lib.START, "step")
    return builder.compile(name="Told")


def told(lib, options):
    graph = compiled(lib, options)
    models = (graph.get_input_schema(), graph.get_output_schema())
    config = graph.config_schema(include=["tags"])
    return {
        "input": graph.get_input_jsonschema(),
        "output": graph.get_output_jsonschema(),
        "context": graph.get_context_jsonschema(),
        "models": [(m.__name__, m.model_json_schema()) for m in models],
        "config": (config.__name__, config.model_json_schema()),
        "json config": graph.get_config_jsonschema(),
        "input type": graph.InputType,
    }


@pytest.mark.differential
@pytest.mark.parametrize("case", CASES)
def test_schemas_are_the_peer_s(case):
    expected = told(load("langgraph"), CASES[case])
    assert expected == told(load("towpath"), CASES[case])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes them then")
def test_a_typed_dict_of_typing_is_described_on_old_pythons():
    class Old(typing.TypedDict, total=False):
        """Old."""

        words: list[str]
        must: typing.Required[int]

    graph = compiled(load("towpath"), {"state_schema": Old})
    schema = graph.get_input_jsonschema()
    assert ("Old", "Old.", ["must"]) == tuple(
        schema[key] for key in ("title", "description", "required")
    )
    assert {"must": 1} == graph.input_schema.model_validate({"must": 1}).root


def test_former_names_are_told_to_be_former():
    builder = StateGraph(Words)
    builder.add_node("step", lambda state: None)
    builder.add_edge(START, "step")
    graph = builder.compile()
    for former in (graph.config_schema, graph.get_config_jsonschema):
        with pytest.warns(LangGraphDeprecatedSinceV10, match="get_context_jsonschema"):
            former()
