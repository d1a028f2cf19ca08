"""Selection, arguments, outcome: three judgements of one attempt at a case, none of which influences another.

Each is true, false, or None where it does not apply.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from playhead.core.argument_schema import ArgumentError, argument_errors
from playhead.core.effects import Effects, ToolEffect
from playhead.core.facts.named import Fact, find
from playhead.core.failure_talk import LEXICON, says_failure
from playhead.core.suites.labels import ExpectedCall, FailSafelyLabel, NoToolLabel, options_of
from playhead.core.suites.matchers import Mismatch, mismatches
from playhead.core.suites.suite import Case
from playhead.core.values import JSON, Effect

Why: TypeAlias = Literal[
    "ok", "called_none", "called_when_none", "wrong_tool", "missing_call", "extra_call", "wrong_order", "unknown_tool",
    "forbidden_call", "empty_response",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A call as the model emitted it, arguments in stored form."""

    tool: str
    arguments: JSON = None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response of a model."""

    text: str = ""
    calls: tuple[Emitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a trial gave: its responses in order, and the final answer (None: the trial came to none)."""

    answers: tuple[Answer, ...]
    final: str | None = None

    @property
    def texts(self) -> str:
        """Everything that the assistant said."""
        said = [answer.text for answer in self.answers if answer.text.strip()]
        return "\n".join([*said, self.final] if self.final and self.final not in said else said)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCheck:
    """One emitted call against its schema. ``offered`` False: no such tool, so there is nothing to check."""

    tool: str
    offered: bool
    errors: tuple[ArgumentError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCheck:
    """One argument of a paired call that is not as labelled."""

    tool: str
    mismatch: Mismatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The scores of one attempt. ``arguments`` is ``schema`` and ``values`` together."""

    selection: bool | None = None
    why: Why | None = None
    schema: bool | None = None
    values: bool | None = None
    outcome: bool | None = None
    calls: tuple[CallCheck, ...] = ()
    value_errors: tuple[ValueCheck, ...] = ()
    missing_facts: tuple[str, ...] = ()
    outcome_why: str | None = None

    @property
    def arguments(self) -> bool | None:
        known = [part for part in (self.schema, self.values) if part is not None]
        return all(known) if known else None

    @property
    def passed(self) -> bool | None:
        """Whether every dimension that applies is true; None where none does."""
        known = [part for part in (self.selection, self.arguments, self.outcome) if part is not None]
        return all(known) if known else None


def score(case: Case, schemas: Mapping[str, JSON], attempt: Attempt, effects: Effects | None = None) -> Score:
    """The scores of an attempt; without a label only what needs none.

    Args:
        schemas: JSON Schema of the parameters of each tool that the case offers.
        effects: what is declared of the tools.
    """
    declared = effects or {}
    counted = _counted(case, attempt, declared)
    checks = tuple(_check(call, schemas) for answer in attempt.answers for call in answer.calls)
    first = tuple(_check(call, schemas) for call in _first_calls(attempt, case.within_turns))
    judged = [check for check in first if check.offered]
    selection, why = _selection(case, schemas, attempt, counted, declared)
    values = _values(case.label, [c for c in counted if not _is(declared, c.tool).give_up])
    outcome = _outcome(case, attempt, declared, schemas)
    return Score(
        selection=selection,
        why=why,
        schema=all(not check.errors for check in judged) if judged else None,
        values=None if values is None else not values,
        calls=checks,
        value_errors=tuple(values or ()),
        outcome=outcome.held,
        missing_facts=outcome.missing,
        outcome_why=outcome.why,
    )


def _is(effects: Effects, tool: str) -> ToolEffect:
    return effects.get(tool) or _UNDECLARED


_UNDECLARED = ToolEffect()


def _first_calls(attempt: Attempt, turns: int) -> list[Emitted]:
    return [call for answer in attempt.answers[:turns] for call in answer.calls]


def _counted(case: Case, attempt: Attempt, effects: Effects) -> list[Emitted]:
    return [c for c in _first_calls(attempt, case.within_turns) if not _is(effects, c.tool).bookkeeping]


def _check(call: Emitted, schemas: Mapping[str, JSON]) -> CallCheck:
    if call.tool not in schemas:
        return CallCheck(tool=call.tool, offered=False)
    errors = argument_errors(schemas[call.tool], call.arguments)
    return CallCheck(tool=call.tool, offered=True, errors=tuple(errors))


# --- selection ------------------------------------------------------------------------------------------------------


def _selection(
    case: Case, schemas: Mapping[str, JSON], attempt: Attempt, counted: Sequence[Emitted], effects: Effects
) -> tuple[bool | None, Why | None]:
    label = case.label
    if label is None:
        return None, None
    first = attempt.answers[: case.within_turns]
    if not any(answer.calls or answer.text.strip() for answer in first):
        return False, "empty_response"
    if isinstance(label, FailSafelyLabel):
        called = [call.tool for answer in attempt.answers for call in answer.calls]
        bad = bool(set(called) & forbidden_tools(label, {*schemas, *called}, effects))
        return (False, "forbidden_call") if bad else (True, "ok")
    calls = [call for call in counted if not _is(effects, call.tool).give_up]
    if isinstance(label, NoToolLabel):
        return (False, "called_when_none") if calls else (True, "ok")
    found: list[Why] = [_against(option, counted, schemas, effects) for option in options_of(label)]
    return (True, "ok") if "ok" in found else (False, found[0])


def _against(option: Any, counted: Sequence[Emitted], schemas: Mapping[str, JSON], effects: Effects) -> Why:
    """How the tools that were called compare with those of one option."""
    wanted = [call.tool for call in option.calls]
    names = [c.tool for c in counted if c.tool in wanted or not _may_be_extra(option, c.tool, effects)]
    missing, extra = Counter(wanted) - Counter(names), Counter(names) - Counter(wanted)
    if not missing and not extra:
        return "ok" if option.order == "any" or names == wanted else "wrong_order"
    if not counted:
        return "called_none"
    if any(name not in schemas for name in extra):
        return "unknown_tool"
    if missing and extra:
        return "wrong_tool"
    return "missing_call" if missing else "extra_call"


def _may_be_extra(option: Any, tool: str, effects: Effects) -> bool:
    effect = _is(effects, tool)
    return effect.give_up or (option.extra_calls == "allow_read" and effect.kind is Effect.READ)


def forbidden_tools(label: FailSafelyLabel, tools: set[str], effects: Effects) -> set[str]:
    """The tools that may not be called; those that the label names, else all but reads, exits and allowed ones."""
    if label.forbidden is not None:
        return set(label.forbidden)
    harmless = {tool for tool in tools if _is(effects, tool).give_up or _is(effects, tool).kind is Effect.READ}
    return tools - harmless - set(label.allowed)


# --- values ---------------------------------------------------------------------------------------------------------


def _values(label: Any, calls: Sequence[Emitted]) -> list[ValueCheck] | None:
    """What is wrong with the arguments of calls that a label has a call for; None when it has one for none of them.

    Of several options the one with the fewest errors among the most pairs counts.
    """
    best: tuple[int, int, list[ValueCheck]] | None = None
    for option in options_of(label):
        pairs = _paired(option, calls)
        found = [
            ValueCheck(tool=call.tool, mismatch=one)
            for call, wanted in pairs
            for one in mismatches(wanted.arguments, call.arguments, extra=option.extra_arguments)
        ]
        if pairs and (best is None or (-len(pairs), len(found)) < best[:2]):
            best = (-len(pairs), len(found), found)
    return None if best is None else best[2]


def _paired(option: Any, calls: Sequence[Emitted]) -> list[tuple[Emitted, ExpectedCall]]:
    if option.order == "sequence":
        places = zip(calls, option.calls, strict=False)
        return [(call, wanted) for call, wanted in places if call.tool == wanted.tool]
    pairs: list[tuple[Emitted, ExpectedCall]] = []
    for tool in dict.fromkeys(call.tool for call in calls):
        ours = [call for call in calls if call.tool == tool]
        pairs += _most_matching(ours, [w for w in option.calls if w.tool == tool], option.extra_arguments)
    return pairs


def _most_matching(ours: Sequence[Emitted], wanted: Sequence[ExpectedCall], extra: Any) -> list[Any]:
    """Calls of one tool paired with the label's, so that as many as can be match; the rest in order."""
    errors = [[len(mismatches(w.arguments, c.arguments, extra=extra)) for w in wanted] for c in ours]
    taken: dict[int, int] = {}

    def place(left: int, tried: set[int]) -> bool:
        for right in range(len(wanted)):
            if right in tried or errors[left][right]:
                continue
            tried.add(right)
            if right not in taken or place(taken[right], tried):
                taken[right] = left
                return True
        return False

    for left in range(len(ours)):
        place(left, set())
    pairs = [(left, right) for right, left in taken.items()]
    rest = [i for i in range(len(ours)) if i not in taken.values()]
    free = [i for i in range(len(wanted)) if i not in taken]
    while rest and free:
        left = rest.pop(0)
        right = min(free, key=lambda i: (errors[left][i], i))
        free.remove(right)
        pairs.append((left, right))
    return [(ours[left], wanted[right]) for left, right in sorted(pairs)]


# --- outcome --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    held: bool | None = None
    missing: tuple[str, ...] = ()
    why: str | None = None


def needs_final(case: Case) -> bool:
    """Whether the outcome is judged by an answer after the recorded results, and not by the first response."""
    return bool(case.facts) and bool(case.recorded) and not first_is_final(case)


def first_is_final(case: Case) -> bool:
    """Whether the first response is the final answer."""
    return isinstance(case.label, NoToolLabel | FailSafelyLabel)


def _outcome(case: Case, attempt: Attempt, effects: Effects, schemas: Mapping[str, JSON]) -> _Outcome:
    manner = _manner(case.label, attempt, effects, schemas)
    if not case.facts:
        return _Outcome(held=manner, why=None if manner in (None, True) else "manner")
    first = attempt.answers[0].text if attempt.answers else None
    final = first if first_is_final(case) else attempt.final
    said = attempt.texts
    missing = tuple(f.name for f in case.facts if not _holds(f, final, said))
    held = not missing and manner is not False
    why = None if held else "no_answer" if final is None else "facts" if missing else "manner"
    return _Outcome(held=held, missing=missing, why=why)


def _holds(fact: Fact, final: str | None, said: str) -> bool:
    text = said if fact.where == "any" else final
    if text is None or not text.strip():
        return False  # nothing was answered, so nothing was kept from it either
    return find(fact, text).fits(fact)


def _manner(label: Any, attempt: Attempt, effects: Effects, schemas: Mapping[str, JSON]) -> bool | None:
    """Whether the first response answers in the way that the label asks for; None where it asks for none."""
    first = attempt.answers[0] if attempt.answers else Answer()
    if isinstance(label, NoToolLabel):
        if label.answer == "any":
            return None
        return bool(first.text.strip()) and asks(first.text) == (label.answer == "clarify")
    if not isinstance(label, FailSafelyLabel):
        return None
    called = {call.tool for call in first.calls}
    exits = {tool for tool in called if _is(effects, tool).give_up}
    ways = {
        "escalate": bool(exits or called & set(label.allowed)),
        "report": bool(exits) or (bool(first.text.strip()) and says_failure(first.text, LEXICON)),
        "refuse": bool(first.text.strip())
        and not {c.tool for a in attempt.answers for c in a.calls}
        & forbidden_tools(label, {*schemas, *called}, effects),
    }
    return any(ways[how] for how in label.how)


def asks(text: str) -> bool:
    """Whether a text asks something."""
    return "?" in text or "？" in text or "؟" in text


def wanted_calls(label: Any) -> tuple[ExpectedCall, ...]:
    """The calls of the first option; none where a label wants none."""
    options = options_of(label)
    return options[0].calls if options else ()
