"""Several records of one observation become one: start and end events, spans and their logs, old and new imports."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from playhead.core.assemble.records import Captured, ModelFacts, Record, ToolFacts

_T = TypeVar("_T", ModelFacts, ToolFacts)
_SURER = {"typed": 2, "untyped": 1, "text": 0}
_OWN = frozenset(
    {"external_id", "model", "tool", "raw", "merged", "partial", "failed", "redacted", "seen_at", "result", "found"}
)


def merge_records(records: Iterable[Record]) -> list[Record]:
    """One record per external id, in order of first arrival. Later non-null fields replace earlier ones."""
    merged: dict[str, Record] = {}
    for record in records:
        known = merged.get(record.external_id)
        merged[record.external_id] = record if known is None else merge(known, record)
    return list(merged.values())


def merge(old: Record, new: Record) -> Record:
    """Fields of ``new`` that are not null win, except where ``new`` is partial: then they only fill.

    A record without an end never reopens one that has ended, and a failure stays one.
    """
    first, second = (new, old) if new.partial and not old.partial else (old, new)
    changes = _filled(first, second)
    changes["model"] = _facts(first.model, second.model)
    changes["tool"] = _tool(first.tool, second.tool)
    changes["raw"] = {**first.raw, **second.raw}
    changes["found"] = {**first.found, **second.found}
    changes["merged"] = tuple(dict.fromkeys(first.merged + second.merged))
    changes["partial"] = first.partial and second.partial
    changes["failed"] = first.failed or second.failed
    changes["redacted"] = first.redacted or second.redacted
    seen = [s for s in (first.seen_at, second.seen_at) if s is not None]
    changes["seen_at"] = min(seen) if seen else None
    return replace(first, **changes)


def _filled(first: Any, second: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for field in fields(first):
        value = getattr(second, field.name)
        if field.name not in _OWN and value is not None and value != "":
            changes[field.name] = value
    return changes


def _facts(first: _T | None, second: _T | None) -> _T | None:
    if first is None or second is None:
        return second if first is None else first
    changes = _filled(first, second)
    if isinstance(first, ModelFacts) and isinstance(second, ModelFacts):
        changes["placeholders"] = second.placeholders if second.messages is not None else first.placeholders
        changes["streamed"] = first.streamed or second.streamed
    return replace(first, **changes)


def _tool(first: ToolFacts | None, second: ToolFacts | None) -> ToolFacts | None:
    found = _facts(first, second)
    if found is None or first is None or second is None:
        return found
    return replace(found, result=surer(first.result, second.result))


def surer(first: Captured | None, second: Captured | None) -> Captured | None:
    """The capture of one result that tells more of its type; the later one when both tell the same."""
    if first is None or second is None:
        return second if first is None else first
    one, other = (_SURER[c.how] - (10 if c.cut else 0) for c in (first, second))
    return first if one > other else second


def absorb(outer: Record, inner: Record) -> Record:
    """A duplicate into the record that stays: what is missing is filled, times and id are the outer one's."""
    filled = merge(inner, replace(outer, external_id=inner.external_id))
    both = (*outer.merged, inner.external_id, *inner.merged)
    tool = outer.tool
    if tool is not None and filled.tool is not None:
        filled = replace(filled, tool=replace(filled.tool, result=surer(inner.tool and inner.tool.result, tool.result)))
    return replace(
        filled,
        external_id=outer.external_id,
        parent=outer.parent,
        merged=tuple(dict.fromkeys(both)),
        raw=outer.raw,
        found=outer.found,
    )
