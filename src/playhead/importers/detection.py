"""Which product wrote a document, told by its content. Formats that are recognised but not read are named."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from playhead.core.values import JSON
from playhead.engine.documents import Document


class Sign(NamedTuple):
    """A format and what shows it."""

    format: str
    fits: Callable[[Mapping[str, Any]], bool]


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda value: all(n in value for n in names)


def _list_of(value: Mapping[str, Any], name: str) -> list[Any]:
    held = value.get(name)
    return held if isinstance(held, list) else []


def _first(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first object in the list at one of ``names``."""
    for name in names:
        held = _list_of(value, name)
        if held and isinstance(held[0], Mapping):
            return held[0]
    return {}


def _nested(value: Mapping[str, Any], *path: str) -> Any:
    found: Any = value
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _is_langsmith(value: Mapping[str, Any]) -> bool:
    run = {**_first(value, "runs", "post", "patch"), **value}
    return (
        ("run_type" in run and "dotted_order" in run)
        or bool({"post", "patch"} & set(value))
        or ("dotted_order" in run and "trace_id" in run)
    )


def _is_langfuse(value: Mapping[str, Any]) -> bool:
    one = {**_first(value, "observations", "data"), **value}
    return (
        ("trace" in value and "observations" in value)
        or "parentObservationId" in one
        or (one.get("type") == "GENERATION")
    )


def _is_mlflow(value: Mapping[str, Any]) -> bool:
    holds = "trace" in value and "trace_id" in value and "spans" in value
    return holds or (_nested(value, "info", "trace_id") is not None and _nested(value, "data", "spans") is not None)


def _is_phoenix(value: Mapping[str, Any]) -> bool:
    one = {**_first(value, "data"), **value}
    snake = "span_id" in one and "trace_id" in one and "start_time_unix_nano" in one
    return _nested(one, "context", "span_id") is not None or "context.span_id" in one or snake


def _is_openhands(value: Mapping[str, Any]) -> bool:
    return "instance_id" in value and "source" in _first(value, "history")


def _is_swe_agent(value: Mapping[str, Any]) -> bool:
    return "action" in _first(value, "trajectory", "history")


def is_tau_bench(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("traj"), list) and "reward" in value


def is_chat_message(value: JSON) -> bool:
    """Whether it is one message of an OpenAI chat."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and ("content" in value or "tool_calls" in value)
    )


def _messages_of(value: Mapping[str, Any]) -> str | None:
    """The transcript format that a request-like object is in."""
    held = value.get("messages", value.get("input"))
    return message_format(held, value) if isinstance(held, list) and held else None


def message_format(messages: list[Any], around: Mapping[str, Any] | None = None) -> str | None:
    """The transcript format of a message list."""
    shown = [m for m in messages if isinstance(m, Mapping)]
    if any(m.get("type") in ("function_call", "function_call_output", "reasoning") for m in shown):
        return "openai_responses"
    if any("part_kind" in p for m in shown for p in _list_of(m, "parts") if isinstance(p, Mapping)):
        return "pydantic_ai"
    blocks = [b for m in shown for b in _list_of(m, "content") if isinstance(b, Mapping)]
    if any(b.get("type") in ("tool_use", "tool_result") for b in blocks) or "system" in (around or {}):
        return "anthropic_messages"
    return "openai_chat" if shown and is_chat_message(shown[0]) else None


_SIGNS: tuple[Sign, ...] = (
    Sign("otlp", lambda v: any(isinstance(v.get(k), list) for k in ("resourceSpans", "resourceLogs"))),
    Sign("otlp_metrics", lambda v: isinstance(v.get("resourceMetrics"), list)),
    Sign("playhead", lambda v: isinstance(v.get("r"), str)),
    Sign("langfuse_ingestion", lambda v: {"type", "body"} <= set(_first(v, "batch"))),
    Sign("weave", lambda v: "op_name" in {**_first(v, "batch"), **v}),
    Sign("braintrust", lambda v: "root_span_id" in {**_first(v, "rows", "events"), **v}),
    Sign("langsmith", _is_langsmith),
    Sign("langfuse", _is_langfuse),
    Sign("mlflow", _is_mlflow),
    Sign("phoenix", _is_phoenix),
    Sign("opik", lambda v: "project_name" in _first(v, "spans", "traces")),
    Sign("mastra", lambda v: "exportedSpan" in v or ("entityType" in v and "traceId" in v)),
    Sign("openai_agents", lambda v: v.get("object") in ("trace", "trace.span")),
    Sign("logfire", _has("span_name", "otel_status_code")),
    Sign("inspect", lambda v: _nested(v, "eval", "task_id") is not None and "samples" in v),
    Sign("tau2", _has("simulations", "tasks")),
    Sign("tau_bench", is_tau_bench),
    Sign("openhands", _is_openhands),
    Sign("swe_agent", _is_swe_agent),
    Sign("claude_code", lambda v: ("sessionId" in v and "uuid" in v) or "loglines" in v),
    Sign("claude_sdk_messages", lambda v: v.get("type") in ("AssistantMessage", "ResultMessage")),
    Sign("kitaru", _has("external_id", "nodes")),
)

_BINARY = ((b"PK\x03\x04", "inspect"), (b"--", "langsmith"))


def detect(document: Document) -> str | None:
    """The name of the format, also of one that is only recognised; None when nothing fits."""
    if document.data is not None:
        return next((name for magic, name in _BINARY if document.data.startswith(magic)), None)
    value: Any = document.value
    if isinstance(value, list):
        return message_format(value)
    if not isinstance(value, Mapping):
        return None
    return next((s.format for s in _SIGNS if s.fits(value)), None) or _messages_of(value)


def is_whole(first: JSON) -> bool:
    """Whether a JSON array that begins with ``first`` is one record: a message list."""
    return isinstance(first, Mapping) and (
        is_chat_message(first) or "part_kind" in _first(first, "parts") or first.get("type") in _ITEM_TYPES
    )


_ITEM_TYPES = ("message", "function_call", "function_call_output", "reasoning")
