"""Spans and log records of the GenAI conventions, new and old form, and of OpenLLMetry, into records."""

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.assemble.records import Captured, ModelFacts, Record, ToolFacts
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.assemble.spelling import hides, json_value, split_error, without_call_envelope
from playhead.core.assemble.usage import GENAI, amount, counted
from playhead.core.protocol.forms import PARAM_NAMES
from playhead.core.protocol.messages import detect, unwrap
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.protocol.parts import finish, message, stored
from playhead.core.values import JSON, Cost, ErrorInfo, NodeKind
from playhead.importers.otlp import indexed
from playhead.importers.otlp.kinds import kind_of
from playhead.importers.otlp.wire import Span

Attributes = Mapping[str, JSON]

_OTEL_SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_TRACELOOP_SWITCH = "TRACELOOP_TRACE_CONTENT"
_CONVERSATION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
_READ = (
    "gen_ai.input.", "gen_ai.output.", "gen_ai.system_instructions", "gen_ai.tool.", "gen_ai.usage.",
    "gen_ai.request.", "gen_ai.response.", "gen_ai.prompt.", "gen_ai.completion.", "llm.request.functions.",
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.system", "gen_ai.agent.name", "gen_ai.conversation.id",
    "error.type", "llm.usage.",
)  # fmt: skip
_PARAMS = {**PARAM_NAMES, "choice.count": "n"}
_NO_PARAMS = frozenset({"model", "stream", "is_stream"})


def read_span(span: Span) -> Record:
    """One span with everything that its attributes tell."""
    found = span.attributes
    kind, word = kind_of(found)
    facts = model_facts(found) if kind is NodeKind.MODEL_CALL else None
    usage = counted(found, GENAI).usage if kind in (NodeKind.MODEL_CALL, NodeKind.AGENT_CALL) else None
    cost = amount(found.get("operation.cost", found.get("gen_ai.usage.cost")))
    error = _error(span)
    agent = found.get("gen_ai.agent.name")
    return Record(
        external_id=span.span_id,
        parent=span.parent_id,
        kind=kind,
        word=word,
        name=_name(span, kind),
        started_at=span.start,
        ended_at=span.end,
        failed=span.status == 2,
        error=error,
        redacted=hides(span.status_message),
        model=facts,
        tool=_tool(span, kind),
        input=_entity(found, "traceloop.entity.input"),
        output=_entity(found, "traceloop.entity.output"),
        usage=usage,
        cost=Cost(amount=cost, source="reported") if cost is not None else None,
        agent=str(agent) if agent and kind is NodeKind.AGENT_CALL else None,
        conversation=conversation(found),
        scope=span.scope or None,
        dialect=_dialect(span),
        hint=_TRACELOOP_SWITCH if _dialect(span) == "openllmetry" else _OTEL_SWITCH,
        raw={k: stored(v) for k, v in found.items() if v is not None and not k.startswith(_READ)},
    )


def conversation(found: Attributes) -> str | None:
    return next((str(found[k]) for k in _CONVERSATION if found.get(k)), None)


def _dialect(span: Span) -> str:
    legacy = "llm.request.type" in span.attributes or any(k.startswith("traceloop.") for k in span.attributes)
    return "openllmetry" if legacy else "genai"


def _name(span: Span, kind: NodeKind | None) -> str:
    if kind is NodeKind.AGENT_CALL:
        return str(span.attributes.get("gen_ai.agent.name") or span.name.removeprefix("invoke_agent "))
    return span.name


# --- model calls ----------------------------------------------------------------------------------------------------


def model_facts(found: Attributes) -> ModelFacts:
    """What attributes say of a model call, on a span (JSON text) or on an event (structures)."""
    messages = _messages(found)
    return ModelFacts(
        messages=messages,
        response=_response(found),
        tools=_tools(found),
        params=_params(found),
        requested=_text(found, "gen_ai.request.model"),
        served=_text(found, "gen_ai.response.model"),
        provider=_lower(found, "gen_ai.provider.name") or _lower(found, "gen_ai.system"),
        response_id=_text(found, "gen_ai.response.id"),
        streamed=found.get("gen_ai.is_streaming") is True or found.get("gen_ai.request.stream") is True,
    )


def _text(found: Attributes, name: str) -> str | None:
    value = found.get(name)
    return str(value) if value not in (None, "") else None


def _lower(found: Attributes, name: str) -> str | None:
    value = _text(found, name)
    return value.lower() if value else None


def _messages(found: Attributes) -> Sequence[JSON] | None:
    given = detect(found["gen_ai.input.messages"], role="user") if "gen_ai.input.messages" in found else None
    if given is None:
        given = indexed.prompt(found)
    system = found.get("gen_ai.system_instructions")
    if system is None:
        return given
    said = _system(system)
    return [*said, *(given or ())] if said else given


def _system(value: Any) -> list[JSON]:
    parts = unwrap(value)
    if isinstance(parts, str):
        return [message("system", [{"type": "text", "text": parts}])]
    return detect([{"role": "system", "parts": parts}]) or [] if is_list(parts) else []


def _response(found: Attributes) -> JSON:
    said = detect(found["gen_ai.output.messages"]) if "gen_ai.output.messages" in found else indexed.completion(found)
    answers = [m for m in said or () if m["role"] == "assistant"]
    if not answers:
        return None
    reasons = [m["finish_reason"] for m in answers if m.get("finish_reason")]
    parts = [p for m in answers for p in m["parts"]]
    return message("assistant", parts, finish_reason=reasons[-1] if reasons else _reason(found))


def _reason(found: Attributes) -> str | None:
    reasons = found.get("gen_ai.response.finish_reasons")
    return finish(reasons[0]) if is_list(reasons) and reasons else None


def _tools(found: Attributes) -> Sequence[JSON] | None:
    defined = unwrap(found.get("gen_ai.tool.definitions"))
    if is_list(defined):
        return [read_tool(t) for t in defined if is_object(t)]
    return indexed.functions(found)


def _params(found: Attributes) -> dict[str, JSON]:
    params: dict[str, JSON] = {}
    for name, value in found.items():
        if name.startswith("gen_ai.request."):
            short = name.removeprefix("gen_ai.request.")
            if short not in _NO_PARAMS and value is not None:
                params[_PARAMS.get(short, short)] = stored(value)
    return params


# --- tool calls -----------------------------------------------------------------------------------------------------


def _tool(span: Span, kind: NodeKind | None) -> ToolFacts | None:
    found = span.attributes
    name = _text(found, "gen_ai.tool.name")
    if kind is not NodeKind.TOOL_CALL and (name is None or found.get("gen_ai.tool.call.id") is None):
        return None
    if name is None:
        name = _text(found, "traceloop.entity.name") or span.name.removeprefix("execute_tool ").strip()
    arguments = _arguments(found)
    result = found.get("gen_ai.tool.call.result")
    typed = span.scope == "gen_ai"  # this SDK encodes every result as JSON
    output = _entity(found, "traceloop.entity.output")
    if result is not None:
        output = _typed(result) if typed else Captured(value=stored(result), how="untyped")
    return ToolFacts(tool=name, arguments=arguments, call_id=stored(found.get("gen_ai.tool.call.id")), result=output)


def _arguments(found: Attributes) -> Captured | None:
    given = found.get("gen_ai.tool.call.arguments")
    if given is not None:
        return Captured(value=_decoded(given), how="typed")
    entity = _entity(found, "traceloop.entity.input")
    return Captured(value=without_call_envelope(entity.value)) if entity is not None else None


def _decoded(value: JSON) -> JSON:
    if isinstance(value, str):
        is_json, inner = json_value(value)
        return inner if is_json else value
    return stored(value)


def _typed(value: JSON) -> Captured:
    return Captured(value=_decoded(value))


def _entity(found: Attributes, name: str) -> Captured | None:
    value = found.get(name)
    return None if value is None else _typed(value)


# --- errors ---------------------------------------------------------------------------------------------------------


def _error(span: Span) -> ErrorInfo | None:
    raised = [e.attributes for e in span.events if e.name == "exception"]
    if raised:
        last = raised[-1]
        return ErrorInfo(
            class_name=_text(last, "exception.type") or "", message=str(last.get("exception.message") or "")
        )
    if span.status != 2:
        return None
    kind = _text(span.attributes, "error.type")
    named = split_error(span.status_message)
    return ErrorInfo(class_name=kind if kind and kind != "_OTHER" else named.class_name or "", message=named.message)
