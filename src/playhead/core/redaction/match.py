"""Finds known secrets in text, in every spelling that an encoding gives them.

A secret is matched character by character; each may be itself, percent-encoded, JSON-escaped (at any depth) or an
HTML entity, in any mixture. Beside that, the whole secret in hex or base64. All secrets of a group are searched in
one pass; only on a hit is each one's place looked up.
"""

from collections.abc import Iterable, Iterator
from functools import cache, cached_property, lru_cache
from typing import Final, NamedTuple

from playhead.core.byte_patterns import ByteExpression, ByteSet, byte_set, escaped, longest_match

SHORTEST: Final = 4
"""Shorter values are never searched."""
ANYWHERE: Final = 6
"""Values of this length are found inside text; shorter ones only as a whole string or number."""

_GROUP = 24  # secrets compiled together: adding one compiles at most so many again

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_SPELLING = {"+": r"(?:[+\-]|%2[Bb])", "/": r"(?:/|_|\\+/|%2[Ff])"}
_SHORT_ESCAPES = {'"': '"', "\\": r"\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


@cache
def _entity_names() -> dict[str, list[str]]:
    """HTML's names of each character."""
    from html.entities import html5  # only runs with secrets need the table

    names: dict[str, list[str]] = {}
    for name, text in html5.items():
        if name.endswith(";"):
            names.setdefault(text, []).append(name[:-1])
    return names


class Span(NamedTuple):
    """A found secret: where, its value and its tag. Longer values win where spans overlap."""

    start: int
    end: int
    value: str
    tag: str


class SecretSet:
    """Values with their tags; grows, never shrinks.

    Adding and searching at the same time is safe: the dict is only appended to, and compiled groups are replaced
    whole.
    """

    def __init__(self) -> None:
        self._tags: dict[str, str] = {}
        self._groups: dict[int, _Group] = {}

    def __len__(self) -> int:
        return len(self._tags)

    def __contains__(self, value: str) -> bool:
        return value in self._tags

    def add(self, value: str, tag: str) -> None:
        """Adds a value unless it is there already; one shorter than 4 characters is passed over."""
        if len(value) >= SHORTEST:
            self._tags.setdefault(value, tag)

    def tag(self, value: str) -> str | None:
        return self._tags.get(value)

    def tags(self) -> frozenset[str]:
        return frozenset(self._tags.values())

    def may_match(self, data: bytes) -> bool:
        """Whether text or rendered JSON can hold any of the secrets."""
        return any(group.gate.Match(data) for group in self._compiled())

    def spans(self, data: bytes) -> list[Span]:
        """Every place of every secret in one string (UTF-8)."""
        return [span for group in self._compiled() for span in group.spans(data)]

    def _compiled(self) -> Iterator["_Group"]:
        if not self._tags:
            return
        items = list(self._tags.items())
        for first in range(0, len(items), _GROUP):
            entries = items[first : first + _GROUP]
            group = self._groups.get(first)
            if group is None or len(group.entries) != len(entries):
                group = self._groups[first] = _Group(entries)
            yield group


class _Group:
    """Some secrets compiled together."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        self.entries = entries
        self._single: dict[int, ByteExpression] = {}

    @cached_property
    def gate(self) -> ByteSet:
        return byte_set(*[_pattern(v) if len(v) >= ANYWHERE else _delimited(v) for v, _ in self.entries])

    def spans(self, data: bytes) -> Iterator[Span]:
        for index in self.gate.Match(data) or ():
            value, tag = self.entries[index]
            expression = self._single.get(index)
            if expression is None:
                expression = self._single[index] = longest_match(_pattern(value))
            if len(value) < ANYWHERE:
                if expression.fullmatch(data):
                    yield Span(0, len(data), value, tag)
                continue
            yield from _overlapping(expression, data, value, tag)


def _overlapping(expression: ByteExpression, data: bytes, value: str, tag: str) -> Iterator[Span]:
    """All matches, those that overlap each other too."""
    found = expression.search(data)
    while found is not None:
        start, end = found.span()
        yield Span(start, _before_escape(data, end), value, tag)
        found = expression.search(data, start + 1)


def _before_escape(data: bytes, end: int) -> int:
    """Where a match ends: a backslash at its end that escapes the quote behind it is none of the secret's."""
    if data[end : end + 1] != b'"' or data[end - 1 : end] != b"\\":
        return end
    run = end - len(data[:end].rstrip(b"\\"))
    return end - 1 if run > 1 and run % 2 else end


def merged(spans: Iterable[Span]) -> list[Span]:
    """Overlapping spans as one, with the value and tag of the longest secret in it."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start < result[-1].end:
            last = result[-1]
            best = min(last, span, key=lambda each: (-len(each.value), each.tag))
            result[-1] = Span(last.start, max(last.end, span.end), best.value, best.tag)
        else:
            result.append(span)
    return result


def _pattern(value: str) -> bytes:
    raw = value.encode("utf-8", "surrogatepass")
    spellings = ["".join(map(_character, value)), _hex(raw), *(_base64(raw, shift) for shift in range(3))]
    return "|".join(spellings).encode("ascii")


def _delimited(value: str) -> bytes:
    """A short value as a whole string or number, alone or inside rendered JSON."""
    return b'(?:^|[":,\\[])(?:' + _pattern(value) + b')(?:[",}\\].]|$)'


def _bytes_pattern(raw: bytes) -> str:
    return "".join(f"\\x{byte:02x}" if byte > 127 or byte < 32 else escaped(chr(byte)) for byte in raw)


def _digit(digit: str) -> str:
    return f"[{digit.lower()}{digit.upper()}]" if digit.isalpha() else digit


def _hex(raw: bytes) -> str:
    return "".join(map(_digit, raw.hex()))


@lru_cache(maxsize=1024)
def _character(char: str) -> str:
    """One character of a secret in all its spellings."""
    raw = char.encode("utf-8", "surrogatepass")
    units = char.encode("utf-16-be", "surrogatepass").hex()
    entities = [f"#0*{ord(char)}", f"#[xX]0*{_hex_number(ord(char))}", *_entity_names().get(char, ())]
    forms = [
        _bytes_pattern(raw),
        "".join(f"%(?:25)*{_hex(bytes([byte]))}" for byte in raw),
        "".join(rf"\\+u{''.join(map(_digit, units[at : at + 4]))}" for at in range(0, len(units), 4)),
        f"&(?:amp;)*(?:{'|'.join(entities)});",
    ]
    if char == " ":
        forms.append(r"\+")
    escape = _SHORT_ESCAPES.get(char)
    if escape is not None:
        forms.append(rf"\\+{escape}")
    if char == "\\":
        forms.append(r"\\+")
    return f"(?:{'|'.join(forms)})"


def _hex_number(number: int) -> str:
    return "".join(map(_digit, f"{number:x}"))


def _base64(raw: bytes, shift: int) -> str:
    """Base64 of bytes that begin `shift` bytes after a group of three: whole characters, and those that share bits."""
    bits = "?" * (8 * shift) + "".join(f"{byte:08b}" for byte in raw)
    bits += "?" * (-len(bits) % 6)
    sextets = [bits[at : at + 6] for at in range(0, len(bits), 6)]
    own = [sextet for sextet in sextets if sextet != "??????"]
    return "".join(map(_sextet, own)) + r"(?:=|%3[Dd]){0,2}"


@cache
def _sextet(bits: str) -> str:
    """The characters that a group of six bits can be; ``?`` is a bit of a neighbour."""
    known = [number for number in range(64) if all(b in ("?", f) for b, f in zip(bits, f"{number:06b}", strict=True))]
    spelled = [_BASE64_SPELLING.get(_BASE64[number], _BASE64[number]) for number in known]
    return spelled[0] if len(spelled) == 1 else f"(?:{'|'.join(spelled)})"
