"""The override of a fork, applied to the framework's own request objects.

What is replaced is decided by the core's functions; here their answers go back into the framework's objects.
"""

from dataclasses import replace
from typing import Any

from pydantic_ai.messages import InstructionPart, ModelMessage, ModelRequest, SystemPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, infer_model

from playhead.core.override import effective, merge_params, override_model
from playhead.core.policy import ReplayOverride
from playhead.engine import seam
from playhead.errors import RefusedError

_SYSTEM_KINDS = frozenset({"system-prompt", "instruction-delta"})
_SETTING_NAMES = {"stop": "stop_sequences", "max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}


def model_for(override: ReplayOverride | None, model: Model, model_id: str | None) -> Model:
    """The model to ask in place of ``model``; itself where the override says nothing about it.

    Raises:
        RefusedError: the framework cannot make the model that the override names.
    """
    if override is None or override.model is None:
        return model
    named = _replacement(override, [model_id, _full_name(model), model.model_name])
    if named is None or named in (model_id, _full_name(model)):
        return model
    try:
        return infer_model(named)
    except Exception as error:
        raise RefusedError(f"the override's model {named!r} cannot be used: {error}") from error


def _replacement(override: ReplayOverride, names: list[str | None]) -> str | None:
    for name in names:
        found = override_model(override, name) if name else None
        if found is not None and found != name:
            return found
    return None


def _full_name(model: Model) -> str:
    return f"{model.system}:{model.model_name}"


def with_system_prompt(
    text: str, messages: list[ModelMessage], parameters: ModelRequestParameters
) -> tuple[list[ModelMessage], ModelRequestParameters]:
    """The request with ``text`` as its only system text."""
    kept = [_with_text(message, text) for message in messages]
    return [m for m in kept if m.parts or not isinstance(m, ModelRequest)], replace(
        parameters, instruction_parts=[InstructionPart(content=text, dynamic=False)]
    )


def _with_text(message: ModelMessage, text: str) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [p for p in message.parts if p.part_kind not in _SYSTEM_KINDS]
    if len(parts) == len(message.parts) and not message.instructions:
        return message
    return replace(message, parts=parts, instructions=text if message.instructions else None)


def system_texts(messages: list[ModelMessage], parameters: ModelRequestParameters) -> list[str]:
    """Every system text of a request, in the order in which the model reads them."""
    found = [part.content for part in parameters.instruction_parts or ()]
    for message in messages:
        if isinstance(message, ModelRequest):
            found += [p.content for p in message.parts if isinstance(p, SystemPromptPart)]
    return found


def with_params(params: dict[str, Any], settings: Any) -> dict[str, Any]:
    """The agent's settings with the override's over them, under the framework's names."""
    return merge_params(settings or {}, {_SETTING_NAMES.get(name, name): value for name, value in params.items()})


def remember_system_prompt(active: seam.ActiveSession, text: str) -> None:
    active.effective_system_prompt = effective(text)
