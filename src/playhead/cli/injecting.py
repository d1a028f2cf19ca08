"""``playhead inject``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from playhead.cli.arms import WORTH, Arm, arms_of, recovery_worth, worth_rows
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.cli.suite_runs import (
    Teller,
    access_for,
    cases_of,
    check_budget,
    estimate_text,
    export_summary,
    models_of,
    new_run_of,
    price_of,
)
from playhead.cli.suites import home_of
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.recovery.plan import Variant
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case
    from playhead.core.suites.summary import RunSummary
    from playhead.core.suites.trials import SuiteRun
    from playhead.engine.suites.run import Limits

Kind = Literal["validation_error", "not_found", "rate_limit", "timeout", "partial", "empty", "malformed"]
_COLUMNS = ("kind", "tool", "recovered", "rate", "interval", "classes", "doubles")


def inject(
    suite: str | None = None,
    /,
    *,
    context: Ctx,
    model: tuple[str, ...] = (),
    kind: tuple[Kind, ...] = (),
    messages: tuple[Literal["prescriptive", "plain", "production"], ...] = ("prescriptive",),
    per_tool: int | None = None,
    runs: int = 1,
    add_exit: bool = False,
    guards: str | None = None,
    case: tuple[str, ...] = (),
    intent: tuple[str, ...] = (),
    limit: int | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    seed: int = 0,
    concurrency: int = 8,
    per_minute: float | None = None,
    max_cost: float | None = None,
    max_minutes: float | None = None,
    plan: bool = False,
    resume: str | None = None,
    export: str | None = None,
) -> Result:
    """Inject failures into a suite's cases and see how a model recovers.

    The model goes on from each case by itself; its calls are answered by the recording, but for the one that fails. No
    recording is changed and no live tool is reached. Exit code 3 when more than 2 % of the trials ended in an
    infrastructure error.

    Args:
        suite: Name of a suite, or its folder.
        model: Model to try, as provider:name, or its bare name with --base-url; scripted:NAME a model of
            playhead.testing.
        kind: Only failures of this kind; may be given several times.
        messages: Form of the error texts; given twice, each failure is run in both and the difference is reported.
        per_tool: At most so many failures of each tool and kind.
        runs: Trials of each failure.
        add_exit: Offer the tool report_failure beside those of the case, in a second run: what it changes is reported.
        guards: Check results as the suite's guards say before the model gets them: on, off, or on,off for a run of each
            and what they change.
        case: Only this case; may be given several times.
        intent: Only cases of this intent; may be given several times.
        limit: At most so many cases.
        base_url: Address of an OpenAI-compatible gateway.
        key_env: Environment variable with its key.
        seed: Base of the trials' seeds, and of what --per-tool draws.
        concurrency: Trials at a time.
        per_minute: Requests a minute, at most.
        max_cost: Stop when so many USD are spent.
        max_minutes: Stop after so many minutes.
        plan: Only list the failures that would be injected.
        resume: Go on with this run (id, or last) and the runs beside it; its own settings hold.
        export: Write the run summary to this file, for playhead gate --recovery.
    """
    from playhead.core.recovery.plan import KINDS
    from playhead.engine.suites.run import Limits

    limits = Limits(concurrency=max(1, concurrency), per_minute=per_minute, max_cost=max_cost, max_minutes=max_minutes)
    if resume is not None:
        return _resumed(context, suite, resume, limits, export)
    if suite is None:
        raise UsageError("no suite was named", hint="playhead inject SUITE --model PROVIDER:NAME")
    contents = home_of(context, suite).contents()
    arms = arms_of(contents, guards, add_exit=add_exit)
    settings: dict[str, Any] = {
        "kinds": list(kind or KINDS), "messages": list(dict.fromkeys(messages)), "per_tool": per_tool, "seed": seed,
    }  # fmt: skip
    cases = cases_of(contents, slice="tune", case=case, intent=intent, limit=limit, unlabelled=True)
    found = _variants(cases, contents, settings)
    if plan:
        return _planned(found)
    names = models_of(model, None)
    if len(names) > 1:
        raise UsageError("one model at a time", hint="playhead inject once for each")
    config = {"suite": suite, "base_url": base_url, "key_env": key_env, "cases": [one.id for one in cases]}
    from playhead.engine.suites.inject import variant_cases

    made = [
        new_run_of(
            contents, variant_cases(cases, found), names[0], runs=runs, seed=seed, driver="loop",
            config={**config, "inject": {**settings, "add_exit": arm.add_exit, "guards": arm.guards}},
        )
        for arm in arms
    ]  # fmt: skip
    return _compared(context, contents, cases, _together(context, cases, made, limits), limits, export)


def _together(
    context: Context, cases: "Sequence[Case]", made: "Sequence[SuiteRun]", limits: "Limits"
) -> "Sequence[SuiteRun]":
    """Runs that know each other, so that going on with one goes on with all; kept before the first of them begins."""
    from dataclasses import replace

    if len(made) == 1:
        return made
    check_budget(made[0].model, limits, access_for(context, made[0], cases))
    ids: Any = [one.id for one in made]
    found = [replace(one, config={**one.config, "arms": ids}) for one in made]
    for one in found:
        context.make_store().suites.save_run(replace(one, status="stopped", stopped_by="an interruption"))
    return found


def _compared(
    context: Context, contents: "Contents", cases: "Sequence[Case]", made: "Sequence[SuiteRun]", limits: "Limits",
    export: str | None,
) -> Result:  # fmt: skip
    """Runs every arm; the last one, which has all that was asked for, is the one that is reported and exported."""
    done = [_run(context, contents, cases, one, limits) for one in made]
    if len(done) == 1:
        return _result(context, done[0], export)
    arms = {_arm(one).name: found for one, found in zip(made, done, strict=True)}
    first, *others = arms
    worth = {name: recovery_worth(arms[first][1].recovery, arms[name][1].recovery) for name in others}
    told = {
        **done[-1][0],
        "arms": [{"arm": name, **_brief(told)} for name, (told, _) in arms.items()],
        "worth": worth,
    }
    rows = [row for name, one in worth.items() for row in worth_rows(name, one)]
    result = _result(context, (told, done[-1][1]), export)
    code = max(_code(one) for one, _ in done)
    return Result(data=told, text=[*result.text, Table(WORTH, rows)], exit_code=code)


def _arm(run: "SuiteRun") -> Arm:
    settings: Any = run.config["inject"]
    return Arm(bool(settings.get("guards")), bool(settings.get("add_exit")))


def _brief(told: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("run", "recovered", "injected", "rate", "interval", "errors", "guarded")
    classes: Counter[str] = Counter()
    for group in told["groups"]:
        classes.update(group["classes"])
    return {**{name: told[name] for name in kept}, "classes": dict(classes)}


def _resumed(context: Context, suite: str | None, resume: str, limits: "Limits", export: str | None) -> Result:
    from dataclasses import replace

    suites = context.store.suites
    run = suites.run(suites.resolve_run(resume))
    if "inject" not in run.config:
        raise UsageError(f"run {run.id} is no run of injected failures", hint="playhead suite run --resume")
    contents = home_of(context, suite or str(run.config["suite"])).contents()
    names: Any = run.config["cases"]
    cases = cases_of(contents, slice="tune", case=tuple(names), intent=(), limit=None, unlabelled=True)
    arms: Any = run.config.get("arms") or [run.id]
    going = [replace(suites.run(id), status="running", stopped_by=None, ended_at=None) for id in arms]
    return _compared(context, contents, cases, going, limits, export)


def _variants(cases: "Sequence[Case]", contents: "Contents", settings: Mapping[str, Any]) -> "list[Variant]":
    from playhead.core.recovery.plan import variants

    found = variants(
        cases, contents.tools, kinds=settings["kinds"], per_tool=settings["per_tool"], seed=settings["seed"],
        messages=settings["messages"],
    )  # fmt: skip
    if not found:
        raise UsageError("no failure applies to the recorded calls of these cases", hint="playhead suite show")
    return found


def _planned(found: "Sequence[Variant]") -> Result:
    counts = Counter((one.config.kind, one.tool) for one in found)
    rows = [{"kind": kind, "tool": tool, "failures": n} for (kind, tool), n in sorted(counts.items())]
    data = [
        {"variant": one.id, "case": one.case, "tool": one.tool, "nth": one.nth, "kind": one.config.kind,
         "message": one.config.message} for one in found
    ]  # fmt: skip
    return Result(data=data, items=True, text=[f"{len(found)} failures", Table(("kind", "tool", "failures"), rows)])


def _run(
    context: Context, contents: "Contents", cases: "Sequence[Case]", run: "SuiteRun", limits: "Limits"
) -> "tuple[dict[str, Any], RunSummary]":
    """Makes the trials of a run; what it found, as JSON and as a summary."""
    from playhead.core.protocol.shape import obj
    from playhead.core.recovery.report import checklist, report
    from playhead.engine.suites.inject import inject, variant_cases
    from playhead.engine.suites.run import estimate, todo
    from playhead.engine.suites.summary import run_summary

    settings: Any = run.config["inject"]
    found = _variants(cases, contents, settings)
    made = variant_cases(cases, found)
    store = context.make_store()
    access = access_for(context, run, made)
    check_budget(run.model, limits, access)
    before = estimate(run, contents, made, len(todo(store, run)), price_of(run.model))
    context.note(f"{run.model}: run {run.id}, {len(found)} failures, {before.trials} trials to make")
    context.note(f"{run.model}: {estimate_text(before)}")
    teller = Teller(context, run.model)
    done = inject(
        store, contents, run, made, found, access, add_exit=settings["add_exit"],
        guards=bool(settings.get("guards")), limits=limits, tell=teller,
    )  # fmt: skip
    teller.end()
    summary = run_summary(store, done.id, contents=contents)
    trials = store.suites.trials(done.id)
    errors = sum(trial.status == "error" for trial in trials)
    told = report(summary.recovery, checklist(summary.recovery, contents, cases))
    told |= {
        "run": done.id,
        "model": done.model,
        "arm": _arm(done).name,
        "status": done.status,
        "stopped_by": done.stopped_by,
        "failures": len(found),
        "trials": len(trials),
        "errors": errors,
        "first_error": next((trial.error for trial in trials if trial.status == "error"), None),
        "not_reached": len(trials) - errors - len(summary.recovery),
        "guarded": sum(obj(trial.extra).get("guards", 0) for trial in trials),
    }
    return told, summary


def _result(context: Context, done: "tuple[dict[str, Any], RunSummary]", export: str | None) -> Result:
    told, summary = done
    if export is not None:
        export_summary(context, summary, export)
    return Result(data=told, text=_text(told), exit_code=_code(told))


def _code(told: Mapping[str, Any]) -> int:
    from playhead.core.suites.trials import ERROR_LIMIT

    return 3 if told["trials"] and told["errors"] / told["trials"] > ERROR_LIMIT else 0


def _text(told: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = [
        Fields(
            [
                ("run", told["run"]),
                ("model", told["model"]),
                ("arm", told["arm"] if told["arm"] != Arm().name else None),
                ("status", told["status"]),
                ("stopped by", told["stopped_by"]),
                ("recovered", f"{told['recovered']} of {told['injected']}"),
                ("rate", None if told["rate"] is None else f"{told['rate']:.1%} ({_percent(told['interval'])})"),
                ("failure never came up", told["not_reached"] or None),
                ("results that guards took", told["guarded"] or None),
                ("errors", f"{told['errors']}: {told['first_error']}" if told["errors"] else None),
            ]
        )
    ]
    rows = [
        {
            "kind": group["kind"],
            "tool": group["tool"],
            "recovered": f"{group['recovered']}/{group['injected']}",
            "rate": f"{group['rate']:.0%}",
            "interval": _percent(group["interval"]),
            "classes": ", ".join(f"{n} {name}" for name, n in group["classes"].items()),
            "doubles": ", ".join(f"{n} {name}" for name, n in group["doubles"].items()) or None,
        }
        for group in told["groups"]
    ]
    if rows:
        blocks.append(Table(_COLUMNS, rows))
    if told["messages"] is not None:
        worth = told["messages"]
        blocks.append(
            f"prescriptive against plain texts: {worth['difference']:+.1%} ({_percent(worth['interval'])}) "
            f"over {worth['pairs']} pairs"
        )
    if told["checklist"]:
        blocks.append(Table(("tool", "check", "answer", "evidence"), [
            {**row, "evidence": "; ".join(row["evidence"]) or None} for row in told["checklist"]
        ]))  # fmt: skip
    return blocks


def _percent(interval: Sequence[float]) -> str:
    return f"{interval[0]:.1%} to {interval[1]:.1%}"
