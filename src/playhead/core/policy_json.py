"""Policies and overrides from JSON, with errors that say where, what was given and what is allowed."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Discriminator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from playhead.core.canonical import parse_json
from playhead.core.miss import shown
from playhead.core.policy import (
    ErrorCase,
    HistoryConfig,
    HistoryModel,
    InjectConfig,
    LiveModel,
    LLMConfig,
    ModelFailure,
    ModelPolicy,
    PassthroughConfig,
    ReplayOverride,
    ScriptedOutcome,
    StaticCase,
    StaticConfig,
    ToolPolicy,
)
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON
from playhead.errors import PolicyError

ParsedT = TypeVar("ParsedT")

_TOOL_CONFIGS: dict[str, type[BaseModel]] = {
    "history": HistoryConfig,
    "static": StaticConfig,
    "passthrough": PassthroughConfig,
    "llm": LLMConfig,
    "inject": InjectConfig,
}
_MODEL_CONFIGS: dict[str, type[BaseModel]] = {"live": LiveModel, "history": HistoryModel}
_MODEL_POLICY: TypeAdapter[LiveModel | HistoryModel] = TypeAdapter(Annotated[ModelPolicy, Discriminator("type")])


def parse_policy(source: str | bytes | Mapping[str, JSON] | ToolPolicy) -> ToolPolicy:
    """A tool policy from JSON text or an object.

    Raises:
        PolicyError: with the JSON pointer, the value and what is allowed; ``details["problems"]`` lists every problem.
    """
    return source if isinstance(source, ToolPolicy) else _parsed(source, TypeAdapter(ToolPolicy), "tool policy")


def parse_model_policy(source: str | bytes | Mapping[str, JSON] | LiveModel | HistoryModel) -> ModelPolicy:
    """A model policy from JSON text or an object; the bare words ``live`` and ``history`` do too.

    Raises:
        PolicyError: as `parse_policy`.
    """
    if isinstance(source, LiveModel | HistoryModel):
        return source
    if isinstance(source, str) and source.strip() in _MODEL_CONFIGS:
        source = {"type": source.strip()}
    return _parsed(source, _MODEL_POLICY, "model policy")


def parse_override(source: str | bytes | Mapping[str, JSON] | ReplayOverride) -> ReplayOverride:
    """An override from JSON text or an object.

    Raises:
        PolicyError: as `parse_policy`.
    """
    return source if isinstance(source, ReplayOverride) else _parsed(source, TypeAdapter(ReplayOverride), "override")


def _parsed(source: str | bytes | Mapping[str, JSON], adapter: TypeAdapter[ParsedT], what: str) -> ParsedT:
    given: Any = source
    if isinstance(source, str | bytes):
        try:
            given = parse_json(source)
        except ValueError as error:
            raise PolicyError(f"the {what} is no JSON: {error}", hint="see the documentation for its form") from error
    if not isinstance(given, Mapping):
        raise PolicyError(f"the {what} is {shown(given)}; it must be an object")
    try:
        return adapter.validate_python(given)
    except ValidationError as error:
        problems = list(dict.fromkeys(_problem(given, found, what) for found in error.errors(include_url=False)))
        hint = f"also: {'; '.join(problems[1:])}" if len(problems) > 1 else None
        raise PolicyError(problems[0], hint=hint, problems=problems) from error


def _problem(given: Any, error: ErrorDetails, what: str) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    path, at = _place(given, error["loc"], absent=kind == "missing")
    where = " ".join([what, *(["".join(f"/{_escaped(step)}" for step in path)] if path else [])])
    if kind == "extra_forbidden":
        names = _fields(at, path[:-1], what)
        near = _near(str(path[-1]), names)
        return f"{where}: there is no field {path[-1]!r}{near}; allowed: {', '.join(names)}"
    if kind == "union_tag_not_found":
        return f'{where}: needs "type", one of {", ".join(_types(what))}'
    if kind == "union_tag_invalid":
        tag = str(context.get("tag"))
        return (
            f"{where}/type: {shown(tag)} is not allowed{_near(tag, _types(what))}; allowed: {', '.join(_types(what))}"
        )
    value = shown(error["input"])
    if kind == "literal_error":
        allowed = str(context.get("expected", "")).replace(" or ", ", ")
        near = _near(str(error["input"]), [a.strip(" '") for a in allowed.split(",")])
        return f"{where}: {value} is not allowed{near}; allowed: {allowed}"
    if kind == "missing":
        return f"{where}: is missing"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message[:1].lower()}{message[1:]} (given: {value})"


def _place(given: Any, location: tuple[str | int, ...], *, absent: bool) -> tuple[list[str | int], Any]:
    """The JSON path of a pydantic location, whose words for union members are left out, and the object around it.

    ``absent``: the last step is a member that is not there.
    """
    path: list[str | int] = []
    value: Any = given
    around: Any = given
    steps: tuple[Any, ...] = location
    for n, step in enumerate(steps):
        inside = (is_object(value) and step in value) or (is_list(value) and isinstance(step, int))
        if not inside and not (absent and n == len(steps) - 1):
            continue
        path.append(step)
        around = value
        value = around[step] if inside else None
    return path, around


def _fields(at: Any, path: list[str | int], what: str) -> list[str]:
    """The fields that the object at ``path`` may have."""
    last = path[-1] if path else ""
    parent = path[-2] if len(path) > 1 else ""
    model: type[BaseModel] = ReplayOverride if what == "override" else ToolPolicy
    if parent == "cases":
        model = StaticCase
    elif last == "error":
        model = ErrorCase
    elif last == "corrected":
        model = ScriptedOutcome
    elif last == "inject" and what == "model policy":
        model = ModelFailure
    elif is_object(at) and "type" in at:
        configs = _MODEL_CONFIGS if what == "model policy" else _TOOL_CONFIGS
        model = configs.get(str(at["type"]), model)
    return [field.serialization_alias or name for name, field in model.model_fields.items()]


def _types(what: str) -> list[str]:
    return list(_MODEL_CONFIGS if what == "model policy" else _TOOL_CONFIGS)


def _near(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")
