"""Log records that belong to spans: the details event of the new form, and one event a message of the old form."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from playhead.core.assemble.records import ModelFacts, Record
from playhead.core.assemble.shapes import is_object
from playhead.core.assemble.spelling import token
from playhead.core.assemble.usage import GENAI, counted
from playhead.core.protocol.messages import detect
from playhead.core.protocol.parts import finish
from playhead.core.values import FROM_SOURCE, JSON, NodeKind, Verdict
from playhead.importers.otlp.genai import conversation, model_facts
from playhead.importers.otlp.wire import Log

DETAILS = "gen_ai.client.inference.operation.details"
EVALUATION = "gen_ai.evaluation.result"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"
_OTEL_SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def is_content(log: Log) -> bool:
    """Whether a log record is part of a model call's span."""
    return log.span_id is not None and (log.name == DETAILS or log.name in _ROLES or log.name == _CHOICE)


def read_logs(logs: Iterable[Log]) -> list[Record]:
    """One partial record for each span that the logs speak of. Records that came twice count once."""
    by_span: dict[str, dict[bytes, Log]] = {}
    for log in logs:
        if log.span_id is not None:
            mark = token([log.name, log.time, log.body, log.attributes])
            by_span.setdefault(log.span_id, {}).setdefault(mark, log)
    return [_record(span_id, sorted(held.values(), key=lambda g: g.time or 0)) for span_id, held in by_span.items()]


def _record(span_id: str, logs: Sequence[Log]) -> Record:
    details = [g for g in logs if g.name == DETAILS]
    facts = model_facts(details[-1].attributes) if details else ModelFacts()
    spoken = [g for g in logs if g.name in _ROLES]
    if spoken:
        messages = detect([_chat(g) for g in spoken])
        shown = messages is not None and any(m["parts"] for m in messages)
        facts = replace(facts, messages=messages if shown else None)
    said = next((g for g in logs if g.name == _CHOICE and _index(g) == 0), None)
    if said is not None:
        facts = replace(facts, response=_choice(said))
    found: dict[str, JSON] = {k: v for g in details for k, v in g.attributes.items()}
    return Record(
        external_id=span_id,
        kind=NodeKind.MODEL_CALL,
        word="log",
        name="model call",
        seen_at=logs[0].time,
        model=facts,
        usage=counted(found, GENAI).usage,
        conversation=conversation(found),
        hint=_OTEL_SWITCH,
        partial=True,
    )


def _body(log: Log) -> dict[str, Any]:
    return log.body if is_object(log.body) else {"content": log.body} if log.body is not None else {}


def _index(log: Log) -> int:
    found = _body(log).get("index", 0)
    return found if isinstance(found, int) else 0


def _chat(log: Log) -> dict[str, Any]:
    """One message event as a chat message. Without content in its body it is still a message."""
    body = dict(_body(log))
    made = {"content": None, **body, "role": _ROLES[log.name]}
    if made["role"] == "tool":
        made["tool_call_id"] = made.pop("id", None)
    return made


def _choice(log: Log) -> JSON:
    body = _body(log)
    said = body.get("message")
    chat = {"content": None, **(said if is_object(said) else {}), "role": "assistant"}
    found = detect([chat])
    if not found:
        return None
    reason = finish(body.get("finish_reason"))
    return {**found[0], "finish_reason": reason} if reason else found[0]


def read_verdict(log: Log) -> Verdict | None:
    """An evaluation event as an imported verdict."""
    found = log.attributes
    name = found.get("gen_ai.evaluation.name")
    if not isinstance(name, str):
        return None
    score, label = found.get("gen_ai.evaluation.score.value"), found.get("gen_ai.evaluation.score.label")
    why = found.get("gen_ai.evaluation.explanation")
    return Verdict(
        name=name,
        score=score if isinstance(score, int | float) else None,
        label=str(label) if label is not None else None,
        explanation=str(why) if why is not None else None,
        evaluator=FROM_SOURCE,
    )
