"""Guards: what the runtime checks of a tool's result before a model sees it, and what it does where the check fails.

A result is empty, malformed, or out of range. Then the call is made once more where repeating it is safe, or the model
is handed a text that says what is wrong in the place of a result that would mislead it. Off unless turned on.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from playhead.core.evaluation import as_text
from playhead.core.injection import at_pointer, found_at
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.schema import first_error, usable
from playhead.core.values import JSON, Outcome, OutcomeKind

FaultKind: TypeAlias = Literal["empty", "malformed", "out_of_range"]


class Guard(BaseModel):
    """What is checked of one tool's results.

    Attributes:
        not_empty: null, a blank text, an empty list or object, and one that holds nothing but such are no result.
        schema_: JSON Schema (``schema``) that a result has to fit.
        range: by pointer into the result, the least and the most that a number there may be; None for no bound.
        action: ``retry`` calls once more where that is safe, and hands out the text where it is not or did not help.
        message: the text for the model, in place of the one that is made.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    not_empty: bool = False
    schema_: Any = Field(default=None, alias="schema")
    range: dict[str, tuple[float | None, float | None]] = Field(
        default_factory=dict[str, tuple[float | None, float | None]]
    )
    action: Literal["retry", "message"] = "message"
    message: str | None = None

    @field_validator("schema_")
    @classmethod
    def _usable(cls, schema: Any) -> Any:
        if schema is not None and not usable(schema):
            raise ValueError("is no JSON Schema")
        return schema

    @field_validator("range")
    @classmethod
    def _pointers(cls, given: dict[str, tuple[float | None, float | None]]) -> Any:
        for pointer, (least, most) in given.items():
            if pointer and not pointer.startswith("/"):
                raise ValueError(f"{pointer!r} is no JSON pointer: /total")
            if least is not None and most is not None and least > most:
                raise ValueError(f"{pointer}: {least:g} is more than {most:g}")
        return given


Guards: TypeAlias = Mapping[str, Guard]
"""Guards by the name of the tool."""


class Fault(NamedTuple):
    """What is wrong with a result. ``detail`` says what was expected, without the value itself."""

    kind: FaultKind
    detail: str
    pointer: str = ""


def read_guards(given: Mapping[str, Any]) -> dict[str, Guard]:
    """Guards from their JSON form, or as they are.

    Raises:
        ValueError: one is no guard; names the tool and the member.
    """
    found: dict[str, Guard] = {}
    for tool, one in given.items():
        try:
            found[tool] = one if isinstance(one, Guard) else Guard.model_validate(one)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise ValueError(f"guard of {tool!r}: {where}: {first['msg']}") from None
    return found


def fault(guard: Guard, value: JSON) -> Fault | None:
    """What is wrong with a result, None when it passes. A text that is JSON is checked as what it holds."""
    held = value
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            held = json.loads(value)
        except ValueError:
            return Fault("malformed", "the text is JSON that breaks off or is damaged")
    if guard.not_empty and _is_empty(held):
        return Fault("empty", "there is nothing in it")
    if guard.schema_ is not None:
        wrong = first_error(guard.schema_, held)
        if wrong is not None:
            return Fault("malformed", "it does not fit what the tool promises", wrong.pointer)
    for pointer, (least, most) in guard.range.items():
        found = _out_of_range(held, pointer, least, most)
        if found is not None:
            return found
    return None


def _is_empty(value: JSON) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if is_object(value):
        return all(map(_is_empty, value.values()))
    return is_list(value) and all(map(_is_empty, value))


def _out_of_range(value: JSON, pointer: str, least: float | None, most: float | None) -> Fault | None:
    if not found_at(value, pointer):
        return None  # what has to be there is what a schema says
    number = _number(at_pointer(value, pointer))
    told = f"{'any' if least is None else f'{least:g}'} to {'any' if most is None else f'{most:g}'}"
    if number is None:
        return Fault("out_of_range", f"a number of {told} is expected", pointer)
    low, high = least is not None and number < least, most is not None and number > most
    return Fault("out_of_range", f"{told} is expected", pointer) if low or high or number != number else None


def _number(value: JSON) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def again(guard: Guard, *, safe: bool) -> bool:
    """Whether a call whose result failed is made once more."""
    return guard.action == "retry" and safe


def correction(tool: str, guard: Guard, wrong: Fault, *, safe: bool, retried: bool) -> Outcome:
    """What the model is handed in the place of a result.

    Args:
        safe: repeating the call has no second effect.
        retried: it was repeated, and gave no better result.
    """
    return Outcome(kind=OutcomeKind.RESULT_ERROR, value=guard.message or _text(tool, wrong, safe=safe, retried=retried))


def _text(tool: str, wrong: Fault, *, safe: bool, retried: bool) -> str:
    twice = ", twice" if retried else ""
    if wrong.kind == "empty":
        return (
            f"{tool} gave an empty result{twice}. Do not take that for an answer: use other arguments or another tool, "
            "or tell the user that nothing was found."
        )
    where = f" at {wrong.pointer}" if wrong.pointer else ""
    problem = "cannot be read" if wrong.kind == "malformed" else "is out of range"
    head = f"The result of {tool} {problem}{where}{twice}: {wrong.detail}. It was withheld; do not guess what it holds."
    if not safe:
        return f"{head} Whether the call took effect is not known: check that before you repeat it, or tell the user."
    how = "use other arguments or another tool" if retried else "call it once more"
    return f"{head} You can {how}, or tell the user that the result could not be used."


def told(wrong: Fault, *, action: str, attempts: int, withheld: JSON) -> dict[str, JSON]:
    """What is kept with a call of which a guard took the result: as attribute ``guard`` of its node."""
    text = as_text(withheld)
    kept = withheld if len(text) <= 2000 else f"{text[:2000]}…"
    return {
        "fault": wrong.kind, "pointer": wrong.pointer, "detail": wrong.detail, "action": action, "attempts": attempts,
        "withheld": kept,
    }  # fmt: skip
