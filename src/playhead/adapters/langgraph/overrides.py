"""The override of a fork, applied to the framework's own objects."""

from dataclasses import dataclass
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from playhead.adapters.langgraph import messages as forms
from playhead.core.override import effective, override_model
from playhead.core.policy import ReplayOverride
from playhead.core.protocol.shape import is_object, obj
from playhead.engine import seam
from playhead.errors import RefusedError

_NAMES = ("model_name", "model", "model_id", "deployment_name")
_ALSO = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "stop_sequences": "stop"}


@dataclass(slots=True)
class Asked:
    """One request as it goes out. ``model`` is the twin that was asked, or what an override put in its place."""

    model: BaseChatModel
    messages: list[BaseMessage]
    stop: list[str] | None
    kwargs: dict[str, Any]


def name_of(model: BaseChatModel, kwargs: Any = None) -> str | None:
    """The name under which a model is requested."""
    given = obj(kwargs).get("model")
    held = vars(model)
    found = given if isinstance(given, str) else next((held[n] for n in _NAMES if isinstance(held.get(n), str)), None)
    return found.removeprefix("models/") if found else None


def provider_of(model: BaseChatModel) -> str:
    """``openai`` for a model of ``langchain_openai``; else what the model says of its kind."""
    top = type(model).__module__.partition(".")[0]
    return top.removeprefix("langchain_") if top.startswith("langchain_") else model._llm_type  # pyright: ignore[reportPrivateUsage]


def apply(asked: Asked, active: seam.ActiveSession, *, root: bool) -> None:
    """Changes the request as the replay's override says, and counts what was changed.

    Raises:
        RefusedError: the framework cannot make the model that the override names.
    """
    state = active.replay
    override = state.override if state is not None else None
    if state is None or override is None:
        return
    if override.model is not None and _other_model(asked, override):
        state.override_hits["model"] += 1
    if override.system_prompt is not None and root:
        text = override.system_prompt
        if [m.content for m in asked.messages if isinstance(m, SystemMessage)] != [text]:
            state.override_hits["system_prompt"] += 1
        rest = [m for m in asked.messages if not isinstance(m, SystemMessage)]
        asked.messages = [SystemMessage(text), *rest]
        active.effective_system_prompt = effective(text)
    if override.model_params is not None:
        before = forms.params(asked.model, asked.stop, asked.kwargs)
        _with_params(asked, override.model_params)
        if forms.params(asked.model, asked.stop, asked.kwargs) != before:
            state.override_hits["model_params"] += 1


# --- another model --------------------------------------------------------------------------------------------------


def _other_model(asked: Asked, override: ReplayOverride) -> bool:
    name, provider = name_of(asked.model, asked.kwargs), provider_of(asked.model)
    named = _replacement(override, [f"{provider}:{name}" if name else None, name])
    if named is None or named in (name, f"{provider}:{name}"):
        return False
    prefix, colon, bare = named.partition(":")
    if not colon or prefix == provider:
        asked.model = _renamed(asked.model, bare if colon else named)
        asked.kwargs.pop("model", None)
        return True
    model = _made(named)
    asked.kwargs = _bound_to(model, asked.kwargs)
    asked.model = model
    return True


def _replacement(override: ReplayOverride, names: list[str | None]) -> str | None:
    for name in names:
        found = override_model(override, name) if name else None
        if found is not None and found != name:
            return found
    return None


def _renamed(model: BaseChatModel, name: str) -> BaseChatModel:
    field = next((n for n in _NAMES if n in type(model).model_fields), None)
    if field is None:
        raise RefusedError(
            f"the override's model {name!r} cannot be used: {type(model).__name__} has no name to change"
        )
    return model.model_copy(update={field: name})


def _made(named: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model

        return init_chat_model(named)
    except Exception as error:
        raise RefusedError(f"the override's model {named!r} cannot be used: {error}") from error


def _bound_to(model: BaseChatModel, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a call for another provider: tools in its own form, and what both understand."""
    offered = kwargs.get("tools")
    kept = {name: value for name, value in kwargs.items() if name in forms.PARAMS}
    if not offered:
        return kept
    binding: Any = model.bind_tools([convert_to_openai_tool(_with_parameters(tool)) for tool in offered])
    return {**kept, **binding.kwargs}


def _with_parameters(tool: Any) -> Any:
    if is_object(tool) and "input_schema" in tool:
        return {"title": tool["name"], "description": tool.get("description") or "", **tool["input_schema"]}
    return tool


# --- parameters -----------------------------------------------------------------------------------------------------


def _with_params(asked: Asked, changes: dict[str, Any]) -> None:
    """The model's own parameters with the changes over them: its fields where it has them, else the call's."""
    fields, update = type(asked.model).model_fields, dict[str, Any]()
    for given, value in changes.items():
        common = _ALSO.get(given, given)
        spelled = [n for n, c in forms.PARAMS.items() if c == common] or [given]
        own = [n for n in spelled if n in fields]
        update.update(dict.fromkeys(own, value))
        for name in spelled:
            asked.kwargs.pop(name, None)
        if common == "stop":
            asked.stop = [value] if isinstance(value, str) else value
        elif value is not None and not own:
            asked.kwargs[given] = value
    if update:
        asked.model = asked.model.model_copy(update=update)
