"""The SDK's messages: read into the normal form, and what the last one says about usage, cost and failure."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

from playhead.core.protocol import parts, usage
from playhead.core.protocol.parts import Message, Part
from playhead.core.protocol.shape import is_object
from playhead.core.totals import add_usage, plain
from playhead.core.values import JSON, Cost, Usage

NO_REASON = "Claude reported a failed result"
NO_END = "Claude ended without a terminal message"
_NO_FAILURE = frozenset({"success", "completed"})


class ClaudeRunError(Exception):
    """What a session keeps of a run that Claude reported as failed; ``status`` is that of the provider's API."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


# --- normal form ----------------------------------------------------------------------------------------------------


def read_blocks(blocks: Sequence[Any]) -> list[Part]:
    return [part for block in blocks for part in _read_block(block)]


def _read_block(block: Any) -> list[Part]:
    match block:
        case TextBlock():
            return parts.texts([block.text])
        case ThinkingBlock():
            return [parts.reasoning(block.thinking, signature=block.signature or None)]
        case ToolUseBlock():
            return [parts.call(block.name, block.input, block.id)]
        case ServerToolUseBlock():
            return [parts.call(block.name, block.input, block.id, executor="provider")]
        case ServerToolResultBlock():
            return [parts.result(block.tool_use_id, block.content, executor="provider")]
        case ToolResultBlock():
            return [parts.result(block.tool_use_id, result_content(block), is_error=block.is_error is True)]
        case _:
            return [parts.other(repr(block))]


def result_content(block: ToolResultBlock) -> Any:
    """The content as other adapters would have it: the text where there is nothing else."""
    content = block.content
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        return content[0]["text"]
    return content


def user(prompt: str) -> Message:
    return parts.message("user", parts.texts([prompt]))


# --- usage and cost -------------------------------------------------------------------------------------------------


def snapshot_usage(message: AssistantMessage) -> Usage | None:
    """The usage of one model call, as it was when its generation began: partial."""
    return usage.anthropic(message.usage)


def total_usage(result: ResultMessage) -> tuple[Usage | None, bool]:
    """Claude's own totals, and whether sub-agents are in them."""
    models = [_model_usage(raw) for raw in (result.model_usage or {}).values() if is_object(raw)]
    if models:
        total = add_usage(models)
        return (replace(total, raw=dict(result.model_usage or {})) if total else None), True
    return usage.anthropic(result.usage), False


def _model_usage(raw: dict[str, Any]) -> Usage:
    output, thinking = usage.pick(raw, "outputTokens"), usage.pick(raw, "thinkingTokens")
    return Usage(
        input_uncached=usage.pick(raw, "inputTokens"),
        input_cache_read=usage.pick(raw, "cacheReadInputTokens"),
        input_cache_write=usage.pick(raw, "cacheCreationInputTokens"),
        output_visible=None if output is None else max(0, output - (thinking or 0)),
        output_reasoning=thinking,
    )


def reported_cost(result: ResultMessage) -> Cost | None:
    if result.total_cost_usd is None:
        return None
    return Cost(amount=plain(Decimal(str(result.total_cost_usd))), source="reported")


# --- how it ended ---------------------------------------------------------------------------------------------------


def failure(result: ResultMessage) -> ClaudeRunError | None:
    """The most readable cause that a failed result carries; None for a run that went well."""
    if not result.is_error:
        return None
    return ClaudeRunError(_reason(result), getattr(result, "api_error_status", None))


def _reason(result: ResultMessage) -> str:
    errors = "; ".join(str(e).strip() for e in result.errors or () if str(e).strip())
    if errors:
        return errors
    if isinstance(result.result, str) and result.result.strip():
        return result.result.strip()
    for word in (getattr(result, "terminal_reason", None), result.subtype):
        if word and word not in _NO_FAILURE:
            return str(word)
    return NO_REASON


def terminal(result: ResultMessage) -> dict[str, JSON]:
    """What a session's metadata keeps of the last message."""
    known: dict[str, Any] = {
        "subtype": result.subtype,
        "is_error": result.is_error,
        "terminal_reason": getattr(result, "terminal_reason", None),
        "stop_reason": result.stop_reason,
        "num_turns": result.num_turns,
        "duration_ms": result.duration_ms,
        "claude_session_id": result.session_id,
        "api_error_status": getattr(result, "api_error_status", None),
    }
    return {name: value for name, value in known.items() if value is not None}


def output(result: ResultMessage) -> Any:
    return result.structured_output if result.structured_output is not None else result.result
