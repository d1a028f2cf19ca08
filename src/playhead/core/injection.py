"""Scripted failures: what the agent sees, and which later call is a fix.

An injection lies over a recording and changes nothing in it. All of this is a function of the config and the call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.core.match import equal
from playhead.core.miss import shown
from playhead.core.policy import CallView, InjectConfig, InjectKind
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.schema import first_error
from playhead.core.values import JSON, ErrorInfo, Outcome, OutcomeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an injection needs to know beyond the call.

    ``occurs``: whether a value stands in the conversation so far, so that using it is no guess. ``retry_safe``:
    whether a call of this tool with these arguments may be repeated without a second effect.
    """

    occurs: Callable[[JSON], bool] = lambda value: False
    retry_safe: Callable[[str, JSON], bool] = lambda tool, arguments: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The filled-in particulars of a failure: the failing place and value, and what would do instead."""

    pointer: str = ""
    value: JSON = None
    allowed: tuple[JSON, ...] = ()
    done: tuple[JSON, ...] = ()
    failed: tuple[JSON, ...] = ()


# --- what the agent sees --------------------------------------------------------------------------------------------

PLAIN: dict[InjectKind, JSON] = {
    "validation_error": {"error": "invalid input"},
    "not_found": "not found",
    "rate_limit": "rate limit exceeded",
    "timeout": "timed out",
    "partial": "failed",
    "error": "internal error",
}
TIMED_OUT = "timed out"  # no detail in any form: whether the effect took place stays unknown
_PROBLEMS = {
    "not_found": ("NotFoundError", 404),
    "rate_limit": ("RateLimitError", 429),
    "error": ("ServerError", 500),
}


def build(
    config: InjectConfig, call: CallView, hidden: Outcome | None = None, *, recorded: str | None = None
) -> Outcome:
    """The outcome that the injection gives to ``call``.

    Args:
        hidden: the recorded outcome that it stands over, None when there is none.
        recorded: the text of a recorded failure of this kind, for ``message: production``.
    """
    at = scene(config, call)
    value = _recorded_value(hidden, call)
    if config.kind == "partial":
        return Outcome(kind=OutcomeKind.VALUE, value=_partial(config, call, at, recorded))
    if config.kind == "empty":
        return Outcome(kind=OutcomeKind.VALUE, value=empty_like(value))
    if config.kind == "malformed":
        return Outcome(kind=OutcomeKind.VALUE, value=malformed(value, config.mode))
    text = _text(config, call, at, recorded)
    if config.kind == "validation_error":
        return Outcome(kind=OutcomeKind.INVALID_ARGS, value=text)
    return Outcome(kind=OutcomeKind.ERROR, error=_problem(config, text))


def _problem(config: InjectConfig, text: str) -> ErrorInfo:
    if config.kind == "timeout":
        return ErrorInfo(class_name="TimeoutError", module="builtins", message=text, args=[text])
    name, status = _PROBLEMS[config.kind]
    limited = config.kind == "rate_limit"
    return ErrorInfo(
        class_name=name,
        message=text,
        status=config.status or status,
        retryable=config.kind != "not_found",
        retry_after=config.retry_after if limited else None,
    )


def _text(config: InjectConfig, call: CallView, at: Scene, recorded: str | None) -> Any:
    if config.text is not None:
        return config.text
    if config.message == "production" and recorded is not None:
        return recorded
    if config.kind == "timeout":
        return TIMED_OUT
    return _PRESCRIPTIVE[config.kind](config, call, at) if config.message == "prescriptive" else PLAIN[config.kind]


def _invalid_text(config: InjectConfig, call: CallView, at: Scene) -> str:
    name = at.pointer.removeprefix("/") or "arguments"
    reason = f"Invalid arguments for {call.tool}: parameter {name!r} must not be {shown(at.value)}."
    if not at.allowed:
        return f"{reason} Correct it and call the tool again."
    return f"{reason} Allowed values: {', '.join(map(shown, at.allowed))}. Correct it and call the tool again."


def _absent_text(config: InjectConfig, call: CallView, at: Scene) -> str:
    name = at.pointer.removeprefix("/") or "identifier"
    text = f"{call.tool}: {name} {shown(at.value)} does not exist."
    if config.candidates:
        return (
            f"{text} Did you mean {' or '.join(map(shown, config.candidates))}? Call the tool again with the right one."
        )
    return f"{text} Look up the right {name} and call the tool again with it."


def _limit_text(config: InjectConfig, call: CallView, at: Scene) -> str:
    return (
        f"{call.tool}: too many requests, the rate limit is reached. "
        f"Wait {config.retry_after:g} seconds, then make the same call again."
    )


def _server_text(config: InjectConfig, call: CallView, at: Scene) -> str:
    return f"{call.tool}: the service failed with status {config.status or 500}. Make the same call again later."


def _item_text(config: InjectConfig, call: CallView, at: Scene) -> str:
    return "could not be processed; call the tool again with only the failed items"


_PRESCRIPTIVE: dict[str, Callable[[InjectConfig, CallView, Scene], str]] = {
    "validation_error": _invalid_text,
    "not_found": _absent_text,
    "rate_limit": _limit_text,
    "error": _server_text,
    "partial": _item_text,
}


def _partial(config: InjectConfig, call: CallView, at: Scene, recorded: str | None) -> JSON:
    text = _text(config, call, at, recorded)
    failed = [f if is_object(f) and "item" in f else {"item": f, "error": text} for f in at.failed]
    return {"status": "partial", "done": list(at.done), "failed": failed}


_BY_TYPE: dict[Any, JSON] = {"object": {}, "array": [], "string": "", "integer": 0, "number": 0, "boolean": False}


def _recorded_value(hidden: Outcome | None, call: CallView) -> JSON:
    """The hidden value; where none was recorded, an empty one of the declared output type."""
    if hidden is not None and hidden.kind is OutcomeKind.VALUE:
        return hidden.value
    declared = obj(call.output_schema).get("type")
    return _BY_TYPE.get(declared if isinstance(declared, str) else None, {})


def empty_like(value: JSON) -> JSON:
    """An empty value of the same type; null for null and typed values."""
    if isinstance(value, bool):
        return False
    if is_object(value):
        return None if _is_typed(value) else {}
    if isinstance(value, list):
        return []
    return "" if isinstance(value, str) else 0 if isinstance(value, int | float) else None


def malformed(value: JSON, mode: str) -> JSON:
    """The value, damaged: its JSON text cut off, another type, or a number that cannot be."""
    if mode == "truncated_json":
        whole = value if (is_object(value) or is_list(value)) and value else {"result": value}
        text = shown(whole, limit=None)
        return text[: max(1, len(text) * 2 // 3)]
    if mode == "out_of_range":
        replaced, done = _out_of_range(value)
        if done:
            return replaced
    return _wrong_type(value)


def _wrong_type(value: JSON) -> JSON:
    if isinstance(value, str):
        return {"value": value}
    if is_object(value) or is_list(value):
        return shown(value, limit=None)
    return 0 if value is None else [value]


def _out_of_range(value: JSON, depth: int = 0) -> tuple[JSON, bool]:
    """The value with its first number far outside any range, and whether there was one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return -999_999_999_999, True
    if depth > 100 or not (is_object(value) or is_list(value)):
        return value, False
    places: list[tuple[Any, JSON]] = list(value.items() if is_object(value) else enumerate(value))
    for place, inner in places:
        replaced, done = _out_of_range(inner, depth + 1)
        if done:
            copy: Any = dict(value) if is_object(value) else list(value)
            copy[place] = replaced
            return copy, True
    return value, False


def _is_typed(value: dict[str, Any]) -> bool:
    name = next(iter(value), "") if len(value) == 1 else ""
    return name.startswith("$") and not name.startswith("$$")


# --- what would be a fix --------------------------------------------------------------------------------------------


def is_fix(config: InjectConfig, at: Scene, failed: CallView, later: CallView, around: Surroundings) -> bool:
    """Whether ``later``, another call of the tool than the ``failed`` one, mends the failure.

    A repetition of the failed call is not asked about here: whether it is a fix depends on ``times``.
    """
    if config.kind == "validation_error":
        value = at_pointer(later.arguments, at.pointer)
        return any(equal(value, allowed) for allowed in at.allowed)
    if config.kind == "not_found":
        value = at_pointer(later.arguments, at.pointer)
        if value is _NOWHERE or equal(value, at.value):
            return False
        return any(equal(value, c) for c in config.candidates or ()) or around.occurs(value)
    if config.kind == "partial":
        items = at_pointer(later.arguments, at.pointer)
        wanted = [_item(f) for f in at.failed]
        return is_list(items) and bool(items) and all(any(equal(i, w) for w in wanted) for i in items)
    if config.kind == "empty":
        return _valid(later)
    return config.kind == "malformed" and around.retry_safe(later.tool, later.arguments) and _valid(later)


def _valid(call: CallView) -> bool:
    return first_error(call.parameters, call.arguments) is None


# --- the particulars ------------------------------------------------------------------------------------------------


def scene(config: InjectConfig, call: CallView) -> Scene:
    """The particulars of a failure of this call, by the config or else by the rules for what it leaves out."""
    if config.kind == "partial":
        return _partial_scene(config, call)
    pointer = config.pointer if config.pointer is not None else default_pointer(call.parameters, call.arguments)
    found = at_pointer(call.arguments, pointer)
    value = None if found is _NOWHERE else found
    allowed: Sequence[JSON] = ()
    if config.kind == "validation_error":
        allowed = config.allowed if config.allowed is not None else allowed_values(call.parameters, pointer, value)
    return Scene(pointer=pointer, value=value, allowed=tuple(allowed))


def _partial_scene(config: InjectConfig, call: CallView) -> Scene:
    pointer = config.pointer if config.pointer is not None else _first_list(call.arguments)
    found = at_pointer(call.arguments, pointer)
    items: list[JSON] = found if is_list(found) else []
    failed = config.failed if config.failed is not None else tuple(items[-1:])
    bad = [_item(f) for f in failed]
    done = config.done if config.done is not None else tuple(i for i in items if not any(equal(i, b) for b in bad))
    return Scene(pointer=pointer, value=items, done=done, failed=failed)


def _first_list(arguments: JSON) -> str:
    return next((_step(n) for n, v in obj(arguments).items() if isinstance(v, list) and v), "")


def _item(failed: JSON) -> JSON:
    return failed["item"] if is_object(failed) and "item" in failed else failed


def default_pointer(parameters: JSON, arguments: JSON) -> str:
    """The place that fails: the first enum parameter, else the first required text, else the first required one.

    Parameters that the call gives go before those that it leaves out; without a schema, the first argument.
    """
    given, schema = obj(arguments), obj(parameters)
    properties = obj(schema.get("properties"))
    required: list[str] = schema["required"] if is_list(schema.get("required")) else []
    ordered = [n for n in properties if n in required] + [n for n in required if n not in properties]
    choices = [
        [n for n in properties if enum_of(schema, n)],
        [n for n in ordered if _resolved(schema, properties.get(n)).get("type") == "string"],
        ordered,
    ]
    for names in choices:
        present = [n for n in names if n in given]
        if present:
            return _step(present[0])
    names = [n for group in choices for n in group] or list(given)
    return _step(names[0]) if names else ""


def allowed_values(parameters: JSON, pointer: str, value: JSON) -> tuple[JSON, ...]:
    """The enum at ``pointer`` without ``value``; without an enum one value that is made from it."""
    name = pointer.removeprefix("/").replace("~1", "/").replace("~0", "~")
    enum = enum_of(obj(parameters), name)
    if enum:
        return tuple(v for v in enum if not equal(v, value))
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (value + 1,)
    return (f"A-{value}",) if isinstance(value, str) else ()


def enum_of(parameters: dict[str, Any], name: str) -> list[JSON]:
    """The values that a parameter may have, empty when they are not listed."""
    declared = _resolved(parameters, obj(parameters.get("properties")).get(name))
    for one in (declared, *(_resolved(parameters, v) for v in declared.get("anyOf") or ())):
        if is_list(one.get("enum")) and one["enum"]:
            return one["enum"]
    return []


def _resolved(schema: dict[str, Any], declared: Any) -> dict[str, Any]:
    reference = obj(declared).get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return obj(declared)
    return obj(at_pointer(schema, reference[1:]))


class _Nowhere:
    pass


_NOWHERE = _Nowhere()


def at_pointer(value: JSON, pointer: str) -> Any:
    """What stands at a JSON pointer; a value that is never equal to anything when there is no such place."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if is_object(value) and name in value:
            value = value[name]
        elif is_list(value) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _NOWHERE
    return value


def found_at(value: JSON, pointer: str) -> bool:
    """Whether there is such a place."""
    return at_pointer(value, pointer) is not _NOWHERE


def _step(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")
