"""What `playhead fuzz` does, for the command line and for Python alike: runs, their going on, findings played again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from playhead.core.codec import dump
from playhead.core.fuzz.cases import FuzzCase, FuzzSet
from playhead.core.fuzz.direct import Told, class_of
from playhead.core.fuzz.findings import DIRECT_RUNS, MODEL_AGAIN, MODEL_RUNS, Finding, finding_id
from playhead.core.fuzz.report import fuzz_report, trial_outcome
from playhead.core.protocol.shape import obj
from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON
from playhead.engine.fuzz.direct import MEMORY, SECONDS, DirectTools, UnknownToolError
from playhead.engine.fuzz.runs import (
    Stage,
    call_directly,
    feed,
    findings_of,
    keep_set,
    model_findings,
    set_of,
    shown_by,
    stage,
    told_by_case,
)
from playhead.engine.model_access import Access
from playhead.engine.suites.run import Limits, Progress, new_run
from playhead.errors import AmbiguousIdError, ModelAccessError, NotFoundError, UsageError
from playhead.store.ports import Store

Tell = Callable[[Progress], None]
DIRECT_MODEL = "direct:"
"""What the name of a direct run's model begins with; the entry point follows."""


def _silent(progress: Progress) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectOrder:
    """Which tools are called directly, and what a call may take."""

    entry_point: str
    seconds: float = SECONDS
    memory: int = MEMORY
    folder: Path = field(default_factory=Path.cwd)

    def json(self) -> dict[str, JSON]:
        return {
            "entry_point": self.entry_point, "seconds": self.seconds, "memory": self.memory,
            "folder": str(self.folder),
        }  # fmt: skip

    def tools(self) -> DirectTools:
        return DirectTools(self.entry_point, seconds=self.seconds, memory=self.memory, folder=self.folder)


def read_order(settings: Mapping[str, Any]) -> DirectOrder | None:
    """The direct part of a run's stored settings."""
    held: Any = settings.get("direct")
    if held is None:
        return None
    return DirectOrder(
        entry_point=str(held["entry_point"]), seconds=float(held["seconds"]), memory=int(held["memory"]),
        folder=Path(str(held["folder"])),
    )  # fmt: skip


def tools_only(tools: Sequence[ToolSchema], name: str) -> Contents:
    """Contents without a case, for tools that are only called directly."""
    return Contents(suite=Suite(name=name), tools={tool.name: tool for tool in tools})


# --- runs -----------------------------------------------------------------------------------------------------------


def fuzz_directly(
    store: Store, contents: Contents, made: FuzzSet, order: DirectOrder, *, settings: Mapping[str, JSON],
    going: SuiteRun | None = None, max_minutes: float | None = None, tell: Tell = _silent,
) -> SuiteRun:  # fmt: skip
    """Calls the tools with every case of the set, in a run of its own.

    Args:
        settings: kept with the run.
        going: a run that goes on.

    Raises:
        EntryPointError: the factory cannot be used.
        UsageError: it has none of the tools.
    """
    run = going or new_run(
        contents, [], model=f"{DIRECT_MODEL}{order.entry_point}", runs=1, seed=made.seed, driver="loop",
        config={"fuzz": {**settings, "set": keep_set(store, made), "direct": order.json()}},
    )  # fmt: skip
    parameters = {tool.name: tool.parameters for tool in contents.tools.values()}
    with order.tools() as tools:
        names = set(tools.names())
        wanted = {case.tool for case in made.cases if case.tool}
        if not names & wanted:
            raise UsageError(
                f"{order.entry_point} has none of the tools",
                hint=f"it has: {', '.join(sorted(names)[:8])}; wanted are: {', '.join(sorted(wanted)[:8])}",
            )
        return call_directly(store, run, made, tools, parameters, max_minutes=max_minutes, tell=tell)


def staged_for(store: Store, contents: Contents, cases: Sequence[Case], run: SuiteRun) -> Stage:
    """What a model run tries, with what the tools themselves said where they were called."""
    settings: Any = run.config["fuzz"]
    said = None
    if settings.get("direct_run"):
        said = told_by_case(store, store.suites.run(str(settings["direct_run"])))
    return stage(contents, cases, set_of(store, run), said)


def model_run(
    store: Store, contents: Contents, cases: Sequence[Case], made: FuzzSet, *, model: str, runs: int,
    settings: Mapping[str, JSON], direct: SuiteRun | None = None, **config: JSON,
) -> SuiteRun:  # fmt: skip
    """A run through a model that is about to start.

    Raises:
        UsageError: nothing of the set can be tried with a model.
    """
    held = {**settings, "set": keep_set(store, made), "direct_run": None if direct is None else direct.id}
    run = new_run(
        contents, [], model=model, runs=runs, seed=made.seed, driver="loop", scripted=model.startswith("scripted:"),
        config={"fuzz": held, **config},
    )  # fmt: skip
    staged = staged_for(store, contents, cases, run)
    if not staged.cases:
        raise UsageError(
            "nothing can be fed back: no case of the suite offers these tools, or the tools accept everything",
            hint="--direct calls tools without a model",
        )
    return replace(run, cases=tuple(staged.cases))


def fuzz_with_model(
    store: Store, contents: Contents, cases: Sequence[Case], run: SuiteRun, access: Callable[[Stage], Access], *,
    limits: Limits | None = None, tell: Tell = _silent,
) -> SuiteRun:  # fmt: skip
    """Makes the trials of a run, new or stopped, that are not done.

    Args:
        access: the model, given what it is asked.
    """
    staged = staged_for(store, contents, cases, run)
    going = replace(run, status="running", stopped_by=None, ended_at=None)
    done = feed(store, going, staged, access(staged), limits=limits, tell=tell)
    settings: Any = run.config["fuzz"]
    order = read_order(settings)
    if order is not None and any(case.query is not None for case in staged.fuzz.values()):
        _call_what_it_called(store, done, staged, order)
        found = model_findings(store, staged, done)
        done = replace(done, config={**done.config, "findings": [dump(one) for one in found]})
        store.suites.save_run(done)
    return done


def _call_what_it_called(store: Store, run: SuiteRun, staged: Stage, order: DirectOrder) -> None:
    """Calls the tools with the valid calls that requests of users led to; one that fails counts as a hit."""
    with order.tools() as tools:
        for trial in store.suites.trials(run.id):
            fuzz = staged.fuzz.get(trial.case)
            held = obj(obj(trial.extra).get("fuzz"))
            if fuzz is None or fuzz.query is None or held.get("hit") or not held.get("calls"):
                continue
            for call in held["calls"]:
                try:
                    told = tools.call(str(call["tool"]), call["arguments"])
                except UnknownToolError:
                    continue
                if class_of(told, "semantic") != "ok":
                    found = {**held, "hit": True, "outcome": "failed", "said": told.said[:500]}
                    store.suites.add_trial(replace(trial, extra={"fuzz": found}))
                    break


def going_on(store: Store, text: str) -> SuiteRun:
    """A stored fuzz run.

    Raises:
        UsageError: another kind of run.
    """
    run = store.suites.run(store.suites.resolve_run(text))
    if "fuzz" not in run.config and "probes" not in run.config:
        raise UsageError(f"run {run.id} is no run of playhead fuzz", hint="playhead suite run --resume")
    return run


def report(
    store: Store, contents: Contents, cases: Sequence[Case], *, run: SuiteRun | None = None,
    direct: SuiteRun | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The report of a run through a model, of a direct one, or of both over one set."""
    one = run or direct
    assert one is not None
    settings: Any = one.config["fuzz"]
    accepted = without = 0
    if run is not None:
        staged = staged_for(store, contents, cases, run)
        accepted, without = len(staged.accepted), len(staged.without_case)
    return fuzz_report(
        set_of(store, one), set_digest=str(settings["set"]), run=run,
        trials=store.suites.trials(run.id) if run is not None else (), direct=direct,
        told=told_by_case(store, direct) if direct is not None else None, accepted=accepted, without_case=without,
        tools={tool.name: tool for tool in contents.tools.values()},
    )  # fmt: skip


# --- findings -------------------------------------------------------------------------------------------------------


def find_finding(store: Store, text: str) -> tuple[Finding, SuiteRun]:
    """The newest finding of an id or the beginning of one, and its run.

    Raises:
        NotFoundError: there is none.
        AmbiguousIdError: several begin so.
    """
    found: dict[str, tuple[Finding, SuiteRun]] = {}
    for run in store.suites.runs():
        for one in findings_of(run) if "fuzz" in run.config else ():
            if one.id.startswith(text):
                found.setdefault(one.id, (one, run))
    if not found or not text:
        raise NotFoundError(f"there is no finding {text!r}", hint="playhead fuzz prints the ids of what it finds")
    if len(found) > 1 and text not in found:
        raise AmbiguousIdError(f"{text!r} names {len(found)} findings", hint=f"one of {', '.join(sorted(found)[:5])}")
    return found.get(text) or next(iter(found.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A finding that was played again: ``outcomes`` of each run; ``stands`` when it shows as it did."""

    finding: Finding
    stands: bool
    outcomes: tuple[str, ...]
    said: tuple[str, ...] = ()


def replay_direct(finding: Finding, order: DirectOrder) -> Replayed:
    """Calls the tool again with the smallest arguments, as often as confirms a finding and once more.

    Raises:
        UnknownToolError: the factory no longer has the tool.
    """
    case = _case_of(finding)
    told: list[Told] = []
    with order.tools() as tools:
        told += [tools.call(finding.tool, finding.arguments) for _ in range(1 + DIRECT_RUNS)]
    shown = [shown_by(case, one) for one in told]
    return Replayed(
        finding=finding,
        stands=all(finding_id(one) == finding.id for one in shown),
        outcomes=tuple(one.outcome for one in shown),
        said=tuple(dict.fromkeys(one.text for one in shown if one.text)),
    )


def _case_of(finding: Finding) -> FuzzCase:
    return FuzzCase(
        id=finding.id, tool=finding.tool, family=finding.family, mutation=finding.mutation, pointer=finding.pointer,
        expectation=finding.expectation, arguments=finding.arguments, base=finding.base,
    )  # fmt: skip


def set_with_finding(store: Store, finding: Finding, run: SuiteRun) -> FuzzSet:
    """The set that holds the finding's first case and no other.

    Raises:
        NotFoundError: the set no longer holds it.
    """
    made = set_of(store, run)
    kept = tuple(case for case in made.cases if case.id == finding.cases[0])
    if not kept:
        raise NotFoundError(f"the set of finding {finding.id} does not hold its case {finding.cases[0]!r}")
    return replace(made, cases=kept)


def replayed_by_model(finding: Finding, case: FuzzCase, trials: Sequence[Trial]) -> Replayed:
    """What five trials of the finding's case say: it stands where three of them show it again.

    Raises:
        ModelAccessError: fewer trials were answered than it takes to say so.
    """
    answered = [trial for trial in trials if trial.status == "scored"]
    if len(answered) < MODEL_RUNS:
        why = next((trial.error for trial in trials if trial.error), None) or "the run was stopped"
        raise ModelAccessError(
            f"{len(answered)} of {MODEL_RUNS} trials of finding {finding.id} were answered: {why}",
            hint="nothing is known of the finding; try again when the model answers",
        )
    outcomes = tuple(trial_outcome(case, trial) or "other" for trial in answered)
    return Replayed(finding=finding, stands=outcomes.count(finding.outcome) >= MODEL_AGAIN, outcomes=outcomes)
