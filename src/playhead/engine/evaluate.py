"""Runs evaluators over sessions and keeps what they say.

Built-ins run here, everything else in a process of its own. Whatever an evaluator does, the record of the replay
stands: one that comes to no verdict leaves a verdict that says so, whose ``error`` names the reason.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from playhead.core import codec
from playhead.core.evaluation import EvaluationContext
from playhead.core.evaluators.builtin import parsed
from playhead.core.lifecycle import REPLAY, ReplayEvent, advance
from playhead.core.policy import HistoryModel, ToolPolicy
from playhead.core.policy_json import parse_model_policy, parse_policy
from playhead.core.redaction.redact import Redactor
from playhead.core.requests import EvaluatorConfig
from playhead.core.values import JSON, ErrorInfo, Replay, ReplayStatus, Session, Verdict
from playhead.core.verdicts import UnclearError, cut, verdicts_of, with_unknown_evidence
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.evaluator_process import order, run
from playhead.engine.evaluators import DEFAULT, Chosen, choose, resolve
from playhead.engine.project import Project
from playhead.engine.settle import error_info, ignored, tools_of
from playhead.errors import EvaluatorError, PlayheadError
from playhead.store.ports import Store

__all__ = ["Evaluation", "complete", "evaluate", "evaluate_replay", "evaluate_session", "judged", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Verdicts about the result, and the ``error`` that names the evaluators which came to none (of the baseline
    too)."""

    verdicts: tuple[Verdict, ...] = ()
    error: ErrorInfo | None = None


def evaluate_replay(store: Store, replay: Replay, *, project: Project) -> tuple[Verdict, ...]:
    """`evaluate`, and of that the verdicts about the result."""
    return evaluate(store, replay, project=project).verdicts


def evaluate(store: Store, replay: Replay, *, project: Project) -> Evaluation:
    """Runs every evaluator of a replay over its result, and over the baseline as far as that was asked for.

    Verdicts are stored with their session. Nothing that an evaluator does is raised.
    """
    assert replay.result_session_id is not None
    chosen, lost = _chosen(store, replay)
    given = replay_context(store, replay)
    about_result = [*lost, *(v for one in chosen for v in _verdicts(one, given, project))]
    _keep(store, replay.result_session_id, about_result)
    about_baseline: list[Verdict] = []
    if replay.evaluate_baselines != "none" and given.baseline is not None:
        plain = EvaluationContext(session=given.baseline, nodes=given.baseline_nodes, case=given.case)
        due = _due(store, given.baseline.id, chosen, force=replay.evaluate_baselines == "force")
        about_baseline = [v for one in due for v in _verdicts(one, plain, project)]
        _keep(store, given.baseline.id, about_baseline)
    return Evaluation(verdicts=tuple(about_result), error=error_of([*about_result, *about_baseline]))


def _chosen(store: Store, replay: Replay) -> tuple[list[Chosen], list[Verdict]]:
    chosen: list[Chosen] = []
    lost: list[Verdict] = []
    for config in replay.evaluators or (DEFAULT,):
        try:
            chosen.append(choose(store, config))
        except PlayheadError as error:  # registered in another store, or a row of it is damaged
            name = config.evaluator if isinstance(config, EvaluatorConfig) else f"{config.get('evaluator')}"
            lost.append(_failed(name.partition("@")[0], name, {}, error.message))
    return chosen, lost


def _due(store: Store, session_id: str, chosen: Sequence[Chosen], *, force: bool) -> list[Chosen]:
    known = {v.evaluator for v in store.sessions.verdicts(session_id) if v.error is None}
    able = [one for one in chosen if one.builtin is None or not one.builtin.needs_replay]
    return [one for one in able if force or one.id not in known]


def replay_context(store: Store, replay: Replay) -> EvaluationContext:
    """What is known about a replay that has a result session."""
    assert replay.result_session_id is not None
    baseline = store.sessions.get(replay.baseline_session_id)
    policy = parse_policy(replay.tool_policy or {})
    from_history = isinstance(parse_model_policy(replay.model_policy or {"type": "live"}), HistoryModel)
    nodes = tuple(store.sessions.nodes(replay.result_session_id))
    baseline_nodes = tuple(store.sessions.nodes(baseline.id))
    return EvaluationContext(
        session=store.sessions.get(replay.result_session_id),
        nodes=nodes,
        baseline=baseline,
        baseline_nodes=baseline_nodes,
        ledger=replay.ledger,
        fidelity=replay.fidelity,
        unchanged=is_unchanged(replay, policy, baseline),
        ignore=ignored(policy, tools_of((*baseline_nodes, *nodes))),
        model_requests=from_history,
    )


def is_unchanged(replay: Replay, policy: ToolPolicy, baseline: Session) -> bool:
    """Whether a replay was asked to change nothing, so that every difference is a fault."""
    configs = [policy.default, *policy.tools.values()]
    failing = parse_model_policy(replay.model_policy or {"type": "live"}).inject is not None
    if replay.override is not None or failing or any(config.type != "history" for config in configs):
        return False
    return not baseline.agent_version or not replay.agent_version or replay.agent_version == baseline.agent_version


def session_context(store: Store, session_id: str) -> EvaluationContext:
    """What is known about any stored session: with baseline and ledger where a replay made it."""
    session = store.sessions.get(session_id)
    if session.replay_id is not None:
        replay = store.replays.get(session.replay_id)
        if replay.result_session_id == session_id:
            return replay_context(store, replay)
    return EvaluationContext(session=session, nodes=tuple(store.sessions.nodes(session_id)))


def evaluate_session(
    store: Store, session_id: str, chosen: Sequence[Chosen], *, project: Project, keep: bool = True
) -> Evaluation:
    """Runs evaluators over one stored session."""
    context = session_context(store, session_id)
    verdicts = [v for one in chosen for v in _verdicts(one, context, project)]
    if keep:
        _keep(store, session_id, verdicts)
    return Evaluation(verdicts=tuple(verdicts), error=error_of(verdicts))


# --- one evaluator over one session ---------------------------------------------------------------------------------


def _verdicts(chosen: Chosen, context: EvaluationContext, project: Project) -> tuple[Verdict, ...]:
    """What one evaluator says, without secrets; where it says nothing, one verdict that tells why."""
    context = replace(context, params=chosen.params)
    try:
        found = _run(chosen, context, project)
    except UnclearError as error:
        found = (_failed(chosen.name, chosen.id, chosen.params, str(error)),)
    except PlayheadError as error:
        found = (_failed(chosen.name, chosen.id, chosen.params, error.message),)
    known = {node.id for node in (*context.nodes, *context.baseline_nodes)}
    filed = [replace(v, evaluator=chosen.id, params=dict(chosen.params) or None) for v in found]
    return tuple(_clean(v, project.redactor()) for v in with_unknown_evidence(filed, known))


def _run(chosen: Chosen, context: EvaluationContext, project: Project) -> tuple[Verdict, ...]:
    if chosen.registered is not None:
        return _run_registered(chosen, context, project)
    assert chosen.builtin is not None
    params = parsed(chosen.builtin, chosen.params)
    if chosen.builtin.run is None:
        from playhead.engine.judge import judge

        return verdicts_of(judge(context, params, default_model=project.settings.llm_model), name=chosen.name)
    try:
        return verdicts_of(chosen.builtin.run(context, params), name=chosen.name)
    except Exception as error:
        raise EvaluatorError(f"it raised {type(error).__name__}: {error}") from error


def _run_registered(chosen: Chosen, context: EvaluationContext, project: Project) -> tuple[Verdict, ...]:
    evaluator = chosen.registered
    assert evaluator is not None
    ran = run(evaluator, order(evaluator, context), environment=os.environ)
    if ran.failure is not None:
        last = ran.printed.strip()[-2000:]
        raise EvaluatorError(ran.failure + (f"\nit printed: …{last}" if last else ""))
    return tuple(codec.load(Verdict, item, trusted=True) for item in ran.verdicts or ())


def _failed(name: str, id: str, params: Mapping[str, JSON], why: str) -> Verdict:
    error = EvaluatorError(cut(f"evaluator {id} came to no verdict: {why}", 8000))
    return Verdict(
        name=name,
        explanation=cut(why, 8000),
        evaluator=id,
        params=dict(params) or None,
        error=error_info(error),
    )


def _clean(verdict: Verdict, redactor: Redactor) -> Verdict:
    held = codec.dump(verdict)
    clean = codec.load(Verdict, redactor.redact(held).value, trusted=True)
    return replace(clean, evaluator=verdict.evaluator)


def _keep(store: Store, session_id: str, verdicts: Sequence[Verdict]) -> None:
    if verdicts:
        ran = list(dict.fromkeys(v.evaluator for v in verdicts if v.evaluator))
        store.sessions.add_verdicts(session_id, verdicts, instead_of=ran)


# --- what it means for the replay -----------------------------------------------------------------------------------


def error_of(verdicts: Sequence[Verdict]) -> ErrorInfo | None:
    """The error of a replay whose evaluators did not all come to a verdict."""
    errors = [v.error for v in verdicts if v.error is not None]
    if not errors:
        return None
    return replace(errors[0], message="; ".join(dict.fromkeys(e.message for e in errors)))


def judged(replay: Replay, evaluation: Evaluation, *, now: int) -> Replay:
    """The evaluated replay in its final state: failed where an evaluator came to no verdict."""
    event = ReplayEvent.FAIL if evaluation.error is not None else ReplayEvent.COMPLETE
    return replace(
        replay,
        status=advance(REPLAY, replay.status, event),
        verdicts=evaluation.verdicts,
        error=evaluation.error,
        ended_at=now,
    )


def complete(store: Store, replay: Replay, *, project: Project, clock: Clock = SYSTEM_CLOCK) -> Replay:
    """Takes a replay that has just settled to its end: evaluates it, and saves it. One that failed stays as it is."""
    if replay.status is ReplayStatus.COMPLETED:
        replay = replace(replay, status=ReplayStatus.EVALUATING, ended_at=None)
        store.replays.save(replay)
    if replay.status is not ReplayStatus.EVALUATING:
        return replay
    done = judged(replay, evaluate(store, replay, project=project), now=clock.now())
    store.replays.save(done)
    return done
