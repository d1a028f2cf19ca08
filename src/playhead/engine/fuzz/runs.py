"""Fuzz runs: bad calls fed back through a model, and called directly. Every trial is stored when it is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from playhead.core.argument_schema import argument_errors
from playhead.core.canonical import render
from playhead.core.codec import dump, load
from playhead.core.effects import Effects
from playhead.core.evaluation import as_text
from playhead.core.fuzz.cases import FuzzCase, FuzzSet, read_set
from playhead.core.fuzz.direct import FOUND, Told, class_of, template_of
from playhead.core.fuzz.feedback import Rejection, fed_back, feed_back, lead, recorded_failures, rejection, started
from playhead.core.fuzz.findings import (
    DIRECT_RUNS,
    MODEL_AGAIN,
    MODEL_RUNS,
    Finding,
    Shown,
    finding_id,
    grouped,
    shrunk,
)
from playhead.core.fuzz.interface import perturbed_case, perturbed_effects
from playhead.core.fuzz.queries import asked, judged, random_query, request_for, with_query, writable
from playhead.core.fuzz.report import trial_outcome
from playhead.core.lint.errors import Failure, template
from playhead.core.protocol import parts
from playhead.core.protocol.shape import obj
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import Drive, Trace, loop, turn
from playhead.core.suites.scoring import score
from playhead.core.suites.suite import Case, Tools, ToolSchema, schemas
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.fuzz.direct import DirectTools, UnknownToolError
from playhead.engine.model_access import Access, Place
from playhead.engine.suites.run import Limits, Progress, execute, in_a_loop
from playhead.store.ports import Store

BAD = frozenset(
    {"loop", "silent_wrong_answer", "blind_repeat", "unclear_end", "overflow", "invalid", "bad_value", "failed"}
)
"""What a model does that is a finding: it neither corrected the call nor gave up in words."""
_SHRINK_TRIES = 2_000
_SHRINK_CALLS, _SHRINK_CALLS_HUNG = 60, 8


def keep_set(store: Store, made: FuzzSet) -> str:
    """Stores a set under its digest."""
    digest = made.digest
    store.suites.add_request(digest, made.json())
    return digest


def set_of(store: Store, run: SuiteRun) -> FuzzSet:
    """The set that a run tries, as it was stored."""
    settings: Any = run.config["fuzz"]
    return read_set(store.suites.request(str(settings["set"])))


# --- through a model ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A set made ready to be tried: the case of each fuzz case, and the tools that they offer."""

    fuzz: Mapping[str, FuzzCase]
    cases: Mapping[str, Case]
    contents: Contents
    rejections: Mapping[str, Rejection]
    accepted: tuple[str, ...] = ()
    without_case: tuple[str, ...] = ()

    def chained(self, case: Case) -> bool:
        """Whether the model goes on by itself."""
        return self.fuzz[case.id].perturbed is None

    def lead(self, case: Case) -> int:
        """The characters of the bad call and its rejection."""
        told = self.rejections.get(case.id)
        return 0 if told is None else sum(len(render(one)) for one in lead(self.fuzz[case.id], told.outcome))


def stage(contents: Contents, cases: Sequence[Case], made: FuzzSet, said: Mapping[str, Told] | None = None) -> Stage:
    """
    Args:
        cases: of the suite, with their labels.
        said: what the tools themselves said to the cases, by id; those that they accept are not fed back.
    """
    known = {case.id: case for case in cases}
    failures = recorded_failures(cases, contents.suite.effects)
    tools: dict[str, ToolSchema] = dict(contents.tools)
    ready: dict[str, Case] = {}
    rejections: dict[str, Rejection] = {}
    accepted: list[str] = []
    without: list[str] = []
    for fuzz in made.cases:
        source = known.get(fuzz.source or "")
        told = (said or {}).get(fuzz.id)
        if source is None:
            without.append(fuzz.id)
        elif fuzz.perturbed is not None:
            ready[fuzz.id], more = perturbed_case(source, fuzz.perturbed, fuzz.id)
            tools |= more
        elif fuzz.query is not None:
            ready[fuzz.id] = asked(fuzz, source)
        elif (
            told is not None and fuzz.result is None and class_of(told, fuzz.expectation) in ("ok", "silently_accepted")
        ):
            accepted.append(fuzz.id)
        else:
            ready[fuzz.id] = started(source, fuzz.round, fuzz.id)
            parameters = schemas(source, contents.tools).get(fuzz.tool)
            rejections[fuzz.id] = rejection(fuzz, parameters, said=told.said if told else None, recorded=failures)
    return Stage(
        fuzz={case.id: case for case in made.cases}, cases=ready, contents=replace(contents, tools=tools),
        rejections=rejections, accepted=tuple(accepted), without_case=tuple(without),
    )  # fmt: skip


def feed(
    store: Store, run: SuiteRun, staged: Stage, access: Access, *, limits: Limits | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> SuiteRun:  # fmt: skip
    """Makes the trials of a run that are not done, then those that confirm what went wrong; gives the run as it ended,
    with its findings."""
    effects = staged.contents.suite.effects

    def drive(case: Case) -> Drive:
        fuzz = staged.fuzz[case.id]
        if fuzz.perturbed is not None:
            return turn(case, staged.contents.tools)
        if fuzz.query is not None:
            return loop(case, staged.contents.tools, effects=effects)
        return feed_back(fuzz, case, staged.contents.tools, staged.rejections[case.id], effects)

    def judge(trace: Trace, case: Case, n: int) -> JSON:
        return _judged(staged, trace, case, effects)

    so_far = Progress()

    def telling(progress: Progress) -> None:
        nonlocal so_far
        so_far = progress
        tell(progress)

    def make(one: SuiteRun) -> SuiteRun:
        return execute(
            store, staged.contents, one, [staged.cases[id] for id in one.cases], access, limits=limits, tell=telling,
            drive=drive, judge=judge, after=so_far,
        )  # fmt: skip

    done = make(run)
    suspects = tuple(group[0].case.id for group in _shown_by_model(store, staged, run))
    if suspects and done.status == "completed":
        more = make(replace(run, cases=suspects, runs=max(MODEL_RUNS, run.runs)))
        done = replace(more, cases=run.cases, runs=run.runs)
    found = model_findings(store, staged, done)
    done = replace(done, config={**done.config, "findings": [dump(one) for one in found]})
    store.suites.save_run(done)
    return done


def _judged(staged: Stage, trace: Trace, case: Case, effects: Effects) -> JSON:
    fuzz = staged.fuzz[case.id]
    tools = staged.contents.tools
    if fuzz.perturbed is not None:
        found = score(case, schemas(case, tools), trace.attempt, perturbed_effects(effects, fuzz.perturbed))
        return {"fuzz": {"selection": found.selection, "values": found.values}}
    if fuzz.query is not None:
        hit = judged(trace, fuzz, case, tools)
        calls = [{"tool": call.tool, "arguments": call.arguments} for call in hit.calls[:20]]
        return {"fuzz": {"outcome": hit.why or "ok", "hit": hit.hit, "calls": calls}}
    came = fed_back(trace, fuzz, case, tools, staged.rejections[case.id], effects)
    told = {name: value for name, value in asdict(came).items() if name != "flags"}
    return {"fuzz": {**told, "by": staged.rejections[case.id].by}, "flags": list(came.flags)}


def _shown_by_model(store: Store, staged: Stage, run: SuiteRun) -> list[list[Shown]]:
    shown: list[Shown] = []
    for trial in store.suites.trials(run.id):
        fuzz = staged.fuzz.get(trial.case)
        outcome = None if fuzz is None or trial.n >= run.runs else trial_outcome(fuzz, trial)
        if fuzz is not None and outcome in BAD:
            said = staged.rejections.get(fuzz.id)
            text = "" if said is None or fuzz.result is not None else as_text(said.outcome.value)
            pattern = template(Failure(fuzz.tool, fuzz.arguments, text[:2000]))
            shown.append(Shown(case=fuzz, outcome=outcome, template=pattern[:300], text=text[:1000]))
    return grouped(shown)


def model_findings(store: Store, staged: Stage, run: SuiteRun) -> list[Finding]:
    """What went wrong, each confirmed where 3 of 5 trials of its first case show it again."""
    outcomes: dict[str, list[str]] = {}
    for trial in store.suites.trials(run.id):
        fuzz = staged.fuzz.get(trial.case)
        outcome = None if fuzz is None else trial_outcome(fuzz, trial)
        if outcome is not None:
            outcomes.setdefault(trial.case, []).append(outcome)
    found: list[Finding] = []
    for group in _shown_by_model(store, staged, run):
        first = group[0]
        tried = outcomes.get(first.case.id, [])[: max(MODEL_RUNS, run.runs)]
        again = sum(outcome == first.outcome for outcome in tried)
        needed = MODEL_AGAIN * len(tried) / MODEL_RUNS
        found.append(
            replace(
                _finding(group, "model", run), seen=again, runs=len(tried),
                confirmed=len(tried) >= MODEL_RUNS and again >= needed, model=run.model,
            )
        )  # fmt: skip
    return found


def _finding(group: Sequence[Shown], source: Any, run: SuiteRun) -> Finding:
    first = group[0]
    case = first.case
    return Finding(
        id=finding_id(first), source=source, tool=case.tool, family=case.family, pointer=case.pointer,
        mutation=case.mutation, outcome=first.outcome, template=first.template, text=first.text,
        expectation=case.expectation, arguments=case.arguments, base=case.base,
        cases=tuple(dict.fromkeys(one.case.id for one in group)), run=run.id,
    )  # fmt: skip


# --- natural queries ------------------------------------------------------------------------------------------------


def written(made: FuzzSet, tools: Tools, access: Access | None, *, seed: int, random: bool = False) -> FuzzSet:
    """The set with a request of a user for each bad argument.

    Args:
        access: the writer, None for none.
        random: also meaningless requests, as a baseline.
    """
    by_name = {tool.name: tool for tool in tools.values()}
    wanted = [case for case in writable(made.cases) if case.tool in by_name]
    found: list[FuzzCase] = []
    if access is not None:
        texts = _texts(access, [request_for(case, by_name[case.tool]) for case in wanted], [c.id for c in wanted])
        pairs = zip(wanted, texts, strict=True)
        found += [with_query(case, text, access.name) for case, text in pairs if text.strip()]
    if random:
        found += [random_query(case, seed) for case in wanted]
    return replace(made, cases=(*made.cases, *found))


def _texts(access: Access, asks: Sequence[Any], places: Sequence[str]) -> list[str]:
    texts: list[str] = []

    async def ask_all() -> None:
        try:
            for ask, place in zip(asks, places, strict=True):
                said = await access.ask(ask, Place(place, 0))
                texts.append(parts.text_of(said.message).strip().strip('"'))
        finally:
            await access.close()

    in_a_loop(ask_all())
    return texts


# --- directly -------------------------------------------------------------------------------------------------------


def call_directly(
    store: Store, run: SuiteRun, made: FuzzSet, tools: DirectTools, parameters: Mapping[str, JSON], *,
    max_minutes: float | None = None, tell: Callable[[Progress], None] = lambda progress: None,
    clock: Clock = SYSTEM_CLOCK,
) -> SuiteRun:  # fmt: skip
    """Calls the tools with every case that is not done, confirms what was found by two further runs, makes it small.

    Args:
        parameters: the schema of each tool, which shrinking keeps to.
    """
    going = _Direct(store, run, tools, clock)
    store.suites.save_run(run)
    names = set(tools.names())
    cases = [case for case in made.cases if _can_be_called(case)]
    progress = Progress(of=len(cases))
    started_at = clock.tick()
    stopped: str | None = "an interruption"
    findings: list[Finding] = []
    try:
        for case in cases:
            if max_minutes is not None and (clock.tick() - started_at) / 60_000_000_000 >= max_minutes:
                stopped = f"the limit of {max_minutes:g} minutes"
                break
            if case.tool in names:
                going.told(case, 0)
            progress.done += 1
            tell(progress)
        else:
            stopped = None
        findings = going.findings(cases, parameters)
    finally:
        run = replace(
            run, status="completed" if stopped is None else "stopped", stopped_by=stopped, ended_at=clock.now(),
            config={**run.config, "findings": [dump(one) for one in findings],
                    "missing": sorted({case.tool for case in cases} - names)},
        )  # fmt: skip
        store.suites.save_run(run)
    return run


def _can_be_called(case: FuzzCase) -> bool:
    return case.perturbed is None and case.query is None and case.result is None and case.tool != ""


class _Direct:
    """Direct calls, each made once and stored."""

    def __init__(self, store: Store, run: SuiteRun, tools: DirectTools, clock: Clock) -> None:
        self._store, self._run, self._tools, self._clock = store, run, tools, clock
        self._known = {(t.case, t.n): told_of(t) for t in store.suites.trials(run.id)}

    def told(self, case: FuzzCase, n: int) -> Told | None:
        if (case.id, n) not in self._known:
            started_at = self._clock.now()
            try:
                told = self._tools.call(case.tool, case.arguments)
            except UnknownToolError:
                return None
            self._known[case.id, n] = told
            self._store.suites.add_trial(
                Trial(
                    run=self._run.id, case=case.id, n=n, seed=0, case_digest="", started_at=started_at,
                    ended_at=self._clock.now(), extra={"direct": dump(told)},
                )
            )  # fmt: skip
        return self._known[case.id, n]

    def findings(self, cases: Sequence[FuzzCase], parameters: Mapping[str, JSON]) -> list[Finding]:
        shown: list[Shown] = []
        for case in cases:
            told = self._known.get((case.id, 0))
            if told is not None and class_of(told, case.expectation) in FOUND:
                shown.append(shown_by(case, told))
        return [self._confirmed(group, parameters) for group in grouped(shown)]

    def _confirmed(self, group: Sequence[Shown], parameters: Mapping[str, JSON]) -> Finding:
        first = group[0]
        again = [self.told(first.case, n) for n in range(1, DIRECT_RUNS + 1)]
        seen = sum(told is not None and finding_id(shown_by(first.case, told)) == finding_id(first) for told in again)
        found = replace(
            _finding(group, "direct", self._run), seen=seen, runs=DIRECT_RUNS, confirmed=seen == DIRECT_RUNS,
            entry_point=self._tools.entry_point,
        )  # fmt: skip
        return self._small(found, first, parameters.get(first.case.tool)) if found.confirmed else found

    def _small(self, found: Finding, first: Shown, parameters: JSON) -> Finding:
        case = first.case
        left = _SHRINK_CALLS_HUNG if found.outcome == "hung" else _SHRINK_CALLS

        def still(arguments: JSON) -> bool:
            nonlocal left
            fails = bool(argument_errors(parameters, arguments))
            if left == 0 or fails is not (case.expectation == "schema"):
                return False
            left -= 1
            told = self._tools.call(case.tool, arguments)
            return finding_id(shown_by(replace(case, arguments=arguments), told)) == found.id

        smallest = shrunk(found.arguments, still, tries=_SHRINK_TRIES)
        return replace(found, arguments=smallest, shrunk=True)


def shown_by(case: FuzzCase, told: Told) -> Shown:
    """A direct call as what it shows."""
    outcome = class_of(told, case.expectation)
    pattern = template_of(case.tool, case.arguments, told, outcome)
    return Shown(case=case, outcome=outcome, template=pattern, text=told.said[:1000])


def told_of(trial: Trial) -> Told:
    return load(Told, obj(trial.extra)["direct"], trusted=True)


def told_by_case(store: Store, run: SuiteRun) -> dict[str, Told]:
    """What the tools said in a direct run, by case."""
    return {trial.case: told_of(trial) for trial in store.suites.trials(run.id) if trial.n == 0}


# --- findings that are stored ---------------------------------------------------------------------------------------


def findings_of(run: SuiteRun) -> list[Finding]:
    held: Any = run.config.get("findings") or ()
    return [load(Finding, one, trusted=True) for one in held]
