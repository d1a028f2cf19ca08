"""Applies a replay's override to a request in the provider's own names."""

from typing import Any, NamedTuple

from playhead.core.override import effective, override_model
from playhead.core.policy import ReplayOverride
from playhead.core.protocol.providers import FORMS, Place, with_model_in_path
from playhead.engine.frames import FRAME
from playhead.engine.seam import ActiveSession, AgentStep, ToolStep

_PREFIXES = {
    "openai_chat": ("openai:", "openai/", "openai-chat:"),
    "openai_responses": ("openai:", "openai/", "openai-responses:"),
    "anthropic_messages": ("anthropic:", "anthropic/"),
    "gemini": ("google-gla:", "google:", "google/", "gemini/"),
}


class Overridden(NamedTuple):
    """A request after the override; ``fields`` names what changed."""

    body: dict[str, Any]
    path: str
    fields: tuple[str, ...] = ()


def overridden(active: ActiveSession, place: Place, body: dict[str, Any], path: str) -> Overridden:
    """The request as it is to be sent. The body given is not changed; hits are counted in the replay."""
    state = active.replay
    if state is None or state.override is None:
        return Overridden(body, path)
    made = _with_model(state.override, place, Overridden(body, path))
    made = _with_params(state.override, place, _with_system(state.override, place, made))
    if made.fields:
        with state.lock:
            state.override_hits.update(made.fields)
    if "system_prompt" in made.fields:
        active.effective_system_prompt = effective(state.override.system_prompt or "")
    return made


def _with_model(override: ReplayOverride, place: Place, made: Overridden) -> Overridden:
    requested = str(place.model or made.body.get("model") or "")
    wanted = _wanted(override, _PREFIXES[place.form], requested)
    if wanted == requested:
        return made
    body = FORMS[place.form].with_model(made.body, wanted)
    return Overridden(body, with_model_in_path(made.path, wanted), (*made.fields, "model"))


def _wanted(override: ReplayOverride, prefixes: tuple[str, ...], requested: str) -> str:
    """The model to ask for. Overrides may name models with the provider in front, which no provider understands."""
    for prefix in prefixes:
        named = prefix + requested
        wanted = override_model(override, named)
        if wanted is not None and wanted != named:
            return next((wanted.removeprefix(p) for p in prefixes if wanted.startswith(p)), wanted)
    return requested


def _with_system(override: ReplayOverride, place: Place, made: Overridden) -> Overridden:
    wanted = override.system_prompt
    if wanted is None or not _at_root() or _system_text(place, made.body) == wanted:
        return made  # the same text may stand in a form of the client's own
    return _changed(made, "system_prompt", FORMS[place.form].with_system(made.body, wanted))


def _system_text(place: Place, body: dict[str, Any]) -> str | None:
    said = [m for m in FORMS[place.form].read_request(body).messages if m["role"] == "system"]
    texts = [str(part.get("text")) for message in said for part in message["parts"]]
    return texts[0] if len(texts) == 1 else None


def _with_params(override: ReplayOverride, place: Place, made: Overridden) -> Overridden:
    if override.model_params is None:
        return made
    return _changed(made, "model_params", FORMS[place.form].with_params(made.body, override.model_params))


def _changed(made: Overridden, name: str, body: dict[str, Any]) -> Overridden:
    return made if body == made.body else Overridden(body, made.path, (*made.fields, name))


def _at_root() -> bool:
    """Whether this is the root agent's own call: not inside a tool, not inside a sub-agent."""
    frame: Any = FRAME.get()
    while frame is not None:
        if isinstance(frame, ToolStep | AgentStep):
            return False
        frame = frame.parent
    return True
