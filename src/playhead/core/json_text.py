"""JSON text in and out: exact integers, lone surrogates, any nesting, and no silent `null` for NaN.

orjson does the work wherever its reading is exact. What it would round, refuse or print differently takes the slower
way, so callers see one behaviour.
"""

import json
import marshal
import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import chain
from typing import Any, Final, cast

import orjson

from playhead.core.byte_patterns import byte_set
from playhead.core.values import JSON, NoKey

MAX_DEPTH: Final = 200
MAX_INT_DIGITS: Final = 4300
EXACT_INT: Final = 2**53 - 1
_PARSE_DEPTH = MAX_DEPTH + 50  # a stored document nests a value inside a few levels of its own
_SHAPES = bytes.maketrans(b"0123456789-:,[ \t\r\n", b"0" * 11 + b"," * 7)
_SAMPLED = 1000  # bytes from which on sampling pays
_WIDE = 20  # characters that an integer beyond 64 bits has at least, sign included
_NON_FINITE = byte_set(rb"(?s)[g\xe7].{6}[\xf0-\xff][\x7f\xff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*"?|[\[\]{}]', re.DOTALL)
_CONTAINERS = frozenset({dict, list, tuple})
_LEAVES = frozenset({str, int, bool, float, type(None)})
_PLAIN = _CONTAINERS | _LEAVES
_RENDER = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


_SHOWN = 100  # characters of a pointer in the text of an error; ``no_key`` has it whole


class NoKeyError(ValueError):
    """A value without canonical text, or without stored form. ``no_key`` has reason and JSON pointer.

    Reasons: ``non_finite``, ``unsupported_type``, ``cycle``, ``too_deep``, ``int_too_long``, ``out_of_range``,
    ``duplicate_key``.
    """

    def __init__(self, reason: str, detail: str = "", *, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self._steps: list[str | int] = list(reversed(path))

    def below(self, step: str | int) -> None:
        """Notes one enclosing member or place; called from the inside out while the error travels up."""
        self._steps.append(step)

    def above(self) -> str | int | None:
        """Takes back the step noted last, where the value has no such level."""
        return self._steps.pop() if self._steps else None

    @property
    def no_key(self) -> NoKey:
        return NoKey(reason=self.reason, at=pointer(reversed(self._steps)), detail=self.detail)

    def __str__(self) -> str:
        found = self.no_key
        at = found.at if len(found.at) <= _SHOWN else f"{found.at[:_SHOWN]}…"
        return f"{at or '(the whole value)'}: {found.reason}{f' ({found.detail})' if found.detail else ''}"


class LongInteger(str):
    """The digits of an integer token too long to be made a number (over 4300 digits)."""

    __slots__ = ()


def pointer(steps: Any) -> str:
    """The JSON pointer of member names and places."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def has_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


def joined(text: str) -> str:
    """The text with surrogates that form a pair joined into their character; lone ones stay."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def parse_json(text: str | bytes | bytearray | memoryview) -> JSON:
    """Parses JSON exactly: integers of any size, lone surrogates; of repeated members the last counts.

    An integer of more than 4300 digits becomes `LongInteger`; a number beyond the doubles becomes infinity.

    Raises:
        NoKeyError: nested too deeply (``too_deep``).
        ValueError: not JSON, or bytes that are not UTF-8.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    try:
        value = orjson.loads(raw)
    except ValueError:
        return _parse_slowly(text if isinstance(text, str) else raw.decode())
    return _parse_slowly(raw.decode()) if may_have_wide_integers(raw) else value


def may_have_wide_integers(text: bytes, width: int = _WIDE) -> bool:
    """False only if no integer in this JSON text has ``width`` characters, sign included; with fewer than 20, orjson
    reads every one exactly.

    In front of a number stands a separator; ids and digests, which have long runs of digits too, stand in quotes. One
    `translate` and one search are several times as fast as a regular expression, and keep the interpreter's lock: who
    gives it up on the agent's thread gets it back only when a busy writer is made to. Long texts are sampled first: of
    ``width`` digits in a row, every fifth character hits ``width // 5``.
    """
    if len(text) > _SAMPLED and b"0" * (width // 5) not in text[::5].translate(_SHAPES):
        return False
    shapes = text.translate(_SHAPES)
    digits = b"0" * width
    return b"," + digits in shapes or shapes.startswith(digits)


def _parse_slowly(text: str) -> JSON:
    if text.count("[") + text.count("{") > MAX_DEPTH and nesting(text) > _PARSE_DEPTH:
        raise NoKeyError("too_deep", "JSON text")
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
    except RecursionError:
        raise NoKeyError("too_deep", "JSON text") from None


def _integer(digits: str) -> int | LongInteger:
    return int(digits) if len(digits) <= MAX_INT_DIGITS else LongInteger(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def nesting(text: str) -> int:
    """How many levels of brackets JSON text opens, without recursion.

    Raises:
        ValueError: the brackets do not match, so it is not JSON.
    """
    depth = deepest = 0
    for token in _BRACKETS.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    if depth:
        raise ValueError("brackets do not match")
    return deepest


def floats_of(value: object) -> list[float] | None:
    """All floats of a container of plain JSON; None when it is not plain JSON of at most 200 levels.

    Plain is: exactly the types that JSON text has (and tuples). Safe for any value, cycles and deep nesting
    included; it looks at levels as a whole, which keeps the loop over members in C. A container that occurs twice in
    a level is looked at once.
    """
    floats: list[float] = []
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [*chain.from_iterable([_members_of(item) for item in level])]
        kinds = set(map(type, level))
        if not kinds <= _PLAIN:
            return None
        if float in kinds:
            floats += [item for item in level if type(item) is float]
        if kinds.isdisjoint(_CONTAINERS):
            return floats
        level = list({id(item): item for item in level if type(item) in _CONTAINERS}.values())
    return None


def _members_of(container: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", container).values() if type(container) is dict else container


def marshalled(value: Any) -> bytes | None:
    """Proof, at the speed of C, that a value has only the exact types of JSON (and tuples); None when it does not.

    marshal refuses subclasses, enum members, UUIDs and all other objects, ends on cycles, and never recurses deeply.
    What it accepts beyond JSON (bytes, sets, complex numbers), orjson refuses.
    """
    try:
        return marshal.dumps(value, 4)
    except (ValueError, TypeError, BufferError):
        return None


def has_non_finite(marshalled_value: bytes) -> bool:
    """False only if no float in the value is NaN or infinite: none has all bits of its exponent set."""
    if b"\x7f" not in marshalled_value and b"\xff" not in marshalled_value:
        return False  # their last byte
    return _NON_FINITE.Match(marshalled_value) is not None


def proves_depth(value: JSON, text: bytes) -> bool:
    """Whether stored JSON, of which `text` is the rendered form, has at most 200 levels.

    With many brackets it is rendered once more inside so many lists that orjson refuses what has more levels: that is
    quicker than counting. (Tuples do not count for orjson, but stored JSON has none.)
    """
    if len(text) <= 2 * MAX_DEPTH or text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return True
    if not _WRAPPING:
        return floats_of(value) is not None
    for _ in range(_WRAPPING):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def _room_for_wrapping() -> int:
    value: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    for room in range(100):
        try:
            orjson.dumps(value)
        except TypeError:
            return max(room - 1, 0)
        value = [value]
    return 0


_WRAPPING = _room_for_wrapping()  # 0 when this orjson has no limit that could serve


def render(value: JSON) -> bytes:
    """UTF-8 JSON text of stored JSON, members in their own order; `parse_json` is the inverse.

    A float that is not finite is written in its tagged form, so that it comes back as what it was.

    Raises:
        NoKeyError: not JSON (``unsupported_type``), or nested too deeply.
    """
    try:
        text = orjson.dumps(value, option=_RENDER)
    except (TypeError, RecursionError):
        pass
    else:
        # Only where `null` occurs can a float have become one; Enum and UUID print as text.
        if b"null" not in text or _all_finite(value):
            return text
    try:
        return _printed(value).encode()
    except RecursionError:
        raise NoKeyError("too_deep") from None


def _all_finite(value: JSON) -> bool:
    proof = marshalled(value)
    return proof is not None and not has_non_finite(proof)


def _printed(value: Any) -> str:
    """The text of anything JSON, for what orjson refuses."""
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return "{" + ",".join([f"{quoted(name)}:{_printed(item)}" for name, item in members.items()]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_printed, cast("list[Any]", value))) + "]"
    for kind, printer in _PRINTERS.items():
        if isinstance(value, kind):
            return printer(value)
    raise NoKeyError("unsupported_type", type(value).__name__)


def quoted(text: Any) -> str:
    """A JSON string in which nothing but quotes, backslashes, controls and lone surrogates is escaped.

    Raises:
        NoKeyError: not text.
    """
    if not isinstance(text, str):
        raise NoKeyError("unsupported_type", f"member name of type {type(text).__name__}")
    try:
        return orjson.dumps(str.__str__(text)).decode()
    except TypeError:
        whole = json.dumps(joined(text), ensure_ascii=False)
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", whole)


def number_text(value: float) -> str:
    """ECMAScript's text of a finite double."""
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e21:
        return str(int(value)) if abs(value) <= EXACT_INT else decimal_text(Decimal(repr(value)))
    if 1e-4 <= abs(value) < 1e16:
        return float.__repr__(value)
    return decimal_text(Decimal(float.__repr__(value)))


def decimal_text(value: Decimal) -> str:
    """The exact digits of a finite decimal, laid out as ECMAScript lays out a number."""
    text = str(value)
    if "E" not in text and len(text) <= 21:
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text if text != "-0" else "0"
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    point = len(text) + int(exponent)  # value = 0.TEXT * 10**point
    text = text.rstrip("0")
    if not text:
        return "0"
    if len(text) <= point <= 21:
        body = text + "0" * (point - len(text))
    elif 0 < point <= 21:
        body = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        body = "0." + "0" * -point + text
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        body = f"{text[0]}{fraction}e{point - 1:+d}"
    return f"-{body}" if sign else body


def non_finite_name(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _rendered_float(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return f'{{"$float":"{non_finite_name(value)}"}}'


def _rendered_int(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:
        raise NoKeyError("int_too_long") from None


_PRINTERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    LongInteger: str.__str__,
    str: quoted,
    int: _rendered_int,
    float: _rendered_float,
}
