"""The states of agents.

Annotations are not postponed here: `NotRequired` in one that is text is not seen,
and whoever asks which keys are required would be told a wrong answer.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain_core.messages import BaseMessage
from pydantic import BaseModel
from typing_extensions import TypedDict

from towpath.graph.message import add_messages
from towpath.managed import RemainingSteps

StructuredResponse: TypeAlias = dict[str, Any] | BaseModel
StructuredResponseSchema: TypeAlias = dict[str, Any] | type[BaseModel]


class AgentState(TypedDict):
    """The state of an agent."""

    messages: Annotated[Sequence[BaseMessage], add_messages]
    remaining_steps: NotRequired[RemainingSteps]


class AgentStatePydantic(BaseModel):
    """The state of an agent as a pydantic model."""

    messages: Annotated[Sequence[BaseMessage], add_messages]
    remaining_steps: RemainingSteps = 25


class AgentStateWithStructuredResponse(AgentState):
    """The state of an agent with an answer in a given form."""

    structured_response: StructuredResponse


class AgentStateWithStructuredResponsePydantic(AgentStatePydantic):
    """The same as a pydantic model."""

    structured_response: StructuredResponse
