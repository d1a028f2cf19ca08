"""Drafts into nodes: ids, keys, occurrences, paths, and what each kind of node carries."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from playhead.core.assemble.draft import Draft
from playhead.core.assemble.ids import node_id
from playhead.core.assemble.kinds import structure
from playhead.core.assemble.records import ModelFacts, Record, Settings, Trace
from playhead.core.assemble.spelling import clean_name, same
from playhead.core.canonical import NoKeyError, parse_emitted
from playhead.core.codec import encode
from playhead.core.keys import call_key
from playhead.core.occurrence import Occurrences
from playhead.core.protocol.request import Digests, model_key
from playhead.core.values import (
    JSON,
    ErrorInfo,
    Imported,
    Mark,
    ModelCall,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Outcome,
    OutcomeKind,
    ToolCall,
    path_step,
)

_RAW_LIMIT = 64 * 1024
_REQUEST_PARTS = ("model", "messages", "tools", "tool_choice", "params")


@dataclass(slots=True, kw_only=True)
class Emitter:
    """Makes the nodes of one session, in order."""

    session_id: str
    trace: Trace
    settings: Settings
    _ids: dict[int, str] = field(default_factory=dict[int, str])
    _paths: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    _occurrences: Occurrences = field(default_factory=Occurrences)
    _attempts: Counter[tuple[int, int | None]] = field(default_factory=lambda: Counter())
    _models: Counter[str] = field(default_factory=lambda: Counter())
    _digests: dict[int, Digests] = field(default_factory=dict[int, Digests])

    def id_of(self, draft: Draft) -> str:
        found = self._ids.get(id(draft))
        if found is None:
            prefix = f"{draft.trace}/" if draft.trace else ""
            found = self._ids[id(draft)] = node_id(self.session_id, prefix + draft.record.external_id)
        return found

    def nodes(self, drafts: Sequence[Draft]) -> list[Node]:
        return _with_overlaps([self._node(draft, seq) for seq, draft in enumerate(drafts, 1)])

    def _node(self, draft: Draft, seq: int) -> Node:
        record = draft.record
        call = model = None
        self._evidence(draft)
        inputs: JSON = record.input.value if record.input is not None else None
        outcome = draft.outcome
        if draft.kind is NodeKind.TOOL_CALL:
            call = self._tool_call(draft)
            inputs = None
        elif draft.kind is NodeKind.MODEL_CALL:
            model, inputs = self._model_call(draft)
            outcome = _model_outcome(record)
        else:
            self._reported(draft)
            outcome = _step_outcome(record)
        return Node(
            id=self.id_of(draft),
            session_id=self.session_id,
            seq=seq,
            kind=draft.kind,
            name=clean_name(call.tool if call else record.name),
            started_at=_started(draft),
            parent_id=self.id_of(draft.parent) if draft.parent is not None else None,
            ended_at=record.ended_at,
            status=_status(record, outcome),
            inputs=inputs,
            outcome=outcome,
            attributes=draft.attributes,
            call=call,
            model=model,
            imported=self._imported(draft),
        )

    def _evidence(self, draft: Draft) -> None:
        """Attributes that a later import needs to conclude everything again."""
        record = draft.record
        found: dict[str, JSON] = {
            "trace_id": draft.trace,
            "seen_at": record.seen_at if record.started_at is None else None,
            "partial": record.partial or None,
            "agent": record.agent,
            "conversation": record.conversation,
            "capture_with": record.hint if _is_empty(draft) else None,
            "source_name": record.name if draft.kind is NodeKind.TOOL_CALL and not draft.rebuilt else None,
        }
        draft.attributes.update({k: v for k, v in found.items() if v is not None})

    def _imported(self, draft: Draft) -> Imported:
        record = draft.record
        return Imported(
            format=self.trace.format,
            instance=self.trace.instance,
            external_id=record.external_id,
            external_parent=record.parent,
            kind=record.word,
            scope=record.scope,
            dialect=record.dialect,
            merged=record.merged,
            raw=small_raw(record.raw, self.settings),
        )

    # --- tool calls

    def _path(self, draft: Draft) -> tuple[str, ...]:
        """Names of the enclosing tool calls, which come earlier in the order and so are known."""
        above = draft.parent
        while above is not None:
            if id(above) in self._paths:
                return self._paths[id(above)]
            above = above.parent
        return ()

    def _announce(self, model: Draft) -> None:
        """Equal calls of one response are counted in the response's order, whichever started first."""
        for request in model.requests:
            if request.tool is not None:
                key, _ = _key(request.name, request.arguments)
                self._occurrences.reserve(
                    _slot(request.tool), tool=request.name, key=key, path=self._path(request.tool)
                )

    def _tool_call(self, draft: Draft) -> ToolCall:
        facts, request = draft.record.tool, draft.request
        tool = request.name if request is not None else facts.tool if facts is not None else draft.record.name
        own = parse_emitted(structure(facts.arguments)) if facts is not None and facts.arguments is not None else None
        empty: JSON = {}
        if request is not None:
            arguments = request.arguments
            if facts is not None and facts.tool != tool:
                draft.attributes["source_tool"] = facts.tool
            if own is not None and not same(own, arguments):
                draft.attributes["executed_arguments"] = own
        else:
            arguments = empty if own is None else own
            if own is None:
                draft.attributes["arguments_missing"] = True
        key, no_key = _key(tool, arguments)
        path = self._path(draft)
        occurrence = self._occurrences.reserve(_slot(draft), tool=tool, key=key, path=path)
        self._paths[id(draft)] = (*path, path_step(tool, key, occurrence))
        return ToolCall(
            tool=clean_name(tool),
            arguments=arguments,
            call_id=_call_id(draft),
            key=key,
            no_key=no_key,
            path=path,
            occurrence=occurrence,
            attempt=self._attempt(draft),
            model_call=self.id_of(draft.model) if draft.model is not None else None,
            index=draft.index,
            source=_source(draft),
            mark=draft.mark or Mark.MISSING,
            joined=draft.joined,
        )

    def _attempt(self, draft: Draft) -> int:
        if draft.model is None:
            return 1
        asked = (id(draft.model), draft.index)
        self._attempts[asked] += 1
        return self._attempts[asked]

    # --- model calls

    def _model_call(self, draft: Draft) -> tuple[ModelCall, JSON]:
        record = draft.record
        facts = record.model or ModelFacts()
        missing = missing_parts(facts)
        inputs: JSON = {
            "messages": facts.messages if facts.messages is not None else [],
            "tools": facts.tools if facts.tools is not None else [],
            "tool_choice": facts.tool_choice,
            "params": facts.params if facts.params is not None else {},
        }
        key, no_key = self._model_key(draft, facts, missing)
        self._announce(draft)
        if key is not None:
            self._models[key] += 1
        return ModelCall(
            requested=facts.requested,
            served=facts.served,
            provider=facts.provider,
            protocol=facts.protocol,
            response_id=facts.response_id,
            key=key,
            no_key=no_key,
            occurrence=self._models[key] if key is not None else 1,
            usage=record.usage,
            cost=record.cost,
            streamed=facts.streamed,
            capture=_capture(facts, missing),
            missing=missing,
        ), inputs

    def _model_key(self, draft: Draft, facts: ModelFacts, missing: tuple[str, ...]) -> tuple[str | None, NoKey | None]:
        if facts.messages is None or "messages" in missing:
            return None, NoKey(reason="not_captured", detail="request not fully captured: messages")
        digests = self._digests.setdefault(id(draft.agent()), Digests())
        try:
            return model_key(
                facts.requested, digests.of(facts.messages), facts.tools, facts.tool_choice, facts.params,
                missing=missing,
            ), None  # fmt: skip
        except NoKeyError as error:
            return None, error.no_key

    def _reported(self, draft: Draft) -> None:
        """What agents and steps say about their calls' usage is kept, never summed."""
        record = draft.record
        if record.usage is not None:
            draft.attributes["reported_usage"] = record.usage.raw
        if record.cost is not None:
            draft.attributes["reported_cost"] = record.cost.amount


def small_raw(raw: dict[str, JSON], settings: Settings) -> JSON:
    """The source's other fields, as far as they are to be kept."""
    if not raw or settings.keep_raw == "none":
        return None
    return None if settings.keep_raw == "small" and len(encode(raw)) > _RAW_LIMIT else raw


def missing_parts(facts: ModelFacts) -> tuple[str, ...]:
    """The parts of a request that the source does not show."""
    absent = {
        "model": facts.requested is None,
        "messages": facts.messages is None or facts.placeholders,
        "tools": facts.tools is None,
        "tool_choice": facts.tools is None and facts.tool_choice is None,
        "params": facts.params is None,
    }
    return tuple(name for name in _REQUEST_PARTS if absent[name])


def _capture(facts: ModelFacts, missing: tuple[str, ...]) -> Literal["full", "partial", "none"]:
    if facts.messages is None and facts.response is None:
        return "none"
    return "partial" if missing else "full"


def _is_empty(draft: Draft) -> bool:
    facts = draft.record.model
    return draft.kind is NodeKind.MODEL_CALL and (facts is None or facts.messages is None)


def _slot(draft: Draft) -> str:
    """What names a tool call inside the session: the request it answers, else itself."""
    return f"{id(draft.model)}:{draft.index}" if draft.model is not None else f"start:{id(draft)}"


def _call_id(draft: Draft) -> str | None:
    """The id by which the model asked, else the one on the tool's own record, which is kept beside it."""
    facts, request = draft.record.tool, draft.request
    own = facts.call_id if facts is not None else None
    if request is not None and own is not None and draft.joined != "id":
        draft.attributes["source_call_id"] = own
    found = own if request is None else request.call_id
    return found if isinstance(found, str) or found is None else encode(found).decode("utf-8", "surrogatepass")


def _source(draft: Draft) -> Literal["seam", "transcript", "provider"]:
    facts = draft.record.tool
    if facts is not None and facts.executor == "provider":
        return "provider"
    return "transcript" if draft.rebuilt else "seam"


def _key(tool: str, arguments: JSON) -> tuple[str | None, NoKey | None]:
    try:
        return call_key(tool, arguments), None
    except NoKeyError as error:
        return None, error.no_key


def _started(draft: Draft) -> int:
    """When a node started; a rebuilt call stands where its model call ended."""
    record = draft.record
    if draft.rebuilt and draft.model is not None:
        return draft.model.record.ended_at or draft.model.start
    return record.started_at or record.seen_at or 0


def _status(record: Record, outcome: Outcome | None) -> NodeStatus:
    if outcome is not None and outcome.kind in (OutcomeKind.ERROR, OutcomeKind.INVALID_ARGS):
        return NodeStatus.FAILED
    unfinished = record.started_at is not None and record.ended_at is None and not record.failed
    return NodeStatus.OPEN if unfinished and outcome is None else NodeStatus.COMPLETED


def _error(record: Record) -> Outcome:
    return Outcome(kind=OutcomeKind.ERROR, error=record.error or ErrorInfo(class_name=""))


def _model_outcome(record: Record) -> Outcome | None:
    if record.failed:
        return _error(record)
    response = record.model.response if record.model is not None else None
    return Outcome(kind=OutcomeKind.VALUE, value=response) if response is not None else None


def _step_outcome(record: Record) -> Outcome | None:
    if record.failed:
        return _error(record)
    return Outcome(kind=OutcomeKind.VALUE, value=record.output.value) if record.output is not None else None


def _with_overlaps(nodes: list[Node]) -> list[Node]:
    """Marks unjoined calls of one key that ran beside each other with different answers: nothing tells their order."""
    groups: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for place, node in enumerate(nodes):
        if node.call is not None and node.call.joined == "unjoined" and node.call.key is not None:
            groups.setdefault((node.call.path, node.call.key), []).append(place)
    for places in groups.values():
        for place in places:
            others = [nodes[p] for p in places if p != place]
            if any(_beside(nodes[place], o) and nodes[place].outcome != o.outcome for o in others):
                call = nodes[place].call
                assert call is not None
                nodes[place] = replace(nodes[place], call=replace(call, overlapped=True))
    return nodes


def _beside(one: Node, other: Node) -> bool:
    if one.ended_at is None or other.ended_at is None:
        return one.started_at == other.started_at
    return max(one.started_at, other.started_at) < min(one.ended_at, other.ended_at)
