"""Which product wrote a document, told by its content. Formats that are recognised but not read are named."""

from collections.abc import Callable
from typing import Any, TypeAlias

from playhead.core.assemble.shapes import at, is_list, is_object, objects
from playhead.core.values import JSON
from playhead.engine.documents import Document

Sign: TypeAlias = "tuple[str, Callable[[dict[str, Any]], bool]]"
"""A format, and whether an object shows it."""


def _has(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda value: all(n in value for n in names)


def _list_of(value: dict[str, Any], name: str) -> list[Any]:
    held = value.get(name)
    return held if is_list(held) else []


def _first(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """The first object in the list at one of ``names``."""
    for name in names:
        held = _list_of(value, name)
        if held and is_object(held[0]):
            return held[0]
    return {}


def _is_langsmith(value: dict[str, Any]) -> bool:
    run = {**_first(value, "runs", "post", "patch"), **value}
    return (
        ("run_type" in run and "dotted_order" in run)
        or bool({"post", "patch"} & set(value))
        or ("dotted_order" in run and "trace_id" in run)
    )


def _is_langfuse(value: dict[str, Any]) -> bool:
    one = {**_first(value, "observations", "data"), **value}
    return (
        ("trace" in value and "observations" in value)
        or "parentObservationId" in one
        or (one.get("type") == "GENERATION")
    )


def _is_mlflow(value: dict[str, Any]) -> bool:
    holds = "trace" in value and "trace_id" in value and "spans" in value
    return holds or (at(value, "info", "trace_id") is not None and at(value, "data", "spans") is not None)


def _is_phoenix(value: dict[str, Any]) -> bool:
    one = {**_first(value, "data"), **value}
    snake = "span_id" in one and "trace_id" in one and "start_time_unix_nano" in one
    return at(one, "context", "span_id") is not None or "context.span_id" in one or snake


def _is_openhands(value: dict[str, Any]) -> bool:
    return "instance_id" in value and "source" in _first(value, "history")


def _is_swe_agent(value: dict[str, Any]) -> bool:
    return "action" in _first(value, "trajectory", "history")


def is_tau_bench(value: dict[str, Any]) -> bool:
    return is_list(value.get("traj")) and "reward" in value


def is_chat_message(value: JSON) -> bool:
    """Whether it is one message of an OpenAI chat."""
    return is_object(value) and isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value)


def _messages_of(value: dict[str, Any]) -> str | None:
    """The transcript format that a request-like object is in."""
    held = value.get("messages", value.get("input"))
    return message_format(held, value) if is_list(held) and held else None


def message_format(messages: list[Any], around: dict[str, Any] | None = None) -> str | None:
    """The transcript format of a message list."""
    shown = objects(messages)
    if any(m.get("type") in ("function_call", "function_call_output", "reasoning") for m in shown):
        return "openai_responses"
    if any("part_kind" in p for m in shown for p in objects(m.get("parts"))):
        return "pydantic_ai"
    blocks = [b for m in shown for b in objects(m.get("content"))]
    if any(b.get("type") in ("tool_use", "tool_result") for b in blocks) or "system" in (around or {}):
        return "anthropic_messages"
    spoken = shown and (is_chat_message(shown[0]) or (around is not None and "role" in shown[0]))
    return "openai_chat" if spoken else None


_SIGNS: tuple[Sign, ...] = (
    ("otlp", lambda v: any(is_list(v.get(k)) for k in ("resourceSpans", "resourceLogs"))),
    ("otlp_metrics", lambda v: is_list(v.get("resourceMetrics"))),
    ("playhead", lambda v: isinstance(v.get("r"), str)),
    ("langfuse_ingestion", lambda v: {"type", "body"} <= set(_first(v, "batch"))),
    ("weave", lambda v: "op_name" in {**_first(v, "batch"), **v}),
    ("braintrust", lambda v: "root_span_id" in {**_first(v, "rows", "events"), **v}),
    ("langsmith", _is_langsmith),
    ("langfuse", _is_langfuse),
    ("mlflow", _is_mlflow),
    ("phoenix", _is_phoenix),
    ("opik", lambda v: "project_name" in _first(v, "spans", "traces")),
    ("mastra", lambda v: "exportedSpan" in v or ("entityType" in v and "traceId" in v)),
    ("openai_agents", lambda v: v.get("object") in ("trace", "trace.span")),
    ("logfire", _has("span_name", "otel_status_code")),
    ("inspect", lambda v: at(v, "eval", "task_id") is not None and "samples" in v),
    ("tau2", _has("simulations", "tasks")),
    ("tau_bench", is_tau_bench),
    ("openhands", _is_openhands),
    ("swe_agent", _is_swe_agent),
    ("claude_code", lambda v: ("sessionId" in v and "uuid" in v) or "loglines" in v),
    ("claude_sdk_messages", lambda v: v.get("type") in ("AssistantMessage", "ResultMessage")),
    ("kitaru", _has("external_id", "nodes")),
)

_BINARY = ((b"PK\x03\x04", "inspect"), (b"--", "langsmith"))


def detect(document: Document) -> str | None:
    """The name of the format, also of one that is only recognised; None when nothing fits."""
    if document.data is not None:
        return next((name for magic, name in _BINARY if document.data.startswith(magic)), None)
    value: Any = document.value
    if is_list(value):
        return message_format(value)
    if not is_object(value):
        return None
    return next((name for name, fits in _SIGNS if fits(value)), None) or _messages_of(value)


def is_whole(first: JSON) -> bool:
    """Whether a JSON array that begins with ``first`` is one record: a message list."""
    return is_object(first) and (
        is_chat_message(first) or "part_kind" in _first(first, "parts") or first.get("type") in _ITEM_TYPES
    )


_ITEM_TYPES = ("message", "function_call", "function_call_output", "reasoning")
