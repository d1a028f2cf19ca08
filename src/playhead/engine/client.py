"""The product as an object: one opened store, and what can be done over it."""

import os
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import Replay, ReplayStatus, RunSpec
from playhead.engine.child import absolute, last_words, run_child
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.engine.isolation_plan import isolation_for
from playhead.engine.models import ToolWriter
from playhead.engine.owner import is_gone, mark_abandoned
from playhead.engine.preflight import Plan, plan_replay
from playhead.engine.project import Project, find_project
from playhead.engine.replay import failed, without_secrets
from playhead.errors import AgentProcessError, RefusedError
from playhead.store.ports import AgentPort, Page, SessionPort, Store

__all__ = ["Client", "ReplayClient", "open_client"]

_UNFINISHED = frozenset({ReplayStatus.PENDING, ReplayStatus.RUNNING, ReplayStatus.EVALUATING})


class ReplayClient:
    """Plans, creates, runs and reads replays."""

    def __init__(self, store: Store, project: Project) -> None:
        self._store = store
        self._project = project

    @property
    def writer(self) -> ToolWriter:
        """What writes results for the llm policy, with the project's model."""
        return ToolWriter(self._project.settings.llm_model)

    def plan(self, request: ReplayCreateRequest, *, run_spec: RunSpec | None = None, inline: bool = False) -> Plan:
        """Preflight: what a replay would do, or why it may not.

        Raises:
            RefusedError: with every reason in ``details["reasons"]``.
        """
        mark_abandoned(self._store)
        return plan_replay(
            self._store,
            request,
            run_spec=run_spec,
            default_policy=self._project.settings.tool_policy,
            writer=self.writer,
            owner_alive=lambda owner: not is_gone(owner),
            inline=inline,
            environment=os.environ,
        )

    def create(self, request: ReplayCreateRequest | Plan) -> list[Replay]:
        """Stores the replays of a request, one for each repeat; with a known idempotency key the stored ones."""
        plan = request if isinstance(request, Plan) else self.plan(request)
        return [self._store.replays.create(r) for r in plan.replays(SYSTEM_CLOCK, SYSTEM_IDS)]

    def run(self, replay: Replay, plan: Plan, *, timeout: float | None = None) -> Replay:
        """Runs a stored replay in a child process and gives its final state. One that has ended stays as it is."""
        if replay.status is not ReplayStatus.PENDING:
            return replay
        spec = plan.run_spec
        if spec is None:
            raise RefusedError("no agent to run", hint="give an entry point")
        if self._store.url.startswith("memory"):
            raise RefusedError("a store in memory cannot be shared with a child process", hint="replay inline")
        spec = replace(spec, working_dir=absolute(spec.working_dir), env=(*spec.env, *self._project.settings.env))
        try:
            end = run_child(
                replay.id,
                store_url=self._store.url,
                run_spec=spec,
                model_policy=plan.model_policy,
                timeout=timeout or plan.request.timeout or spec.timeout or self._project.settings.timeout,
                isolation=isolation_for(
                    plan, mode="best", endpoints=self._project.settings.model_endpoints, environment=os.environ
                ),
                settings={
                    "entry_point": spec.entry_point,
                    "working_dir": spec.working_dir,
                    "project": str(self._project.root),
                    "force": plan.request.force,
                },
            )
        except KeyboardInterrupt:
            self._cancel(replay.id)
            raise
        done = self._store.replays.get(replay.id)
        if done.status not in _UNFINISHED:
            return done
        mark_abandoned(self._store)
        error = AgentProcessError(
            f"the agent's process did not finish the replay: {last_words(end)}",
            hint="the replay holds the last 8 KiB of its output",
        )
        lost = failed(done, error)
        assert lost.error is not None
        kept = {**(lost.error.attributes or {}), "stdout": end.stdout, "stderr": end.stderr}
        lost = without_secrets(replace(lost, error=replace(lost.error, attributes=kept)), self._project.redactor())
        self._store.replays.save(lost)
        return lost

    def _cancel(self, replay_id: str) -> None:
        """Notes that a person ended a replay, and the session that it had begun."""
        left = self._store.replays.get(replay_id)
        if left.status in _UNFINISHED:
            self._store.replays.save(replace(left, status=ReplayStatus.CANCELED, ended_at=SYSTEM_CLOCK.now()))
        mark_abandoned(self._store)

    def get(self, replay: str) -> Replay:
        """A replay by id, shortened id, ``last`` or ``last~N``."""
        return self._store.replays.get(self._store.replays.resolve(replay))

    def list(
        self, *, baseline_session_id: str | None = None, status: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> Page:  # fmt: skip
        """Replays, newest first."""
        return self._store.replays.find(
            baseline_session_id=baseline_session_id, status=status, limit=limit, cursor=cursor
        )


class Client:
    """An opened store with everything over it; a context manager that closes it.

    Attributes:
        store: the ports themselves.
        sessions: recorded sessions. agents: agents and their versions. replays: re-runs.
    """

    def __init__(self, store: Store, project: Project) -> None:
        self.store = store
        self.project = project
        self.sessions: SessionPort = store.sessions
        self.agents: AgentPort = store.agents
        self.replays = ReplayClient(store, project)

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_client(url: str | None = None, *, create: bool = True) -> Client:
    """Opens the project's store, found upwards as ``.playhead/``; ``url`` or ``PLAYHEAD_URL`` name another.

    Args:
        url: ``sqlite:///path``, a path, or ``memory:``.
        create: make the store when it is not there.

    Raises:
        UsageError: a URL that cannot be used, or no store there. StoreError: it cannot be opened.
    """
    project = find_project(Path.cwd(), url=url)
    return Client(project.open_store(create=create), project)
