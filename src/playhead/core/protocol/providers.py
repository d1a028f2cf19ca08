"""The provider forms by name and by the path of a request, and overrides in a form's own names."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from playhead.core.protocol import anthropic_messages, gemini, openai_chat, openai_responses
from playhead.core.protocol.forms import Event, Request, Response
from playhead.core.protocol.parts import Message


class Form(Protocol):
    """What the module of a provider form offers. Bodies are plain JSON, never changed in place."""

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant
    def read_request(self, body: dict[str, Any], /) -> Request: ...
    def read_response(self, body: dict[str, Any], /) -> Response: ...
    def read_stream(self, events: Iterable[Event], /) -> dict[str, Any]: ...
    def split(self, body: dict[str, Any], /) -> list[Any]: ...
    def read_raw(self, raw: Any, /) -> list[Message]: ...
    def stands_alone(self, body: dict[str, Any], /) -> bool: ...
    def write_message(self, said: Message, /) -> list[dict[str, Any]]: ...
    def write_response(self, answer: Response, /) -> dict[str, Any]: ...
    def write_stream(self, body: dict[str, Any], /) -> list[Event]: ...
    def with_model(self, body: dict[str, Any], name: str, /) -> dict[str, Any]: ...
    def with_system(self, body: dict[str, Any], prompt: str, /) -> dict[str, Any]: ...
    def with_params(self, body: dict[str, Any], params: dict[str, Any], /) -> dict[str, Any]: ...


FORMS: dict[str, Form] = {
    openai_chat.NAME: openai_chat,
    openai_responses.NAME: openai_responses,
    anthropic_messages.NAME: anthropic_messages,
    gemini.NAME: gemini,
}

_ENDINGS = {
    "/chat/completions": openai_chat.NAME,
    "/responses": openai_responses.NAME,
    "/messages": anthropic_messages.NAME,
}
_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<call>generateContent|streamGenerateContent)$")


class Place(NamedTuple):
    """What a path says: the form, the model where it stands in the path, whether the answer is a stream."""

    form: str
    model: str | None = None
    stream: bool | None = None


def place_of(path: str) -> Place | None:
    """The form that a POST to ``path`` (without its query) belongs to; None when it is no model call."""
    path = path.rstrip("/")
    if (found := _GEMINI.search(path)) is not None:
        return Place(gemini.NAME, found["model"], found["call"] == "streamGenerateContent")
    name = next((form for ending, form in _ENDINGS.items() if path.endswith(ending)), None)
    return None if name is None else Place(name)


def with_model_in_path(path: str, name: str) -> str:
    """The path of a request to another model; unchanged where it names none."""
    found = _GEMINI.search(path)
    return path if found is None else f"{path[: found.start('model')]}{name}{path[found.end('model') :]}"


def read_request(place: Place, body: dict[str, Any]) -> Request:
    """The request in normal form, with what only the path says."""
    read = FORMS[place.form].read_request(body)
    return replace(
        read,
        model=read.model if place.model is None else place.model,
        stream=read.stream if place.stream is None else place.stream,
    )


_DIALOGUE = frozenset(
    {"messages", "input", "contents", "system", "instructions", "systemInstruction", "system_instruction"}
)


def read_rest(place: Place, body: dict[str, Any]) -> Request:
    """`read_request` without the messages, for who reads those one by one."""
    return read_request(place, {k: v for k, v in body.items() if k not in _DIALOGUE})
