"""What a tool call gave, and how sure that is: its outcome and its fidelity mark.

``stored`` below is what the source kept, ``view`` what the next model request shows of it. A structure that the model
saw in another spelling proves that the tool returned a structure.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from playhead.core.assemble.draft import Draft
from playhead.core.assemble.records import Captured, Record, Settings
from playhead.core.assemble.shapes import is_object
from playhead.core.assemble.spelling import (
    is_placeholder,
    json_value,
    literal_value,
    reads_like_error,
    same,
    split_error,
    unwrap,
    within_depth,
    without_cut_mark,
)
from playhead.core.canonical import render
from playhead.core.values import JSON, ErrorInfo, Mark, Outcome, OutcomeKind

_UNSEEN: Any = object()  # the model's view is not known


class Judged(NamedTuple):
    value: JSON
    mark: Mark
    envelope: str | None = None
    is_error: bool = False


def settle_result(draft: Draft, settings: Settings) -> None:
    """Writes outcome, mark and what proves them on a tool call's draft."""
    request = draft.request
    seen = request is not None and request.answered and request.tool is draft
    view = request.view if request is not None and seen else _UNSEEN
    if view is not _UNSEEN:
        draft.attributes["model_view"] = view
    if draft.rebuilt:
        assert request is not None
        _from_view(draft, view, request.view_is_error, settings)
    else:
        _from_record(draft, view, settings)


def _from_view(draft: Draft, view: JSON, is_error: bool, settings: Settings) -> None:
    value = _decoded(draft, view, settings)
    request = draft.request
    kind = OutcomeKind.RESULT_ERROR if is_error else OutcomeKind.VALUE
    if request is not None and is_object(request.arguments) and "$invalid" in request.arguments:
        kind = OutcomeKind.INVALID_ARGS
    hint = kind is OutcomeKind.VALUE and reads_like_error(view)
    draft.outcome, draft.mark = Outcome(kind=kind, value=value, error_hint=hint), Mark.TEXT


def _from_record(draft: Draft, view: JSON, settings: Settings) -> None:
    record = draft.record
    facts = record.tool
    stored = facts.result if facts is not None else None
    failure = record.failure or (OutcomeKind.ERROR if record.failed else None)
    if failure is OutcomeKind.ERROR or failure is OutcomeKind.RETRY:
        _failed(draft, record, failure, stored, view)
        return
    if failure is OutcomeKind.RESULT_ERROR and stored is None and record.error is not None:
        stored = Captured(value=record.error.message, how="text")
    judged = judge(stored, view)
    if stored is None and view is not _UNSEEN:
        draft.attributes["result_from_view"] = True
    kind = failure or (OutcomeKind.RESULT_ERROR if judged.is_error else OutcomeKind.VALUE)
    if judged.envelope:
        draft.attributes["envelope"] = judged.envelope
    value = _decoded(draft, judged.value, settings) if judged.mark is Mark.TEXT else judged.value
    draft.outcome, draft.mark = Outcome(kind=kind, value=value), judged.mark
    if stored is not None and (stored.how != "typed" or stored.cut):
        kept: dict[str, JSON] = {"how": stored.how, **({"cut": True} if stored.cut else {})}
        draft.attributes["stored"] = kept if same(stored.value, value) else {**kept, "value": stored.value}


def _failed(draft: Draft, record: Record, kind: OutcomeKind, stored: Captured | None, view: JSON) -> None:
    error = record.error or ErrorInfo(class_name="")
    shown = stored.value if stored is not None else None
    if stored is not None:
        draft.attributes["stored"] = {"how": stored.how, "value": shown, **({"cut": True} if stored.cut else {})}
    if record.redacted or is_placeholder(error.message) or is_placeholder(shown):
        draft.attributes["error_details"] = "redacted"
        if view is not _UNSEEN and shown is not None and same(view, shown):
            draft.attributes["source_error"] = _brief(error)
            draft.outcome, draft.mark = Outcome(kind=OutcomeKind.RESULT_ERROR, value=shown), Mark.TEXT
        else:
            draft.outcome, draft.mark = Outcome(kind=kind, value=shown, error=error), Mark.REDACTED
        return
    if error.message:
        value = (view if view is not _UNSEEN else shown) if kind is OutcomeKind.RETRY else None
        draft.outcome, draft.mark = Outcome(kind=kind, value=value, error=error), Mark.EXACT
    elif isinstance(view, str):
        named = split_error(view)
        known = replace(error, message=named.message, class_name=error.class_name or named.class_name or "")
        draft.outcome, draft.mark = Outcome(kind=kind, value=view, error=known), Mark.TEXT
        draft.attributes["source_error"] = _brief(error)
    else:
        draft.outcome, draft.mark = Outcome(kind=kind, error=error), Mark.MISSING


def _brief(error: ErrorInfo) -> JSON:
    return {"class_name": error.class_name, "message": error.message}


def _decoded(draft: Draft, value: JSON, settings: Settings) -> JSON:
    facts = draft.record.tool
    if facts is not None and facts.tool in settings.decode_json and isinstance(value, str):
        is_json, decoded = json_value(value)
        if is_json:
            draft.attributes["decoded"] = True
            return decoded
    return value


def judge(stored: Captured | None, view: JSON = _UNSEEN) -> Judged:
    """The value of a result and its mark, from what is stored and what the model saw."""
    value = stored.value if stored is not None else None
    known = view is not _UNSEEN
    if is_placeholder(value):
        return Judged(value, Mark.TEXT if known and view == value else Mark.REDACTED)
    if stored is not None and isinstance(value, str):
        head = without_cut_mark(value)
        if stored.cut or head is not None:
            whole = known and isinstance(view, str) and view.startswith(value if head is None else head)
            return Judged(view, Mark.TEXT) if whole and view != value else Judged(value, Mark.TRUNCATED)
    if stored is None:
        return Judged(None, Mark.MISSING) if not known else Judged(view, Mark.TEXT if _is_text(view) else Mark.EXACT)
    if stored.how == "text":
        return Judged(value, Mark.TEXT)
    if stored.how == "typed" or not isinstance(value, str):
        inner = unwrap(value)
        return Judged(inner.value, Mark.WRAPPED if inner.envelope else Mark.EXACT, inner.envelope, inner.is_error)
    return _judge_untyped(value, view)


def _judge_untyped(value: str, view: JSON) -> Judged:
    known = view is not _UNSEEN
    is_json, decoded = json_value(value)
    if not is_json:
        if literal_value(value)[0]:
            return Judged(value, Mark.TEXT if known and view == value else Mark.REPR)
        return Judged(value, Mark.EXACT)
    if not isinstance(decoded, dict | list):
        return Judged(decoded, Mark.EXACT) if known and same(view, decoded) else Judged(value, Mark.TEXT)
    if known and (same(view, decoded) or _other_spelling(view, value, decoded)):
        inner = unwrap(decoded)
        return Judged(inner.value, Mark.WRAPPED if inner.envelope else Mark.EXACT, inner.envelope, inner.is_error)
    return Judged(value, Mark.TEXT)


def _other_spelling(view: JSON, value: str, decoded: JSON) -> bool:
    """Whether the model saw the same structure written differently, which only its owner can have done."""
    if not isinstance(view, str) or view == value:
        return False
    for read in (json_value, literal_value):
        found, other = read(view)
        if found:
            return same(other, decoded)
    return False


def _is_text(view: JSON) -> bool:
    return isinstance(view, str)


def bounded(captured: Captured | None, limit: int) -> Captured | None:
    """A payload that nests deeper than the limit becomes its JSON text."""
    if captured is None or within_depth(captured.value, limit):
        return captured
    return Captured(value=render(captured.value).decode("utf-8", "surrogatepass"), how="text", cut=captured.cut)
