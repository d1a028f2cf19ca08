"""What an evaluator may give back, and how it becomes verdicts. Anything unclear is refused with the reason."""

import difflib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, cast

from playhead.core.canonical import to_stored
from playhead.core.json_text import NoKeyError
from playhead.core.values import JSON, Node, Verdict

MOST: Final = 1000
"""Verdicts that one evaluator may give about one session."""

LONGEST: Final = 16_384
"""Characters of an explanation that are kept."""

_FIELDS = ("name", "score", "label", "passed", "explanation", "evidence")
_EVIDENCE = ("node", "pointer", "note")
_LABEL = 500


class UnclearError(ValueError):
    """A result that is no verdict; the text says why."""


def verdicts_of(returned: Any, *, name: str) -> tuple[Verdict, ...]:
    """The verdicts that a returned value stands for.

    Args:
        name: of a verdict that gives none.

    Raises:
        UnclearError: not a verdict, or one that contradicts itself.
    """
    if isinstance(returned, list | tuple):
        items = cast("Sequence[Any]", returned)
        if not items:
            return (Verdict(name=name, explanation="the evaluator had nothing to say"),)
        if len(items) > MOST:
            raise UnclearError(f"it returned {len(items)} verdicts; at most {MOST} are kept")
        found = [_verdict(item, name, several=len(items) > 1) for item in items]
    else:
        found = [_verdict(returned, name, several=False)]
    names = [verdict.name for verdict in found]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise UnclearError(f"it returned two verdicts named {twice[0]!r}; give each a name of its own")
    return tuple(found)


def _verdict(value: Any, name: str, *, several: bool) -> Verdict:
    if isinstance(value, Verdict):
        return _checked({f.name: getattr(value, f.name) for f in fields(value) if f.name in _FIELDS}, name)
    if isinstance(value, Mapping):
        return _checked(cast("Mapping[Any, Any]", value), name)
    if several and not isinstance(value, list | tuple):
        raise UnclearError(f"it returned several results, and {_shown(value)} has no name; return verdicts or dicts")
    if isinstance(value, bool):
        return Verdict(name=name, passed=value)
    if isinstance(value, int | float):
        return Verdict(name=name, score=_score(value))
    if isinstance(value, str):
        return Verdict(name=name, label=_label(value))
    raise UnclearError(_unknown(value))


def _unknown(value: Any) -> str:
    if value is None:
        return "it returned nothing; return a Verdict, a bool, a number, a label, a dict, or a list of verdicts"
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"it returned {_shown(value)}, which is no result; was a call forgotten?"
    return f"it returned {_shown(value)}, which is no verdict; return a Verdict, a bool, a number, a label or a dict"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the repr of foreign code
        text = "something"
    return f"{text[:80]}{'…' if len(text) > 80 else ''} ({type(value).__name__})"


def _checked(given: Mapping[Any, Any], name: str) -> Verdict:
    for key in given:
        if key not in _FIELDS:
            near = difflib.get_close_matches(str(key), _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_FIELDS)}"
            raise UnclearError(f"a verdict has no {key!r}; {hint}")
    passed, score, label, why = (given.get(f) for f in ("passed", "score", "label", "explanation"))
    if passed is None and score is None and label is None and why is None:
        raise UnclearError("a verdict says nothing: give it passed, score, label or explanation")
    if passed is not None and not isinstance(passed, bool):
        raise UnclearError(f"passed is true, false or left out, not {_shown(passed)}")
    if why is not None and not isinstance(why, str):
        raise UnclearError(f"explanation is text, not {_shown(why)}")
    own = given.get("name", name)
    if not isinstance(own, str) or not own.strip() or len(own) > _LABEL:
        raise UnclearError(f"name is text, not {_shown(own)}")
    return Verdict(
        name=_storable(own),
        passed=passed,
        score=None if score is None else _score(score),
        label=None if label is None else _label(label),
        explanation=None if why is None else cut(_storable(why)),
        evidence=_evidence(given.get("evidence") or ()),
    )


def _score(value: Any) -> float | bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, int | float):
        raise UnclearError(f"score is a number or a bool, not {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnclearError(f"score is a finite number, not {_shown(value)}")
    return number if isinstance(value, float) else value


def _label(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnclearError(f"label is text, not {_shown(value)}")
    if len(value) > _LABEL:
        raise UnclearError(f"a label of {len(value)} characters is no label; put long text into explanation")
    return _storable(value)


def _evidence(given: Any) -> tuple[JSON, ...]:
    if isinstance(given, str | Mapping | Node):
        given = (given,)
    if not isinstance(given, list | tuple):
        raise UnclearError(f"evidence is a list of node ids with pointers, not {_shown(given)}")
    return tuple(_place(one) for one in cast("Sequence[Any]", given)[:MOST])


def _place(one: Any) -> JSON:
    if isinstance(one, Node):
        return {"node": one.id, "pointer": ""}
    if isinstance(one, str):
        return {"node": one, "pointer": ""}
    if isinstance(one, list | tuple):
        parts = list(cast("Sequence[Any]", one))
        if len(parts) != 2:
            raise UnclearError(f"evidence is (node id, pointer), not {_shown(one)}")
        one = {"node": parts[0].id if isinstance(parts[0], Node) else parts[0], "pointer": parts[1]}
    if not isinstance(one, Mapping):
        raise UnclearError(f"evidence is a node id or {{'node', 'pointer'}}, not {_shown(one)}")
    place = dict(cast("Mapping[Any, Any]", one))
    if set(place) - set(_EVIDENCE) or not isinstance(place.get("node"), str):
        raise UnclearError(f"evidence is {{'node': id, 'pointer': '/...'}}, not {_shown(one)}")
    pointer = place.setdefault("pointer", "")
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise UnclearError(f"{_shown(pointer)} is no JSON pointer; it is empty or begins with '/'")
    try:
        return to_stored(place)
    except NoKeyError as error:
        raise UnclearError(f"evidence cannot be stored: {error}") from None


def _storable(text: str) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode()


def cut(text: str, most: int = LONGEST) -> str:
    """Text of at most ``most`` characters, with a mark where it was cut."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def with_unknown_evidence(verdicts: Sequence[Verdict], known: set[str]) -> tuple[Verdict, ...]:
    """The verdicts, with a word in those whose evidence names nodes that neither session has."""
    found: list[Verdict] = []
    for verdict in verdicts:
        strange = [e["node"] for e in verdict.evidence if e["node"] not in known]
        if strange:
            told = f"(its evidence names {strange[0]!r}, which is no node of these sessions)"
            verdict = replace(verdict, explanation=f"{verdict.explanation or ''} {told}".strip())
        found.append(verdict)
    return tuple(found)
