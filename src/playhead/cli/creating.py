"""``playhead replay create``."""

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Result, Table, plain
from playhead.cli.replays import replay_text, row
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from playhead.core.requests import EvaluatorConfig, ReplayCreateRequest
    from playhead.core.values import Replay
    from playhead.engine.client import ReplayHandle
    from playhead.engine.preflight import Plan

_WORST_FIRST = (130, 3, 2, 1, 4, 0)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What the replay changes, and what answers its calls.

    Args:
        tool_policy: What answers tool calls, as JSON or @FILE; left out, the recording answers and nothing runs live.
        model_history: Answer model calls from the recording: offline, without a key.
        model_policy: What answers model calls, as JSON or @FILE.
        override: The change as JSON or @FILE, in place of the four options that follow.
        model: Another model for every call, or a JSON object from old names to new.
        system_prompt: Other system text for the root agent; @FILE reads it.
        prompt: Another user prompt, or a JSON object from turn numbers to prompts.
        model_params: Parameters to merge over the agent's own, as JSON or @FILE; null removes one.
        agent_version: Run this version: NAME@NUMBER or an id.
        entry_point: Start this in place of the recorded entry point: module:name or path/to/file.py:name.
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
    entry_point: str | None = None


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the replay runs, and what is made of it.

    Args:
        evaluator: Evaluator NAME or NAME@VERSION; may be given several times. Left out, fidelity.
        evaluator_params: Parameters of an evaluator, as a JSON object or @FILE; the first belongs to the first
            evaluator, the second to the second.
        evaluate_baselines: Run the evaluators on the baseline too; alone it means where they have not been.
        fail_on_verdict: Exit code 1 when a verdict did not pass.
        repeats: So many replays.
        label: A name to find them by.
        idempotency_key: Creating again with the same key gives the first replays back and makes nothing.
        allow_live: Run tools that the policy lets go live without asking.
        force: Replay an abandoned session, or one in which a tool ran without being seen.
        timeout: Seconds that the agent may take.
        isolation: Guard around the agent's processes: the best there is, a required one, or off.
        wait: Run the replay, or see it run, and report what came of it; else a worker runs it later. Left out, it
            waits on a terminal.
        inline: Run the agent in this process, not in a child process.
    """

    evaluator: tuple[str, ...] = ()
    evaluator_params: tuple[str, ...] = ()
    evaluate_baselines: Literal["none", "if_missing", "force"] = "none"
    fail_on_verdict: bool = False
    repeats: int = 1
    label: str | None = None
    idempotency_key: str | None = None
    allow_live: bool = False
    force: bool = False
    timeout: float | None = None
    isolation: Literal["require", "best", "off"] = "best"
    wait: Annotated[bool | None, Parameter(negative="--no-wait")] = None
    inline: bool = False


_Flat = Parameter(name="*")


def create(
    baseline: str,
    /,
    *,
    context: Ctx,
    change: Annotated[Change, _Flat] = Change(),
    way: Annotated[Way, _Flat] = Way(),
) -> Result:
    """Re-run a session's agent against its recording.

    Without a change this checks the recording: exit code 0 when faithful, 1 when diverged, 4 when unproven. With one it
    is a fork, and the exit code follows its status. Without waiting the exit code is 0 once the replay and its job are
    stored. Tools go live only where the policy says passthrough, and only with --allow-live or after asking.

    Args:
        baseline: Session to replay: id, shortened id, last or last~N.
    """
    from playhead.engine.client import Client
    from playhead.engine.settle import exit_code

    client = Client(context.store, context.project).replays
    request = replay_request(context.store.sessions.resolve(baseline), change, way)
    plan = client.plan(request, run_spec=_run_spec(change), inline=way.inline)
    for text in (*plan.warnings, *plan.notes):
        context.note(text)
    allow_live_tools(plan.live_tools, context, allowed=way.allow_live)
    if way.inline:
        done = _run_here(plan, context)
    else:
        handle = client.create(plan)
        if not (sys.stdout.isatty() if way.wait is None else way.wait):
            return _stored(handle, context)
        done = _waited(handle, context)
    codes = {exit_code(replay, fork=plan.fork, fail_on_verdict=way.fail_on_verdict) for replay in done}
    return _result(done, next(code for code in _WORST_FIRST if code in codes))


def replay_request(baseline_id: str, change: Change, way: Way) -> "ReplayCreateRequest":
    """The request that the options of a command line ask for.

    Raises:
        UsageError: options that contradict each other, or a file that cannot be read.
        PolicyError: JSON that is not a policy or override.
    """
    from pydantic import ValidationError

    from playhead.core.policy import HistoryModel
    from playhead.core.policy_json import parse_model_policy, parse_override, parse_policy
    from playhead.core.requests import ReplayCreateRequest

    if change.model_history and change.model_policy is not None:
        raise UsageError("--model-history and --model-policy are given at once", hint="keep one of them")
    model_policy = HistoryModel() if change.model_history else None
    if change.model_policy is not None:
        model_policy = parse_model_policy(_text("--model-policy", change.model_policy))
    override = _override(change)
    try:
        return ReplayCreateRequest(
            baseline_session_id=baseline_id,
            agent_version=change.agent_version,
            override=parse_override(override) if override is not None else None,
            tool_policy=None
            if change.tool_policy is None
            else parse_policy(_text("--tool-policy", change.tool_policy)),
            model_policy=model_policy,
            evaluators=_evaluators(way),
            evaluate_baselines=way.evaluate_baselines,
            repeats=way.repeats,
            label=way.label,
            idempotency_key=way.idempotency_key,
            force=way.force,
            timeout=way.timeout,
            isolation=way.isolation,
        )
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        option = "--" + str(problem["loc"][0]).replace("_", "-")
        raise UsageError(f"{option}: {problem['msg']} (given: {problem['input']!r})") from None


def _evaluators(way: Way) -> "tuple[EvaluatorConfig, ...]":
    from playhead.core.requests import EvaluatorConfig

    given = [_object(_text("--evaluator-params", text), "--evaluator-params") or {} for text in way.evaluator_params]
    if len(given) > len(way.evaluator):
        raise UsageError(
            f"--evaluator-params is given {len(given)} times, --evaluator {len(way.evaluator)} times",
            hint="name the evaluator that the parameters are for",
        )
    given += [{}] * (len(way.evaluator) - len(given))
    return tuple(
        EvaluatorConfig(evaluator=name, params=params) for name, params in zip(way.evaluator, given, strict=True)
    )


def _override(change: Change) -> str | Mapping[str, Any] | None:
    single: dict[str, Any] = {}
    if change.model is not None:
        single["model"] = _object(change.model) or change.model
    if change.system_prompt is not None:
        single["system_prompt"] = _text("--system-prompt", change.system_prompt)
    if change.prompt is not None:
        by_turn = _object(change.prompt)
        single["prompt"] = by_turn if by_turn and all(name.isdecimal() for name in by_turn) else change.prompt
    if change.model_params is not None:
        single["model_params"] = _object(_text("--model-params", change.model_params), "--model-params")
    if change.override is not None and single:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in single)
        raise UsageError(f"--override and {given} are given at once", hint="put everything into --override")
    return _text("--override", change.override) if change.override is not None else single or None


def _text(option: str, value: str) -> str:
    """The value, or what is in the file that it names with a leading ``@``."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {value[1:]!r} cannot be read: {error}") from None


def _object(text: str, option: str | None = None) -> dict[str, Any] | None:
    """The JSON object that a text is; else None, or with ``option`` an error."""
    found: Any = None
    with suppress(ValueError):
        found = json.loads(text) if option is not None or text.lstrip().startswith("{") else None
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    if option is not None:
        raise UsageError(f"{option}: {text!r} is not a JSON object", hint=f"{option} '{{\"temperature\": 0}}'")
    return None


def _run_spec(change: Change) -> Any:
    if change.entry_point is None:
        return None
    from playhead.core.values import RunSpec

    return RunSpec(entry_point=change.entry_point, working_dir=os.getcwd())  # noqa: PTH109 - a text


def allow_live_tools(tools: Sequence[str], context: Context, *, allowed: bool) -> None:
    """Says which tools will run for real; asks a person, refuses where nobody can be asked."""
    if not tools:
        return
    names = "every tool" if "*" in tools else ", ".join(tools)
    context.note(f"will run live: {names}")
    if allowed:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise RefusedError(
            f"the policy lets tools run live ({names}), and nobody can be asked",
            hint="add --allow-live when that is safe",
            reasons=[f"live tools: {names}"],
        )
    sys.stderr.write(plain(f"run {names} for real? [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise RefusedError("live tools were not allowed", reasons=[f"live tools: {names}"])


def _stored(handle: "ReplayHandle", context: Context) -> Result:
    """What was made, for a worker to run."""
    context.note(
        f"job {handle.job_id} waits for a worker: playhead worker start, or playhead job watch {handle.job_id}"
    )
    result = _result(handle.replays, 0)
    if len(handle.replays) > 1:
        return result
    return dataclasses.replace(result, data={**result.data, "job": shown.members(handle.job)})


def _waited(handle: "ReplayHandle", context: Context) -> "Sequence[Replay]":
    """Runs the job here, telling how it goes. Who interrupts it cancels it."""
    from playhead.cli.jobs import progress

    for replay in handle.replays:
        context.note(f"replay {replay.id} of {replay.baseline_session_id}, job {handle.job_id}")
    try:
        with progress(context, handle.job_id):
            return handle.wait().replays
    except KeyboardInterrupt:
        context.store.jobs.cancel(handle.job_id, now=SYSTEM_CLOCK.now())
        raise


def _run_here(plan: "Plan", context: Context) -> "list[Replay]":
    """Does in this process what a child process would do, and the evaluators' part."""
    from playhead.cli.child import run
    from playhead.engine.child import absolute, environment
    from playhead.engine.evaluate import complete

    store, spec = context.store, plan.run_spec
    if spec is None or spec.entry_point is None:
        raise RefusedError(
            "only an entry point can run inline", hint="--entry-point module:name, or leave --inline out"
        )
    for name, value in environment(spec, plan.model_policy, os.environ).items():
        os.environ.setdefault(name, value)
    done: list[Replay] = []
    for replay in [store.replays.create(replay) for replay in plan.replays(SYSTEM_CLOCK, SYSTEM_IDS)]:
        context.note(f"replay {replay.id} of {plan.baseline.agent} {plan.baseline.id}")
        if replay.status.value == "pending":  # else it was made before, under the same idempotency key
            run(
                {
                    "replay_id": replay.id,
                    "store_url": store.url,
                    "entry_point": spec.entry_point,
                    "working_dir": absolute(spec.working_dir),
                    "project": str(context.project.root),
                    "force": plan.request.force,
                }
            )
        done.append(complete(store, store.replays.get(replay.id), project=context.project))
    return done


def _result(replays: "Sequence[Replay]", code: int) -> Result:
    if len(replays) == 1:
        (replay,) = replays
        return Result(data=shown.members(replay), text=replay_text(replay), exit_code=code)
    columns = ("id", "status", "fidelity", "label", "took")
    text: list[Block] = [Table(columns, [row(replay) for replay in replays])]
    return Result(data=[shown.members(replay) for replay in replays], items=True, text=text, exit_code=code)
