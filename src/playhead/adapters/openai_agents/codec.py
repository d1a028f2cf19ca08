"""Values between the framework and stored form: what tools return, model responses, inputs.

The JSON value of an outcome stands for itself. Where the framework's object is more than that, or the model is shown
another text for it, the outcome also has an envelope. An envelope names one of a few shapes, never a class:

- ``structured``: the value is a text, image or file output of the framework, or a list of them;
- ``above``: an error that the framework raised, not the tool;
- ``as_given``: the value of an error that is no text, which is the value as it stands;
- ``shell``: the value is a `ShellResult`;
- ``shown``: the text that the model is shown for a value whose own text would be another one;
- ``response``: a whole `ModelResponse`, with the ``events`` of its stream where it was streamed.
"""

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any, get_type_hints

from agents import ModelResponse, ToolOutputFileContent, ToolOutputImage, ToolOutputText, Usage
from agents.items import TResponseOutputItem, TResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from playhead.adapters.openai_agents import messages
from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol import frameworks, openai_responses
from playhead.core.protocol.forms import Response
from playhead.core.protocol.parts import as_text
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON, Native, Outcome

CODEC = "openai_agents"
VERSION = 1

_STRUCTURED = {"text": ToolOutputText, "image": ToolOutputImage, "file": ToolOutputFileContent}
_STRUCTURED_CLASSES = tuple(_STRUCTURED.values())
_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def native(data: JSON) -> Native:
    return Native(codec=CODEC, version=VERSION, data=data)


def _shapes(envelope: Native | None) -> dict[str, Any]:
    if envelope is None or envelope.codec != CODEC or envelope.version != VERSION:
        return {}
    return obj(envelope.data)


# --- tool results ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A tool's result in two parts: its JSON value in stored form, and the envelope where there is one."""

    value: JSON
    native: Native | None = None


def is_plain(result: object) -> bool:
    """Whether a result is plain data, for which no form of its own is needed: the model sees the same text again."""
    kind = type(result)
    if kind in _PLAIN:
        return True
    if is_list(result) and kind is list:
        return all(is_plain(item) for item in result)
    if is_object(result) and kind is dict:
        return all(type(name) is str and is_plain(item) for name, item in result.items())
    return False


def encode_result(result: Any) -> Result:
    """What is kept of a tool's result.

    Raises:
        NoKeyError: it has no stored form.
    """
    if isinstance(result, _STRUCTURED_CLASSES):
        return Result(to_stored(_fields(result)), native({"structured": True}))
    several: list[Any] = list(result) if isinstance(result, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    if several and all(isinstance(item, _STRUCTURED_CLASSES) for item in several):
        return Result(to_stored([_fields(item) for item in several]), native({"structured": True}))
    value = to_stored(result, lower=_lowered)  # pyright: ignore[reportUnknownArgumentType]
    shown = str(result)  # pyright: ignore[reportUnknownArgumentType]
    return Result(value, None if str(from_stored(value)) == shown else native({"shown": shown}))


def _fields(output: BaseModel) -> dict[str, Any]:
    return output.model_dump(mode="json", exclude_none=True)


def _lowered(value: object) -> object:
    if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return _adapter(type(value)).dump_python(value, mode="json", fallback=str)
    return NotImplemented


def decode_result(outcome: Outcome, tool: Any) -> Any:
    """The tool's result again, fresh."""
    value: Any = from_stored(outcome.value)
    shapes = _shapes(outcome.native)
    if shapes.get("structured"):
        return [_structured(item) for item in value] if is_list(value) else _structured(value)
    if "shown" in shapes and tool.output_json_schema is None:
        return _typed(value, shapes["shown"], tool)
    return value


def _structured(value: dict[str, Any]) -> Any:
    kind = _STRUCTURED.get(value.get("type", "text"))
    return value if kind is None else kind.model_validate(value)


def _typed(value: Any, shown: str, tool: Any) -> Any:
    """The record again by the tool's return annotation; the text that the model saw where that gives another one."""
    try:
        annotation = get_type_hints(tool.__wrapped__, include_extras=True)["return"]
        made = _adapter(annotation).validate_python(value)
        return made if str(made) == shown else shown
    except Exception:  # noqa: BLE001 - annotations and validators are the user's
        return shown


def decode_error(outcome: Outcome, tool: Any) -> Any:
    """An error that the model is shown: as the tool gave it where it was no text, else the text."""
    return decode_result(outcome, tool) if _shapes(outcome.native) else text_of(outcome)


def has(shape: str, envelope: Native | None) -> bool:
    return bool(_shapes(envelope).get(shape))


def text_of(outcome: Outcome) -> str:
    """An outcome's value as the text that a tool gives the model."""
    return as_text(outcome.value)


# --- responses ------------------------------------------------------------------------------------------------------


def encode_response(response: ModelResponse, output: list[Any], events: list[Any] | None = None) -> Native:
    """The whole response, and the events of its stream but for the last, which holds the response again.

    Args:
        output: the response's items as plain objects.
    """
    made: dict[str, Any] = {
        "output": output,
        "usage": messages.plain(response.usage),
        "response_id": response.response_id,
        "request_id": response.request_id,
    }
    if response.raw_usage is not None:
        made["raw_usage"] = response.raw_usage
    data: dict[str, Any] = {"response": made}
    if events is not None:
        data["events"] = messages.plain(events)
    return native(to_stored(data))


def decode_response(outcome: Outcome, model: str | None) -> ModelResponse:
    """The response again; from the normal form where the recording has none of ours (an import, another adapter)."""
    held = obj(_shapes(outcome.native).get("response"))
    if held:
        made = from_stored(held)
        usage = Usage(**{k: v for k, v in made["usage"].items() if k != "request_usage_entries"})
        more = {name: made[name] for name in ("request_id", "raw_usage") if made.get(name) is not None}
        return ModelResponse(output=_items(made["output"]), usage=usage, response_id=made["response_id"], **more)
    body = openai_responses.write_response(Response(message=outcome.value, model=model))
    return ModelResponse(output=_items(body["output"]), usage=Usage(requests=1), response_id=None)


def _items(output: list[Any]) -> list[Any]:
    return [_adapter(TResponseOutputItem).validate_python(item) for item in output]


def decode_events(outcome: Outcome, response: ModelResponse, model: str | None) -> Iterator[Any]:
    """The events of the recorded stream, or those that the response would make; the last one holds the response."""
    body = _body(response, model)
    made: list[Any] = [event.data for event in openai_responses.write_stream(body)]
    held = _shapes(outcome.native).get("events")
    if is_list(held):
        made = [*from_stored(held), {**made[-1], "sequence_number": len(held)}]
    for event in made:
        yield _adapter(TResponseStreamEvent).validate_python(event)


def _body(response: ModelResponse, model: str | None) -> dict[str, Any]:
    empty: Any = {"role": "assistant", "parts": []}
    body = openai_responses.write_response(Response(message=empty, model=model, response_id=response.response_id))
    usage = response.usage
    counted = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": messages.plain(usage.input_tokens_details),
        "output_tokens": usage.output_tokens,
        "output_tokens_details": messages.plain(usage.output_tokens_details),
        "total_tokens": usage.total_tokens,
    }
    return {**body, "output": messages.plain(response.output), "usage": counted}


# --- inputs ---------------------------------------------------------------------------------------------------------


def encode_input(given: Any) -> dict[str, Any]:
    """A run's input as ``prompt`` (the last user message) and ``message_history`` (what stands before it)."""
    if isinstance(given, str):
        return {"prompt": given}
    items = messages.items(given)
    last = obj(items[-1]) if items else {}
    if last.get("role") != "user" or "content" not in last:
        return {"prompt": None, "message_history": items}
    return {"prompt": last["content"], **({"message_history": items[:-1]} if len(items) > 1 else {})}


def decode_input(inputs: dict[str, Any]) -> Any:
    """The framework's input again; a history that PydanticAI wrote is read too."""
    history = _history(inputs.get("message_history") or [])
    prompt = inputs.get("prompt")
    if not history:
        return prompt if isinstance(prompt, str) else [{"role": "user", "content": prompt}]
    return history if prompt is None else [*history, {"role": "user", "content": prompt}]


def _history(recorded: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in recorded:
        if is_object(item) and frameworks.is_pydantic_ai(item):
            for message in frameworks.read_pydantic_ai(item):
                found += openai_responses.write_message(message)
        else:
            found.append(item)
    return found
