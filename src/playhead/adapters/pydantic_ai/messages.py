"""PydanticAI's messages, tools and settings in the normal form."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import messages as m
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from playhead.core.protocol.parts import (
    Message,
    Part,
    call,
    finish,
    media,
    message,
    other,
    reasoning,
    result,
    stored,
    text,
    texts,
)
from playhead.core.values import JSON, Usage

_UNSENT = frozenset({"instruction-baseline", "instruction-digest"})
"""Parts that the framework keeps for itself; the model does not see them."""

_BOOKKEEPING = frozenset({"timestamp", "run_id", "conversation_id"})

_FAILED = frozenset({"failed", "denied", "retried", "interrupted"})

_PARAM_NAMES = {"stop_sequences": "stop"}
"""Setting names of the framework that have another common name."""


def instructions(parameters: ModelRequestParameters) -> list[Message]:
    """The system message that the request's instructions make, if there are any."""
    found = [str(part.content) for part in parameters.instruction_parts or ()]
    return [message("system", [text("\n\n".join(found))])] if found else []


def normal(raw: m.ModelMessage) -> list[Message]:
    """One message of the framework as messages of the normal form, a tool result each."""
    return [response_message(raw)] if isinstance(raw, m.ModelResponse) else _request(raw)


def _request(raw: m.ModelRequest) -> list[Message]:
    made: list[Message] = []
    for part in raw.parts:
        made += _request_part(part)
    return made


def _request_part(part: Any) -> list[Message]:
    kind = part.part_kind
    if kind == "system-prompt":
        return [message("system", [text(part.content)])]
    if kind == "user-prompt":
        return [message("user", user_parts(part.content))]
    if kind == "tool-return":
        return [message("tool", [_tool_return(part)])]
    if kind in ("retry-prompt", "retry-feedback"):
        return [_retry(part)]
    return [] if kind in _UNSENT else [message("user", [other(_dumped(part))])]


def _tool_return(part: Any, executor: str | None = None) -> Part:
    failed = getattr(part, "outcome", "success") in _FAILED
    content = plain(part.content)
    return result(part.tool_call_id, content, name=part.tool_name, is_error=failed, executor=executor)


def _retry(part: Any) -> Message:
    """A request to try again: about a tool call where it names one, else something the user says."""
    if getattr(part, "tool_name", None) is None:
        return message("user", [text(str(part.model_response()))])
    return message("tool", [result(part.tool_call_id, plain(part.content), name=part.tool_name, is_error=True)])


def user_parts(content: Any) -> list[Part]:
    """A user prompt's content, text or a sequence of texts and files, as parts."""
    items: Sequence[Any] = [content] if isinstance(content, str) else content
    return [part for item in items for part in _user_part(item)]


def _user_part(item: Any) -> list[Part]:
    if isinstance(item, str):
        return texts([item])
    kind = getattr(item, "kind", None)
    if kind == "text-content":
        return texts([item.content])
    if kind == "binary":
        return [media(media_type=item.media_type, data=item.base64)]
    if isinstance(kind, str) and kind.endswith("-url"):
        return [media(media_type=_media_type(item), url=item.url)]
    return [] if kind == "cache-point" else [other(_dumped(item))]


def _media_type(item: Any) -> str | None:
    try:
        return item.media_type
    except ValueError:  # a URL without a known ending
        return None


def response_message(raw: m.ModelResponse) -> Message:
    """A response as the assistant's message; the tool calls of the provider are marked."""
    parts = [made for part in raw.parts for made in _response_part(part)]
    return message("assistant", parts, finish_reason=_finish(raw))


def _finish(raw: m.ModelResponse) -> str | None:
    reason = finish(getattr(raw, "finish_reason", None))
    if reason is not None:
        return reason
    return "tool_calls" if any(p.part_kind == "tool-call" for p in raw.parts) else "stop"


def _response_part(part: Any) -> list[Part]:
    kind = part.part_kind
    if kind == "text":
        return [text(part.content)] if part.content else []
    if kind == "tool-call":
        return [call(part.tool_name, part.args, part.tool_call_id)]
    if kind == "thinking":
        return [reasoning(part.content or "", signature=part.signature)]
    if kind == "builtin-tool-call":
        return [call(part.tool_name, part.args, part.tool_call_id, executor="provider")]
    if kind == "builtin-tool-return":
        return [_tool_return(part, executor="provider")]
    if kind == "file":
        return [media(media_type=part.content.media_type, data=part.content.base64)]
    return [other(_dumped(part))]


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _dumped(part: Any) -> JSON:
    """A part without a normal form, whole but for times and ids of the run."""
    dumped: dict[str, Any] = _adapter(part.__class__).dump_python(part, mode="json", exclude_none=True)
    return {k: v for k, v in dumped.items() if k not in _BOOKKEEPING}


_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def plain(content: Any) -> Any:
    """A tool result's content as the JSON that the model is shown."""
    if content is None or type(content) in (str, int, bool):
        return content
    try:
        return _ANY.dump_python(content, mode="json")
    except ValueError:  # bytes that are not text, or an object that pydantic cannot write
        return repr(content)


class ToolForms:
    """The normal forms of offered tools. A run offers the same schemas again and again, so their forms are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Any, dict[str, JSON]]] = {}

    def of(self, parameters: ModelRequestParameters) -> list[JSON]:
        """The tools offered, output tools among them: the model sees no difference."""
        made = [self._form(definition) for definition in (*parameters.function_tools, *parameters.output_tools)]
        return made + [
            {"name": kind, "type": "provider", "config": stored(_dumped(tool))} for kind, tool in _native(parameters)
        ]

    def _form(self, definition: ToolDefinition) -> dict[str, JSON]:
        schema, form = self._kept.get(definition.name, (None, {}))
        description, strict = definition.description or "", definition.strict
        same = schema is definition.parameters_json_schema
        if same and form["description"] == description and form.get("strict") == strict:
            return form
        schema = definition.parameters_json_schema
        form = {"name": definition.name, "description": description, "parameters": stored(schema)}
        if strict is not None:
            form["strict"] = strict
        self._kept[definition.name] = (schema, form)
        return form


def _native(parameters: ModelRequestParameters) -> list[tuple[str, Any]]:
    return [(getattr(t, "kind", type(t).__name__), t) for t in getattr(parameters, "native_tools", None) or ()]


def params(settings: Any) -> dict[str, JSON]:
    """The settings that are parameters of the request, under their common names."""
    made: dict[str, JSON] = {}
    given: dict[str, Any] = settings or {}
    for name, value in given.items():
        if value is None or name in ("tool_choice", "timeout", "extra_headers"):
            continue
        made[_PARAM_NAMES.get(name, name)] = stored(plain(value))
    return made


def tool_choice(settings: Any, parameters: ModelRequestParameters) -> JSON:
    given: dict[str, Any] = settings or {}
    chosen = given.get("tool_choice")
    if chosen is not None:
        return stored(plain(chosen))
    return None if parameters.allow_text_output else "required"


def usage(raw: RequestUsage) -> Usage | None:
    """Tokens in exclusive buckets; None when the response carries none."""
    if not (raw.input_tokens or raw.output_tokens or raw.details):
        return None
    reasoned = getattr(raw, "output_reasoning_tokens", 0) or raw.details.get("reasoning_tokens", 0)
    return Usage(
        input_uncached=max(raw.input_tokens - raw.cache_read_tokens - raw.cache_write_tokens, 0),
        input_cache_read=raw.cache_read_tokens,
        input_cache_write=raw.cache_write_tokens,
        output_visible=max(raw.output_tokens - reasoned, 0),
        output_reasoning=reasoned,
        raw={name: str(count) if name == "cost" else count for name, count in vars(raw).items() if count},
    )
