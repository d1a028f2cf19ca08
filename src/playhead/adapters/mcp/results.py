"""Results of MCP servers as outcomes, and back."""

import json
from typing import Any

import mcp.types as types
from pydantic import BaseModel

from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON, Native, Outcome, OutcomeKind
from playhead.engine.calling import Shape

CODEC = "mcp"
VERSION = 1
_KNOWN = ("CallToolResult", "ReadResourceResult", "GetPromptResult", "InputRequiredResult")


class Results(Shape):
    """Results of one kind of request. The class is picked from a fixed table, never by a name in the data alone."""

    def __init__(self, kind: type[BaseModel]) -> None:
        self._kind = kind

    def outcome(self, result: Any) -> Outcome | None:
        if type(result).__name__ not in _KNOWN:
            return None
        data: Any = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        kind = OutcomeKind.RESULT_ERROR if data.get("isError") is True else OutcomeKind.VALUE
        native = Native(
            codec=CODEC, version=VERSION, data={"class": type(result).__name__, "result": to_stored(data)}
        )  # fmt: skip
        return Outcome(kind=kind, value=to_stored(_plain(data)), native=native)

    def value(self, outcome: Outcome) -> Any:
        return self._kept(outcome) or self._made(from_stored(outcome.value), failed=False)

    def refusal(self, outcome: Outcome) -> Any:
        if self._kind is not types.CallToolResult:
            return super().refusal(outcome)
        text = outcome.error.message if outcome.error is not None else from_stored(outcome.value)
        return self._kept(outcome) or self._made(text, failed=True)

    def _kept(self, outcome: Outcome) -> Any:
        native = outcome.native
        if native is None or native.codec != CODEC or native.version != VERSION or not is_object(native.data):
            return None
        name = native.data.get("class")
        cls = getattr(types, name, None) if name in _KNOWN else None
        return None if cls is None else cls.model_validate(from_stored(native.data["result"]))

    def _made(self, value: Any, *, failed: bool) -> Any:
        """A result for a plain value: from a policy, an import, or another adapter."""
        if self._kind is not types.CallToolResult:
            return self._kind.model_validate(value)
        blocks = value if _are_blocks(value) else [{"type": "text", "text": _text(value)}]
        data: dict[str, Any] = {"content": blocks, "isError": failed}
        if is_object(value) and not failed:
            data["structuredContent"] = value
        return types.CallToolResult.model_validate(data)


def _plain(data: dict[str, Any]) -> JSON:
    """What a result says, for people and other adapters: its structured content, its text, else its blocks."""
    if "structuredContent" in data:
        return data["structuredContent"]
    blocks = data.get("content")
    if not is_list(blocks):
        return data
    texts = [b.get("text") for b in blocks if is_object(b) and b.get("type") == "text"]
    return "\n".join(map(str, texts)) if blocks and len(texts) == len(blocks) else blocks


def _are_blocks(value: Any) -> bool:
    return is_list(value) and bool(value) and all(is_object(b) and isinstance(b.get("type"), str) for b in value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
