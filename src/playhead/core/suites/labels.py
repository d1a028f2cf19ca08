"""The four kinds of labels: what should happen at a turn. Whether labels agree, with each other and with the tools."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from playhead.core.argument_schema import argument_errors
from playhead.core.canonical import canonical_stored
from playhead.core.decide import near_names
from playhead.core.facts.named import Fact
from playhead.core.json_text import pointer
from playhead.core.plain_values import plain_json
from playhead.core.protocol.shape import is_list, obj
from playhead.core.suites.matchers import compatible, matching, mismatches, optional, variants
from playhead.core.values import JSON

Order: TypeAlias = Literal["any", "sequence"]
How: TypeAlias = Literal["refuse", "escalate", "report"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExpectedCall(_Value):
    """A call that the turn should make. ``arguments``: values or matchers (`core.suites.matchers`)."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class _Calls(_Value):
    calls: tuple[ExpectedCall, ...] = Field(min_length=1)
    order: Order = "any"
    extra_calls: Literal["forbid", "allow_read"] = "forbid"
    extra_arguments: Literal["allow", "forbid"] = "allow"


class CallLabel(_Calls):
    """All of these calls."""

    kind: Literal["call"] = "call"


class CallOption(_Calls):
    """One of the acceptable sets of calls."""


class AnyOfLabel(_Value):
    """One of these options; each is fully correct."""

    kind: Literal["any_of"] = "any_of"
    options: tuple[CallOption, ...] = Field(min_length=1)


class NoToolLabel(_Value):
    """No call. ``answer``: any text, one that asks something, or one that does not."""

    kind: Literal["no_tool"] = "no_tool"
    answer: Literal["any", "clarify", "direct"] = "any"


class FailSafelyLabel(_Value):
    """The request is refused, handed over, or answered with what the user can do.

    ``forbidden`` left out: every tool that is not ``read``, ``give_up`` or ``allowed``.
    """

    kind: Literal["fail_safely"] = "fail_safely"
    how: tuple[How, ...] = Field(default=("refuse", "escalate", "report"), min_length=1)
    forbidden: tuple[str, ...] | None = None
    allowed: tuple[str, ...] = ()


Label: TypeAlias = Annotated[CallLabel | AnyOfLabel | NoToolLabel | FailSafelyLabel, Field(discriminator="kind")]
KINDS = ("call", "any_of", "no_tool", "fail_safely")

_LABEL: TypeAdapter[Any] = TypeAdapter(Label)


def read_label(data: JSON) -> Any:
    """The label of its JSON form.

    Raises:
        ValueError: not a label; the text says where and why.
    """
    try:
        return _LABEL.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        at = pointer(first["loc"][1:])
        raise ValueError(f"{first['msg']} at {at or 'the top'}") from error


def label_json(label: Any) -> dict[str, JSON]:
    """The JSON form of a label; members at their default are left out."""
    found = plain_json(label.model_dump(exclude_defaults=True))
    return {"kind": label.kind, **found}


def label_digest(label: Any) -> str:
    """What tells a label that was changed."""
    return sha256(canonical_stored(label_json(label))).hexdigest()[:16]


def options_of(label: Any) -> tuple[Any, ...]:
    """The sets of calls that a label accepts; none where it wants no call."""
    if isinstance(label, AnyOfLabel):
        return label.options
    return (label,) if isinstance(label, CallLabel) else ()


# --- agreement of two labels ----------------------------------------------------------------------------------------


def agree(left: Any, right: Any) -> bool:
    """Whether the two are of one kind, and some set of calls satisfies both."""
    if left.kind != right.kind:
        return False
    if isinstance(left, NoToolLabel):
        return "any" in (left.answer, right.answer) or left.answer == right.answer
    if isinstance(left, FailSafelyLabel):
        return bool(set(left.how) & set(right.how))
    return any(_share(one, other) for one in options_of(left) for other in options_of(right))


def _share(left: Any, right: Any) -> bool:
    """Whether a set of calls satisfies both options."""
    if len(left.calls) != len(right.calls):
        return False
    if left.order == right.order == "sequence":
        return all(_same_call(a, b, left, right) for a, b in zip(left.calls, right.calls, strict=True))
    fitting = [[i for i, b in enumerate(right.calls) if _same_call(a, b, left, right)] for a in left.calls]
    return matching(fitting) == len(left.calls)


def _same_call(a: ExpectedCall, b: ExpectedCall, left: Any, right: Any) -> bool:
    if a.tool != b.tool:
        return False
    for name in a.arguments.keys() | b.arguments.keys():
        if name in a.arguments and name in b.arguments:
            ours, theirs = a.arguments[name], b.arguments[name]
            if not compatible(ours, theirs) and not (optional(ours) and optional(theirs)):
                return False
            continue
        side, other = (a, right) if name in a.arguments else (b, left)
        if other.extra_arguments == "forbid" and not optional(side.arguments[name]):
            return False
    return True


# --- the label check ------------------------------------------------------------------------------------------------

FindingCode: TypeAlias = Literal[
    "not_offered", "unknown_parameter", "required_is_optional", "value_not_valid", "contradictory_facts"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFinding:
    """Something in a label that contradicts the tools or itself. It is a warning: the case is scored as labelled."""

    code: FindingCode
    tool: str = ""
    pointer: str = ""
    keyword: str | None = None
    value: JSON = None
    message: str = ""

    def __str__(self) -> str:
        return f"{self.tool}{self.pointer}: {self.message}" if self.tool else self.message


def check_label(label: Any, schemas: Mapping[str, JSON], facts: Sequence[Fact] = ()) -> list[LabelFinding]:
    """What is wrong with a label.

    Args:
        schemas: JSON Schema of the parameters of each tool that the turn offers.
        facts: those of the case.
    """
    found = [finding for option in options_of(label) for call in option.calls for finding in _call(call, schemas)]
    if isinstance(label, FailSafelyLabel):
        names = (*(label.forbidden or ()), *label.allowed)
        found += [_not_offered(name, schemas) for name in names if name not in schemas]
    return found + list(_contradictions(facts))


def _not_offered(tool: str, schemas: Mapping[str, JSON]) -> LabelFinding:
    return LabelFinding(code="not_offered", tool=tool, message=f"the tool is not offered{near_names(tool, schemas)}")


def _call(call: ExpectedCall, schemas: Mapping[str, JSON]) -> Iterator[LabelFinding]:
    if call.tool not in schemas:
        yield _not_offered(call.tool, schemas)
        return
    schema = obj(schemas[call.tool])
    properties = obj(schema.get("properties"))
    required: list[Any] = schema["required"] if is_list(schema.get("required")) else []
    for name, expected in call.arguments.items():
        at = pointer([name])
        if name not in properties and schema.get("additionalProperties") in (None, False):
            message = f"the tool has no parameter {name!r}{near_names(name, properties)}"
            yield LabelFinding(code="unknown_parameter", tool=call.tool, pointer=at, message=message)
            continue
        if optional(expected) and name in required:
            message = "the parameter is required, and the label lets it be absent"
            yield LabelFinding(code="required_is_optional", tool=call.tool, pointer=at, message=message)
        yield from _values(call.tool, schema, name, expected)


def _values(tool: str, schema: dict[str, Any], name: str, expected: JSON) -> Iterator[LabelFinding]:
    only: dict[str, Any] = {
        **schema,
        "required": [],
        "properties": {name: obj(schema.get("properties")).get(name, True)},
    }
    seen: set[tuple[str, str]] = set()
    for value in variants(expected):
        for error in argument_errors(only, {name: value}):
            if (error.pointer, error.message) not in seen:
                seen.add((error.pointer, error.message))
                yield LabelFinding(
                    code="value_not_valid", tool=tool, pointer=error.pointer, keyword=error.keyword,
                    value=value, message=error.message,
                )  # fmt: skip


def _contradictions(facts: Sequence[Fact]) -> Iterator[LabelFinding]:
    for place, one in enumerate(facts):
        for other in facts[place + 1 :]:
            if one.kind != other.kind:
                continue
            same = str(one.value) == str(other.value)
            if same and one.must_not != other.must_not:
                why = f"facts {one.name!r} and {other.name!r}: {one.value!r} must be stated and must not"
            elif not same and (one.exclusive or other.exclusive) and not (one.must_not or other.must_not):
                why = f"facts {one.name!r} and {other.name!r}: both must be stated, and one forbids other values"
            else:
                continue
            yield LabelFinding(code="contradictory_facts", message=why)


def recorded_label(calls: Sequence[tuple[str, JSON]]) -> Any:
    """The label that wants what was recorded: exactly these calls, or none."""
    if not calls:
        return NoToolLabel()
    expected = [ExpectedCall(tool=tool, arguments=obj(arguments)) for tool, arguments in calls]
    return CallLabel(calls=tuple(expected))


def accepts(option: Any, calls: Sequence[tuple[str, JSON]]) -> bool:
    """Whether a set of calls is what an option wants, arguments included."""
    if len(calls) != len(option.calls):
        return False
    fitting = [
        [
            i
            for i, wanted in enumerate(option.calls)
            if wanted.tool == tool and not mismatches(wanted.arguments, arguments, extra=option.extra_arguments)
        ]
        for tool, arguments in calls
    ]
    if option.order == "sequence":
        return all(place in names for place, names in enumerate(fitting))
    return matching(fitting) == len(calls)


def tools_of(label: Any) -> set[str]:
    """The tools that a label names as right."""
    named = {call.tool for option in options_of(label) for call in option.calls}
    return named | set(label.allowed) if isinstance(label, FailSafelyLabel) else named
