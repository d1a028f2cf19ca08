"""One value in many spellings: JSON inside a string, Python literals, placeholders, cut texts, known envelopes."""

import ast
import re
from hashlib import sha256
from typing import Any, NamedTuple, cast

from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.canonical import NoKeyError, canonical_stored, parse_json
from playhead.core.protocol.parts import stored
from playhead.core.values import JSON

_LITERAL_BYTES = 1 << 20
_LITERAL_DEPTH = 100
_PLACEHOLDER = re.compile(
    r"\s*(\[redacted\]|<redacted>|\*\*\*redacted\*\*\*|\[scrubbed\b[^\]]*\]|.{0,80}error details are redacted\.?)\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_HIDES = re.compile(r"details are redacted|\[redacted\]|<redacted>|\[scrubbed\b", re.IGNORECASE)
_CUT = re.compile(r"\s*(\.\.\.|…)?\s*[\[<(]\s*(\.\.\.|…)?\s*truncated[^\])>]{0,60}[\])>]\s*\Z", re.IGNORECASE)
_ERROR_TEXT = re.compile(r"\s*(Error\b|[A-Za-z_][\w.]*(Error|Exception)\b\s*[:(])")
_CLASS_PREFIX = re.compile(
    r"([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Failure|Fault)): (.*)\Z", re.DOTALL
)
_NOTHING = object()


def token(value: JSON) -> bytes:
    """Equal for values that are equal by canonical JSON: 1 and 1.0 are, true and 1 are not."""
    try:
        return canonical_stored(value)
    except NoKeyError:
        return repr(value).encode("utf-8", "surrogatepass")


def same(one: JSON, other: JSON) -> bool:
    if one is other or (isinstance(one, str) and isinstance(other, str)):
        return one == other
    return token(one) == token(other)


def json_value(text: str) -> tuple[bool, JSON]:
    """Whether a text is JSON, and its value in stored form."""
    start = text.lstrip()[:1]
    if not start or start not in '{["-0123456789tfn':
        return False, None
    try:
        return True, stored(parse_json(text))
    except (ValueError, RecursionError):
        return False, None


def literal_value(text: str) -> tuple[bool, JSON]:
    """Whether a text is a Python container of JSON values, and its value in stored form. Nothing is evaluated."""
    shown = text.strip()
    if shown[:1] not in ("{", "[", "(") or len(shown.encode("utf-8", "surrogatepass")) > _LITERAL_BYTES:
        return False, None
    if _depth(shown) > _LITERAL_DEPTH:
        return False, None
    try:
        value = _plain(ast.literal_eval(shown))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return False, None
    return (False, None) if value is _NOTHING else (True, stored(value))


def _depth(text: str) -> int:
    deepest = depth = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


def _plain(value: Any) -> JSON:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        items: list[JSON] = [_plain(v) for v in cast(list[Any], value)]
        return _NOTHING if any(v is _NOTHING for v in items) else items
    if is_object(value) and all(map(_is_text, value)):
        pairs = {k: _plain(v) for k, v in value.items()}
        return _NOTHING if any(v is _NOTHING for v in pairs.values()) else pairs
    return _NOTHING


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def is_placeholder(value: JSON) -> bool:
    """Whether a value stands for something that the source hides."""
    return isinstance(value, str) and bool(_PLACEHOLDER.match(value))


def hides(text: JSON) -> bool:
    """Whether a status text says that the source hid the details."""
    return isinstance(text, str) and bool(_HIDES.search(text))


def without_cut_mark(text: str) -> str | None:
    """The text before a known cut marker; None when it has none."""
    match = _CUT.search(text[-200:])
    return text[: len(text) - len(match.group())] if match else None


def reads_like_error(value: JSON) -> bool:
    """Whether a text result looks like an error, as tools without an error flag report one."""
    return isinstance(value, str) and bool(_ERROR_TEXT.match(value))


class ClassAndMessage(NamedTuple):
    class_name: str | None
    message: str


def split_error(text: str) -> ClassAndMessage:
    """``Class: message`` apart; the last such line of a traceback."""
    shown = text.strip()
    if shown.startswith("Traceback (most recent call last)"):
        lines = [line for line in shown.splitlines() if line[:1] not in ("", " ", "\t")]
        shown = lines[-1] if lines else shown
    match = _CLASS_PREFIX.match(shown)
    return ClassAndMessage(match.group(1), match.group(2)) if match else ClassAndMessage(None, shown)


def without_call_envelope(arguments: JSON) -> JSON:
    """Arguments without what a tracer of plain functions puts around them."""
    if is_object(arguments) and set(arguments) == {"args", "kwargs"} and arguments["args"] in ([], ()):
        return arguments["kwargs"]
    if is_object(arguments) and set(arguments) in ({"input"}, {"inputs"}):
        inner = next(iter(arguments.values()))
        return inner if is_object(inner) else arguments
    return arguments


class Unwrapped(NamedTuple):
    value: JSON
    envelope: str | None
    call_id: JSON = None
    is_error: bool = False


def unwrap(value: JSON) -> Unwrapped:
    """A result without its known envelope: LangChain tool messages, ``{"output": x}``, MCP text content."""
    if not is_object(value):
        return Unwrapped(value, None)
    message = _tool_message(value)
    if message is not None:
        error = message.get("status") == "error"
        return Unwrapped(message["content"], "langchain_tool_message", message.get("tool_call_id"), error)
    if set(value) == {"output"}:
        inner = unwrap(value["output"])
        return inner if inner.envelope == "langchain_tool_message" else Unwrapped(value["output"], "output")
    content = value.get("content")
    if is_list(content) and content and set(value) <= {"content", "isError", "_meta", "structuredContent"}:
        joined = block_text(content)
        if joined is not None:
            return Unwrapped(joined, "mcp", None, value.get("isError") is True)
    return Unwrapped(value, None)


def _tool_message(value: dict[str, JSON]) -> dict[str, JSON] | None:
    """The fields of a LangChain ToolMessage in any of its four spellings."""
    ids, kwargs, data = value.get("id"), value.get("kwargs"), value.get("data")
    if value.get("lc") and is_list(ids) and ids and ids[-1] == "ToolMessage" and is_object(kwargs):
        fields: dict[str, JSON] = kwargs
    elif value.get("type") == "tool" and is_object(data):
        fields = data
    elif value.get("type") == "tool" or value.get("role") == "tool":
        fields = value
    else:
        return None
    return fields if "content" in fields and "tool_call_id" in fields else None


def block_text(content: JSON) -> str | None:
    """The joined text of a list that holds nothing but text blocks; None for everything else."""
    if not is_list(content) or not content:
        return None
    texts: list[str] = []
    for block in content:
        if not is_object(block) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            return None
        texts.append(block["text"])
    return "".join(texts)


def within_depth(value: JSON, limit: int) -> bool:
    """Whether JSON nests at most ``limit`` deep. Walks with a stack of its own."""
    level = [value]
    for _ in range(limit + 1):
        level = [v for held in level if isinstance(held, dict | list) for v in _members(held)]
        if not level:
            return True
    return False


def _members(held: JSON) -> list[JSON]:
    return list(held.values()) if is_object(held) else held


def clean_name(text: str, limit: int = 1024) -> str:
    """A name without NUL and lone surrogates; one over the limit is cut and ends with a digest of the whole."""
    if not text.isprintable() or not text.isascii():
        text = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
    if len(text) <= limit:
        return text
    return f"{text[: limit - 17]}~{sha256(text.encode()).hexdigest()[:16]}"
