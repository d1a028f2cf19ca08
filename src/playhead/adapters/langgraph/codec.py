"""What tools give, as outcomes, and outcomes as what tools give.

The JSON value of an outcome is what the model is shown, or what `tool.invoke` returns where no model is involved. An
envelope beside it holds what the framework's object is more than that: ``result`` a whole message or command,
``artifact`` the second half of a ``content_and_artifact`` pair, ``writes`` what the tool wrote to the graph's state on
the side, ``chunks`` what it wrote to the graph's stream, ``raised`` that the tool asked for an error result by raising.
"""

import json
from collections.abc import Sequence
from typing import Any, get_type_hints

import orjson
from langchain_core.messages import ToolMessage
from langchain_core.tools.base import BaseTool
from pydantic import BaseModel, TypeAdapter

from playhead.adapters.langgraph import objects
from playhead.adapters.langgraph.channel import Beside, Write
from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON, Native, Outcome, OutcomeKind

CODEC = "langgraph"
VERSION = 1

_PLAIN = frozenset({str, int, float, bool, type(None)})


def is_plain(result: object) -> bool:
    """Whether a result is JSON-like data that comes back as it is."""
    if type(result) in _PLAIN:
        return True
    if type(result) not in (dict, list):
        return False
    try:
        return bool(orjson.loads(orjson.dumps(result)) == result)
    except (TypeError, ValueError):
        return False


def encode_result(
    tool: BaseTool, result: Any, call_id: str | None, beside: Beside | None = None, messages: Sequence[Any] = ()
) -> Outcome:
    """What is kept of what a tool's body returned; ``messages`` are those of the state that it was given.

    Raises:
        NoKeyError: it has no stored form, not even as the text that the model is shown.
    """
    native: dict[str, JSON] = {}
    if beside is not None and beside.writes:
        native["writes"] = [[channel, objects.encode(value, call_id, messages)] for channel, value in beside.writes]
    if beside is not None and beside.chunks:
        native["chunks"] = [data for chunk in beside.chunks if (data := _chunk(chunk, call_id)) is not None]
    pair = objects.as_tuple(result) if tool.response_format == "content_and_artifact" else ()
    if len(pair) == 2:
        result, artifact = pair
        native["artifact"] = objects.encode(artifact, call_id, messages)
    shown, failed = _shown(result, call_id)
    if shown is not result:
        native["result"] = objects.encode(result, call_id, messages)
    try:
        value = _value(shown, native, call_id)
    except NoKeyError:
        if call_id is None:
            raise
        native.pop("result", None)
        value = as_text(shown)  # the model is shown this text, so nothing is lost to it
    return outcome(OutcomeKind.RESULT_ERROR if failed else OutcomeKind.VALUE, value, native)


def _chunk(chunk: Any, call_id: str | None) -> JSON:
    try:
        return {"chunk": objects.encode(chunk, call_id)}
    except NoKeyError:
        return None  # progress for whoever watches: no reason to lose the call


def outcome(kind: OutcomeKind, value: JSON, native: dict[str, JSON] | None = None) -> Outcome:
    return Outcome(kind=kind, value=value, native=envelope(native) if native else None)


def envelope(data: dict[str, JSON]) -> Native:
    return Native(codec=CODEC, version=VERSION, data=data)


def held(answer: Outcome) -> dict[str, Any]:
    """The envelope's data; nothing where another codec or version wrote it."""
    native = answer.native
    return obj(native.data) if native is not None and (native.codec, native.version) == (CODEC, VERSION) else {}


def _shown(result: Any, call_id: str | None) -> tuple[Any, bool]:
    """What of a result the model is shown, and whether as an error."""
    if isinstance(result, ToolMessage):
        return result.content, result.status == "error"
    types = objects.graph_types()
    parts: list[Any] = result if is_list(result) else [result]
    if types is None or not any(isinstance(part, types.Command | ToolMessage) for part in parts):
        return result, False
    messages = [m for part in parts for m in ([part] if isinstance(part, ToolMessage) else _messages(part))]
    own = next((m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call_id), None)
    return (None, False) if own is None else (own.content, own.status == "error")


def _messages(command: Any) -> list[Any]:
    update = getattr(command, "update", None)
    found = update.get("messages") if is_object(update) else update
    return found if is_list(found) else []


def _value(shown: Any, native: dict[str, JSON], call_id: str | None) -> JSON:
    if is_plain(shown):
        return to_stored(shown)
    data = objects.encode(shown, call_id)
    if "result" not in native and call_id is None:
        native["result"] = data
    if isinstance(shown, BaseModel) and call_id is not None:
        return as_text(shown)
    return to_stored(_lowered(from_stored(data)))


def _lowered(value: Any) -> Any:
    """Data of `objects` without its tags, as far as another framework can use it."""
    if is_list(value):
        return [_lowered(v) for v in value]
    if not is_object(value):
        return value
    kind = value.get(objects.TAG)
    if kind == "tuple":
        return _lowered(value["items"])
    if kind == "map":
        return {str(_lowered(key)): _lowered(v) for key, v in value["items"]}
    if kind == "record":
        return _lowered(value["value"])
    if kind == "document":
        return {"page_content": value["text"], "metadata": _lowered(value["metadata"])}
    if kind == "message":
        return {"type": value["type"], "content": _lowered(value["data"]["content"])}
    return {key: _lowered(v) for key, v in value.items()}


# --- back -----------------------------------------------------------------------------------------------------------


def decode_result(tool: BaseTool, answer: Outcome, call_id: str | None, messages: Sequence[Any] = ()) -> Any:
    """What the tool's body would have returned, fresh."""
    data = held(answer)
    if "result" in data:
        result = objects.decode(data["result"], call_id, messages)
        result = _typed(tool, result) if call_id is None else result
    else:
        result = from_stored(answer.value)
    if tool.response_format != "content_and_artifact":
        return result
    return result, objects.decode(data["artifact"], call_id, messages) if "artifact" in data else None


def writes_of(answer: Outcome, call_id: str | None, messages: Sequence[Any] = ()) -> list[Write]:
    return [(channel, objects.decode(value, call_id, messages)) for channel, value in held(answer).get("writes", ())]


def chunks_of(answer: Outcome, call_id: str | None) -> list[Any]:
    return [objects.decode(chunk["chunk"], call_id) for chunk in held(answer).get("chunks", ())]


def _typed(tool: BaseTool, value: Any) -> Any:
    """Records made again by the return annotation of the tool's function; plain data where that does not fit."""
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    if function is None or not (is_object(value) or is_list(value)):
        return value
    try:
        annotation = get_type_hints(function, include_extras=True).get("return", Any)
        made = TypeAdapter(annotation).validate_python(value)
        same = TypeAdapter(annotation).dump_python(made, mode="json") == value
    except Exception:  # noqa: BLE001 - annotations and validators are the user's
        return value
    return made if same else value


def as_text(value: Any) -> str:
    """A value as the framework writes it into a message."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)
