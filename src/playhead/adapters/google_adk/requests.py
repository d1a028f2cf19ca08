# pyright: basic, reportMissingImports=false
"""Requests and responses of the framework's models in the provider's form, in which the core reads them, and back."""

from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import BaseModel

from playhead.core.override import effective, override_model
from playhead.core.protocol import gemini
from playhead.core.protocol.forms import Response
from playhead.core.protocol.parts import plain, stored
from playhead.core.protocol.shape import is_object
from playhead.core.values import Native, Outcome, Usage
from playhead.engine.model_step import ModelRequest, ModelResult
from playhead.engine.seam import ActiveSession

CODEC = "google_adk"
VERSION = 1
_BESIDE = frozenset({"systemInstruction", "tools", "toolConfig", "labels", "httpOptions", "abortSignal"})
_NAMES = {"max_tokens": "max_output_tokens", "stop": "stop_sequences"}


def request_of(asked: LlmRequest) -> ModelRequest:
    """The request in normal form."""
    config: dict[str, Any] = asked.config.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude={"tools", "http_options", "system_instruction", "response_schema"},
    )
    if asked.config.response_schema is not None:
        config["responseSchema"] = _schema(asked.config.response_schema)
    tools = [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in asked.config.tools or ()]
    body: dict[str, Any] = {
        "contents": [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in asked.contents],
        "systemInstruction": _system(asked.config.system_instruction),
        "tools": tools,
        "toolConfig": config.get("toolConfig"),
        "generationConfig": {name: value for name, value in config.items() if name not in _BESIDE},
    }
    read = gemini.read_request({name: value for name, value in body.items() if value})
    return ModelRequest(
        messages=read.messages,
        tools=read.tools,
        tool_choice=read.tool_choice,
        params=read.params,
        model=asked.model,
        provider="google",
        protocol="google_adk",
    )


def _schema(given: Any) -> Any:
    """A schema as plain data: of a class, of the client's own, or as it was given."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given.model_json_schema()
    if isinstance(given, BaseModel):
        return given.model_dump(mode="json", by_alias=True, exclude_none=True)
    return given if isinstance(given, dict) else str(given)


def _system(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given or None
    if isinstance(given, types.Content):
        return given.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts = [p.text if isinstance(p, types.Part) else str(p) for p in (given if isinstance(given, list) else [given])]
    return "\n".join(part or "" for part in parts)


def result_of(response: LlmResponse, *, streamed: bool) -> tuple[ModelResult, Response]:
    """The answer in normal form, and as it was read (for the calls to announce)."""
    data = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    candidate = {"content": data.get("content") or {"parts": []}, "finishReason": data.get("finishReason")}
    body = {
        "candidates": [candidate],
        "usageMetadata": data.get("usageMetadata"),
        "modelVersion": data.get("modelVersion"),
    }
    read = gemini.read_response({name: value for name, value in body.items() if value})
    native = Native(codec=CODEC, version=VERSION, data={"response": stored(data)})
    usage: Usage | None = read.usage
    result = ModelResult(message=read.message, native=native, usage=usage, served=read.model, streamed=streamed)
    return result, read


def response_of(outcome: Outcome) -> LlmResponse:
    """A recorded answer as the framework's own object."""
    native = outcome.native
    if native is not None and native.codec == CODEC and native.version == VERSION and is_object(native.data):
        return LlmResponse.model_validate(plain(native.data["response"]))
    body = gemini.write_response(Response(message=outcome.value))
    return LlmResponse.create(types.GenerateContentResponse.model_validate(body))


def override(active: ActiveSession, asked: LlmRequest, *, root: bool) -> None:
    """Applies a replay's override to the request that the framework is about to send."""
    state = active.replay
    if state is None or state.override is None:
        return
    changed: list[str] = []
    wanted = override_model(state.override, asked.model or "")
    if wanted is not None and wanted != asked.model:
        asked.model = wanted
        changed.append("model")
    text = state.override.system_prompt
    if text is not None and root:
        if asked.config.system_instruction != text:
            asked.config.system_instruction = text
            changed.append("system_prompt")
        active.effective_system_prompt = effective(text)
    for name, value in (state.override.model_params or {}).items():
        name = _NAMES.get(name, name)
        if getattr(asked.config, name) != value:
            setattr(asked.config, name, value)
            changed.append("model_params")
    if changed:
        with state.lock:
            state.override_hits.update(set(changed))
