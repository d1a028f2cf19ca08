"""``playhead suite run | rescore``."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playhead.cli.arms import WORTH, arm_worth, guarded_runs, interface_runs, proposed, worth_rows
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table, plain, to_json
from playhead.cli.suites import home_of, whoever
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case
    from playhead.core.suites.trials import SuiteRun
    from playhead.engine.model_access import Access
    from playhead.engine.suites.run import Estimate, Limits, Progress


def run(
    suite: str | None = None,
    /,
    *,
    context: Ctx,
    model: tuple[str, ...] = (),
    runs: int | None = None,
    driver: Literal["turn", "loop", "agent"] = "turn",
    entry_point: str | None = None,
    outcome: Literal["spliced", "chained"] = "spliced",
    slice: Literal["tune", "held_back", "all"] = "tune",
    reason: str | None = None,
    case: tuple[str, ...] = (),
    intent: tuple[str, ...] = (),
    limit: int | None = None,
    unlabelled: bool = False,
    base_url: str | None = None,
    key_env: str | None = None,
    strict: Literal["auto", "on", "off"] = "auto",
    guards: str | None = None,
    interface: Path | None = None,
    seed: int = 0,
    concurrency: int = 8,
    per_minute: float | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    answers: str | None = None,
    resume: str | None = None,
    estimate: bool = False,
    export: str | None = None,
    trust: tuple[Literal["weak", "mined", "proposed"], ...] = (),
) -> Result:
    """Try every case of a suite with one model or several, and score it.

    Each trial is stored when it is done. A run that was interrupted, or stopped by its budget, goes on with --resume.
    No trial reaches a live tool. Exit code 3 when more than 2 % of the trials ended in an infrastructure error.

    Args:
        suite: Name of a suite, or its folder.
        model: Model to try, as provider:name, or its bare name with --base-url; may be given several times. recorded
            is what the recordings did, scripted:NAME a model of playhead.testing.
        runs: Trials of each case, 3 when neither this nor the suite says.
        driver: turn asks once at the case's turn; loop goes on until the model answers; agent replays your own code
            from the case's source session.
        entry_point: With --driver agent, how to start the agent, as module:function; left out, its recorded version.
        outcome: spliced puts the recorded results after whatever the model did; chained goes on from its own calls.
        slice: Cases to try; held_back and all need --reason.
        reason: Why what is held back is read; it goes to the access log.
        case: Only this case; may be given several times.
        intent: Only cases of this intent; may be given several times.
        limit: At most so many cases.
        unlabelled: Try cases of which nothing can be scored, too.
        base_url: Address of an OpenAI-compatible gateway.
        key_env: Environment variable with its key.
        strict: Send strict schemas: auto where the provider is known to support them.
        guards: Check results as the suite's guards say before the model gets them: on, off, or on,off for a run of each
            and what they change. Needs --driver loop or --outcome chained.
        interface: Also run with the tools of this file (suite diagnose --into), and say what they change.
        seed: Base of the trials' seeds.
        concurrency: Trials at a time.
        per_minute: Requests a minute, at most.
        max_cost: Stop when so many USD are spent.
        max_minutes: Stop after so many minutes.
        answers: Take the model's answers from this earlier run (id, or last), offline.
        resume: Go on with this run (id, or last); its own settings hold.
        estimate: Only say what the run would ask for and cost.
        export: Write the run summary to this file, for a gate.
        trust: State of labels that count though nobody reviewed them; may be given several times.
    """
    from playhead.engine.suites.run import Limits

    limits = Limits(concurrency=max(1, concurrency), per_minute=per_minute, max_cost=max_cost, max_minutes=max_minutes)
    if resume is not None:
        return _resumed(context, suite, resume, limits, export=export, trust=trust)
    if suite is None:
        raise UsageError("no suite was named", hint="playhead suite run SUITE --model PROVIDER:NAME")
    names = models_of(model, answers)
    _one_run(export, several=len(names) > 1 or "," in (guards or "") or interface is not None)
    contents = (home := home_of(context, suite)).contents()
    cases = cases_of(contents, slice=slice, case=case, intent=intent, limit=limit, unlabelled=unlabelled)
    if slice != "tune" and not (reason or "").strip():
        raise UsageError("reading the held-back slice needs a reason", hint="--reason TEXT; it goes to the access log")
    config = {"base_url": base_url, "key_env": key_env, "answers": answers, "entry_point": entry_point}
    shared: dict[str, Any] = {"slice": slice, "reason": reason, "strict": strict, "seed": seed}
    shared |= {"runs": runs or contents.suite.defaults.runs, "driver": driver, "outcome": outcome}
    shared["config"] = {"suite": _whole(suite), **config}
    plain = [new_run_of(contents, cases, one, **shared) for one in names]
    made = interface_runs(contents, cases, interface, guarded_runs(contents, guards, plain))
    if estimate:
        return _estimated(contents, cases, made)
    if slice != "tune":
        from playhead.engine.suites.location import note_access

        note_access(home, contents, who=whoever(), command="suite run", reason=reason or "", run=made[0].id)
        contents = home.contents()
    done = [_execute(context, contents, cases, one, limits) for one in made]
    return _result(context, contents, done, export=export, trust=trust)


def _one_run(export: str | None, *, several: bool) -> None:
    if export is not None and several:
        raise UsageError("--export takes one run", hint="playhead suite run once for each")


def _whole(suite: str) -> str:
    """The suite as another command, in another folder, finds it."""
    return str(Path(suite).resolve()) if Path(suite).is_dir() else suite


def models_of(model: Sequence[str], answers: str | None) -> list[str]:
    if model:
        return list(dict.fromkeys(model))
    if answers is None:
        raise UsageError("no model was named", hint="--model PROVIDER:NAME, or --model recorded for what was recorded")
    return ["earlier"]


def cases_of(contents: "Contents", **selection: Any) -> "list[Case]":
    from playhead.engine.suites.run import Selection, chosen

    ids, intents = selection.pop("case"), selection.pop("intent")
    return chosen(contents, Selection(ids=tuple(ids), intents=tuple(intents), **selection))


def new_run_of(contents: "Contents", cases: "Sequence[Case]", model: str, **fields: Any) -> "SuiteRun":
    from playhead.engine.suites.run import new_run

    scripted = model.startswith("scripted:")
    return new_run(contents, cases, model=model, scripted=scripted, **fields)


def access_for(context: Context, run: "SuiteRun", cases: "Sequence[Case]") -> "Access":
    from playhead.engine.model_access import LayerAccess, RecordedAnswers

    by_id = {case.id: case for case in cases}
    answers = run.config.get("answers")
    if answers is not None:
        from playhead.engine.suites.answers import earlier_answers

        return earlier_answers(context.store, str(answers))
    if run.model == "recorded":
        return RecordedAnswers(by_id)
    if run.model.startswith("scripted:"):
        from playhead.testing.scripted_models import ScriptedAccess

        try:
            return ScriptedAccess(run.model.removeprefix("scripted:"), by_id)
        except ValueError as error:
            raise UsageError(str(error)) from None
    base_url, key_env = run.config.get("base_url"), run.config.get("key_env")
    access = LayerAccess(name=run.model, base_url=base_url, key_env=key_env, strict_mode=run.strict)
    access.check()
    return access


def _execute(
    context: Context, contents: "Contents", cases: "Sequence[Case]", run: "SuiteRun", limits: "Limits"
) -> "SuiteRun":
    from playhead.engine.suites.run import estimate, execute, todo

    store = context.make_store()
    if "interface" in run.config:
        contents, cases = proposed(contents, cases, run.config["interface"])
    if run.driver == "agent":
        return _replayed(context, contents, cases, run, limits)
    access = access_for(context, run, cases)
    left = len(todo(store, run))
    check_budget(run.model, limits, access)
    told = estimate(run, contents, cases, left, price_of(run.model))
    run = replace(run, notes=(*run.notes, *_without_strict(contents, cases, access, run)))
    for text in (f"{run.model}: run {run.id}, {estimate_text(told)}", *run.notes):
        context.note(text)
    teller = Teller(context, run.model)
    ended = execute(store, contents, run, cases, access, limits=limits, tell=teller)
    teller.end()
    return ended


def _without_strict(
    contents: "Contents", cases: "Sequence[Case]", access: "Access", run: "SuiteRun"
) -> tuple[str, ...]:
    """How many cases are sent without strict schemas, and what prevents it most often."""
    from collections import Counter

    if run.strict == "off" or any(note.startswith("strict mode") for note in run.notes):
        return ()
    uses = [access.strict([contents.tools[name] for name in case.tools]) for case in cases]
    reasons = Counter(reason for use in uses for reason in use.reasons)
    without = sum(not use.on for use in uses)
    if not reasons or not without:
        return ()
    told = "; ".join(reason for reason, _ in reasons.most_common(3))
    return (f"strict mode is off for {without} of {len(cases)} cases: {told}",)


def _replayed(
    context: Context, contents: "Contents", cases: "Sequence[Case]", run: "SuiteRun", limits: "Limits"
) -> "SuiteRun":
    from playhead.core.values import RunSpec
    from playhead.engine.suites.agent import execute_agent

    entry_point = run.config.get("entry_point")
    spec = None if entry_point is None else RunSpec(entry_point=str(entry_point), working_dir=str(Path.cwd()))
    sessions = len({case.source.session for case in cases})
    context.note(f"{run.model}: run {run.id}, {sessions} sessions are replayed {run.runs} times each")
    teller = Teller(context, run.model)
    ended = execute_agent(
        context.make_store(), context.project, contents, run, cases, run_spec=spec, limits=limits, tell=teller
    )
    teller.end()
    return ended


def check_budget(model: str, limits: "Limits", access: "Access | None" = None) -> None:
    """
    Args:
        access: the model, where it is known already.

    Raises:
        UsageError: the budget could not stop a run, since nobody knows what the model costs.
    """
    from playhead.engine.model_access import LayerAccess

    free = model == "recorded" or model.startswith("scripted:")
    if limits.max_cost is None or free or not (access is None or isinstance(access, LayerAccess)):
        return
    if price_of(model)(1000, 1000) is None:
        raise UsageError(
            f"the price of {model!r} is not known, so --max-cost cannot stop the run", hint="--max-minutes can"
        )


def price_of(model: str) -> Any:
    """What tokens of a model cost, as a function of those given and made; its result is None when unknown."""
    from playhead.core.values import Usage
    from playhead.engine.pricing import price

    provider, _, name = model.rpartition(":")

    def cost(given: int, made: int) -> float | None:
        found = price(Usage(input_uncached=given, output_visible=made), name, provider or None)
        return None if found is None else float(found.amount)

    return cost


def estimate_text(told: "Estimate") -> str:
    """An estimate in words."""
    cost = "cost unknown" if told.cost is None else f"about {told.cost:.2f} USD"
    return (
        f"{told.trials} trials, about {told.requests} requests, {told.input_tokens:,} input tokens "
        f"and {told.output_tokens:,} output tokens, {cost}"
    )


class Teller:
    """Progress on stderr: a line that is rewritten on a terminal, some lines elsewhere."""

    def __init__(self, context: Context, model: str) -> None:
        self._context, self._model = context, model
        self._live = context.mode == "text" and sys.stderr.isatty()
        self._next = 0

    def __call__(self, progress: "Progress") -> None:
        if not self._live and progress.done < self._next and progress.done < progress.of:
            return
        self._next = progress.done + max(1, progress.of // 10)
        parts = [f"{progress.done}/{progress.of} trials", f"{progress.errors} errors" if progress.errors else ""]
        parts += [f"{progress.cost:.4f} USD" if progress.cost else ""]
        line = f"{self._model}: {', '.join(part for part in parts if part)}"
        if self._live:
            sys.stderr.write(f"\r\x1b[K{plain(line)}")
            sys.stderr.flush()
        else:
            self._context.note(line)

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\n")


def _estimated(contents: "Contents", cases: "Sequence[Case]", made: "Sequence[SuiteRun]") -> Result:
    from dataclasses import asdict

    from playhead.engine.suites.run import estimate

    rows: list[dict[str, Any]] = []
    for run in made:
        told = estimate(run, contents, cases, len(cases) * run.runs, price_of(run.model))
        rows.append({"model": run.model, "cases": len(cases), "runs": run.runs, **asdict(told)})
    columns = ("model", "cases", "runs", "trials", "requests", "input_tokens", "output_tokens", "cost")
    return Result(data=rows, items=True, text=[Table(columns, rows)])


def _resumed(
    context: Context, suite: str | None, resume: str, limits: "Limits", *, export: str | None, trust: Sequence[str]
) -> Result:
    from playhead.engine.suites.run import Selection, chosen

    suites = context.store.suites
    found = suites.run(suites.resolve_run(resume))
    contents = home_of(context, suite or str(found.config.get("suite") or found.suite)).contents()
    have = {case.id for case in contents.cases if case.status == "active"}
    ids = tuple(id for id in found.cases if id in have)
    gone = len(found.cases) - len(ids)
    if gone:
        context.note(f"{gone} cases of the run are no longer in the suite, and are not tried")
    cases = chosen(contents, Selection(slice="all", ids=ids, unlabelled=True))
    going = replace(found, status="running", stopped_by=None, ended_at=None, cases=tuple(case.id for case in cases))
    done = _execute(context, contents, cases, going, limits)
    return _result(context, contents, [done], export=export, trust=trust)


def _result(
    context: Context, contents: "Contents", done: "Sequence[SuiteRun]", *, export: str | None, trust: Sequence[str]
) -> Result:
    from playhead.core.suites.trials import ERROR_LIMIT
    from playhead.engine.suites.summary import run_summary, stored_scores

    rows: list[dict[str, JSON]] = []
    text: list[Block] = []
    code = 0
    summaries: list[tuple[SuiteRun, Any]] = []
    for run in done:
        summary = run_summary(context.store, run.id, contents=contents, trust=trust)
        stored_scores(context.store, summary, now=SYSTEM_CLOCK.now())
        summaries.append((run, summary))
        row, errors = _row(run, summary)
        rows.append(row)
        text += [Fields([(name.replace("_", " "), _shown(value)) for name, value in row.items()])]
        if errors > ERROR_LIMIT:
            code = 3
            text.append(f"{errors:.1%} of the trials ended in infrastructure errors: {_first_error(summary)}")
        if run.stopped_by is not None:
            text.append(f"stopped by {run.stopped_by}; go on with playhead suite run --resume {run.id}")
        if export is not None:
            export_summary(context, summary, export)
    told: dict[str, Any] = {"runs": rows}
    for arm in ("guards", "interface"):
        worth = arm_worth(summaries, arm)
        if worth:
            told[arm] = worth
            text.append(Table(WORTH, [row for name, one in worth.items() for row in worth_rows(f"{arm}, {name}", one)]))
    return Result(data=told, text=text, exit_code=code)


def _row(run: "SuiteRun", summary: Any) -> tuple[dict[str, JSON], float]:
    from playhead.core.suites.summary import DIMENSIONS

    trials = [trial for case in summary.cases for trial in case.trials]
    errors = sum(trial.status == "error" for trial in trials)
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    counted = [trial for case in summary.cases if case.active for trial in case.trials]
    rates = {name: _rate([getattr(trial, name) for trial in counted]) for name in (*DIMENSIONS, "passed")}
    row: dict[str, JSON] = {
        "run": run.id, "model": run.model, **_arms(run), "status": run.status, "stopped_by": run.stopped_by,
        "cases": len(summary.cases), "active_cases": sum(case.active for case in summary.cases),
        "trials": len(trials), "errors": errors, **rates, "cost_usd": sum(costs) if costs else None,
        "first_error": _first_error(summary) if errors else None,
    }  # fmt: skip
    return row, errors / len(trials) if trials else 0.0


def _arms(run: "SuiteRun") -> dict[str, JSON]:
    on = run.config.get("guards")
    changed: Any = run.config.get("interface")
    found: dict[str, JSON] = {} if on is None else {"guards": "on" if on else "off"}
    return found if changed is None else {**found, "interface": sorted(changed["tools"])}


def _rate(values: Sequence[bool | None]) -> JSON:
    known = [value for value in values if value is not None]
    return {"passed": sum(known), "of": len(known)}


def _shown(value: JSON) -> JSON:
    from playhead.core.protocol.shape import is_object

    if is_object(value):
        return f"{value['passed']}/{value['of']}" if value["of"] else "not applicable"
    return value


def _first_error(summary: Any) -> str | None:
    return next((t.error for case in summary.cases for t in case.trials if t.status == "error"), None)


def export_summary(context: Context, summary: Any, path: str) -> None:
    """Writes a run for the gate, without secrets: the file is meant for version control."""
    from playhead.core.codec import dump, load
    from playhead.core.suites.summary import RunSummary, to_text
    from playhead.engine.exports import written_whole

    clean = load(RunSummary, context.project.redactor().redact(dump(summary))[0], trusted=True)
    with written_whole(path) as file:
        file.write(to_text(clean).encode("utf-8", "surrogatepass"))


def rescore(
    run: str = "last", /, *, context: Ctx, suite: str | None = None, export: str | None = None,
    trust: tuple[Literal["weak", "mined", "proposed"], ...] = (),
) -> Result:  # fmt: skip
    """Score the stored trials of a run again, with today's labels.

    Args:
        run: Id, shortened id, last or last~N.
        suite: Name or folder of the suite, where it is not in the store.
        export: Write the run summary to this file, for a gate.
        trust: State of labels that count though nobody reviewed them; may be given several times.
    """
    from playhead.engine.suites.summary import run_summary, stored_scores

    suites = context.store.suites
    found = suites.run(suites.resolve_run(run))
    try:
        contents = home_of(context, suite or str(found.config.get("suite") or found.suite)).contents()
    except NotFoundError as error:
        raise NotFoundError(error.message, hint="--suite names where the suite is now") from None
    summary = run_summary(context.store, found.id, contents=contents, trust=trust)
    changed = stored_scores(context.store, summary, now=SYSTEM_CLOCK.now())
    row, _ = _row(found, summary)
    if export is not None:
        export_summary(context, summary, export)
    data = {**row, "changed": changed}
    text: list[Block] = [Fields([(name.replace("_", " "), _shown(value)) for name, value in row.items()])]
    text.append(f"{len(changed)} trials are scored otherwise than before")
    rows = [{**one, "before": to_json(one["before"]), "now": to_json(one["now"])} for one in changed[:50]]
    if rows:
        text.append(Table(("case", "run", "before", "now"), rows))
    return Result(data=data, text=text)
