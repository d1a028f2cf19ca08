"""The override of a fork, applied to the framework's own request objects."""

import dataclasses
from typing import Any

from agents import ModelSettings

from playhead.core.override import effective
from playhead.core.protocol.openai_responses import with_system
from playhead.engine import seam

_SETTING_NAMES = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "stop_sequences": "stop"}
_FIELDS = frozenset(field.name for field in dataclasses.fields(ModelSettings))


def with_params(changes: dict[str, Any], settings: ModelSettings) -> ModelSettings:
    """The agent's settings with the override's over them; what the framework has no field for goes with the request."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = dict(settings.extra_args or {})
    for given, value in changes.items():
        name = _SETTING_NAMES.get(given, given)
        if name in _FIELDS:
            fields[name] = value
        elif value is None:
            extra.pop(name, None)
        else:
            extra[name] = value
    removed = {name: None for name, value in fields.items() if value is None}
    changed = dataclasses.replace(settings, **removed, extra_args=extra or None)
    return changed.resolve(ModelSettings(**{n: v for n, v in fields.items() if v is not None}))


def with_system_prompt(text: str, given: Any) -> Any:
    """The input without system texts of its own, which would stand beside ``text``."""
    return given if isinstance(given, str) else with_system({"input": given}, text)["input"]


def remember_system_prompt(active: seam.ActiveSession, text: str) -> None:
    active.effective_system_prompt = effective(text)
