"""LangChain's messages, offered tools and model parameters in the normal form."""

import copy
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from playhead.core.protocol import langchain, openai_chat
from playhead.core.protocol.parts import Message, stored
from playhead.core.protocol.shape import is_object, obj
from playhead.core.values import JSON, Usage

_FIELDS = ("content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "status", "additional_kwargs")

PARAMS = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens", "max_completion_tokens": "max_tokens", "stop": "stop",
    "stop_sequences": "stop", "seed": "seed", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "n": "n", "logprobs": "logprobs", "top_logprobs": "top_logprobs",
    "logit_bias": "logit_bias", "reasoning_effort": "reasoning_effort", "reasoning": "reasoning",
    "thinking": "thinking", "verbosity": "verbosity", "service_tier": "service_tier",
}  # fmt: skip
"""Fields of chat models that are parameters of the request, and their common names."""

_NO_PARAMS = frozenset({"tools", "functions", "tool_choice", "model", "stream", "run_manager", "stream_usage"})


def normal(message: BaseMessage) -> list[Message]:
    """One message as messages of the normal form."""
    held = vars(message)
    data = {name: held[name] for name in _FIELDS if held.get(name)}
    data.setdefault("content", "")
    if message.type == "chat":
        return langchain.read({"type": str(held.get("role")), "data": data})
    return langchain.read({"type": message.type.removesuffix("MessageChunk").lower(), "data": data})


def answer(message: AIMessage, reason: object = None) -> Message:
    """A model's answer as the assistant's message; ``reason`` is why it ended, in the provider's word."""
    told: dict[str, Any] = message.response_metadata
    known = reason or told.get("finish_reason") or told.get("stop_reason")
    made = normal(message)[0]
    asks = bool(message.tool_calls or message.invalid_tool_calls)
    return {**made, "finish_reason": langchain.finish(known) or ("tool_calls" if asks else "stop")}


def tools(offered: Any) -> list[JSON]:
    """The tools bound to a model, in whatever provider's form, in normal form.

    An agent binds the same tools anew for each request, so the last forms are kept, beside copies of what they are of.
    """
    given = list(offered or ())
    for raw, made in _kept:
        if raw == given:
            return made
    made = [_tool(tool) for tool in given]
    if all(is_object(tool) for tool in given):
        _kept.appendleft((copy.deepcopy(given), made))
    return made


_kept: deque[tuple[list[Any], list[JSON]]] = deque(maxlen=8)


def _tool(raw: Any) -> JSON:
    if not is_object(raw):
        raw = convert_to_openai_tool(raw)
    if is_object(raw.get("input_schema")) and "name" in raw:
        return openai_chat.tool(raw, "input_schema")
    if raw.get("type", "function") == "function" and (is_object(raw.get("function")) or "parameters" in raw):
        return openai_chat.read_tool(raw)
    return {"name": str(raw.get("name") or raw.get("type")), "type": "provider", "config": stored(raw)}


def tool_choice(kwargs: Mapping[str, Any]) -> JSON:
    return openai_chat.read_choice(kwargs.get("tool_choice"))


def params(model: Any, stop: Any, kwargs: Mapping[str, Any]) -> dict[str, JSON]:
    """The parameters of a request: the model's own, and those given with the call over them."""
    held = cast("dict[str, Any]", vars(model))
    made: dict[str, Any] = {c: held[name] for name, c in PARAMS.items() if held.get(name) is not None}
    made.update(obj(held.get("model_kwargs")))
    for name, value in kwargs.items():
        if value is not None and name not in _NO_PARAMS and not name.startswith(("ls_", "_")):
            made[PARAMS.get(name, name)] = value
    if stop is not None:
        made["stop"] = stop
    return {name: _param(value) for name, value in made.items()}


def _param(value: Any) -> JSON:
    schema = getattr(value, "model_json_schema", None)
    if callable(schema):
        value = schema()
    try:
        return stored(value)
    except ValueError:
        return {"object": type(value).__name__}


def usage(message: AIMessage) -> Usage | None:
    """Tokens in exclusive buckets; None when the answer carries none."""
    told: Any = message.usage_metadata
    if not told:
        return None
    inside, out = obj(told.get("input_token_details")), obj(told.get("output_token_details"))
    read, write = int(inside.get("cache_read") or 0), int(inside.get("cache_creation") or 0)
    reasoned = int(out.get("reasoning") or 0)
    return Usage(
        input_uncached=max(told["input_tokens"] - read - write, 0),
        input_cache_read=read,
        input_cache_write=write,
        output_visible=max(told["output_tokens"] - reasoned, 0),
        output_reasoning=reasoned,
        raw=stored(dict(told)),
    )
