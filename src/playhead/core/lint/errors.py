"""How much a tool's error text helps whoever called it wrongly: what failed, why, how to mend it, what is allowed.

``prescriptive`` texts say all that applies, ``partial`` ones what and why, the rest is ``opaque``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from playhead.core.lint.interface import Parameter, parameters
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import JSON

Level: TypeAlias = Literal["prescriptive", "partial", "opaque"]

LONGEST: Final = 2_000
_GENERIC: Final = {
    "error", "invalid", "input", "bad", "request", "failed", "failure", "exception", "something", "went", "wrong",
    "oops", "please", "try", "again", "unknown", "internal", "server", "occurred", "unexpected", "a", "an", "the",
}  # fmt: skip
_HOW: Final = re.compile(
    r"\b(?:must|should|expected|use|provide|choose|pass|omit|retry|instead|ask|did you mean|one of|allowed|"
    r"valid values?|format|for example)\b",
    re.IGNORECASE,
)
_UNSAFE: Final = re.compile(
    r"Traceback \(most recent call last\)|\bat [\w.$]+\([\w.]+:\d+\)|File \"[^\"]+\", line \d+|"
    r"(?:^|[\s\"'(])/(?:home|usr|var|etc|opt|tmp|root|srv|app)/\w|\b[A-Za-z]:\\\w|"
    r"\b(?:sk|pk|ghp|xox[bp])[-_][A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b"
)
_SECONDS: Final = re.compile(r"\b\d+(?:\.\d+)?\s*(?:s|sec|seconds?|min|minutes?)\b", re.IGNORECASE)
_RATE: Final = re.compile(r"rate.?limit|too many|429|quota", re.IGNORECASE)
_CANDIDATE: Final = re.compile(r"did you mean|similar|closest|candidates?|available(?: are|:)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorText:
    """What one error text says. ``allowed`` None where nothing bounded is named. ``suggestion`` is a better text."""

    tool: str
    text: str
    count: int = 1
    level: Level
    what: bool
    why: bool
    how: bool
    allowed: bool | None
    safe: bool
    suggestion: str


class Failure(NamedTuple):
    """A call and the text that it failed with."""

    tool: str
    arguments: JSON
    text: str


def judge(text: str, arguments: JSON = None, tool: ToolSchema | None = None, *, name: str = "") -> ErrorText:
    """Judges one error text.

    Args:
        text: as the model saw it.
        arguments: of the call that failed; their values count as naming what failed.
        tool: its schema; parameter names count, and bounded ones should come with what is allowed.
        name: of the tool, where there is no schema.
    """
    known = parameters(tool) if tool is not None else []
    named = [parameter for parameter in known if _says(text, parameter.name)]
    values = [value for value in _scalars(arguments) if len(value) >= 2]
    what = bool(named) or any(_says(text, value) for value in values)
    why = sum(word.lower() not in _GENERIC for word in _WORD.findall(text)) >= 3
    how = _HOW.search(text) is not None
    allowed = _allowed(text, arguments, named)
    safe = len(text) <= LONGEST and _UNSAFE.search(text) is None
    if what and why and how and allowed is not False and safe:
        level: Level = "prescriptive"
    else:
        level = "partial" if what and why else "opaque"
    return ErrorText(
        tool=name or (tool.name if tool is not None else ""),
        text=text,
        level=level,
        what=what,
        why=why,
        how=how,
        allowed=allowed,
        safe=safe,
        suggestion=_suggestion(named or known, values),
    )


def judge_all(failures: Iterable[Failure], tools: Mapping[str, ToolSchema]) -> list[ErrorText]:
    """One result for each template of tool and text, with how often it occurred; the most frequent first.

    A template is the text with numbers and the call's own values left out.
    """
    groups: dict[tuple[str, str], list[ErrorText]] = {}
    for failure in failures:
        found = judge(failure.text, failure.arguments, tools.get(failure.tool), name=failure.tool)
        groups.setdefault((failure.tool, template(failure)), []).append(found)
    counted = [_counted(group) for group in groups.values()]
    return sorted(counted, key=lambda each: (-each.count, each.tool, each.text))


def _counted(group: Sequence[ErrorText]) -> ErrorText:
    worst = min(group, key=lambda each: ("opaque", "partial", "prescriptive").index(each.level))
    return replace(worst, count=len(group))


def template(failure: Failure) -> str:
    """The text with what is particular to the call taken out."""
    text = _NUMBER.sub("0", failure.text)
    values = {_NUMBER.sub("0", value) for value in _scalars(failure.arguments)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= 2:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "…", text)
    return text


def _says(text: str, word: str) -> bool:
    """Whether a word stands in a text as a whole; underscores may be spaces."""
    pattern = re.escape(word).replace("_", "[_ ]")
    return re.search(rf"(?<![^\W_]){pattern}(?![^\W_])", text, re.IGNORECASE) is not None


def _scalars(value: JSON) -> list[str]:
    if is_object(value):
        return [text for inner in value.values() for text in _scalars(inner)]
    if is_list(value):
        return [text for inner in value for text in _scalars(inner)]
    if value is None or isinstance(value, bool):
        return []
    return [value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)]


def _allowed(text: str, arguments: JSON, named: Sequence[Parameter]) -> bool | None:
    if _RATE.search(text):
        return _SECONDS.search(text) is not None
    bounded = [parameter for parameter in named if _bounds(parameter.schema)]
    if not bounded:
        return None
    used = {value.casefold() for value in _scalars(arguments)}
    return all(
        any(value.casefold() not in used and _says(text, value) for value in _bounds(parameter.schema))
        or _CANDIDATE.search(text) is not None
        for parameter in bounded
    )


def _bounds(schema: Mapping[str, Any]) -> list[str]:
    """What a schema allows, as texts that an error could state: enum members, bounds, examples."""
    enum, examples = schema.get("enum"), schema.get("examples")
    found: list[Any] = [*enum] if is_list(enum) else []
    found += [schema[key] for key in ("minimum", "maximum", "minLength", "maxLength", "default") if key in schema]
    found += examples if is_list(examples) else []
    found += [schema["format"]] if isinstance(schema.get("format"), str) else []
    return [text for value in found for text in _scalars(value)]


def _suggestion(near: Sequence[Parameter], values: Sequence[str]) -> str:
    parameter = next((p for p in near if _bounds(p.schema)), near[0] if near else None)
    name = parameter.name if parameter is not None else "PARAMETER"
    got = f" (got {values[0]!r})" if values else ""
    bounds = _bounds(parameter.schema) if parameter is not None else []
    if bounds:
        return f"{name} must be one of: {', '.join(bounds[:8])}{got}"
    return f"{name} was not accepted{got}, because REASON. Use FORMAT OR WHERE TO GET IT, for example EXAMPLE"
