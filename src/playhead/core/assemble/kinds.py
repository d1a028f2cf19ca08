"""Which steps are calls: wrappers, duplicates and inferred tool calls.

Sources report one model call up to three times (framework, instrumentation, client library), and a framework's run as
if it were a call. What is left over here is one node per call, with the outer id and the fuller content.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from playhead.core.assemble.draft import Draft
from playhead.core.assemble.merge import absorb
from playhead.core.assemble.records import Captured, Note, ToolFacts
from playhead.core.assemble.shapes import is_object
from playhead.core.assemble.spelling import json_value, same
from playhead.core.totals import same_figures
from playhead.core.values import JSON, NodeKind

_CALLS = (NodeKind.AGENT_CALL, NodeKind.TOOL_CALL)


class Sorted(NamedTuple):
    drafts: list[Draft]
    dropped: int
    inferred: int


def sort_kinds(drafts: list[Draft], notes: list[Note]) -> Sorted:
    """Drafts with their final kinds and without duplicates."""
    gone: set[int] = set()
    for draft in _innermost_first(drafts):
        if draft.kind is NodeKind.MODEL_CALL:
            _settle_model(draft, gone, notes)
        elif draft.kind is NodeKind.TOOL_CALL:
            _settle_tool(draft, gone)
    _same_response(drafts, gone, notes)
    left = [d for d in drafts if id(d) not in gone]
    inferred = _infer(left)
    _settle_root(left)
    return Sorted(left, len(gone), inferred)


def _innermost_first(drafts: Iterable[Draft]) -> list[Draft]:
    ordered: list[Draft] = []
    for root in (d for d in drafts if d.parent is None):
        ordered += [root, *root.below()]
    return ordered[::-1]


def _reach(draft: Draft, kind: NodeKind, stop: tuple[NodeKind, ...]) -> list[Draft]:
    """Drafts of ``kind`` below, not looking beyond those of the kinds ``stop``."""
    found: list[Draft] = []
    todo = draft.children[::-1]
    while todo:
        one = todo.pop()
        if one.kind is kind:
            found.append(one)
        if one.kind not in stop:
            todo += one.children[::-1]
    return found


def _settle_model(draft: Draft, gone: set[int], notes: list[Note]) -> None:
    inner = _reach(draft, NodeKind.MODEL_CALL, _CALLS)
    if not inner:
        return
    if len(inner) > 1 or _reach(draft, NodeKind.TOOL_CALL, (NodeKind.TOOL_CALL,)):
        draft.kind = NodeKind.AGENT_CALL
        draft.attributes["wrapper"] = True
        return
    _absorb(draft, inner[0], gone, notes)


def _settle_tool(draft: Draft, gone: set[int]) -> None:
    for inner in _reach(draft, NodeKind.TOOL_CALL, (NodeKind.AGENT_CALL, NodeKind.MODEL_CALL, NodeKind.TOOL_CALL)):
        if _one_execution(draft.record.tool, inner.record.tool):
            _absorb(draft, inner, gone, [])


def _one_execution(outer: ToolFacts | None, inner: ToolFacts | None) -> bool:
    if outer is None or inner is None or plain_tool(outer.tool) != plain_tool(inner.tool):
        return False
    if outer.call_id is not None and inner.call_id is not None:
        return same(outer.call_id, inner.call_id)
    if outer.arguments is None or inner.arguments is None:
        return outer.arguments is inner.arguments
    return same(structure(outer.arguments), structure(inner.arguments))


def _absorb(outer: Draft, inner: Draft, gone: set[int], notes: list[Note]) -> None:
    one, other = outer.record, inner.record
    outer.record = absorb(one, other)
    if other.usage is not None:
        outer.update(usage=other.usage, cost=other.cost or one.cost)
        if one.usage is not None and not same_figures(one.usage, other.usage):
            outer.attributes["usage_conflict"] = {"outer": one.usage.raw, "inner": other.usage.raw}
            notes.append(Note(
                code="usage_conflict", message="two reports of one call give different usage; the inner one is kept",
                external_id=one.external_id,
            ))  # fmt: skip
    if inner.parent is not None:
        inner.parent.children.remove(inner)
    for child in inner.children:
        outer.adopt(child)
    inner.children = []
    gone.add(id(inner))


def _same_response(drafts: list[Draft], gone: set[int], notes: list[Note]) -> None:
    """Model calls that carry one response id and overlap in time are one, wherever they stand."""
    known: dict[str, list[Draft]] = {}
    for draft in sorted((d for d in drafts if d.kind is NodeKind.MODEL_CALL), key=lambda d: (d.start, d.arrival)):
        facts = draft.record.model
        if id(draft) in gone or facts is None or not facts.response_id:
            continue
        others = known.setdefault(facts.response_id, [])
        twin = next((o for o in others if _overlap(o, draft)), None)
        if twin is None:
            others.append(draft)
        elif draft in twin.ancestors():
            _absorb(draft, twin, gone, notes)
            others[others.index(twin)] = draft
        else:
            _absorb(twin, draft, gone, notes)


def _overlap(one: Draft, other: Draft) -> bool:
    a, b = one.record, other.record
    if None in (a.started_at, a.ended_at, b.started_at, b.ended_at):
        return False
    return max(a.started_at or 0, b.started_at or 0) < min(a.ended_at or 0, b.ended_at or 0)


def _infer(drafts: list[Draft]) -> int:
    """Spans that ran a tool which a model call asked for, from sources that show tools as plain steps."""
    asked: dict[str, list[JSON]] = {}
    for draft in drafts:
        facts = draft.record.model
        if draft.kind is NodeKind.MODEL_CALL and facts is not None and facts.response is not None:
            for part in facts.response["parts"]:
                if part["type"] == "tool_call":
                    asked.setdefault(plain_tool(part["name"]), []).append(part["arguments"])
    return sum(_inferred(d, asked) for d in drafts if d.kind is NodeKind.SPAN and not d.record.partial)


def _inferred(draft: Draft, asked: dict[str, list[JSON]]) -> bool:
    record = draft.record
    if record.tool is not None and record.tool.call_id is not None:
        facts = record.tool
    elif record.input is not None:
        given = structure(record.input)
        wanted = asked.get(plain_tool(record.name), ())
        if not is_object(given) or not any(same(given, w) for w in wanted):
            return False
        facts = ToolFacts(tool=record.name, arguments=record.input, result=record.output)
    else:
        return False
    draft.kind = NodeKind.TOOL_CALL
    draft.attributes["inferred"] = True
    draft.update(tool=facts)
    return True


def _settle_root(drafts: list[Draft]) -> None:
    if any(d.kind is NodeKind.AGENT_CALL for d in drafts):
        return
    for root in drafts:
        if root.parent is None and root.kind is NodeKind.SPAN and _any(root, lambda d: d.kind is NodeKind.MODEL_CALL):
            root.kind = NodeKind.AGENT_CALL
            root.attributes["promoted"] = True


def _any(root: Draft, fits: Callable[[Draft], bool]) -> bool:
    return any(fits(d) for d in root.below())


def plain_tool(name: str) -> str:
    """A tool's name without the server that an MCP client puts before it: ``mcp__shop__refund`` is ``refund``."""
    if name.startswith("mcp__") and name.count("__") >= 2:
        return name.split("__", 2)[2]
    return name


def structure(captured: Captured) -> JSON:
    """Arguments as a structure, also when they are kept as JSON text."""
    if isinstance(captured.value, str):
        is_json, value = json_value(captured.value)
        return value if is_json else captured.value
    return captured.value
