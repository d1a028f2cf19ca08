"""The framework's requests and responses in the normal form."""

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from agents import FunctionTool, Handoff, ModelResponse, ModelSettings
from pydantic import BaseModel

from playhead.core.protocol import openai_responses
from playhead.core.protocol.openai_chat import read_choice
from playhead.core.protocol.parts import Message, stored
from playhead.core.protocol.shape import is_list, is_object, objects
from playhead.core.protocol.usage import openai as read_usage
from playhead.core.values import JSON, Usage

_NOT_PARAMS = frozenset(
    {
        "tool_choice",
        "extra_headers",
        "extra_query",
        "extra_args",
        "retry",
        "timeout",
        "include_usage",
        "preserve_raw_usage",
        "response_include",
    }
)
_GENERATED_KEY = "agents-sdk:"
"""How cache keys begin that the framework makes up for a run; they say nothing about what is asked."""


def plain(value: Any) -> Any:
    """A value of the framework's settings or items as plain JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if is_object(value):
        return {str(k): plain(v) for k, v in value.items()}
    if is_list(value) or isinstance(value, tuple):
        return [plain(v) for v in cast("list[Any]", value)]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def items(given: Any) -> list[Any]:
    """A model's input as items, each a plain object."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [item if isinstance(item, dict) else plain(item) for item in given]


def conversation(system: str | None, given: Any) -> list[Any]:
    """A request as raw messages for `normal`: what the model said without a break is one."""
    return openai_responses.split({"instructions": system, "input": items(given)})


def normal(raw: Any) -> list[Any]:
    """The normal messages of one raw message."""
    return openai_responses.read_raw(raw)


def params(settings: ModelSettings, output_schema: Any = None) -> dict[str, JSON]:
    """The settings that are parameters of the request, under their common names."""
    made: dict[str, JSON] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value is not None and field.name not in _NOT_PARAMS:
            made[field.name] = stored(plain(value))
    for name, value in (settings.extra_args or {}).items():
        if not (isinstance(value, str) and value.startswith(_GENERATED_KEY)):
            made[name] = stored(plain(value))
    if output_schema is not None and not output_schema.is_plain_text():
        made["response_format"] = stored(
            {"schema": output_schema.json_schema(), "strict": output_schema.is_strict_json_schema()}
        )
    return made


def tool_choice(settings: ModelSettings) -> JSON:
    return stored(read_choice(plain(settings.tool_choice)))


class ToolForms:
    """The normal forms of offered tools. A run offers the same ones again and again, so they are kept."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, tuple[Any, ...], JSON]] = {}

    def of(self, tools: Sequence[Any], handoffs: Sequence[Any]) -> list[JSON]:
        """The tools offered, handoffs among them: the model sees no difference."""
        return [self._form(offered) for offered in (*tools, *handoffs)]

    def _form(self, offered: Any) -> JSON:
        parts = _parts(offered)
        if parts is None:
            config = _config(offered) if _has_fields(offered) else {}
            return {"name": getattr(offered, "name", type(offered).__name__), "type": "provider", "config": config}
        known = self._kept.get(id(offered))
        if known is not None and known[0] is offered and known[1] == parts:
            return known[2]
        name, description, parameters, strict = parts
        made: dict[str, JSON] = {"name": name, "description": description or "", "parameters": stored(parameters)}
        if strict:
            made["strict"] = True
        self._kept[id(offered)] = (offered, parts, made)
        return made


_RUNS = frozenset({"computer", "editor", "executor"})
"""Members of tools that run here: not what the model is told."""


def _config(offered: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in plain(offered).items()
        if value is not None and name not in _RUNS and not callable(getattr(offered, name, None))
    }


def _parts(offered: Any) -> tuple[Any, ...] | None:
    """Name, description, schema and strictness of a function or handoff; None for what the provider runs."""
    if isinstance(offered, FunctionTool):
        return offered.qualified_name, offered.description, offered.params_json_schema, offered.strict_json_schema
    if not isinstance(offered, Handoff):
        return None
    handoff = cast("Any", offered)
    return handoff.tool_name, handoff.tool_description, handoff.input_json_schema, handoff.strict_json_schema


def _has_fields(offered: Any) -> bool:
    return dataclasses.is_dataclass(offered)


def said(output: list[Any]) -> Message:
    """What the model said, given its output items as plain objects."""
    return openai_responses.read_response({"output": output, "status": "completed"}).message


def usage(response: ModelResponse) -> Usage | None:
    """Tokens in exclusive buckets; None when the response carries none."""
    counted = response.usage
    raw = {
        "input_tokens": counted.input_tokens,
        "input_tokens_details": plain(counted.input_tokens_details),
        "output_tokens": counted.output_tokens,
        "output_tokens_details": plain(counted.output_tokens_details),
    }
    return read_usage(raw) if counted.input_tokens or counted.output_tokens else None


def outputs(given: Any) -> dict[str, JSON]:
    """What a request shows of tool results, by call id, as text or stored JSON."""
    found: dict[str, JSON] = {}
    for item in objects(given):
        if str(item.get("type", "")).endswith("_call_output"):
            for message in normal([item]):
                for part in message["parts"]:
                    if part["type"] == "tool_result":
                        found[str(item.get("call_id"))] = part["content"]
    return found
