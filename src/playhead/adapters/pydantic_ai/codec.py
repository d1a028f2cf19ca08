"""Values between PydanticAI and stored form: what tools return, responses, prompts, histories, deferred results.

The JSON value of an outcome is what the model is shown. Where the framework's object is more than that, the outcome
also has an envelope that says what to make of the value again. An envelope names one of a few shapes, never a class:

- ``tool_return``: the value is the ``return_value`` of a `ToolReturn`; ``content``, ``metadata`` and ``tools`` stand
  in the envelope;
- ``files``: the value holds files or typed texts of the framework;
- ``typed``: the value holds records (pydantic models, dataclasses), made again from the tool's return annotation;
- ``denied``: a person's refusal of the call;
- ``response``: a whole `ModelResponse`.
"""

import dataclasses
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic_ai import messages as m
from pydantic_ai.tools import DeferredToolResults, ToolDenied

from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol.parts import as_arguments
from playhead.core.protocol.shape import is_object, obj
from playhead.core.values import JSON, Native, Outcome, OutcomeKind

CODEC = "pydantic_ai"
VERSION = 1

_FILES = (m.BinaryContent, m.FileUrl, m.TextContent, m.UploadedFile)
_PLAIN = frozenset({str, int, float, bool, type(None)})

_RESPONSE: TypeAdapter[m.ModelResponse] = TypeAdapter(m.ModelResponse)
_RETURN: TypeAdapter[Any] = TypeAdapter(m.ToolReturn[Any])
_DEFERRED: TypeAdapter[DeferredToolResults] = TypeAdapter(DeferredToolResults)
_CONTENT: TypeAdapter[Any] = TypeAdapter(list[m.UserContent])


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class _Lowering:
    """Brings objects of the framework and records down to JSON, and notes that it did."""

    def __init__(self) -> None:
        self.shapes: dict[str, JSON] = {}

    def __call__(self, value: object) -> object:
        if isinstance(value, _FILES):
            self.shapes["files"] = True
            return adapter(type(value)).dump_python(value, mode="json", exclude_none=True)
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            self.shapes["typed"] = True
            return adapter(type(value)).dump_python(value, mode="json", fallback=str)
        return NotImplemented


# --- tool results ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result in two parts: its JSON value in stored form, and the envelope where there is one."""

    value: JSON
    native: Native | None = None


def is_plain(result: object) -> bool:
    """Whether a result is text, a number, a truth value or nothing: no form of its own is needed."""
    return type(result) in _PLAIN


def encode_result(result: object) -> Result:
    """What is kept of a tool's result.

    Raises:
        NoKeyError: it has no stored form.
    """
    if isinstance(result, ToolDenied):
        return Result(result.message, _native({"denied": True}))
    lowering = _Lowering()
    if isinstance(result, m.ToolReturn):
        return _encode_tool_return(result, lowering)
    value = to_stored(result, lower=lowering)
    return Result(value, _native(lowering.shapes) if lowering.shapes else None)


def _encode_tool_return(result: Any, lowering: _Lowering) -> Result:
    value, beside = to_stored(result.return_value, lower=lowering), _Lowering()
    lowering.shapes["tool_return"] = {
        "content": to_stored(result.content, lower=beside),
        "metadata": to_stored(result.metadata, lower=beside),
        "tools": to_stored(getattr(result, "tools", None)),
    }
    return Result(value, _native(lowering.shapes))


def decode_result(outcome: Outcome, annotation: object = None) -> Any:
    """The tool's result again, fresh. ``annotation`` is the return annotation of the tool's function, if known.

    An envelope of another codec or version counts as none: the JSON value is given.
    """
    value: Any = from_stored(outcome.value)
    shapes = _shapes(outcome.native)
    if shapes.get("denied"):
        return ToolDenied(str(value))
    if shapes.get("files"):
        value = _RETURN.validate_python({"return_value": value, "kind": "tool-return"}).return_value
    if shapes.get("typed"):
        value = _typed(value, _inner(annotation) if "tool_return" in shapes else annotation)
    if "tool_return" not in shapes:
        return value
    beside = from_stored(shapes["tool_return"])
    return _tool_return(value, beside)


def _tool_return(value: Any, beside: dict[str, Any]) -> m.ToolReturn[Any]:
    content = beside.get("content")
    if isinstance(content, list):
        content = _CONTENT.validate_python(content)
    more = {"tools": beside["tools"]} if beside.get("tools") is not None else {}
    return m.ToolReturn(return_value=value, content=content, metadata=beside.get("metadata"), **more)


def _typed(value: Any, annotation: object) -> Any:
    """Records made again by the annotation; the plain value where that does not give the same value back."""
    if annotation is None:
        return value
    try:
        made = adapter(annotation).validate_python(value)
        same = adapter(annotation).dump_python(made, mode="json", fallback=str) == value
    except Exception:  # noqa: BLE001 - annotations and validators are the user's
        return value
    return made if same else value


def _inner(annotation: object) -> object:
    return next(iter(get_args(annotation)), None) if get_origin(annotation) is m.ToolReturn else None


def return_annotation(tool: Any) -> object:
    """The return annotation of the function behind a tool of a toolset; None when there is none to be had."""
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    function = getattr(schema, "function", None)
    if function is None:
        return None
    try:
        return get_type_hints(function, include_extras=True).get("return")
    except Exception:  # noqa: BLE001 - annotations that do not resolve
        return None


def _native(data: JSON) -> Native:
    return Native(codec=CODEC, version=VERSION, data=data)


def _shapes(native: Native | None) -> dict[str, Any]:
    if native is None or native.codec != CODEC or native.version != VERSION:
        return {}
    return obj(native.data)


# --- responses ------------------------------------------------------------------------------------------------------

_OF_THE_RUN = ("run_id", "conversation_id", "workspace_ref", "history_digest", "failed_attempts")


_FLAT = frozenset({"text", "thinking", "tool-call"})
"""Kinds of parts whose members are plain data."""


def encode_response(response: m.ModelResponse) -> Native:
    """The whole response, without what ties it to its run."""
    if all(part.part_kind in _FLAT for part in response.parts):
        dumped = _members(response)
        dumped["parts"] = [_members(part) for part in response.parts]
        dumped["usage"] = {name: str(v) if name == "cost" else v for name, v in _members(response.usage).items()}
        dumped["timestamp"] = response.timestamp.isoformat()
    else:
        dumped = _RESPONSE.dump_python(response, mode="json", exclude_none=True, warnings=False)
    for name in _OF_THE_RUN:
        dumped.pop(name, None)
    return _native({"response": to_stored(dumped, lower=_Lowering())})


def _members(value: Any) -> dict[str, Any]:
    """What an instance of a dataclass holds; what is not set is left out."""
    held: dict[str, Any] = value.__dict__
    return {name: member for name, member in held.items() if member is not None}


def decode_response(outcome: Outcome, model: str) -> m.ModelResponse:
    """The response again; from the normal form where the recording has none of ours (an import, another adapter)."""
    shapes = _shapes(outcome.native)
    if "response" in shapes:
        return _RESPONSE.validate_python(from_stored(shapes["response"]))
    message: Any = outcome.value or {}
    parts = [made for part in message.get("parts", ()) if (made := _part(part)) is not None]
    reason = message.get("finish_reason")
    known = {"stop": "stop", "tool_calls": "tool_call", "length": "length", "content_filter": "content_filter"}
    return m.ModelResponse(parts=parts, model_name=model, finish_reason=known.get(reason))  # pyright: ignore[reportArgumentType]


def _asked(part: dict[str, Any]) -> str | dict[str, Any]:
    """Arguments as an object where they are one, else their text."""
    arguments = part["arguments"]
    if not is_object(arguments) or {"$invalid", "$deep"} & set(arguments):
        return as_arguments(part)
    return from_stored(arguments)


def _part(part: dict[str, Any]) -> Any:
    kind = part["type"]
    if kind == "text":
        return m.TextPart(part["text"])
    if kind == "reasoning":
        return m.ThinkingPart(part["text"], signature=part.get("signature"))
    if kind == "tool_call" and "executor" not in part:
        made = m.ToolCallPart(part["name"], _asked(part))
        return replace(made, tool_call_id=str(part["id"])) if part.get("id") else made
    if kind == "media" and part.get("data"):
        content = m.BinaryContent.from_data_uri(f"data:{part['media_type']};base64,{part['data']}")
        return m.FilePart(content)
    return None


# --- inputs ---------------------------------------------------------------------------------------------------------


def encode_prompt(prompt: Any) -> Any:
    """A user prompt as plain data: text, or a list of texts and files."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    return _CONTENT.dump_python(list(prompt), mode="json", exclude_none=True)


def decode_prompt(prompt: Any) -> Any:
    return _CONTENT.validate_python(prompt) if isinstance(prompt, list) else prompt


def encode_history(history: Any) -> list[Any]:
    return m.ModelMessagesTypeAdapter.dump_python(list(history), mode="json", exclude_none=True)


def decode_history(history: Any) -> list[m.ModelMessage]:
    return m.ModelMessagesTypeAdapter.validate_python(history)


def encode_deferred(results: DeferredToolResults) -> Any:
    return _DEFERRED.dump_python(results, mode="json", exclude_none=True)


def decode_deferred(results: Any) -> DeferredToolResults:
    return _DEFERRED.validate_python(results)


def decode_deps(deps: Any, kind: Any) -> Any:
    """Dependencies of the agent's declared type."""
    if kind is None or kind is type(None) or deps is None:
        return deps
    try:
        return adapter(kind).validate_python(deps)
    except Exception:  # noqa: BLE001 - types that pydantic cannot make: the plain value
        return deps


def outcome_of(kind: OutcomeKind, content: Any, native: Native | None = None) -> Outcome:
    """An outcome whose value is what the model is shown."""
    return Outcome(kind=kind, value=content, native=native)
