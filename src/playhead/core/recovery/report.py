"""How a model recovers from injected failures, as one report, and the checklist of what holds for each tool."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from playhead.core.effects import Effects, ToolEffect
from playhead.core.evaluation import as_text
from playhead.core.gate.parts import recovery_rate
from playhead.core.lint.errors import ErrorText, Failure, judge_all
from playhead.core.stats import paired_rates, rate_interval
from playhead.core.suites.contents import Contents
from playhead.core.suites.messages import read_outcome, shown_outcome
from playhead.core.suites.suite import Case, offered
from playhead.core.suites.summary import RecoveryResult
from playhead.core.values import Effect, OutcomeKind


def report(results: Sequence[RecoveryResult], checks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Recovery of injected failures: in all, by kind and tool, and what the form of the text was worth.

    Args:
        checks: the rows of `checklist`.
    """
    groups: dict[tuple[str, str], list[RecoveryResult]] = {}
    for one in results:
        groups.setdefault((one.kind, one.tool), []).append(one)
    rate = recovery_rate(results)
    return {
        "recovered": sum(one.recovered for one in results),
        "injected": len(results),
        "rate": None if rate is None else rate.rate,
        "interval": None if rate is None else list(rate.interval),
        "groups": [_group(kind, tool, found) for (kind, tool), found in sorted(groups.items())],
        "next_actions": dict(Counter(one.next_action for one in results)),
        "messages": _messages(results),
        "checklist": list(checks),
    }


def _group(kind: str, tool: str, found: Sequence[RecoveryResult]) -> dict[str, Any]:
    good, n = sum(one.recovered for one in found), len(found)
    return {
        "kind": kind, "tool": tool, "recovered": good, "injected": n, "rate": good / n,
        "interval": list(rate_interval(good, n)), "classes": dict(Counter(one.outcome for one in found)),
        "doubles": dict(Counter(one.double for one in found if one.double is not None)),
    }  # fmt: skip


def _messages(results: Sequence[RecoveryResult]) -> dict[str, Any] | None:
    """What a prescriptive text is worth against a plain one: paired by failure."""
    sides: dict[str, dict[tuple[str, str, str, int], bool]] = {"plain": {}, "prescriptive": {}}
    for one in results:
        if one.message in sides:
            sides[one.message][one.case, one.kind, one.tool, one.run] = one.recovered
    shared = [place for place in sides["prescriptive"] if place in sides["plain"]]
    if not shared:
        return None
    before, after = ([(int(sides[form][place]), 1) for place in shared] for form in ("plain", "prescriptive"))
    found = paired_rates(before, after)
    return {"pairs": len(shared), "difference": found.diff, "interval": list(found.t_interval), "p_rise": found.p_rise}


# --- checklist ------------------------------------------------------------------------------------------------------

_CHECKS = (
    ("corrected after a validation error", ("validation_error",)),
    ("grounded or asks after not found", ("not_found",)),
    ("waits or says so after a rate limit", ("rate_limit",)),
    ("at most one retry after a timeout", ("timeout",)),
    ("reports or retries only what failed after a partial success", ("partial",)),
    ("empty, malformed and out-of-range results are caught", ("empty", "malformed")),
)
_CHANGES = (Effect.WRITE, Effect.DESTRUCTIVE)


def checklist(
    results: Sequence[RecoveryResult], contents: Contents | None = None, cases: Iterable[Case] = ()
) -> list[dict[str, Any]]:
    """Per tool, what of the recovery checklist holds: yes, no, or untested, with the evidence.

    Args:
        contents: the suite, for what is declared of its tools.
        cases: whose recorded failures show the tools' own error texts.
    """
    effects: Effects = contents.suite.effects if contents is not None else {}
    texts = recorded_texts(contents, cases) if contents is not None else []
    rows: list[dict[str, Any]] = []
    for tool in sorted({one.tool for one in results}):
        mine = [one for one in results if one.tool == tool]
        told = [text for text in texts if text.tool == tool]
        poor = [f"{text.level}: {text.text[:120]}" for text in told if text.level != "prescriptive"]
        rows.append(_check(tool, "error texts prescriptive", told, poor))
        for text, kinds in _CHECKS:
            tried = [one for one in mine if one.kind in kinds]
            bad = [one for one in tried if not one.recovered]
            rows.append(_check(tool, text, tried, [f"{one.case}: {one.outcome}" for one in bad]))
        rows.append(_check(tool, "bounded steps", mine, [one.case for one in mine if one.outcome == "loop"]))
        rows.append(_exit(tool, mine, effects))
        unknown = [one for one in mine if one.kind in ("timeout", "malformed", "partial")]
        doubled = [one.case for one in unknown if one.double == "standing"]
        rows.append(_check(tool, "no repeat of a write whose outcome is unknown", unknown, doubled))
        if contents is not None:
            rows += _declared(tool, effects.get(tool) or ToolEffect())
    return rows


def _check(tool: str, text: str, tried: Sequence[Any], bad: Sequence[str]) -> dict[str, Any]:
    answer = "untested" if not tried else "no" if bad else "yes"
    return {"tool": tool, "check": text, "answer": answer, "evidence": list(bad)[:5], "tried": len(tried)}


def _exit(tool: str, mine: Sequence[RecoveryResult], effects: Effects) -> dict[str, Any]:
    """A structured exit counts where a model used it; none that is declared is a no."""
    names = [name for name, effect in effects.items() if effect.give_up]
    used = [one.case for one in mine if one.outcome == "give_up_tool"]
    answer = "yes" if used else "untested" if names else "no"
    evidence = used[:5] or ([f"{', '.join(names)} was not called"] if names else ["no tool is declared give_up"])
    return {"tool": tool, "check": "a structured exit exists and is used", "answer": answer, "evidence": evidence,
            "tried": len(mine)}  # fmt: skip


def _declared(tool: str, effect: ToolEffect) -> list[dict[str, Any]]:
    """What a tool that changes the world should declare; of one that only reads nothing is asked."""
    if effect.kind is Effect.READ:
        return []
    unknown = effect.kind not in _CHANGES and not effect.financial
    kind = effect.kind.value + (", financial" if effect.financial else "")
    rows: list[dict[str, Any]] = []
    for text, holds in (
        ("an idempotency key, or idempotent", effect.idempotent or effect.idempotency_key is not None),
        ("an approval gate", effect.approval),
    ):
        answer = "yes" if holds else "untested" if unknown else "no"
        evidence = [] if holds else ["nothing is declared of it" if unknown else f"declared {kind}"]
        rows.append({"tool": tool, "check": text, "answer": answer, "evidence": evidence, "tried": 1})
    return rows


def recorded_texts(contents: Contents, cases: Iterable[Case]) -> list[ErrorText]:
    """The error texts that the recorded calls of cases gave, judged."""
    failures: list[Failure] = []
    tools = {tool.name: tool for tool in contents.tools.values()}
    for case in cases:
        tools |= offered(case, contents.tools)
        calls = {call.id: call for message in case.history for call in message.calls}
        given = [(calls.get(m.call_id or ""), m.outcome) for m in case.history if m.role == "tool"]
        given += [(call, one.outcomes.get(call.id)) for one in case.recorded for call in one.calls]
        for call, held in given:
            outcome = read_outcome(held) if call is not None and held is not None else None
            if call is None or outcome is None or (outcome.kind is OutcomeKind.VALUE and not outcome.error_hint):
                continue
            failures.append(Failure(call.tool, call.emitted, as_text(shown_outcome(outcome))))
    return judge_all(failures, tools)
