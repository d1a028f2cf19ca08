"""``playhead experiment create | list | show | run | retry | cancel | report``."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.experiments.definition import Arm
    from playhead.core.experiments.runs import Experiment, ExperimentRun
    from playhead.core.gate.verdict import GateReport
    from playhead.engine.experiments import ExperimentClient, RunPlan

_WORST_FIRST = (130, 3, 2, 1, 4, 0)


@dataclass(frozen=True, kw_only=True)
class OneArm:
    """The arm that the options of a replay describe.

    Args:
        tool_policy: What answers tool calls, as JSON or @FILE.
        model_history: Answer model calls from the recording: offline, without a key.
        model_policy: What answers model calls, as JSON or @FILE.
        override: The change as JSON or @FILE, in place of the four options that follow.
        model: Another model for every call, or a JSON object from old names to new.
        system_prompt: Other system text for the root agent; @FILE reads it.
        prompt: Another user prompt.
        model_params: Parameters to merge over the agent's own, as JSON or @FILE.
        agent_version: Run this version: NAME@NUMBER or an id.
    """

    tool_policy: str | None = None
    model_history: bool = False
    model_policy: str | None = None
    override: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    prompt: str | None = None
    model_params: str | None = None
    agent_version: str | None = None


NO_ARM = OneArm()


def create(
    name: str,
    /,
    *,
    context: Ctx,
    one: Annotated[OneArm, Parameter(name="*")] = NO_ARM,
    arm: tuple[str, ...] = (),
    arm_name: str = "change",
    unchanged: bool = False,
    evaluator: tuple[str, ...] = (),
    evaluator_params: tuple[str, ...] = (),
) -> Result:
    """Name a change and the evaluators that judge it.

    The options of a replay make one arm; --arm adds others. Recorded sessions are always there as the baseline;
    --unchanged adds an arm that re-runs the agent as it is, which shows what is noise.

    Args:
        name: Name of the experiment.
        arm: An arm as JSON or @FILE: {"name": ..., "override": {...}, "tool_policy": {...}, "model_policy": {...},
            "agent_version": ...}; may be given several times.
        arm_name: Name of the arm that the other options make.
        unchanged: Add an arm without a change.
        evaluator: Evaluator NAME or NAME@VERSION; may be given several times. Left out, fidelity.
        evaluator_params: Parameters of an evaluator, as a JSON object or @FILE; the first belongs to the first
            evaluator, the second to the second.
    """
    from pydantic import ValidationError

    from playhead.core.experiments.definition import UNCHANGED, Arm, ExperimentConfig

    arms: list[Any] = [_json("--arm", text) for text in arm]
    if one != NO_ARM:
        arms.insert(0, _arm(one, arm_name))
    if unchanged:
        arms.insert(0, Arm(name=UNCHANGED, **_history(one)))
    try:
        config = ExperimentConfig(name=name, arms=tuple(arms), evaluators=_evaluators(evaluator, evaluator_params))
    except ValidationError as error:
        raise _invalid(error) from None
    return _experiment(_client(context).create(config))


def _history(one: OneArm) -> dict[str, Any]:
    """An unchanged arm beside an offline one is offline too."""
    from playhead.core.policy import HistoryModel

    return {"model_policy": HistoryModel()} if one.model_history else {}


def _arm(one: OneArm, name: str) -> "Arm":
    from playhead.cli.creating import Change, Way, replay_request
    from playhead.core.experiments.definition import Arm

    given = {field: getattr(one, field) for field in OneArm.__dataclass_fields__}
    request = replay_request("", Change(**given), Way())
    return Arm(
        name=name,
        agent_version=request.agent_version,
        override=request.override,
        tool_policy=request.tool_policy,
        model_policy=request.model_policy,
    )


def _evaluators(names: tuple[str, ...], params: tuple[str, ...]) -> Any:
    from playhead.cli.creating import Change, Way, replay_request

    return replay_request("", Change(), Way(evaluator=names, evaluator_params=params)).evaluators


def list_experiments(*, context: Ctx) -> Result:
    """List experiments."""
    found = _client(context).list()
    rows = [_row(experiment) for experiment in found]
    return Result(
        data=[shown.members(experiment) for experiment in found],
        items=True,
        text=[Table(("experiment", "arms", "evaluators", "made"), rows, empty="no experiments")],
    )


def show(name: str, /, *, context: Ctx) -> Result:
    """Show an experiment's arms, evaluators and runs.

    Args:
        name: Name of the experiment.
    """
    client = _client(context)
    experiment = client.get(name)
    runs = client.runs(name)
    data = {**shown.members(experiment), "runs": [_run_members(client, run) for run in runs]}
    arms = "\n".join(shown.brief(arm, 200) for arm in experiment.config["arms"])
    text: list[Block] = [Fields([*_row(experiment).items(), ("each arm", arms)])]
    if runs:
        text.append(Table(_RUN_COLUMNS, [_run_row(client, run) for run in runs]))
    return Result(data=data, text=text)


def run(
    experiment: str,
    /,
    *,
    context: Ctx,
    cohort: str,
    repeats: int = 1,
    evaluate_baselines: Literal["none", "if_missing", "force"] = "if_missing",
    workers: int = 0,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    max_minutes: float | None = None,
    timeout: float | None = None,
    isolation: Literal["require", "best", "off"] = "best",
    allow_live: bool = False,
    plan: bool = False,
    fail_on_verdict: bool = False,
    gate: str | None = None,
    wait: Annotated[bool, Parameter(negative="--no-wait")] = True,
) -> Result:
    """Run every arm of an experiment over a cohort.

    Says first how many replays that is and what it may cost. A run that was interrupted goes on where it stopped: with
    `playhead worker start`, or `playhead experiment resume`. Exit code 1 when a replay missed (or with
    --fail-on-verdict a verdict did not pass), 4 when a budget ended the run.

    Args:
        experiment: Name of the experiment.
        cohort: NAME or NAME@VERSION of the cohort.
        repeats: Replays of each session under each arm; 3 or more with a live model.
        evaluate_baselines: Run the evaluators on the recorded sessions too.
        workers: Replays at a time, 0 one for each processor.
        max_cost: Stop when the replays have cost so many US dollars.
        max_tokens: Stop when the replays have used so many tokens.
        max_minutes: Stop after so many minutes.
        timeout: Seconds that an agent may take.
        isolation: Guard around the agents' processes: the best there is, a required one, or off.
        allow_live: Run tools that a policy lets go live without asking.
        plan: Only say what the run would do.
        fail_on_verdict: Exit code 1 when a verdict did not pass.
        gate: File with criteria (TOML or JSON), or default: end with the gate's verdict on the changes and its exit
            code: 0 pass, 1 fail, 4 inconclusive, 3 no verdict.
        wait: Run it here; else workers run it later.
    """
    from pydantic import ValidationError

    from playhead.cli.creating import allow_live_tools
    from playhead.core.experiments.definition import Budget, RunConfig

    client = _client(context)
    try:
        config = RunConfig(
            cohort=cohort,
            repeats=repeats,
            evaluate_baselines=evaluate_baselines,
            budget=Budget(money=max_cost, tokens=max_tokens, minutes=max_minutes),
            timeout=timeout,
            isolation=isolation,
        )
    except ValidationError as error:
        raise _invalid(error) from None
    if gate is not None and not wait:
        raise UsageError("a run that does not wait has no verdict", hint="playhead experiment report RUN --gate later")
    _check_criteria(gate)
    if config.budget.limits and not wait:
        raise UsageError("a budget is kept by the process that waits", hint="leave --no-wait out, or the limits")
    planned = client.plan(experiment, config)
    _announce(planned, context)
    if plan:
        return _planned(planned)
    allow_live_tools(planned.live_tools, context, allowed=allow_live)
    made = client.start(planned)
    context.note(f"run {made.id}, job {made.job_ids[-1]}")
    if not wait:
        return _run_result(client, made, 0)
    return _followed(client, made, context, workers=workers, fail_on_verdict=fail_on_verdict, gate=gate)


def _check_criteria(gate: str | None) -> None:
    """A mistake in the criteria is told before anything runs."""
    from playhead.cli.experiment_gate import DEFAULTS

    if gate not in (None, DEFAULTS):
        from playhead.engine.suites.releases import read_criteria

        read_criteria(gate)


def resume(
    run: str = "last", /, *, context: Ctx, workers: int = 0, failed: bool = False, fail_on_verdict: bool = False,
    gate: str | None = None,
) -> Result:  # fmt: skip
    """Go on with a run, or try its failed replays again.

    Args:
        run: Id of the run, shortened id, last or last~N.
        workers: Replays at a time, 0 one for each processor.
        failed: Try the replays that failed or were canceled again.
        fail_on_verdict: Exit code 1 when a verdict did not pass.
        gate: File with criteria, or default: end with the gate's verdict and exit code.
    """
    _check_criteria(gate)
    client = _client(context)
    found = client.run(run)
    if failed:
        found = client.retry(found)
    return _followed(client, found, context, workers=workers, fail_on_verdict=fail_on_verdict, gate=gate)


def cancel(run: str, /, *, context: Ctx) -> Result:
    """End a run.

    What has not begun ends at once, what runs is ended by its worker.

    Args:
        run: Id of the run, shortened id, last or last~N.
    """
    client = _client(context)
    return _run_result(client, client.cancel(client.run(run)), 0)


def report(
    run: str = "last",
    /,
    *,
    context: Ctx,
    against: str | None = None,
    gate: str | None = None,
    form: Literal["text", "json", "markdown", "html", "junit"] | None = None,
    out: Path | None = None,
) -> Result:
    """Show what a run found, arm by arm.

    Args:
        run: Id of the run, shortened id, last or last~N.
        against: Compare each arm with its namesake of this run too; it has to be of the same cohort version.
        gate: File with criteria (TOML or JSON), or default: judge the changes too, with the gate's exit code.
        form: Form of the report; left out, that of --output, or what the end of --out says.
        out: Write it into this file; .json, .md, .html (one file that loads nothing) and .xml (JUnit) name a form.
    """
    from playhead.cli.experiment_gate import form_of, gated, rendered, told
    from playhead.cli.experiment_text import blocks

    if form == "text" and out is not None:
        raise UsageError("a file has no text form", hint="--form markdown, json, html or junit")
    client = _client(context)
    found = client.run(run)
    verdict = None if gate is None else gated(client, found, context, gate)
    data = told(client, found, context, gate=verdict, against=None if against is None else client.run(against))
    code = 0 if verdict is None else verdict.exit_code
    if out is not None:
        return _written(rendered(data, form or form_of(out.name)), out, code)
    if form not in (None, "text", "json"):
        return Result(data=data, raw=[rendered(data, form)], exit_code=code)
    return Result(data=data, text=[*_verdict(verdict), *blocks(data)], exit_code=code)


def _verdict(gate: "GateReport | None") -> list[Block]:
    from playhead.cli.releasing import gate_text

    return [] if gate is None else gate_text(gate)


def _written(text: str, out: Path, code: int) -> Result:
    from playhead.engine.report_files import write_text

    write_text(out, text)
    return Result(data={"written": str(out)}, text=[f"written to {out}"], exit_code=code)


# running


def _announce(planned: "RunPlan", context: Context) -> None:
    run, estimate = planned.run, planned.estimate
    context.note(
        f"{len(run.members)} sessions of {run.cohort} x {len(run.arm_names)} arms x {run.repeats} = "
        f"{estimate.replays} replays, {estimate.live} of them with a live model"
    )
    if estimate.live:
        unknown = f"; the cost of {estimate.unknown} recordings is not known" if estimate.unknown else ""
        context.note(f"about {estimate.money:.4g} US dollars and {estimate.tokens} tokens, as recorded{unknown}")
    for id, why in run.refused.items():
        context.note(f"left out: {id}: {why}")
    for text in planned.warnings:
        context.note(text)


def _planned(planned: "RunPlan") -> Result:
    run, estimate = planned.run, planned.estimate
    data = {
        "cohort": run.cohort,
        "sessions": list(run.members),
        "refused": run.refused,
        "arms": list(run.arm_names),
        "repeats": run.repeats,
        "estimate": shown.members(estimate),
        "live_tools": list(planned.live_tools),
    }
    pairs = [
        ("cohort", run.cohort),
        ("sessions", len(run.members)),
        ("left out", len(run.refused) or None),
        ("arms", ", ".join(run.arm_names)),
        ("replays", estimate.replays),
        ("with a live model", estimate.live),
        ("about", f"{estimate.money:.4g} USD, {estimate.tokens} tokens" if estimate.live else None),
        ("live tools", ", ".join(planned.live_tools) or None),
    ]
    return Result(data=data, text=[Fields(pairs)])


def _followed(
    client: "ExperimentClient", run: "ExperimentRun", context: Context, *, workers: int, fail_on_verdict: bool,
    gate: str | None = None,
) -> Result:  # fmt: skip
    from playhead.cli.jobs import line

    total = sum(len(context.store.jobs.tasks(job_id)) for job_id in run.job_ids[-1:])
    ended = 0

    def tell(task: Any) -> None:
        nonlocal ended
        ended += 1
        context.note(f"{ended} of {total}: {line(task)}")

    try:
        done = client.wait(run, workers=workers, tell=tell)
    except KeyboardInterrupt:
        context.note(f"interrupted; go on with: playhead experiment resume {run.id}")
        raise
    code = _exit_code(client, done, fail_on_verdict=fail_on_verdict)
    if gate is None or done.stopped is not None:
        return _run_result(client, done, code)
    from playhead.cli.experiment_gate import gated, told

    verdict = gated(client, done, context, gate)
    data = {**_run_members(client, done), "report": told(client, done, context, gate=verdict)}
    return Result(data=data, text=[*_verdict(verdict), *_run_text(client, done)], exit_code=verdict.exit_code)


def _exit_code(client: "ExperimentClient", run: "ExperimentRun", *, fail_on_verdict: bool) -> int:
    from playhead.engine.settle import exit_code

    if run.stopped is not None:
        return 130 if run.stopped == "canceled" else 4
    codes = {exit_code(r, fork=True, fail_on_verdict=fail_on_verdict) for r in client.replays(run)}
    return next((code for code in _WORST_FIRST if code in codes), 0)


# showing

_RUN_COLUMNS = ("run", "cohort", "status", "repeats", "sessions", "made", "stopped")


def _run_result(client: "ExperimentClient", run: "ExperimentRun", code: int) -> Result:
    data = {**_run_members(client, run), "report": client.report(run)}
    return Result(data=data, text=_run_text(client, run), exit_code=code)


def _run_text(client: "ExperimentClient", run: "ExperimentRun") -> list[Block]:
    from playhead.cli.experiment_text import blocks

    return [Fields(list(_run_row(client, run).items())), *blocks(client.report(run))]


def _run_members(client: "ExperimentClient", run: "ExperimentRun") -> dict[str, Any]:
    return {**shown.members(run), "status": client.status(run), "digest": run.digest}


def _run_row(client: "ExperimentClient", run: "ExperimentRun") -> dict[str, object]:
    return {
        "run": run.id,
        "cohort": run.cohort,
        "status": client.status(run),
        "repeats": run.repeats,
        "sessions": len(run.members),
        "made": shown.when(run.created_at),
        "stopped": run.stopped,
    }


def _experiment(made: "Experiment") -> Result:
    return Result(data=shown.members(made), text=[Fields(list(_row(made).items()))])


def _row(experiment: "Experiment") -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "arms": ", ".join(arm["name"] for arm in experiment.config["arms"]),
        "evaluators": ", ".join(e["evaluator"] for e in experiment.config["evaluators"]),
        "made": shown.when(experiment.created_at),
    }


# reading


def _client(context: Context) -> "ExperimentClient":
    from playhead.engine.experiments import ExperimentClient

    return ExperimentClient(context.store, context.project)


def _json(option: str, text: str) -> Mapping[str, Any]:
    if text.startswith("@"):
        try:
            text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{option}: {text[1:]!r} cannot be read: {error}") from None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{option}: {text!r} is not a JSON object", hint='{"name": "terse", "override": {...}}')
    return cast("dict[str, Any]", found)


def _invalid(error: Any) -> UsageError:
    problem = error.errors(include_url=False)[0]
    place = "/".join(map(str, problem["loc"]))
    return UsageError(f"{place}: {problem['msg']} (given: {shown.brief(str(problem['input']), 100)})")
