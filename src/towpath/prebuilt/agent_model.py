"""The model side of an agent: prompt, tools, the calls, structured answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
)
from langchain_core.tools import BaseTool

from towpath.constants import CONF, CONFIG_KEY_RUNTIME
from towpath.errors import (
    ColourError,
    ErrorCode,
    InvalidGraphError,
    create_error_message,
)
from towpath.plan import action_of
from towpath.prebuilt.errors import ChatHistoryError
from towpath.prebuilt.hops import Hop, Program, awaited, blocking
from towpath.prebuilt.injection import field_of, has_field
from towpath.pregel.nodes import injected
from towpath.runtime import Runtime

Model: TypeAlias = Runnable[Any, Any]
PROMPT: Final = "Prompt"
SORRY: Final = "Sorry, need more steps to process this request."


# -- the prompt ---------------------------------------------------------------


def prompt_runnable(prompt: Any) -> Runnable[Any, Any]:
    """What makes the model's input from the state.

    Raises:
        InvalidGraphError: the prompt is nothing that could (TP-101).
    """
    if isinstance(prompt, str):
        prompt = SystemMessage(content=prompt)
    if prompt is None or isinstance(prompt, SystemMessage):
        first = [] if prompt is None else [prompt]
        return RunnableLambda(
            lambda state: first + list(field_of(state, "messages")), name=PROMPT
        )
    if isinstance(prompt, Runnable):
        return prompt
    if callable(prompt):
        return called_prompt(prompt)
    raise InvalidGraphError(
        f"`prompt` is {type(prompt).__name__}, which makes no messages",
        hint="a text, a SystemMessage, a function of the state, or a runnable",
    )


def called_prompt(prompt: Callable[..., Any]) -> Runnable[Any, Any]:
    """A function of the state, which is given what a node would be given."""
    action = action_of(prompt, PROMPT)

    def call(state: Any) -> Any:
        if action.call is None:
            raise ColourError(
                "the prompt of an agent is async, and the agent was called blocking",
                hint="ainvoke or astream, or a blocking function",
            )
        return action.call(state, **injected(action))

    async def acall(state: Any) -> Any:
        assert action.acall is not None
        return await action.acall(state, **injected(action))

    if action.acall is None:
        return RunnableLambda(call, name=PROMPT)
    return RunnableLambda(call, acall, name=PROMPT)


# -- tools of a model ---------------------------------------------------------


def chat_part(model: Model) -> tuple[list[Model], Model, list[Model]]:
    """A sequence split at the step that is the model."""
    if not isinstance(model, RunnableSequence):
        return [], model, []
    steps = list(model.steps)
    for index, step in enumerate(steps):
        inner = unbound(step)
        if isinstance(inner, BaseChatModel) or hasattr(inner, "bind_tools"):
            return steps[:index], step, steps[index + 1 :]
    return steps[:-1], steps[-1], []


def unbound(model: Model) -> Model:
    """What is inside of all that was bound to it."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    return model


def _should_bind_tools(
    model: Model, tools: Sequence[BaseTool], num_builtin: int = 0
) -> bool:
    """Whether a model has no tools yet.

    Raises:
        InvalidGraphError: it has, but not those of the agent (TP-101).
    """
    _, model, _ = chat_part(model)
    if not isinstance(model, RunnableBinding) or "tools" not in model.kwargs:
        return True
    bound = model.kwargs["tools"]
    if len(tools) + num_builtin != len(bound):
        raise InvalidGraphError(
            f"the model was bound to {len(bound)} tools, and the agent has "
            f"{len(tools) + num_builtin}",
            hint="pass the same tools to bind_tools() and to the agent, or a model "
            "without tools",
        )
    missing = {tool.name for tool in tools} - {
        name for one in bound for name in names_of(one)
    }
    if missing:
        raise InvalidGraphError(
            f"the tools {sorted(missing)} were not given to model.bind_tools()",
            hint="pass a model without tools: the agent binds them",
        )
    return False


def names_of(bound: Any) -> list[str]:
    """The names in what a provider made of tools."""
    if isinstance(bound, BaseTool):
        return [bound.name]
    if not isinstance(bound, Mapping):  # Google's models hold messages of protobuf
        several = getattr(bound, "function_declarations", ())
        return [one.name for one in several]
    if bound.get("type") == "function" and "function" in bound:
        return [bound["function"]["name"]]
    if "toolSpec" in bound:  # Bedrock
        return [bound["toolSpec"]["name"]]
    return [bound["name"]] if "name" in bound else []


def with_tools(model: Model, tools: Sequence[Any]) -> Model:
    """A model that knows of tools, with all that was bound to it before."""
    before, chat, after = chat_part(model)
    if isinstance(chat, RunnableBinding) and hasattr(chat.bound, "bind_tools"):
        bound = chat.bound.bind_tools(tools).bind(**chat.kwargs)
        chat = bound.with_config(chat.config) if chat.config else bound
    elif hasattr(chat, "bind_tools"):
        chat = chat.bind_tools(tools)
    else:
        raise InvalidGraphError(
            f"the model {type(chat).__name__} cannot be given tools",
            hint="a chat model with bind_tools(), or an agent without tools",
        )
    steps = [*before, chat, *after]
    return steps[0] if len(steps) == 1 else RunnableSequence(*steps)


def bare_model(model: Model) -> BaseChatModel:
    """The chat model in whatever was wrapped around it.

    Raises:
        InvalidGraphError: there is none (TP-101).
    """
    model = unbound(chat_part(model)[1])
    if hasattr(model, "with_structured_output"):
        return cast("BaseChatModel", model)
    raise InvalidGraphError(
        f"{type(model).__name__} gives no structured answers",
        hint="a chat model with with_structured_output()",
    )


# -- the nodes ----------------------------------------------------------------


@dataclass(slots=True)
class Chosen:
    """The model of an agent: one, or a function that chooses one at each turn."""

    model: Any
    prompt: Runnable[Any, Any]
    fixed: Model | None

    @classmethod
    def of(cls, model: Any, prompt: Any, tools: Sequence[Any]) -> Chosen:
        """Take a model in any form; one that is fixed is given the tools.

        Raises:
            InvalidGraphError: the model has other tools, or can have none
                (TP-101).
        """
        if isinstance(model, str):
            model = named_model(model)
        made = prompt_runnable(prompt)
        if not isinstance(model, Runnable):
            if not callable(model):
                raise InvalidGraphError(
                    f"`model` is {type(model).__name__}, which is no model",
                    hint='a chat model, "provider:model", or a function that '
                    "chooses one: (state, runtime) -> model",
                )
            return cls(model, made, None)
        own = [tool for tool in tools if isinstance(tool, BaseTool)]
        if tools and _should_bind_tools(model, own, len(tools) - len(own)):
            model = with_tools(model, tools)
        return cls(model, made, made | model)

    def bare(self, state: Any, config: RunnableConfig) -> Program[Model]:
        """The model for this turn, without the prompt."""
        if self.fixed is not None:
            return cast("Model", self.model)
        runtime: Runtime[Any] = config[CONF][CONFIG_KEY_RUNTIME]

        def choose() -> Any:
            chosen = self.model(state, runtime)
            if inspect.isawaitable(chosen):
                if inspect.iscoroutine(chosen):
                    chosen.close()
                raise AsyncModelError(
                    "the function that chooses the agent's model is async, and the "
                    "agent was called blocking",
                    hint="ainvoke or astream, or a blocking function",
                )
            return chosen

        async def achoose() -> Any:
            chosen = self.model(state, runtime)
            return await chosen if inspect.isawaitable(chosen) else chosen

        return cast("Model", (yield Hop(choose, achoose)))

    def turn(self, state: Any, config: RunnableConfig) -> Program[Model]:
        """The model for this turn, behind the prompt."""
        if self.fixed is not None:
            return self.fixed
        return self.prompt | (yield from self.bare(state, config))


class AsyncModelError(ColourError, RuntimeError):
    """A function that chooses the model is async, and the run is blocking."""


def named_model(name: str) -> Model:
    """A model of "provider:model", made by langchain."""
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as missing:
        raise ImportError(
            "a model given as '<provider>:<model>' is made by langchain: "
            "pip install langchain"
        ) from missing
    return cast("Model", init_chat_model(name))


class ModelNode:
    """The node that lets the model speak."""

    def __init__(self, chosen: Chosen, name: str | None) -> None:
        self.chosen = chosen
        self.name = name

    def invoke(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return blocking(self.program(state, config))

    async def ainvoke(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await awaited(self.program(state, config))

    def program(self, state: Any, config: RunnableConfig) -> Program[dict[str, Any]]:
        given = heard(state)
        model = yield from self.chosen.turn(state, config)
        answer = yield Hop(
            lambda: model.invoke(given, config), lambda: model.ainvoke(given, config)
        )
        answer.name = self.name
        if self.short_of_steps(state, answer):
            answer = AIMessage(content=SORRY, id=answer.id)
        return {"messages": [answer]}

    def short_of_steps(self, state: Any, answer: Any) -> bool:
        """Whether the limit would end the run between a call and its answer."""
        if not isinstance(answer, AIMessage) or not answer.tool_calls:
            return False
        known = has_field(state, "remaining_steps")
        left = field_of(state, "remaining_steps") if known else None
        return left is not None and left < 2


def heard(state: Any) -> Any:
    """The state as the prompt gets it: with the messages meant for the model.

    Raises:
        ChatHistoryError: there are none, or a call without an answer (TP-222).
    """
    messages = None
    if has_field(state, "llm_input_messages"):
        messages = field_of(state, "llm_input_messages")
    own = messages or (
        field_of(state, "messages") if has_field(state, "messages") else None
    )
    if own is None:
        raise ChatHistoryError("the state of an agent has no messages")
    check_history(own)
    if not messages:
        return state
    if isinstance(state, Mapping):
        return {**state, "messages": messages}
    return state.model_copy(update={"messages": messages})


def check_history(messages: Sequence[AnyMessage]) -> None:
    """Refuse a conversation that providers would refuse with less to say."""
    calls = [
        call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls
    ]
    if not calls:
        return
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    open_calls = [call for call in calls if call["id"] not in answered]
    if open_calls:
        raise ChatHistoryError(
            create_error_message(
                message="Found AIMessages with tool_calls that no ToolMessage "
                f"answers. The first of them: {open_calls[:3]}.",
                error_code=ErrorCode.INVALID_CHAT_HISTORY,
            )
        )


class StructureNode:
    """The node that lets the model say its last answer in a given form."""

    def __init__(self, chosen: Chosen, response_format: Any) -> None:
        self.chosen = chosen
        self.first: list[Any] = []
        self.schema = response_format
        if isinstance(response_format, tuple):
            prompt, self.schema = response_format
            self.first = [SystemMessage(content=prompt)]

    def invoke(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return blocking(self.program(state, config))

    async def ainvoke(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await awaited(self.program(state, config))

    def program(self, state: Any, config: RunnableConfig) -> Program[dict[str, Any]]:
        messages = self.first + list(field_of(state, "messages"))
        chosen = yield from self.chosen.bare(state, config)
        model = bare_model(chosen).with_structured_output(self.schema)
        answer = yield Hop(
            lambda: model.invoke(messages, config),
            lambda: model.ainvoke(messages, config),
        )
        return {"structured_response": answer}


Chooser: TypeAlias = Callable[[Any, Runtime[Any]], Model | Awaitable[Model]]
