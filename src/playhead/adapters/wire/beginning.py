"""The beginning of a model request on the wire: what it asks, changed by overrides, and its exchange."""

from dataclasses import replace
from typing import Any

from playhead.adapters.wire.exchange import Exchange, guarded
from playhead.adapters.wire.overriding import overridden
from playhead.core.canonical import parse_json, render
from playhead.core.protocol.forms import Request
from playhead.core.protocol.providers import FORMS, Place, place_of, read_rest
from playhead.core.protocol.shape import is_object
from playhead.engine.egress import is_own_traffic
from playhead.engine.frames import FRAME
from playhead.engine.pricing import prepare
from playhead.engine.seam import ActiveSession, ModelRequest, ModelStep, current

_PROVIDERS = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "google",
}


class Begun:
    """An exchange and the request to send for it: changed body and path, or None where nothing changed."""

    __slots__ = ("body", "exchange", "path")

    def __init__(self, exchange: Exchange, body: bytes | None, path: str) -> None:
        self.exchange = exchange
        self.body = body
        self.path = path


def begin(path: str, content: bytes | None, module: str) -> Begun | None:
    """Opens an exchange for a POST; None for what is no model request, not in a session, or another seam's.

    Args:
        content: the request's body, None when it cannot be had without consuming it.
        module: the client library, for the names of its exceptions.

    Raises:
        ReplayStop: a stop is latched, or this is a replay and the request cannot be understood.
    """
    place = place_of(path)
    if place is None or is_own_traffic() or isinstance(FRAME.get(), ModelStep):
        return None
    active = current()
    if active is None:
        return None
    prepare()
    with guarded(active, "reading a model request"):
        return _begin(active, place, path, content, module)
    return None


class _LastTools:
    """The tools of the last requests: agents offer the same ones each time, and comparing costs less than reading."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[str, bytes, list[Any]], ...] = ()

    def of(self, form: str, raw: Any) -> list[Any]:
        """The tools in normal form; the same list for the same ones. Told by their text: 1 equals true."""
        text = render(raw)
        for known, known_text, tools in self._kept:
            if known == form and known_text == text:
                return tools
        tools = FORMS[form].read_request({"tools": raw}).tools
        self._kept = ((form, text, tools), *self._kept[:7])
        return tools


_last_tools = _LastTools()


def _read_rest(place: Place, body: dict[str, Any]) -> Request:
    """What a request says beside its messages."""
    raw = body.get("tools")
    if not raw:
        return read_rest(place, body)
    read = read_rest(place, {k: v for k, v in body.items() if k != "tools"})
    return replace(read, tools=_last_tools.of(place.form, raw))


def _begin(active: ActiveSession, place: Place, path: str, content: bytes | None, module: str) -> Begun | None:
    body = parse_json(content) if content is not None else None
    if not is_object(body):
        raise ValueError(f"the body of a model request to {path!r} is not a JSON object that can be read")
    made = overridden(active, place, body, path)
    place = place_of(made.path) or place
    asked = _read_rest(place, made.body)
    form = FORMS[place.form]
    alone = form.stands_alone(made.body)
    step = active.model_call(
        asked.model or place.form,
        request=ModelRequest(
            messages=form.split(made.body) if alone else form.read_request(made.body).messages,
            to_normal=form.read_raw if alone else None,
            tools=asked.tools,
            tool_choice=asked.tool_choice,
            params=asked.params,
            model=asked.model,
            provider=_PROVIDERS[place.form],
            protocol=place.form,
        ),
    )
    if not isinstance(step, ModelStep):
        return None
    changed = render(made.body) if made.fields else None
    return Begun(Exchange(active, step, place, asked, module), changed, made.path)
