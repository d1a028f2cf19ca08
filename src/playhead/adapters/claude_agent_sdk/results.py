"""What a tool gave to Claude, as an outcome and back: the format ``claude.tool_result`` in version 1.

``{"content": [block, ...] or text, "is_error": true?}``. Blocks are those of MCP in a handler's result and those of the
Messages API on the wire; images are the only ones that differ, and are turned into each other.
"""

from dataclasses import dataclass
from typing import Any

from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol.parts import as_text, plain
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON, Native, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.failures import capture
from playhead.errors import RecordingError

CODEC = "claude.tool_result"
VERSION = 1
_MEMBERS = frozenset({"content", "is_error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool's result. ``content`` is plain JSON: text, or blocks; ``is_error`` is None where nothing is said."""

    content: Any
    is_error: bool | None = None


# --- recording ------------------------------------------------------------------------------------------------------


def read_handler(value: Any) -> Result | None:
    """A handler's result; None where it has another shape, which cannot be given again as it was."""
    if not is_object(value) or not set(value) <= _MEMBERS or not _are_blocks(value.get("content")):
        return None
    is_error = value.get("is_error")
    return Result(content=value["content"], is_error=is_error) if isinstance(is_error, bool | None) else None


def _are_blocks(content: object) -> bool:
    return is_list(content) and all(is_object(b) and isinstance(b.get("type"), str) for b in content)


def outcome_of(
    result: Result, shown: Result | None = None, extra: dict[str, JSON] | None = None, *,
    raised: Exception | None = None,
) -> Outcome:  # fmt: skip
    """The outcome to record. ``shown`` is the result as the consumer saw it, where that differs from Claude's.

    The value is the text where there is nothing else, so that any other adapter can serve it; for the same reason
    the exception is kept that a handler ``raised``, which Claude got as a text.
    """
    data = _encoded(result)
    if shown is not None and shown != result:
        data["shown"] = _encoded(shown)
    data |= extra or {}
    kind = OutcomeKind.RESULT_ERROR if result.is_error else OutcomeKind.VALUE
    native = Native(codec=CODEC, version=VERSION, data=data)
    if raised is not None and result.is_error:
        return Outcome(kind=OutcomeKind.ERROR, error=capture(raised), native=native)
    return Outcome(kind=kind, value=_plain_value((shown or result).content), native=native)


def _encoded(result: Result) -> dict[str, JSON]:
    flag = {"is_error": result.is_error} if result.is_error is not None else {}
    return {"content": to_stored(result.content), **flag}


def _plain_value(content: Any) -> JSON:
    if is_list(content) and len(content) == 1 and is_object(content[0]) and set(content[0]) == {"type", "text"}:
        content = content[0]["text"]
    return to_stored(content)


# --- serving --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What an outcome gives: to Claude, and to the consumer of the message stream."""

    given: Result
    shown: Result
    tool_use_result: Any = None


def read_outcome(outcome: Outcome) -> Served:
    """What to give for an outcome of any adapter, a static case, a model or an injection.

    Raises:
        RecordingError: nothing that Claude could be given stands for it.
    """
    if outcome.kind is OutcomeKind.INTERRUPT:
        raise RecordingError("the recorded call paused for a person, which the Claude Agent SDK has no way to repeat")
    native = outcome.native
    if native is not None and native.codec == CODEC and native.version == VERSION and is_object(native.data):
        return _decoded(native.data)
    if outcome.kind is OutcomeKind.ERROR:
        return _same(Result(content=[_text(str(seam.exception_of(outcome)))], is_error=True))
    failed = outcome.kind is not OutcomeKind.VALUE
    value = plain(outcome.value)
    if not failed and (given := read_handler(value)) is not None:
        return _same(given)
    if _are_blocks(value) and value:
        return _same(Result(content=value, is_error=failed or None))
    return _same(Result(content=[_text(as_text(outcome.value))], is_error=failed or None))


def _decoded(data: dict[str, Any]) -> Served:
    given = _result(data)
    shown = _result(data["shown"]) if is_object(data.get("shown")) else given
    return Served(given=given, shown=shown, tool_use_result=from_stored(data.get("tool_use_result")))


def _result(data: dict[str, Any]) -> Result:
    return Result(content=from_stored(data["content"]), is_error=data.get("is_error"))


def _same(result: Result) -> Served:
    return Served(given=result, shown=result)


def _text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


# --- in the shape of the place --------------------------------------------------------------------------------------


def to_handler(result: Result) -> dict[str, Any]:
    """What a handler returns."""
    content: list[Any] = result.content if is_list(result.content) else [_text(str(result.content or ""))]
    made: dict[str, Any] = {"content": [_to_mcp(b) for b in content]}
    if result.is_error:
        made["is_error"] = True
    return made


def to_wire(result: Result, block: dict[str, Any]) -> dict[str, Any]:
    """A ``tool_result`` block of the Messages API with this result in it; what else it holds stays."""
    content = [_to_api(b) for b in result.content] if is_list(result.content) else result.content
    made = {name: value for name, value in block.items() if name != "is_error"} | {"content": content}
    return made if result.is_error is None else {**made, "is_error": result.is_error}


def _to_mcp(block: Any) -> Any:
    source = obj(block.get("source")) if is_object(block) and block.get("type") == "image" else {}
    if source.get("type") != "base64":
        return block
    return {"type": "image", "data": source.get("data"), "mimeType": source.get("media_type")}


def _to_api(block: Any) -> Any:
    if not is_object(block) or block.get("type") != "image" or "data" not in block:
        return block
    source = {"type": "base64", "media_type": block.get("mimeType"), "data": block["data"]}
    return {"type": "image", "source": source}
