"""The query language over sessions: ``agent = desk and (status = failed or not tag in (eval, "smoke test"))``.

A query is read into a tree of comparisons joined by *and*, *or* and *not*. Every store answers the tree; `holds` is
what it means. An absent value equals nothing, so ``!=`` and ``not`` hold for it and no order does.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from playhead.core.codec import encode
from playhead.core.values import JSON, Origin, Session, SessionStatus
from playhead.errors import UsageError

Op: TypeAlias = Literal["=", "<", "<=", ">", ">=", "~"]
METADATA: Final = "metadata."
FIELDS: Final = ("agent", "agent_version", "origin", "status", "tag", "conversation", "baseline", "id", "started")
_KNOWN: Final = {"origin": tuple(Origin), "status": tuple(SessionStatus)}
_MOST: Final = 200
"""Comparisons in one query."""

_DEEPEST: Final = 50
"""Brackets within brackets."""

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign><=|>=|!=|=|<|>|~|\(|\)|,)"""
    r"""|(?P<word>[^\s"'<>=!~(),]+))"""
)
_AGO: Final = re.compile(r"(\d{1,9})([smhdw])")
_EXACT: Final = re.compile(r"(-?\d{1,20})ns|\d{12,19}")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WORDS: Final = ("and", "or", "not", "in")


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison. ``value``: text, ns for ``started``, any scalar for metadata; ``~`` is a part of the text."""

    field: str
    op: Op
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Not:
    part: "Filter"


@dataclass(frozen=True, slots=True)
class Both:
    """All of these."""

    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """Any of these."""

    parts: "tuple[Filter, ...]"


Filter: TypeAlias = Compare | Not | Both | Either


# meaning


def holds(part: Filter, session: Session) -> bool:
    """Whether a session is one that the query means."""
    if isinstance(part, Compare):
        return any(compare(part, value) for value in _values(session, part.field))
    if isinstance(part, Not):
        return not holds(part.part, session)
    return (all if isinstance(part, Both) else any)(holds(one, session) for one in part.parts)


def _values(session: Session, name: str) -> Sequence[JSON]:
    """What a session has under a field: none where it is absent."""
    if name.startswith(METADATA):
        member = name.removeprefix(METADATA)
        return [session.metadata[member]] if member in session.metadata else []
    if name == "tag":
        return session.tags
    found: dict[str, JSON] = {
        "agent": session.agent, "agent_version": session.agent_version, "origin": session.origin.value,
        "status": session.status.value, "conversation": session.conversation.id if session.conversation else None,
        "baseline": session.baseline_id, "id": session.id, "started": session.started_at,
    }  # fmt: skip
    return [] if found[name] is None else [found[name]]


_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compare(part: Compare, value: JSON) -> bool:
    """Whether a value that is there fits. In metadata 1, 1.0 and true are three values, and only numbers have an
    order."""
    if part.op == "~":
        return isinstance(value, str) and str(part.value) in value
    if part.op == "=":
        return encode(value, sort_keys=True) == encode(part.value, sort_keys=True)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, part.value))
    return numbers and _ORDER[part.op](value, part.value)


def fields(part: Filter) -> Iterator[str]:
    """The fields that a query mentions."""
    if isinstance(part, Compare):
        yield part.field
    else:
        for one in (part.part,) if isinstance(part, Not) else part.parts:
            yield from fields(one)


# text


def text_of(part: Filter) -> str:
    """The query again, with times in nanoseconds: what `parse` reads into the same tree at any later time."""
    if isinstance(part, Compare):
        exact = f"{part.value}ns" if part.field == "started" else _value_text(part.value)
        return f"{_name_text(part.field)} {part.op} {exact}"
    if isinstance(part, Not):
        return f"not {_inside(part.part)}"
    return f" {'and' if isinstance(part, Both) else 'or'} ".join(map(_inside, part.parts))


def _inside(part: Filter) -> str:
    return f"({text_of(part)})" if isinstance(part, Both | Either) else text_of(part)


def _name_text(name: str) -> str:
    return f"{METADATA}{_quoted(name.removeprefix(METADATA))}" if name.startswith(METADATA) else name


def _value_text(value: JSON) -> str:
    return _quoted(value) if isinstance(value, str) else encode(value).decode()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    at: int
    quoted: bool = False


def parse(text: str, *, now: int, kept: bool = False) -> Filter:
    """Reads a query.

    Args:
        now: for times such as ``2h``, in ns.
        kept: `text_of` wrote it, which may need more brackets than the user did.

    Raises:
        UsageError: it is none; the message points at the place, and names what could stand there.
    """
    return _Parser(text, now, _DEEPEST * (3 if kept else 1)).whole()


class _Parser:
    def __init__(self, text: str, now: int, deepest: int) -> None:
        self._deepest = deepest
        self._text = text
        self._now = now
        self._tokens = list(self._read())
        self._next = 0
        self._depth = 0
        self._compared = 0

    def _read(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                start = at + len(self._text[at:end]) - len(self._text[at:end].lstrip())
                wrong = _Token(self._text[start:end], start)
                unclosed = wrong.text[:1] in ("'", '"')
                raise self._error(wrong, "this text has no end" if unclosed else "this means nothing here")
            kind, start = found.lastgroup or "", found.start(found.lastgroup or "")
            raw = found[kind]
            yield _Token(re.sub(r"\\(.)", r"\1", raw[1:-1]) if kind == "text" else raw, start, kind == "text")
            at = found.end()

    def whole(self) -> Filter:
        if not self._tokens:
            raise UsageError("query: it is empty", hint="for example: agent = desk and status = failed")
        found = self._either()
        if (left := self._peek()) is not None:
            raise self._error(left, "the query should end here", "join comparisons by and, or")
        return found

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > self._deepest:
            raise UsageError("query: it is nested too deeply", hint=f"at most {_DEEPEST} brackets within brackets")
        try:
            if self._take("not"):
                return Not(self._one())
            opened = self._peek()
            if opened is not None and self._take("("):
                inside = self._either()
                if not self._take(")"):
                    raise self._error(opened, "this bracket is not closed")
                return inside
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Filter:
        self._compared += 1
        if self._compared > _MOST:
            raise UsageError("query: it is too long", hint=f"at most {_MOST} comparisons; in (...) counts as one")
        name = self._field()
        negated = self._take("not")
        sign = self._peek()
        if sign is not None and self._take("in"):
            found = self._listed(name)
            return Not(found) if negated else found
        if sign is None or negated:
            raise self._error(
                sign, f"after {name!r} {'not' if negated else 'a comparison'}", "in (a, b)" if negated else None
            )
        self._next += 1
        if sign.quoted or sign.text not in ("=", "!=", "<", "<=", ">", ">=", "~"):
            raise self._error(sign, f"{sign.text!r} compares nothing", "one of: = != < <= > >= ~ in, not in")
        self._fits(sign, name)
        value = self._value(name, sign.text)
        if sign.text == "!=":
            return Not(Compare(name, "=", value))
        op: Any = sign.text
        return Compare(name, op, value)

    def _fits(self, sign: _Token, name: str) -> None:
        ordered = name == "started" or name.startswith(METADATA)
        if sign.text in _ORDER and not ordered:
            raise self._error(sign, f"{name} has no order", "started and metadata.NAME have one; else = != ~ in")
        if sign.text == "~" and name in ("started", "origin", "status"):
            raise self._error(sign, f"{name} is no text to look in", "= != in")

    def _field(self) -> str:
        token = self._peek()
        if token is None or token.quoted or token.text in (*_WORDS, "(", ")", ","):
            raise self._error(token, "a field should stand here", f"one of: {', '.join(FIELDS)}, metadata.NAME")
        self._next += 1
        if token.text.startswith(METADATA):
            if token.text != METADATA:
                return token.text
            named = self._peek()
            if named is not None and named.quoted:
                self._next += 1
                return METADATA + named.text
            raise self._error(named, "the name of the metadata member is missing", 'metadata.intent, metadata."a b"')
        if token.text not in FIELDS:
            raise self._error(token, f"{token.text!r} is no field", f"one of: {', '.join(FIELDS)}, metadata.NAME")
        return token.text

    def _listed(self, name: str) -> Filter:
        opened = self._peek()
        if opened is None or not self._take("("):
            raise self._error(opened, "a list should stand here", "in (a, b)")
        parts: list[Filter] = [Compare(name, "=", self._value(name, "="))]
        while self._take(","):
            parts.append(Compare(name, "=", self._value(name, "=")))
        if not self._take(")"):
            raise self._error(opened, "this bracket is not closed")
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _value(self, name: str, sign: str) -> str | int | float | bool | None:
        token = self._peek()
        if token is None or (not token.quoted and token.text in ("(", ")", ",", "=", "!=", "<", "<=", ">", ">=", "~")):
            raise self._error(token, f"a value for {name} is missing")
        self._next += 1
        if name == "started":
            return self._time(token)
        known = _KNOWN.get(name)
        if known is not None and token.text not in known:
            raise self._error(token, f"no {name} is called {token.text!r}", f"one of: {', '.join(known)}")
        if not name.startswith(METADATA) or token.quoted or sign == "~":
            return token.text
        found = _scalar(token.text)
        if sign in _ORDER and (isinstance(found, bool | str) or found is None):
            raise self._error(token, f"{token.text!r} is no number", "only numbers have an order")
        return found

    def _time(self, token: _Token) -> int:
        ago = _AGO.fullmatch(token.text)
        if ago is not None:
            return self._now - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000_000
        exact = _EXACT.fullmatch(token.text)
        if exact is not None:
            return int(exact[1] or token.text)
        try:
            return int(datetime.fromisoformat(token.text).astimezone().timestamp()) * 1_000_000_000
        except (ValueError, OverflowError):
            raise self._error(token, f"{token.text!r} is not a time", "2h, 3d, 2026-05-01, 2026-05-01T12:30") from None

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, word: str) -> bool:
        token = self._peek()
        found = token is not None and not token.quoted and token.text.lower() == word
        self._next += found
        return found

    def _error(self, token: _Token | None, why: str, hint: str | None = None) -> UsageError:
        at = len(self._text) if token is None else token.at
        rest = self._text[at : at + 60]
        told = f"{self._text[max(0, at - 40) : at]} >>> {rest or 'end'}"
        return UsageError(f"query: {why}, at character {at + 1}: {told}", hint=hint, at=at + 1)


def _scalar(text: str) -> str | int | float | bool | None:
    """What a bare word stands for where a value may have any type: 3, 0.5, true, null, else itself."""
    words: dict[str, bool | None] = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d{1,18}\.\d{1,18}(?:[eE][+-]?\d{1,3})?", text) else text
