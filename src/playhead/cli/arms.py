"""Arms of a run: the same cases with something changed that is no model, and what the change was worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case
    from playhead.core.suites.summary import RecoveryResult, RunSummary
    from playhead.core.suites.trials import SuiteRun


class Arm(NamedTuple):
    """What one run of several has that the others may not have."""

    guards: bool = False
    add_exit: bool = False

    @property
    def name(self) -> str:
        found = [word for word, on in (("guards", self.guards), ("exit", self.add_exit)) if on]
        return " and ".join(found) or "as it is"


def arms_of(contents: "Contents", guards: str | None, *, add_exit: bool = False) -> list[Arm]:
    """The arms that are asked for, the least changed first.

    Args:
        guards: ``on``, ``off``, or both with a comma between.
        add_exit: the structured exit too, beside an arm without it.
    """
    words = [word.strip() for word in (guards or "off").split(",")]
    if not set(words) <= {"on", "off"}:
        raise UsageError(f"--guards {guards!r} is not known", hint="on, off, or on,off for both")
    if "on" in words and not contents.suite.guards:
        raise UsageError(
            f"suite {contents.suite.name!r} declares no guards",
            hint='in suite.json: "guards": {"search": {"not_empty": true, "action": "retry"}}',
        )
    exits = (False, True) if add_exit else (False,)
    return [Arm(on, leave) for on in sorted({word == "on" for word in words}) for leave in exits]


def guarded_runs(contents: "Contents", guards: str | None, runs: "Sequence[SuiteRun]") -> "list[SuiteRun]":
    """Each run once for every arm of ``guards``; a run that asks only once has no results that could be checked."""
    from playhead.engine.clock import SYSTEM_IDS

    if guards is None:
        return list(runs)
    arms = arms_of(contents, guards)
    if any(one.driver == "agent" or (one.driver == "turn" and one.outcome != "chained") for one in runs):
        raise UsageError(
            "--guards needs trials that go on from the model's own calls", hint="--driver loop, or --outcome chained"
        )
    made: list[SuiteRun] = []
    for run in runs:
        for place, arm in enumerate(arms):
            own = {"id": SYSTEM_IDS()} if place else {}
            notes = (*run.notes, *(("results were checked by the suite's guards",) if arm.guards else ()))
            made.append(replace(run, **own, config={**run.config, "guards": arm.guards}, notes=notes))
    return made


def interface_runs(
    contents: "Contents", cases: "Sequence[Case]", path: Path | None, runs: "Sequence[SuiteRun]"
) -> "list[SuiteRun]":
    """Each run, and again with the proposed tools of a file."""
    from playhead.engine.clock import SYSTEM_IDS
    from playhead.engine.suites.run import identity

    if path is None:
        return list(runs)
    from playhead.cli.suite_diagnose import read_interface

    if any(run.driver == "agent" for run in runs):
        raise UsageError("your own agent offers its own tools", hint="--interface goes with --driver turn or loop")
    held = read_interface(path, contents)
    changed, theirs = proposed(contents, cases, held)
    note = f"with the proposed tools of {path.name}: {', '.join(sorted(held['tools']))}"
    again = [
        replace(
            run, id=SYSTEM_IDS(), suite_digest=changed.digest, identity=identity(changed, theirs),
            config={**run.config, "interface": held}, notes=(*run.notes, note),
        )
        for run in runs
    ]  # fmt: skip
    return [one for pair in zip(runs, again, strict=True) for one in pair]


def proposed(contents: "Contents", cases: "Sequence[Case]", held: Any) -> "tuple[Contents, list[Case]]":
    """A suite and the cases of a run as they are with proposed tools."""
    from playhead.core.proposals import proposed_case, proposed_contents

    return proposed_contents(contents, held), [proposed_case(case, contents, held)[0] for case in cases]


def arm_worth(summaries: "Sequence[tuple[SuiteRun, RunSummary]]", arm: str) -> dict[str, Any]:
    """What an arm changed, for each model that was run with it and without."""
    found: dict[str, Any] = {}
    for model in dict.fromkeys(run.model for run, _ in summaries):
        mine = [(run, summary) for run, summary in summaries if run.model == model]
        other = "interface" if arm == "guards" else "guards"
        last = mine[-1][0].config.get(other)  # of two kinds of arms, the pair that has the other one alike
        sides = {bool(run.config.get(arm)): one for run, one in mine if run.config.get(other) == last}
        if len(sides) == 2:
            found[model] = run_worth(sides[False], sides[True])
    return found


def recovery_worth(before: "Sequence[RecoveryResult]", after: "Sequence[RecoveryResult]") -> dict[str, Any]:
    """What an arm changes for the same failures: recovered, loops, silent wrong answers, effects had twice."""
    told: dict[str, Any] = {}
    for name, holds in _RECOVERY.items():
        sides = [{_place(one): holds(one) for one in results} for results in (before, after)]
        told[name] = paired(*sides)
    return told


_RECOVERY: "dict[str, Callable[[RecoveryResult], bool]]" = {
    "recovered": lambda one: one.recovered,
    "loop": lambda one: one.outcome == "loop",
    "silent_wrong_answer": lambda one: one.outcome == "silent_wrong_answer",
    "double_side_effect": lambda one: one.double == "standing",
}


def _place(one: "RecoveryResult") -> tuple[str, ...]:
    return (one.case, one.kind, one.tool, one.message, str(one.run))


def run_worth(before: "RunSummary", after: "RunSummary") -> dict[str, Any]:
    """What an arm changes for the same trials: whether they pass, and each dimension."""
    return {name: paired(_trials(before, name), _trials(after, name)) for name in ("passed", "selection", "arguments")}


def _trials(summary: "RunSummary", name: str) -> dict[tuple[str, ...], bool]:
    found = {
        (case.id, str(trial.run)): getattr(trial, name)
        for case in summary.cases
        if case.active
        for trial in case.trials
    }
    return {place: value for place, value in found.items() if value is not None}


def paired(before: Mapping[tuple[str, ...], bool], after: Mapping[tuple[str, ...], bool]) -> dict[str, Any]:
    """The difference of two shares over the places that both have, by the case that comes first in each place.

    ``bounds``: the difference is at least the first and at most the second, each at 95 %.
    """
    from playhead.core.stats import paired_rates

    shared = [place for place in before if place in after]
    if not shared:
        return {"pairs": 0, "before": None, "after": None, "difference": None, "bounds": None, "p_rise": None,
                "p_drop": None}  # fmt: skip
    cases = dict.fromkeys(place[0] for place in shared)
    grouped = {case: [place for place in shared if place[0] == case] for case in cases}

    def counts(side: Mapping[tuple[str, ...], bool]) -> list[tuple[int, int]]:
        return [(sum(side[place] for place in grouped[case]), len(grouped[case])) for case in cases]

    sides = counts(before), counts(after)
    found = paired_rates(*sides)
    means = [sum(good / n for good, n in side) / len(side) for side in sides]
    return {
        "pairs": len(shared), "before": means[0], "after": means[1], "difference": found.diff,
        "bounds": list(found.bounds), "p_rise": found.p_rise, "p_drop": found.p_drop,
    }  # fmt: skip


def worth_rows(arm: str, told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows for people: what the arm changed, each with its interval."""
    rows: list[dict[str, Any]] = []
    for name, one in told.items():
        if one["difference"] is None:
            continue
        low, high = one["bounds"]
        rows.append(
            {
                "arm": arm,
                "what": name.replace("_", " "),
                "without": f"{one['before']:.1%}",
                "with": f"{one['after']:.1%}",
                "difference": f"{one['difference']:+.1%} ({low:+.1%} to {high:+.1%})",
                "pairs": one["pairs"],
            }
        )
    return rows


WORTH = ("arm", "what", "without", "with", "difference", "pairs")
