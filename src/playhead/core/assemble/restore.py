"""A stored session back into records, so that what a later import brings is assembled with it as if both had come at
once. What the assembler concluded (joins, marks, rebuilt calls, inferred kinds) is left behind and concluded again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from playhead.core.assemble.records import Captured, ModelFacts, Record, ToolFacts, Trace
from playhead.core.assemble.shapes import is_object
from playhead.core.values import (
    FROM_SOURCE,
    JSON,
    SOURCE_METADATA,
    Cost,
    ErrorInfo,
    Mark,
    Node,
    NodeKind,
    OutcomeKind,
    Session,
    Verdict,
)


def restore(
    session: Session, nodes: Iterable[Node], verdicts: Sequence[Verdict] = ()
) -> list[tuple[Trace, list[Record]]]:
    """The traces of a stored import with their records."""
    assert session.imported is not None
    held = [n for n in nodes if n.imported is not None and not (n.call is not None and n.call.source == "transcript")]
    traces: dict[str | None, list[Record]] = {}
    for node in held:
        name = node.attributes.get("trace_id")
        traces.setdefault(name, []).append(_record(node))
    origin = session.imported
    return [
        (
            Trace(
                format=origin.format,
                instance=origin.instance,
                external_id=name or origin.external_id,
                name=session.name,
                tags=session.tags,
                metadata={k: v for k, v in session.metadata.items() if k not in SOURCE_METADATA},
                verdicts=tuple(v for v in verdicts if v.evaluator == FROM_SOURCE),
                warnings=session.warnings,
                file=origin.file,
                position=origin.position,
            ),
            records,
        )
        for name, records in traces.items()
    ]


def _record(node: Node) -> Record:
    origin = node.imported
    assert origin is not None
    seen = node.attributes.get("seen_at")
    kind = _kind(node)
    outcome = node.outcome
    failed = outcome is not None and outcome.kind is OutcomeKind.ERROR
    error = outcome.error if outcome is not None else None
    brief = node.attributes.get("source_error")
    if is_object(brief):
        failed, error = True, ErrorInfo(class_name=brief["class_name"], message=brief["message"])
    own_failure = outcome is not None and outcome.kind not in (OutcomeKind.VALUE, OutcomeKind.ERROR)
    call = node.call
    is_step = call is None and node.model is None
    return Record(
        external_id=origin.external_id,
        parent=origin.external_parent,
        kind=kind,
        word=origin.kind,
        name=node.attributes.get("source_name", node.name),
        started_at=None if seen is not None else node.started_at or None,
        ended_at=node.ended_at,
        seen_at=seen,
        failed=failed,
        failure=outcome.kind if outcome is not None and own_failure and brief is None else None,
        error=error,
        redacted=node.attributes.get("error_details") == "redacted",
        model=_model(node),
        tool=_tool(node) if call is not None else None,
        input=_step_value(node.inputs) if is_step else None,
        output=_step_value(outcome.value) if is_step and outcome is not None and not failed else None,
        usage=node.model.usage if node.model is not None else None,
        cost=node.model.cost if node.model is not None and _is_reported(node.model.cost) else None,
        agent=node.attributes.get("agent"),
        conversation=node.attributes.get("conversation"),
        scope=origin.scope,
        dialect=origin.dialect,
        merged=origin.merged,
        hint=node.attributes.get("capture_with"),
        partial=node.attributes.get("partial") is True,
        raw=origin.raw or {},
        found={k: node.attributes[k] for k in ("usage_conflict",) if k in node.attributes},
    )


def _is_reported(cost: Cost | None) -> bool:
    return cost is not None and cost.source == "reported"


def _kind(node: Node) -> NodeKind:
    if node.attributes.get("inferred") or node.attributes.get("promoted"):
        return NodeKind.SPAN
    return node.kind


def _step_value(value: JSON) -> Captured | None:
    return None if value is None else Captured(value=value)


def _model(node: Node) -> ModelFacts | None:
    model = node.model
    if model is None:
        return None
    inputs, outcome = node.inputs, node.outcome
    gone = model.missing
    return ModelFacts(
        messages=None if "messages" in gone and not inputs["messages"] else inputs["messages"],
        response=outcome.value if outcome is not None and outcome.kind is OutcomeKind.VALUE else None,
        tools=None if "tools" in gone else inputs["tools"],
        tool_choice=inputs["tool_choice"],
        params=None if "params" in gone else inputs["params"],
        requested=model.requested,
        served=model.served,
        provider=model.provider,
        protocol=model.protocol,
        response_id=model.response_id,
        placeholders="messages" in gone and bool(inputs["messages"]),
        streamed=model.streamed,
    )


def _tool(node: Node) -> ToolFacts:
    call = node.call
    assert call is not None
    attributes = node.attributes
    arguments: Captured | None = Captured(value=attributes.get("executed_arguments", call.arguments))
    if call.joined == "name" or attributes.get("arguments_missing"):
        arguments = None
    own_id: JSON = attributes.get("source_call_id")
    if own_id is None and call.joined in ("id", "position", "unjoined"):
        own_id = call.call_id
    return ToolFacts(
        tool=attributes.get("source_tool", call.tool),
        arguments=arguments,
        call_id=own_id,
        result=_result(node, call.mark),
        executor="provider" if call.source == "provider" else "agent",
    )


def _result(node: Node, mark: Mark) -> Captured | None:
    stored = node.attributes.get("stored")
    value = node.outcome.value if node.outcome is not None else None
    if is_object(stored):
        return Captured(value=stored.get("value", value), how=stored["how"], cut=stored.get("cut") is True)
    if mark is Mark.MISSING or value is None or node.attributes.get("result_from_view"):
        return None
    return Captured(value=value)


def combined(
    stored: Sequence[tuple[Trace, Sequence[Record]]], new: Sequence[tuple[Trace, Sequence[Record]]]
) -> list[tuple[Trace, list[Record]]]:
    """Stored traces and what a later import brings of them: its records come after, its facts win where it has any."""
    made = {trace.external_id: (trace, list(records)) for trace, records in stored}
    for trace, records in new:
        known = made.get(trace.external_id)
        if known is None:
            made[trace.external_id] = (trace, list(records))
        else:
            made[trace.external_id] = (_later(known[0], trace), known[1] + list(records))
    return list(made.values())


def _later(old: Trace, new: Trace) -> Trace:
    verdicts = {v.name: v for v in (*old.verdicts, *new.verdicts)}
    return replace(
        new,
        name=new.name or old.name,
        conversation=new.conversation or old.conversation,
        tags=tuple(dict.fromkeys(old.tags + new.tags)),
        metadata={**old.metadata, **new.metadata},
        verdicts=tuple(verdicts.values()),
        warnings=old.warnings,
        file=old.file,
        position=old.position,
    )
