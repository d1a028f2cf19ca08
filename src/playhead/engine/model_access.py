"""How trials ask models: the model layer, any OpenAI-compatible address, or answers that were given before.

The layer is pydantic-ai's, an extra; nothing of it is imported before a model is asked for.
"""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message, as_arguments, as_text, plain
from playhead.core.protocol.shape import obj
from playhead.core.redaction.redact import Redactor
from playhead.core.strict_schema import strict_form
from playhead.core.suites.drive import ModelAsk, ModelSaid
from playhead.core.suites.suite import ToolSchema
from playhead.core.suites.tool_names import mapped, renamed
from playhead.core.values import JSON, Usage
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.egress import own_traffic
from playhead.engine.pricing import price
from playhead.errors import MissError, ModelAccessError, RefusedError

Strict: TypeAlias = Literal["auto", "on", "off"]
SUPPORTS_STRICT: Final = frozenset({"openai", "azure"})
"""Providers whose strict mode is known to hold; of others nothing is known."""
_SETTINGS: Final = {
    "temperature": "temperature", "max_tokens": "max_tokens", "top_p": "top_p", "top_k": "top_k", "stop":
    "stop_sequences", "stop_sequences": "stop_sequences", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "parallel_tool_calls": "parallel_tool_calls",
}  # fmt: skip


class Place(NamedTuple):
    """Which trial asks."""

    case: str
    n: int


class Access(Protocol):
    """A model that trials can ask. ``strict`` says of which of the tools it would be sent strict schemas."""

    name: str

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        """
        Raises:
            TryAgainError: for now the model could not be asked.
            TrialFailedError: the request itself was refused; the trial's own failure.
            ModelAccessError: the model cannot be asked at all.
        """
        ...

    def strict(self, tools: Sequence[ToolSchema]) -> "StrictUse": ...

    async def close(self) -> None:
        """Called inside the loop that asked, when no more is asked in it."""
        ...


class TryAgainError(Exception):
    """A rate limit, an overloaded server, a broken connection. ``after``: seconds that the server asked to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class TrialFailedError(Exception):
    """The provider refused this request: too long for the context, or not acceptable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictUse:
    """Whether all tools are sent with strict schemas, and why not each that is not."""

    on: bool = False
    reasons: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class LayerAccess:
    """A model of the model layer.

    Args:
        name: ``provider:name``, or the bare name at ``base_url``.
        base_url: an OpenAI-compatible address.
        key_env: the environment variable with its key.
    """

    name: str
    base_url: str | None = None
    key_env: str | None = None
    strict_mode: Strict = "auto"
    clock: Clock = SYSTEM_CLOCK
    _model: Any = None

    def check(self) -> None:
        """Builds the client.

        Raises:
            RefusedError: the model layer is not installed, the key is missing, or there is no such provider.
        """
        if importlib.util.find_spec("pydantic_ai") is None:
            raise RefusedError("asking a model needs the model layer", hint="pip install 'playhead[llm]'")
        if self._model is None:
            self._model = _at_address(self) if self.base_url else _of_provider(self.name)

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        provider = self.name.partition(":")[0]
        if self.strict_mode == "off":
            return StrictUse()
        if self.strict_mode == "auto" and (self.base_url or provider not in SUPPORTS_STRICT):
            return StrictUse(reasons=("strict mode of this provider: unknown",))
        reasons = [f"{tool.name}: {why}" for tool in tools if (why := strict_form(tool.parameters).why)]
        return StrictUse(on=bool(tools) and not reasons, reasons=tuple(reasons))

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        from pydantic_ai.direct import model_request

        self.check()
        sent, back = mapped(ask)
        use = self.strict(ask.tools)
        started = self.clock.tick()
        try:
            with own_traffic():
                response = await model_request(
                    self._model,
                    _messages(sent.messages),
                    model_settings=_settings(sent),
                    model_request_parameters=_parameters(sent, strict=use.on),
                )
        except Exception as error:
            raise translated(error, self.name) from error
        elapsed = (self.clock.tick() - started) / 1_000_000
        return _said(response, back, self.name, elapsed)

    async def close(self) -> None:
        client: Any = getattr(self._model, "client", None)
        self._model = None  # a client belongs to the loop in which it was used
        if hasattr(client, "close"):
            await client.close()


def _at_address(access: LayerAccess) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key = os.environ.get(access.key_env, "") if access.key_env else "none"
    if not key:
        raise RefusedError(f"the environment variable {access.key_env} holds no key", hint="set it, or leave --key-env")
    client = AsyncOpenAI(base_url=access.base_url, api_key=key, max_retries=0)
    return OpenAIChatModel(access.name, provider=OpenAIProvider(openai_client=client))


def _of_provider(name: str) -> Any:
    from pydantic_ai.models import infer_model

    try:
        model = infer_model(name)
    except Exception as error:
        raise RefusedError(f"model {name!r} cannot be used: {error}", hint="name it as provider:name") from error
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0  # retries are counted and waited for here
    return model


def translated(error: Exception, name: str) -> Exception:
    """The layer's errors by what they mean for a trial."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

    told = Redactor().redact_text(f"model {name!r}: {error}")  # providers repeat keys, and trials are exported
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        if status in (408, 409, 429) or status >= 500:
            return TryAgainError(told, getattr(error, "retry_after", None))
        if status in (401, 402, 403, 404):
            return ModelAccessError(told)
        return TrialFailedError(told)
    if isinstance(error, ModelAPIError | ConnectionError | TimeoutError):
        return TryAgainError(told, getattr(error, "retry_after", None))
    if isinstance(error, LookupError | TypeError):  # of the layer itself, over an answer of another form
        return ModelAccessError(f"model {name!r}: its answer could not be read ({type(error).__name__})")
    return ModelAccessError(told)


# --- to the layer ---------------------------------------------------------------------------------------------------


def _messages(messages: Sequence[Message]) -> list[Any]:
    from pydantic_ai.messages import ModelRequest

    made: list[Any] = []
    waiting: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            if waiting:
                made.append(ModelRequest(parts=waiting))
                waiting = []
            made.append(_response(message))
        else:
            waiting += _request_parts(message)
    return [*made, ModelRequest(parts=waiting)] if waiting else made


def _request_parts(message: Message) -> list[Any]:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    made: list[Any] = []
    for part in message["parts"]:
        if part["type"] == "tool_result":
            content = part["content"]
            shown: Any = content if isinstance(content, str) else as_text(content)
            made.append(ToolReturnPart(tool_name=part["name"] or "tool", content=shown, tool_call_id=str(part["id"])))
        elif part["type"] == "text":
            made.append((SystemPromptPart if message["role"] == "system" else UserPromptPart)(content=part["text"]))
        elif part["type"] == "media":
            made.append(UserPromptPart(content=[_media(part)]))
    return made


def _media(part: parts.Part) -> Any:
    import base64

    from pydantic_ai.messages import BinaryContent, ImageUrl

    if "url" in part:
        return ImageUrl(url=part["url"])
    return BinaryContent(data=base64.b64decode(part["data"]), media_type=part["media_type"] or "image/png")


def _response(message: Message) -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    made: list[Any] = []
    for part in message["parts"]:
        if part["type"] == "text":
            made.append(TextPart(content=part["text"]))
        elif part["type"] == "tool_call":
            made.append(ToolCallPart(tool_name=part["name"], args=as_arguments(part), tool_call_id=str(part["id"])))
    return ModelResponse(parts=made)


def _parameters(ask: ModelAsk, *, strict: bool) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description or None,
                parameters_json_schema=plain(strict_form(tool.parameters).schema if strict else tool.parameters),
                strict=strict,
            )
            for tool in ask.tools
        ]
    )


def _settings(ask: ModelAsk) -> Any:
    made: dict[str, Any] = {_SETTINGS[k]: v for k, v in ask.params.items() if k in _SETTINGS and v is not None}
    if ask.seed is not None:
        made["seed"] = ask.seed % 2**31  # some providers take no more
    if ask.tools:
        made["tool_choice"] = ask.tool_choice
    if isinstance(made.get("stop_sequences"), str):
        made["stop_sequences"] = [made["stop_sequences"]]
    return made


# --- from the layer -------------------------------------------------------------------------------------------------


def _said(response: Any, back: Mapping[str, str], name: str, elapsed: float) -> ModelSaid:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    made: list[parts.Part] = []
    for part in response.parts:
        kind = getattr(part, "part_kind", "")
        if kind == "text" and part.content:
            made.append(parts.text(part.content))
        elif kind == "thinking":
            made.append(parts.reasoning(part.content or ""))
        elif kind == "tool-call":
            made.append(parts.call(part.tool_name, part.args, part.tool_call_id))
    message = renamed(parts.message("assistant", made, finish_reason=parts.finish(response.finish_reason)), back)
    usage = _usage(response.usage)
    provider = getattr(response, "provider_name", None)
    asked = name.rpartition(":")[2]
    cost = price(usage, response.model_name, provider) or price(usage, asked, provider) or price(usage, asked, None)
    return ModelSaid(
        message=message,
        usage=usage,
        cost=None if cost is None else cost.amount,
        latency_ms=round(elapsed, 3),
        served=response.model_name,
        raw=ModelMessagesTypeAdapter.dump_python([response], mode="json")[0],
    )


def _usage(usage: Any) -> Usage:
    read, write = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    thought: int = obj(usage.details).get("reasoning_tokens", 0)
    return Usage(
        input_uncached=max(0, usage.input_tokens - read - write),
        input_cache_read=read,
        input_cache_write=write,
        output_visible=max(0, usage.output_tokens - thought),
        output_reasoning=thought,
    )


# --- answers that were given before ---------------------------------------------------------------------------------


class RecordedAnswers:
    """Answers with what each case's own recording did: the agent that was recorded, offline."""

    def __init__(self, cases: Mapping[str, Any]) -> None:
        self.name = "recorded"
        self._cases = cases

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        """Nothing is open."""

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        from playhead.core.suites.messages import round_messages

        case = self._cases[at.case]
        if not case.recorded and case.answer is None:
            raise MissError(f"of case {at.case} nothing is recorded")
        done = 0 if ask.purpose == "turn" else len(case.recorded) if ask.purpose == "outcome" else ask.step
        if done < len(case.recorded):
            return ModelSaid(message=round_messages(case.recorded[done])[0], served="recorded")
        return ModelSaid(message=parts.message("assistant", parts.texts([case.answer or ""])), served="recorded")


class EarlierAnswers:
    """Answers with those of an earlier run: the same request of the same trial gets the same response."""

    def __init__(self, name: str, answers: Mapping[tuple[str, int], Mapping[str, ModelSaid]], digest: Any) -> None:
        self.name = name
        self._answers, self._digest = answers, digest

    def strict(self, tools: Sequence[ToolSchema]) -> StrictUse:
        return StrictUse()

    async def close(self) -> None:
        """Nothing is open."""

    async def ask(self, ask: ModelAsk, at: Place) -> ModelSaid:
        found = self._answers.get((at.case, at.n), {}).get(self._digest(ask))
        if found is None:
            raise MissError(f"no recorded answer for this request of case {at.case}, run {at.n}")
        return replace(found, latency_ms=None)


def request_json(ask: ModelAsk) -> JSON:
    """A request as it is stored."""
    return {
        "messages": list(ask.messages),
        "tools": [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in ask.tools],
        "tool_choice": ask.tool_choice,
        "params": dict(ask.params),
    }
