"""The text of a miss: what was asked, what was recorded nearest to it, where they differ, and what would change it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from unicodedata import category

from playhead.core.claim import Claim
from playhead.core.match import ABSENT, Absent, Candidate, Difference, differences, nearest, pattern_differences
from playhead.core.policy import CallView, StaticConfig
from playhead.core.recording import Occurrence, Recording, Unservable
from playhead.core.values import JSON

Redact: TypeAlias = Callable[[JSON], JSON]

LIMIT = 200
_SHOWN_CALLS = 3
_SHOWN_POINTERS = 5
_SHOWN_POINTER = 100
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_NO_KEY = {
    "non_finite": "is not finite",
    "unsupported_type": "has a type without a stored form",
    "cycle": "holds itself",
    "too_deep": "is nested too deep",
    "int_too_long": "is an integer with too many digits",
    "out_of_range": "is out of range",
    "duplicate_key": "has one member twice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Why nothing answers a call. ``closest`` is the nearest recorded calls as JSON."""

    reason: str
    message: str
    closest: list[dict[str, JSON]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A recorded call that a miss shows."""

    recording: Recording
    claimed: bool
    differences: list[Difference]


def shown(value: JSON | Absent, limit: int | None = LIMIT) -> str:
    """A value as JSON text on one line, white space visible, cut at ``limit`` characters with a mark."""
    if value is ABSENT:
        return "(absent)"
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=repr)
    except (RecursionError, ValueError):
        return "(nested too deep to show)"
    return cut(text, limit)


def cut(text: str, limit: int | None = LIMIT) -> str:
    """The text on one line with hidden characters escaped, cut at ``limit`` characters with a mark."""
    text = _visible(text)
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} characters)"


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == " " or category(c) not in _HIDDEN else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


# --- history --------------------------------------------------------------------------------------------------------


def no_recording(
    call: CallView, claim: Claim, recorded: Sequence[Occurrence], redact: Redact, consequence: str
) -> Miss:
    """A call for which the baseline has nothing (left). ``recorded``: its calls of the tool."""
    near = _nearest(redact(call.arguments), [(o.first, not o.free) for o in recorded])
    first, setting = _REASONS[claim.reason or "never_recorded"](call, claim, near)
    return _miss(claim.reason or "never_recorded", first, call, redact, near, setting, consequence)


def nothing_wide(call: CallView, recorded: Sequence[Recording], scope: str, redact: Redact, consequence: str) -> Miss:
    """A call that no session in a wide scope completed."""
    if call.key is None and call.no_key is not None:
        first, setting = _no_key(call, None, [])
        return _miss("no_key", first, call, redact, [], setting, consequence)
    near = _nearest(redact(call.arguments), [(r, False) for r in recorded])
    where = "any session of this cohort version" if scope == "cohort_version" else "any live or imported session"
    if near:
        first, setting = _other_args(call, None, near)
        return _miss("other_args", first, call, redact, near, setting, consequence)
    first = f"no completed call of {call.tool} was recorded in {where}"
    return _miss("never_recorded", first, call, redact, [], _ELSEWHERE, consequence)


def not_served(call: CallView, recording: Recording, why: Unservable, redact: Redact, consequence: str) -> Miss:
    """A call whose recording exists and is never served."""
    first = f"the recorded call of {call.tool} {why.words}"
    near = [Near(recording=recording, claimed=True, differences=[])]
    return _miss(why.reason, first, call, redact, near, _ELSEWHERE, consequence)


def ambiguous(call: CallView, claim: Claim, redact: Redact) -> Miss:
    """A call that belongs to a group of equal overlapping calls with different answers."""
    first = (
        f"the recorded answers of {call.tool} are ambiguous: equal calls overlapped when they were recorded, "
        "their answers differ, and nothing tells their order"
    )
    near = [Near(recording=claim.recording, claimed=True, differences=[])] if claim.recording else []
    setting = '"order": "recorded" serves them in the order in which they were recorded'
    return _miss("ambiguous", first, call, redact, near, setting, NOTHING_RAN)


NOTHING_RAN = "Nothing was run."

_ELSEWHERE = 'answer the tool another way: "static", "llm" or "passthrough"; "on_miss" says what a miss does'


def _never(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    return f"{call.tool} was never recorded in this session", _ELSEWHERE


def _other_args(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    pointers = [d.pointer for d in near[0].differences[:_SHOWN_POINTERS]] if near else []
    setting = f'"ignore": {json.dumps(pointers)} leaves out fields that always change; "on_miss" says what a miss does'
    first = f"no recording answers {call.tool} with these arguments"
    return first, setting if pointers and all(pointers) else _ELSEWHERE


def _other_path(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    return f"{call.tool} was recorded with these arguments, but inside another enclosing call", _ELSEWHERE


def _used_up(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    setting = '"repeat": "last" or "repeat": "first" serves recorded answers again'
    return f"{call.tool}: all {claim.recorded if claim else 0} recorded answers are used", setting


def _attempts(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    return f"{call.tool}: all {claim.recorded if claim else 0} recorded attempts of this call are used", _ELSEWHERE


def _no_key(call: CallView, claim: Claim | None, near: Sequence[Near]) -> tuple[str, str]:
    why = call.no_key
    at = cut(why.at, _SHOWN_POINTER) if why and why.at else "the arguments as a whole"
    words = _NO_KEY.get(why.reason, why.reason) if why else "could not be made"
    detail = f" ({why.detail})" if why and why.detail else ""
    return f"the call of {call.tool} has no key: {at} {words}{detail}", _without(call, why.at if why else "")


def _without(call: CallView, at: str) -> str:
    """How a call can do without the argument that has no canonical form."""
    if not at:
        return _ELSEWHERE
    parameter = at.split("/")[1]
    if call.arguments is None:  # nothing of it was stored, so nothing of it can be compared
        return (
            f"@playhead.tool(exclude=[{json.dumps(parameter)}]) leaves the parameter out when recording; "
            "playhead.register_type gives its type a stored form"
        )
    field = at if len(at) <= _SHOWN_POINTER else f"/{parameter}"
    return f'"ignore": {json.dumps([field])} leaves the field out of matching'


_REASONS: dict[str, Callable[[CallView, Claim | None, Sequence[Near]], tuple[str, str]]] = {
    "never_recorded": _never,
    "other_args": _other_args,
    "other_path": _other_path,
    "used_up": _used_up,
    "attempts": _attempts,
    "no_key": _no_key,
}


def _nearest(asked: JSON, recorded: Sequence[tuple[Recording, bool]]) -> list[Near]:
    found = nearest(asked, [Candidate(r.arguments, claimed) for r, claimed in recorded], limit=_SHOWN_CALLS)
    return [
        Near(
            recording=recorded[f.place][0],
            claimed=recorded[f.place][1],
            differences=differences(recorded[f.place][0].arguments, asked),
        )
        for f in found
    ]


def _miss(
    reason: str, first: str, call: CallView, redact: Redact, near: Sequence[Near], setting: str, consequence: str
) -> Miss:
    lines = [first, f"  asked    {_arguments(redact(call.arguments), call.key)}"]
    for one in near:
        used, known = "used" if one.claimed else "unused", _arguments(one.recording.arguments, one.recording.key)
        lines.append(f"  closest  recorded call {one.recording.position + 1}, {used}: {known}")
        lines += _difference_lines(one.differences, "recorded")
    lines += [f"  setting  {setting}", f"  {consequence}"]
    return Miss(reason=reason, message="\n".join(lines), closest=[_near_json(one) for one in near])


def _arguments(arguments: JSON, key: str | None) -> str:
    return "(arguments without a stored form)" if arguments is None and key is None else shown(arguments)


def _difference_lines(found: Sequence[Difference], theirs: str) -> list[str]:
    lines = [
        f"  differs  {d.pointer or '(the whole value)'}  {theirs} {shown(d.left)}, asked {shown(d.right)}"
        for d in found[:_SHOWN_POINTERS]
    ]
    if len(found) > _SHOWN_POINTERS:
        lines.append(f"  differs  at {len(found) - _SHOWN_POINTERS} more places")
    return lines


def _near_json(near: Near) -> dict[str, JSON]:
    recording = near.recording
    return {
        "session_id": recording.session_id,
        "node_id": recording.node_id,
        "occurrence": recording.occurrence,
        "used": near.claimed,
        "differs": [{"at": d.pointer, "recorded": shown(d.left), "asked": shown(d.right)} for d in near.differences],
    }


# --- static ---------------------------------------------------------------------------------------------------------


def no_case(
    call: CallView, config: StaticConfig, arguments: JSON, patterns: Sequence[JSON], redact: Redact, consequence: str
) -> Miss:
    """A call that no static case fits. ``arguments`` and ``patterns`` are stripped of what the config ignores."""
    asked = redact(arguments)
    ranked: list[tuple[int, int, list[Difference]]] = []
    for index, (case, pattern) in enumerate(zip(config.cases, patterns, strict=True)):
        found = [] if case.match is None else pattern_differences(redact(pattern), asked, case.match_mode)
        ranked.append((len(found), index, found))
    ranked.sort(key=lambda r: r[:2])
    lines = [f"no static case of {call.tool} fits this call", f"  asked    {shown(asked)}"]
    for _, index, found in ranked[:_SHOWN_CALLS]:
        case = config.cases[index]
        only = f", only for call {case.occurrence} that fits" if case.occurrence else ""
        lines.append(f"  closest  case {index + 1} ({case.match_mode}{only}): {shown(redact(case.match))}")
        lines += _difference_lines(found, "case")
    lines += ['  setting  add a case, or one without "match" for every other call', f"  {consequence}"]
    closest: list[dict[str, JSON]] = [
        {"case": i, "differs": [{"at": d.pointer, "case": shown(d.left), "asked": shown(d.right)} for d in found]}
        for _, i, found in ranked[:_SHOWN_CALLS]
    ]
    return Miss(reason="no_case", message="\n".join(lines), closest=closest)
