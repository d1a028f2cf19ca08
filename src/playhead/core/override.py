"""The one thing that a fork changes, applied: model, system prompt, prompt, model parameters.

Works on model requests in normal form and on session inputs. Adapters whose framework wants its own objects use the
same functions on the parts that they can show in normal form. What changed is counted by field, because a field that
changed nothing by the end fails the replay.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.core.match import equal
from playhead.core.policy import ReplayOverride
from playhead.core.protocol.shape import is_list, is_object, objects
from playhead.core.values import JSON
from playhead.errors import PolicyError

PROMPT_LIMIT = 100_000
"""Characters of an effective prompt that a session keeps; a longer one is kept cut, with a mark."""

_PROMPT_FIELDS = ("prompt", "user_prompt", "input", "question", "query", "message", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenRequest:
    """A model request with the override applied. ``changed`` names the fields that made a difference."""

    model: str | None
    request: dict[str, JSON]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenInputs:
    """Session inputs with the prompt override applied.

    ``effective`` is the prompt (by turn, where turns were named) that the agent starts with, None where none was
    given; ``changed`` is whether it differs from the recorded one.
    """

    inputs: JSON
    effective: JSON = None
    changed: bool = False


# --- what is allowed ------------------------------------------------------------------------------------------------


def check_override(override: ReplayOverride, *, turns: int = 0) -> list[str]:
    """Why the override cannot be applied to a session of so many turns (0 and 1 are one); empty when it can."""
    prompt = override.prompt
    if isinstance(prompt, str) and turns > 1:
        return [
            f"/override/prompt: the session has {turns} turns, and one text cannot stand for them: "
            'name the turn, as {"0": "..."}'
        ]
    if not isinstance(prompt, dict):
        return []
    last = max(turns, 1) - 1
    reasons = ["/override/prompt: names no turn"] if not prompt else []
    for turn in prompt:
        if not turn.isdecimal() or str(int(turn)) != turn or int(turn) > last:
            known = "only turn 0" if last == 0 else f"turns 0 to {last}"
            reasons.append(f"/override/prompt/{turn}: {turn!r} is no turn of the session, which has {known}")
    return reasons


# --- model requests -------------------------------------------------------------------------------------------------


def override_request(
    override: ReplayOverride | None,
    model: str | None,
    request: Mapping[str, JSON],
    *,
    served: str | None = None,
    root: bool = True,
) -> OverriddenRequest:
    """A model request as it goes out; the one given is not changed.

    Args:
        model: the requested name; ``served`` is looked up where a nameless model is overridden by a map.
        request: ``messages``, ``tools``, ``tool_choice`` and ``params`` in normal form.
        root: whether the root agent asks; sub-agents keep their system text.
    """
    result = dict(request)
    if override is None:
        return OverriddenRequest(model=model, request=result)
    changed: list[str] = []
    new_model = override_model(override, model, served=served)
    if new_model != model:
        changed.append("model")
    if override.system_prompt is not None and root:
        messages = objects(result.get("messages"))
        result["messages"] = with_system_prompt(messages, override.system_prompt)
        if not equal(result["messages"], messages):
            changed.append("system_prompt")
    if override.model_params is not None:
        params: Any = result.get("params") or {}
        result["params"] = merge_params(params, override.model_params)
        if not equal(result["params"], params):
            changed.append("model_params")
    return OverriddenRequest(model=new_model, request=result, changed=tuple(changed))


def override_model(override: ReplayOverride, requested: str | None, *, served: str | None = None) -> str | None:
    """The model to ask in place of ``requested``: it itself where nothing is said about it.

    A map is asked for the requested name with its provider prefix (``openai:``, ``openai/``), then without it, then,
    for a model without a name, for the served name.
    """
    if override.model is None or isinstance(override.model, str):
        return override.model if override.model is not None else requested
    for name in _names(requested if requested is not None else served):
        if name in override.model:
            return override.model[name]
    return requested


def _names(model: str | None) -> list[str]:
    names = [model] if model else []
    for separator in (":", "/"):
        _, mark, bare = (model or "").partition(separator)
        if mark and bare:
            names.append(bare)
    return names


def with_system_prompt(messages: Sequence[JSON], text: str) -> list[JSON]:
    """The messages with one system message, the text, in front and no other system text."""
    rest = [m for m in messages if not (is_object(m) and m.get("role") == "system")]
    return [{"role": "system", "parts": [{"type": "text", "text": text}]}, *rest]


def merge_params(params: Mapping[str, JSON], changes: Mapping[str, JSON]) -> dict[str, JSON]:
    """The agent's own parameters with the changes over them; null removes one."""
    merged = {**params, **changes}
    return {name: value for name, value in merged.items() if value is not None or name not in changes}


# --- inputs ---------------------------------------------------------------------------------------------------------


def override_inputs(override: ReplayOverride | None, inputs: JSON) -> OverriddenInputs:
    """The inputs that the agent starts with; those given are not changed.

    The prompt is the text itself, a member of that meaning (``prompt``, ``user_prompt``, ``input``, ``question``,
    ``query``, ``message``, ``text``), the only text among the members, or the last user message of ``messages``. Of
    inputs with ``turns`` each turn's text or input is.

    Raises:
        PolicyError: the inputs show no prompt that could be replaced, or the override names a turn that is not there.
    """
    if override is None or override.prompt is None:
        return OverriddenInputs(inputs=inputs)
    turns = inputs.get("turns") if is_object(inputs) else None
    if not is_list(turns):
        text = override.prompt if isinstance(override.prompt, str) else _only_turn(override.prompt)
        replaced = _with_prompt(inputs, text)
        return OverriddenInputs(inputs=replaced, effective=effective(text), changed=not equal(replaced, inputs))
    reasons = check_override(override, turns=len(turns))
    if reasons:
        raise PolicyError(reasons[0])
    by_turn = {"0": override.prompt} if isinstance(override.prompt, str) else override.prompt
    new = [_with_prompt(t, by_turn[str(i)]) if str(i) in by_turn else t for i, t in enumerate(turns)]
    return OverriddenInputs(
        inputs={**inputs, "turns": new},
        effective={turn: effective(text) for turn, text in by_turn.items()},
        changed=not equal(new, turns),
    )


def _only_turn(prompt: Mapping[str, str]) -> str:
    if list(prompt) != ["0"]:
        raise PolicyError(f"/override/prompt: the session has only turn 0, not {', '.join(prompt) or 'none'}")
    return prompt["0"]


def _with_prompt(inputs: JSON, text: str) -> JSON:
    if isinstance(inputs, str) or inputs is None:
        return text
    if is_list(inputs):
        return _with_last_user(inputs, text)
    if is_object(inputs):
        name = _prompt_member(inputs)
        if name is not None:
            return {**inputs, name: _with_prompt(inputs[name], text)}
        if is_list(inputs.get("messages")):
            return {**inputs, "messages": _with_last_user(inputs["messages"], text)}
    raise PolicyError(
        "/override/prompt: the recorded inputs show no prompt to replace",
        hint='inputs need a text, a member "prompt" or "messages"',
    )


def _prompt_member(inputs: Mapping[str, JSON]) -> str | None:
    named = next((n for n in _PROMPT_FIELDS if n in inputs and not is_object(inputs[n])), None)
    if named is not None or is_list(inputs.get("messages")):
        return named
    texts = [n for n, value in inputs.items() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def _with_last_user(messages: Sequence[JSON], text: str) -> list[JSON]:
    """The messages with the last user message's text replaced. A list of bare parts or texts is the prompt itself."""
    roles = [m.get("role") if is_object(m) else None for m in messages]
    if "user" not in roles:
        if any(roles):
            raise PolicyError("/override/prompt: the recorded messages have none from the user")
        return [text]
    last = len(roles) - 1 - roles[::-1].index("user")
    old: dict[str, JSON] = messages[last]
    new = {**old, "parts": [{"type": "text", "text": text}]} if "parts" in old else {**old, "content": text}
    return [*messages[:last], new, *messages[last + 1 :]]


# --- what is kept ---------------------------------------------------------------------------------------------------


def effective(text: str, limit: int = PROMPT_LIMIT) -> JSON:
    """The text as a session keeps it; above ``limit`` characters its beginning, with a mark that says so."""
    if len(text) <= limit:
        return text
    return {"text": text[:limit], "truncated": True, "characters": len(text)}


def unapplied(override: ReplayOverride | None, hits: Mapping[str, int]) -> list[str]:
    """The fields of the override that changed nothing, by the counts of what each changed."""
    given: Collection[str] = override.model_dump(exclude_none=True) if override is not None else ()
    return [name for name in given if not hits.get(name)]
