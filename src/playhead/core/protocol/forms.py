"""What a provider form is read into."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.core.protocol.parts import Message, Part, calls_of
from playhead.core.values import JSON, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model request in normal form. ``missing`` names what the source did not capture."""

    model: str | None
    messages: list[Message]
    tools: list[JSON] = field(default_factory=list[JSON])
    tool_choice: JSON = None
    params: dict[str, JSON] = field(default_factory=dict[str, JSON])
    stream: bool = False
    missing: tuple[str, ...] = ()

    @property
    def inputs(self) -> JSON:
        """The form that a node keeps as its inputs."""
        return {
            "messages": self.messages, "tools": self.tools, "tool_choice": self.tool_choice, "params": self.params,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A model's answer in normal form. ``error`` is the provider's own error object, also inside a stream."""

    message: Message
    model: str | None = None
    response_id: str | None = None
    usage: Usage | None = None
    error: JSON = None

    @property
    def finish_reason(self) -> str | None:
        return self.message.get("finish_reason")

    @property
    def calls(self) -> list[Part]:
        """The tool calls to announce, in order; every one has an id."""
        return calls_of(self.message)


class Event(NamedTuple):
    """One server-sent event: its name, if it has one, and its data."""

    name: str | None
    data: Any


PARAM_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "stop_sequences": "stop",
    "stopSequences": "stop",
    "topP": "top_p",
    "topK": "top_k",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "candidateCount": "n",
}
"""Parameter names of the providers that have a common name. Others keep their own."""

UNCOMPARED = frozenset({"stream", "stream_options"})
"""How the answer travels, not what is asked: never a parameter."""


def params_of(body: dict[str, Any], *, without: frozenset[str]) -> dict[str, Any]:
    """The members of a request that are parameters, under their common names."""
    return {
        PARAM_NAMES.get(name, name): value
        for name, value in body.items()
        if value is not None and name not in without and name not in UNCOMPARED
    }


def merge_params(body: dict[str, Any], params: dict[str, Any], names: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """``body`` with ``params`` merged in, null removing one.

    ``names`` gives, for a common name, the provider's names for it: the one in the request is used, else the first.
    """
    merged = dict(body)
    for name, value in params.items():
        spellings = names.get(name, (name,))
        present = [s for s in spellings if s in merged]
        for spelling in present:
            del merged[spelling]
        if value is not None:
            merged[present[0] if present else spellings[0]] = value
    return merged
