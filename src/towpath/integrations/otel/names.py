"""The names of spans, attributes and metrics.

Those in `gen_ai` and `error` are of OpenTelemetry's semantic conventions; they
are written out here because the package that has them is not stable. Those in
`towpath` are ours.
"""

from __future__ import annotations

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"

PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - no password
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
TEXT_COMPLETION: Final = "text_completion"
EXECUTE_TOOL: Final = "execute_tool"

OUTCOME: Final = "towpath.outcome"
"""done, interrupt, interrupt_before, interrupt_after, failed, drained, closed,
cancelled or parent_command."""
ERROR_CODE: Final = "towpath.error.code"
NAMESPACE: Final = "towpath.checkpoint.ns"
CHECKPOINT: Final = "towpath.checkpoint.id"
SOURCE: Final = "towpath.checkpoint.source"
DURABILITY: Final = "towpath.durability"
STEP: Final = "towpath.step"
STEP_TASKS: Final = "towpath.step.tasks"
STEP_CACHED: Final = "towpath.step.cached"
TASK: Final = "towpath.task.name"
TASK_ID: Final = "towpath.task.id"
ATTEMPT: Final = "towpath.task.attempt"
INPUT: Final = "towpath.input"
OUTPUT: Final = "towpath.output"

INTERRUPT: Final = "towpath.interrupt"
"""The event of a question that is asked."""
INTERRUPT_ID: Final = "towpath.interrupt.id"
INTERRUPT_VALUE: Final = "towpath.interrupt.value"
RESUMED: Final = "towpath.resumed"
"""On a link: to the run that stopped."""
