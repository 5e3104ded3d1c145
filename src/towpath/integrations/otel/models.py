"""The calls of langchain's models and tools in a node, as spans.

langchain tells of them to a handler that stands in a context variable, which it
is made to look at. The variable is set where nodes run, so that calls elsewhere
are left alone.

A call's span is the current one until the call ends, so that what an HTTP client
tells of it, or the code of a tool opens, hangs under it. Of the end of an async call
langchain tells in another context, where the caller's cannot be set back. So what
becomes current is a stand-in, which is the call's span while that goes on and from
then on whatever was current before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind

from towpath.call.scope import TaskContext
from towpath.context import current
from towpath.integrations.otel.ends import DONE, End, ending, show, text
from towpath.integrations.otel.guard import harmless
from towpath.integrations.otel.names import (
    CACHE_CREATION_TOKENS,
    CACHE_READ_TOKENS,
    CHAT,
    CONVERSATION,
    EXECUTE_TOOL,
    FINISH_REASONS,
    INPUT_MESSAGES,
    INPUT_TOKENS,
    OPERATION,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    PROVIDER,
    REASONING_TOKENS,
    REQUEST_MAX_TOKENS,
    REQUEST_MODEL,
    REQUEST_TEMPERATURE,
    RESPONSE_ID,
    RESPONSE_MODEL,
    TEXT_COMPLETION,
    TOKEN_TYPE,
    TOOL_ARGUMENTS,
    TOOL_CALL_ID,
    TOOL_NAME,
    TOOL_RESULT,
    TOOL_TYPE,
)
from towpath.integrations.otel.telemetry import Telemetry

LISTENER: ContextVar[Any] = ContextVar("towpath_otel", default=None)
"""Who hears of models and tools here; looked at by langchain."""
register_configure_hook(LISTENER, inheritable=True)

PROVIDERS: Final = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
"""langchain's names of providers that differ from those of the conventions."""
ROLES: Final = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}
USAGE: Final = (
    (INPUT_TOKENS, ("input_tokens",)),
    (OUTPUT_TOKENS, ("output_tokens",)),
    (CACHE_READ_TOKENS, ("input_token_details", "cache_read")),
    (CACHE_CREATION_TOKENS, ("input_token_details", "cache_creation")),
    (REASONING_TOKENS, ("output_token_details", "reasoning")),
)


class CallSpan:
    """A call of a model or a tool that goes on."""

    __slots__ = ("around", "began", "labels", "over", "parent_run", "span")

    def __init__(
        self, span: Span, around: Span, labels: dict[str, Any], parent_run: UUID | None
    ) -> None:
        self.span = span
        self.around = around
        self.labels = labels
        self.parent_run = parent_run
        self.over = False
        self.began = perf_counter()


class ModelSpans(BaseCallbackHandler):
    """A handler of langchain's that makes a span of each call."""

    run_inline = True  # where the call is made: there its span becomes current
    ignore_chain = True
    ignore_retriever = True

    def __init__(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry
        self.calls: dict[UUID, CallSpan] = {}

    def listen(self) -> None:
        """Hear what happens in this context."""
        LISTENER.set(self)

    # -- models ---------------------------------------------------------------

    @harmless
    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> None:
        """Begin the span of a chat."""
        del serialized  # says how the model was made
        facts = model_facts(metadata or {}, told.get("invocation_params") or {})
        if self.telemetry.record_content:
            shown = [shown_message(each) for batch in messages for each in batch]
            facts[INPUT_MESSAGES] = as_json(shown)
        self.begin(run_id, CHAT, facts, told.get("parent_run_id"))

    @harmless
    def on_llm_start(
        self,
        serialized: Any,
        prompts: Sequence[str],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> None:
        """Begin the span of a completion."""
        del serialized
        facts = model_facts(metadata or {}, told.get("invocation_params") or {})
        if self.telemetry.record_content:
            facts[INPUT_MESSAGES] = as_json([shown_text("user", p) for p in prompts])
        self.begin(run_id, TEXT_COMPLETION, facts, told.get("parent_run_id"))

    @harmless
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """End the span of a model's call, with what it used."""
        call = self.calls.get(run_id)
        if call is None:
            return
        messages = [
            message
            for batch in response.generations
            for each in batch
            if (message := getattr(each, "message", None)) is not None
        ]
        for message in messages:
            call.span.set_attributes(answer_facts(message))
            self.count_tokens(call, getattr(message, "usage_metadata", None) or {})
        if self.telemetry.record_content:
            shown = [shown_message(message) for message in messages]
            call.span.set_attribute(OUTPUT_MESSAGES, as_json(shown))
        self.end(run_id, DONE)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the span of a model's call that failed."""
        self.end(run_id, ending(error))

    def count_tokens(self, call: CallSpan, usage: Mapping[str, Any]) -> None:
        for kind, key in (("input", "input_tokens"), ("output", "output_tokens")):
            if usage.get(key):
                labels = {**call.labels, TOKEN_TYPE: kind}
                self.telemetry.meters.tokens.record(usage[key], labels)

    # -- tools ----------------------------------------------------------------

    @harmless
    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, **told: Any
    ) -> None:
        """Begin the span of a tool's call."""
        name = (serialized or {}).get("name") or told.get("name") or ""
        facts = {TOOL_NAME: name, TOOL_TYPE: "function"}
        if told.get("tool_call_id"):
            facts[TOOL_CALL_ID] = told["tool_call_id"]
        if self.telemetry.record_content:
            facts[TOOL_ARGUMENTS] = as_json(told.get("inputs") or input_str)
        self.begin(run_id, EXECUTE_TOOL, facts, told.get("parent_run_id"))

    @harmless
    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """End the span of a tool's call."""
        call = self.calls.get(run_id)
        if call is not None and self.telemetry.record_content:
            shown = getattr(output, "content", output)
            call.span.set_attribute(TOOL_RESULT, text(shown))
        self.end(run_id, DONE)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the span of a tool's call that failed, or that asks somebody."""
        self.end(run_id, ending(error))

    # -- both -----------------------------------------------------------------

    def begin(
        self, run_id: UUID, operation: str, facts: dict[str, Any], parent: UUID | None
    ) -> None:
        """Open a span and make it the current one of whoever makes the call."""
        labels = {OPERATION: operation}
        labels |= {k: facts[k] for k in (REQUEST_MODEL, PROVIDER) if k in facts}
        task = current.get()
        if isinstance(task, TaskContext) and task.scope.req.thread_id is not None:
            facts[CONVERSATION] = task.scope.req.thread_id
        around = around_call(operation, parent)
        context = trace.set_span_in_context(around)
        name = facts.get(REQUEST_MODEL) or facts.get(TOOL_NAME) or ""
        span = self.telemetry.tracer.start_span(
            f"{operation} {name}".rstrip(),
            context,
            SpanKind.INTERNAL if operation == EXECUTE_TOOL else SpanKind.CLIENT,
            {OPERATION: operation, **facts},
        )
        call = self.calls[run_id] = CallSpan(span, around, labels, parent)
        contexts.attach(trace.set_span_in_context(StandIn(call), context))

    @harmless
    def end(self, run_id: UUID, end: End) -> None:
        """Close a span; what was current before is so again."""
        call = self.calls.pop(run_id, None)
        if call is None:
            return
        if end.error is not None and self.telemetry.record_errors:
            call.span.record_exception(end.error)
        show(call.span, end, details=self.telemetry.record_errors)
        call.over = True
        call.span.end()
        if call.labels[OPERATION] != EXECUTE_TOOL:
            labels = {**call.labels, **end.facts}
            self.telemetry.meters.operations.record(perf_counter() - call.began, labels)


class StandIn(NonRecordingSpan):
    """A call's span while that goes on; then the one around it."""

    def __init__(self, call: CallSpan) -> None:
        self.call = call

    @property
    def now(self) -> Span:
        return self.call.around if self.call.over else self.call.span


def forwarding(name: str) -> Callable[..., Any]:
    """A method of a stand-in: that of the span it stands for now."""

    def method(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.now, name)(*args, **kwargs)

    return method


for _name in (
    *("get_span_context", "is_recording", "end", "update_name"),
    *("set_attribute", "set_attributes", "set_status"),
    *("add_event", "add_link", "record_exception"),
):
    setattr(StandIn, _name, forwarding(_name))


def around_call(operation: str, parent: UUID | None) -> Span:
    """The span that a call hangs under.

    The prompts of one call are told of one by one: a model whose run has the same
    parent is beside this one, not around it.
    """
    span = trace.get_current_span()
    while isinstance(span, StandIn):
        call = span.call
        models = EXECUTE_TOOL not in (operation, call.labels[OPERATION])
        if not call.over and not (models and call.parent_run == parent):
            break
        span = call.around
    return span


def model_facts(told: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a model before it answers."""
    provider = told.get("ls_provider")
    facts = {
        PROVIDER: PROVIDERS.get(provider or "", provider),
        REQUEST_MODEL: told.get("ls_model_name")
        or given.get("model")
        or given.get("model_name"),
        REQUEST_TEMPERATURE: told.get("ls_temperature"),
        REQUEST_MAX_TOKENS: told.get("ls_max_tokens"),
    }
    return {key: value for key, value in facts.items() if value is not None}


def answer_facts(message: BaseMessage) -> dict[str, Any]:
    """What a model's answer says of itself."""
    said = message.response_metadata
    reason = said.get("finish_reason") or said.get("stop_reason")
    facts = {
        RESPONSE_ID: said.get("id") or given_id(message.id),
        RESPONSE_MODEL: said.get("model_name") or said.get("model"),
        FINISH_REASONS: [reason] if reason else None,
    }
    usage = getattr(message, "usage_metadata", None) or {}
    for name, path in USAGE:
        value: Any = usage
        for key in path:
            value = (value or {}).get(key)
        facts[name] = value
    return {key: value for key, value in facts.items() if value is not None}


def given_id(id_: str | None) -> str | None:
    """The id of an answer, unless langchain made it up."""
    return None if id_ is None or id_.startswith(("run-", "lc_run-")) else id_


def shown_message(message: BaseMessage) -> dict[str, Any]:
    """A message in the form of the conventions: a role and parts."""
    shown = shown_text(ROLES.get(message.type, message.type), message.text)
    for call in getattr(message, "tool_calls", ()):
        part = {"type": "tool_call", "id": call["id"], "name": call["name"]}
        shown["parts"].append({**part, "arguments": call["args"]})
    if message.type == "tool":
        part = {
            "type": "tool_call_response",
            "id": getattr(message, "tool_call_id", ""),
        }
        shown["parts"] = [{**part, "response": message.text}]
    return shown


def shown_text(role: str, said: str) -> dict[str, Any]:
    parts = [{"type": "text", "content": text(said)}] if said else []
    return {"role": role, "parts": parts}


def as_json(value: Any) -> str:
    return json.dumps(value, default=repr, ensure_ascii=False)
