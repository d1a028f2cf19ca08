"""Which failures are injected where: for every recorded call of a case, the kinds that apply to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from playhead.core.cohorts import sampled
from playhead.core.effects import ToolEffect
from playhead.core.injection import default_pointer, empty_like
from playhead.core.policy import HistoryConfig, InjectConfig, ToolPolicy
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.suites.messages import outcome_of
from playhead.core.suites.suite import Call, Case, Tools, ToolSchema, schemas
from playhead.core.values import JSON, Outcome, OutcomeKind

Kind: TypeAlias = Literal["validation_error", "not_found", "rate_limit", "timeout", "partial", "empty", "malformed"]
MessageForm: TypeAlias = Literal["prescriptive", "plain", "production"]
KINDS: Final[tuple[Kind, ...]] = (
    "validation_error", "not_found", "rate_limit", "timeout", "partial", "empty", "malformed",
)  # fmt: skip
_TEXTLESS: Final = frozenset({"timeout", "empty", "malformed"})
"""Kinds whose failure has no text that could be worded otherwise."""

REPORT_FAILURE: Final = ToolSchema(
    name="report_failure",
    description=(
        "Ends the task when it cannot be done: call it instead of trying again without new information. The user sees "
        "user_message, and a person follows up."
    ),
    parameters={
        "type": "object",
        "properties": {
            "reason": {
                "type": "string",
                "enum": ["missing_information", "not_permitted", "not_found", "tool_unavailable", "other"],
                "description": "Why it cannot be done",
            },
            "what_failed": {"type": "string", "description": "The step that failed, and the error that it gave"},
            "tried": {"type": "string", "description": "What was tried, with which values"},
            "user_message": {"type": "string", "description": "What the user is told: what happened, what to do now"},
        },
        "required": ["reason", "what_failed", "user_message"],
        "additionalProperties": False,
    },
)
"""The schema of `playhead.testing.report_failure`."""
EXIT_EFFECT: Final = ToolEffect.model_validate({"class": "read", "give_up": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One failure of one recorded call. ``nth``: the n-th call of the tool in the case's recorded turn."""

    case: str
    tool: str
    nth: int
    config: InjectConfig

    @property
    def id(self) -> str:
        """Names the variant; the id of its trials' case."""
        return f"{self.case}!{self.config.kind}-{self.tool}-{self.nth}-{self.config.message}"

    @property
    def policy(self) -> ToolPolicy:
        """The failure over the case's recorded results; everything else is an error that the agent gets."""
        return ToolPolicy(default=HistoryConfig(on_miss="error_result"), tools={self.tool: self.config})


def variants(
    cases: Iterable[Case], tools: Tools, *, kinds: Sequence[Kind] = KINDS, per_tool: int | None = None, seed: int = 0,
    messages: Sequence[MessageForm] = ("prescriptive",),
) -> list[Variant]:  # fmt: skip
    """Every applicable failure of every recorded call.

    Args:
        kinds: of these kinds.
        per_tool: at most so many of each tool and kind, drawn by digest.
        messages: each failure once for each form of its text; kinds without a text have one form.
    """
    found = [one for case in cases for one in _of_case(case, tools, kinds)]
    if per_tool is not None:
        groups: dict[tuple[str, str], list[Variant]] = {}
        for one in found:
            groups.setdefault((one.tool, one.config.kind), []).append(one)
        kept = {
            one.id
            for group in groups.values()
            for one in sampled(group, per_tool, seed=str(seed), id_of=lambda variant: variant.id)
        }
        found = [one for one in found if one.id in kept]
    return [_worded(one, form) for one in found for form in _forms(one, messages)]


def _forms(one: Variant, messages: Sequence[MessageForm]) -> Sequence[MessageForm]:
    return messages[:1] if one.config.kind in _TEXTLESS else messages


def _worded(one: Variant, form: MessageForm) -> Variant:
    config = one.config.model_copy(update={"message": form})
    return Variant(case=one.case, tool=one.tool, nth=one.nth, config=config)


def _of_case(case: Case, tools: Tools, kinds: Sequence[Kind]) -> list[Variant]:
    declared = schemas(case, tools)
    counts: dict[str, int] = {}
    found: list[Variant] = []
    for one in case.recorded:
        for call in one.calls:
            counts[call.tool] = counts.get(call.tool, 0) + 1
            outcome = outcome_of(one, call.id)
            if call.tool not in declared:
                continue
            found += [
                Variant(case=case.id, tool=call.tool, nth=counts[call.tool], config=_config(kind, counts[call.tool]))
                for kind in kinds
                if _applies(kind, call, declared[call.tool], outcome)
            ]
    return found


def _config(kind: Kind, nth: int) -> InjectConfig:
    return InjectConfig(kind=kind, nth=nth, then=HistoryConfig(on_miss="error_result"))


def _applies(kind: Kind, call: Call, parameters: JSON, outcome: Outcome) -> bool:
    arguments = obj(call.emitted)
    if kind in ("validation_error", "not_found"):
        name = default_pointer(parameters, arguments).removeprefix("/")
        value = arguments.get(name)
        return value is not None and (kind == "validation_error" or isinstance(value, str))
    if kind == "partial":
        return any(is_list(value) and value for value in arguments.values())
    if kind in ("empty", "malformed"):
        value = outcome.value
        whole = outcome.kind is OutcomeKind.VALUE and (is_object(value) or is_list(value) or isinstance(value, str))
        return whole and value != empty_like(value)
    return True
