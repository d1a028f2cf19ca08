"""A replay as a task: what its job says, and one attempt at it, seen from the worker."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from playhead.core import codec
from playhead.core.jobs import Job, Task, holds, restarted
from playhead.core.lifecycle import OnFailure, TaskEvent
from playhead.core.override import override_inputs
from playhead.core.policy import ModelPolicy
from playhead.core.policy_json import parse_model_policy, parse_override, parse_policy
from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import ErrorInfo, Replay, ReplayStatus, RunSpec
from playhead.engine.attempt import supersede_attempts
from playhead.engine.child import Control, Launch, absolute, environment, run_command, run_fresh
from playhead.engine.clock import Clock, IdSource
from playhead.engine.evaluate import evaluate, judged
from playhead.engine.isolation.guard import Isolation, tunnelled
from playhead.engine.isolation.plan import isolation_for
from playhead.engine.lasting import patiently
from playhead.engine.owner import mark_abandoned
from playhead.engine.preflight import Plan
from playhead.engine.process_tree import end_marked
from playhead.engine.project import Project
from playhead.engine.replay import failed, without_secrets
from playhead.engine.settle import error_info
from playhead.engine.warm import UnfitError, Zygotes
from playhead.engine.watching import Exit, Limits
from playhead.errors import AgentProcessError, LeaseLostError, NotFoundError, PlayheadError, StoreError
from playhead.store.ports import Store

KIND = "replay"
UNSTORED = 75
"""Exit code of a child that could not store what it did: a failure of the infrastructure, so it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A job with its tasks and the replays that they are about, not stored yet."""

    job: Job
    tasks: tuple[Task, ...]
    replays: tuple[Replay, ...]


def work_of(plan: Plan, replays: Sequence[Replay], *, project: Project, clock: Clock, ids: IdSource) -> Work:
    """The job of a planned replay: one task for each repeat."""
    request = plan.request
    job = Job(id=ids(), kind=KIND, created_at=clock.now(), label=request.label, idempotency_key=request.idempotency_key)
    tasks = tasks_of(plan, replays, job.id, project=project, clock=clock, ids=ids)
    return Work(job=job, tasks=tasks, replays=tuple(replace(replay, job_id=job.id) for replay in replays))


def tasks_of(
    plan: Plan, replays: Sequence[Replay], job_id: str, *, project: Project, clock: Clock, ids: IdSource
) -> tuple[Task, ...]:
    """A task for each of the replays; a failure of one leaves the others alone."""
    request, settings = plan.request, project.settings
    assert plan.run_spec is not None
    spec = replace(plan.run_spec, working_dir=absolute(plan.run_spec.working_dir))
    base: dict[str, Any] = {
        "run_spec": codec.dump(spec),
        "timeout": request.timeout or spec.timeout or settings.timeout,
        "force": request.force,
        "fork": plan.fork,
        "isolation": _isolation_of(plan, project, request.isolation),
    }
    return tuple(
        Task(
            id=ids(),
            job_id=job_id,
            kind=KIND,
            created_at=clock.now(),
            agent_version=replay.agent_version,
            on_failure=OnFailure.CONTINUE,
            payload={**base, "replay_id": replay.id},
        )
        for replay in replays
    )


def _isolation_of(plan: Plan, project: Project, mode: Literal["require", "best", "off"]) -> dict[str, Any]:
    endpoints = project.settings.model_endpoints
    return isolation_for(plan, mode=mode, endpoints=endpoints, environment=os.environ).as_json()


def request_of(replay: Replay, *, force: bool) -> ReplayCreateRequest:
    """The request that a stored replay was made from."""
    return ReplayCreateRequest(
        baseline_session_id=replay.baseline_session_id,
        agent_version=replay.agent_version,
        tool_policy=parse_policy(replay.tool_policy or {}),
        model_policy=parse_model_policy(replay.model_policy or {"type": "live"}),
        override=parse_override(replay.override) if replay.override else None,
        force=force,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Makes attempts at replay tasks. ``zygotes`` None: each in a fresh process."""

    store: Store
    project: Project
    zygotes: Zygotes | None
    clock: Clock

    def run(self, task: Task, control: Control) -> Task | None:
        """One attempt, to the end of the task or of the attempt. None when the task was another's by then.

        Raises:
            StoreError: the store cannot be used; the lease will end.
        """
        try:
            return self._run(task, control)
        except LeaseLostError:
            self.clear_away(task)
            return None

    def _run(self, task: Task, control: Control) -> Task:
        store = self.store
        replay = patiently(lambda: store.replays.get(task.payload["replay_id"]))
        begun = restarted(replay, self.clock.now())
        patiently(lambda: store.jobs.start(task.id, _token(task), now=self.clock.now(), replay=begun))
        if task.attempt > 1:
            end_marked(task.id)
            self.clear_away(task, before=begun.started_at)
        if control.reason is not None:
            return self._interrupted(task, control)
        limits = _limits(task)
        try:
            end, why = self._launch(task, begun, limits, control)
        except PlayheadError as error:
            return self._ended(task, TaskEvent.FAIL, replay=failed(begun, error), error=error_info(error))
        result = {"started": end.started, **({"why": why} if why else {})}
        done = patiently(lambda: store.replays.get(replay.id))
        if end.guard is not None and done.guard is not None and not done.guard.startswith("none"):
            done = replace(done, guard=f"{end.guard}; in Python: {done.guard}")
        if done.status is ReplayStatus.EVALUATING:
            return self._judge(task, done, result)
        if done.status is ReplayStatus.FAILED:
            return self._ended(task, TaskEvent.FAIL, replay=done, error=done.error, result=result)
        if end.reason in ("canceled", "released", "lost"):
            return self._interrupted(task, control)
        return self._died(task, done, end, limits, result)

    # starting

    def _launch(self, task: Task, replay: Replay, limits: Limits, control: Control) -> tuple[Exit, str | None]:
        spec = _spec(task)
        policy = parse_model_policy(replay.model_policy or {"type": "live"})
        passed = replace(spec, env=(*spec.env, *self.project.settings.env))
        env = environment(passed, policy, os.environ)
        with tunnelled(_isolation(task)) as isolation:
            launched = Launch(
                task_id=task.id,
                spec=spec,
                order={**self._order(task, spec), "isolation": isolation.as_json()},
                env=env,
                limits=limits,
                isolation=isolation,
            )
            if spec.command:
                return self._command(launched, replay, policy, control), "its run spec is a command"
            if self.zygotes is None:
                return run_fresh(launched, control), None
            try:
                return self.zygotes.run(launched, control), None
            except UnfitError as unfit:
                return run_fresh(launched, control), str(unfit)

    def _order(self, task: Task, spec: RunSpec) -> dict[str, Any]:
        return {
            "replay_id": task.payload["replay_id"],
            "task_id": task.id,
            "token": task.token,
            "store_url": self.store.url,
            "project": str(self.project.root),
            "entry_point": spec.entry_point,
            "working_dir": spec.working_dir,
            "force": task.payload["force"],
            "limits": _limits(task).as_json(),
        }

    def _command(self, launched: Launch, replay: Replay, policy: ModelPolicy, control: Control) -> Exit:
        """A program of its own: it finds out from its environment that it runs a replay."""
        baseline = self.store.sessions.get(replay.baseline_session_id)
        inputs = baseline.inputs
        if replay.override:
            inputs = override_inputs(parse_override(replay.override), inputs).inputs
        told = {
            "PLAYHEAD_REPLAY": replay.id,
            "PLAYHEAD_URL": self.store.url,
            "PLAYHEAD_ORDER": json.dumps(launched.order),
        }
        return run_command(replace(launched, env={**launched.env, **told}), control, codec.encode(inputs))

    # ending

    def _judge(self, task: Task, replay: Replay, result: dict[str, Any]) -> Task:
        if not holds(patiently(lambda: self.store.jobs.task(task.id)), _token(task)):
            raise LeaseLostError(f"task {task.id!r} is another's", hint="its result is refused")
        done = judged(replay, evaluate(self.store, replay, project=self.project), now=self.clock.now())
        event = TaskEvent.COMPLETE if done.status is ReplayStatus.COMPLETED else TaskEvent.FAIL
        return self._ended(task, event, replay=done, error=done.error, result=result)

    def _died(self, task: Task, replay: Replay, end: Exit, limits: Limits, result: dict[str, Any]) -> Task:
        self._give_up_attempt(task)
        silent = end.code == 0 and end.reason is None and bool(_spec(task).command)
        error = AgentProcessError(
            "the program ended without a session: nothing that it did was recorded"
            if silent
            else f"the agent's process did not finish the replay: {end.last_words(limits)}",
            hint="does it import playhead and open a session?"
            if silent
            else "the replay holds the last 8 KiB of its output",
        )
        lost = failed(replay, error)
        assert lost.error is not None
        kept = {**(lost.error.attributes or {}), "stdout": end.stdout, "stderr": end.stderr}
        lost = without_secrets(replace(lost, error=replace(lost.error, attributes=kept)), self.project.redactor())
        assert lost.error is not None
        if end.reason is None and (end.vanished or end.code in (-9, UNSTORED)):
            return self._lost(task, lost.error)
        event = TaskEvent.TIME_OUT if end.reason == "timeout" else TaskEvent.FAIL
        return self._ended(task, event, replay=lost, error=lost.error, result=result)

    def _lost(self, task: Task, error: ErrorInfo) -> Task:
        token, now = _token(task), self.clock.now()
        return patiently(lambda: self.store.jobs.lose(task.id, token, now=now, error=error))

    def _interrupted(self, task: Task, control: Control) -> Task:
        if control.reason == "lost":
            raise LeaseLostError(f"task {task.id!r} is another's", hint="its result is refused")
        self._give_up_attempt(task)
        return self._ended(task, TaskEvent.RELEASE if control.reason == "released" else TaskEvent.CANCEL)

    def _ended(
        self, task: Task, event: TaskEvent, *, error: ErrorInfo | None = None, result: Any = None,
        replay: Replay | None = None,
    ) -> Task:  # fmt: skip
        token, now = _token(task), self.clock.now()
        return patiently(
            lambda: self.store.jobs.end(task.id, token, event, now=now, error=error, result=result, replay=replay)
        )

    def clear_away(self, task: Task, *, before: int | None = None) -> None:
        """Marks what attempts that do not count have recorded; with ``before`` all that began before that time."""
        replay_id = task.payload["replay_id"]
        try:
            patiently(lambda: mark_abandoned(self.store))
            patiently(lambda: supersede_attempts(self.store, replay_id, before=before or 0))
        except (NotFoundError, StoreError):
            return  # a session that was deleted meanwhile; the next attempt looks again

    def _give_up_attempt(self, task: Task) -> None:
        """The process of our own attempt has ended without a result."""
        ours = holds(patiently(lambda: self.store.jobs.task(task.id)), _token(task))
        self.clear_away(task, before=self.clock.now() if ours else None)


def _token(task: Task) -> str:
    assert task.token is not None
    return task.token


def _spec(task: Task) -> RunSpec:
    return codec.load(RunSpec, task.payload["run_spec"], trusted=True)


def _limits(task: Task) -> Limits:
    spec = _spec(task)
    return Limits(timeout=task.payload["timeout"], memory=spec.memory, output=spec.output)


def _isolation(task: Task) -> Isolation:
    return Isolation.from_json(task.payload["isolation"])
