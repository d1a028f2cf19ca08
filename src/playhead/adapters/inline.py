"""`playhead.replay(...)`: a replay in this process, for notebooks and tests."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Literal

from playhead.adapters.installation import install, installed, uninstall
from playhead.core.policy import HistoryModel, ModelPolicy, ReplayOverride, ToolPolicy
from playhead.core.policy_json import parse_model_policy, parse_override, parse_policy
from playhead.core.requests import EvaluatorConfig, ReplayCreateRequest
from playhead.core.values import RunSpec
from playhead.engine.child import PLACEHOLDER_KEY
from playhead.engine.client import Client
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS
from playhead.engine.entry import load
from playhead.engine.evaluate import complete
from playhead.engine.preflight import PROVIDER_KEYS
from playhead.engine.project import current_recorder, find_project
from playhead.engine.recorder import Recorder
from playhead.engine.replay import ReplayResult, execute, failed, without_secrets
from playhead.engine.replay_threads import any_left
from playhead.engine.zero_code import sessions_wanted
from playhead.errors import PlayheadError, RefusedError
from playhead.store.ports import Store


def replay(
    baseline: str = "last",
    *,
    agent: Any = None,
    tool_policy: ToolPolicy | Mapping[str, Any] | str | None = None,
    model_policy: ModelPolicy | Mapping[str, Any] | str | None = None,
    override: ReplayOverride | Mapping[str, Any] | str | None = None,
    evaluators: Sequence[EvaluatorConfig | str] = (),
    evaluate_baselines: bool | Literal["none", "if_missing", "force"] = "none",
    label: str | None = None,
    force: bool = False,
    store: Store | None = None,
    recorder: Recorder | None = None,
) -> ReplayResult:
    """Re-runs a recorded session here and gives the settled replay.

    Without anything said, tools are answered by the recording and a call that it does not hold stops the replay;
    nothing live runs. The guard binds what belongs to the replay, not the rest of the process.

    Args:
        baseline: session id, a unique piece of one, or ``last``.
        agent: what to run: a function, an agent object, or ``module:name``; left out, the recorded entry point.
        tool_policy: a `ToolPolicy`, its JSON, or the text of that.
        model_policy: ``{"type": "history"}`` answers the model from the recording too.
        override: the one thing to change.
        evaluators: what judges the result, ``fidelity`` when left out; `EvaluatorConfig` gives one parameters.
        evaluate_baselines: whether they judge the baseline too.
        store: an opened store, else the project's.
        force: replays an abandoned session, or one in which a tool ran without being seen.

    Raises:
        RefusedError: preflight said no. PolicyError: a policy or override that is not valid.
    """
    project = find_project()
    known = current_recorder()
    own = store is None and known is None
    used = store or (known.store if known is not None else project.open_store())
    writes = recorder or (known if known is not None and known.store is used else project.recorder(used))
    if known is not None:
        known.flush()
    client = Client(used, project)
    request = ReplayCreateRequest(
        baseline_session_id=baseline,
        tool_policy=parse_policy(tool_policy) if tool_policy is not None else None,
        model_policy=parse_model_policy(model_policy) if model_policy is not None else None,
        override=parse_override(override) if override is not None else None,
        evaluators=tuple(EvaluatorConfig(evaluator=e) if isinstance(e, str) else e for e in evaluators),
        evaluate_baselines=evaluate_baselines,
        label=label,
        force=force,
    )
    try:
        return _run(client, request, agent, writes)
    finally:
        if writes is not recorder and writes is not known:
            writes.close()
        if own:
            used.close()


def _run(client: Client, request: ReplayCreateRequest, agent: Any, recorder: Recorder) -> ReplayResult:
    plan = client.replays.plan(request, inline=True)
    target = load(agent) if isinstance(agent, str) else agent
    if target is None:
        target = _recorded(plan.run_spec)
    stored = client.store.replays.create(plan.replays(SYSTEM_CLOCK, SYSTEM_IDS)[0])
    try:
        with _adapters(), _placeholder_keys(plan.model_policy):
            settled, session = execute(
                plan, stored, target, store=client.store, recorder=recorder, writer=client.replays.writer,
                model_hosts=frozenset(client.project.settings.model_endpoints),
            )  # fmt: skip
    except PlayheadError as error:
        lost = failed(client.store.replays.get(stored.id), error)
        client.store.replays.save(without_secrets(lost, client.project.redactor()))
        raise
    return ReplayResult(
        replay=complete(client.store, settled.replay, project=client.project),
        baseline=plan.baseline,
        session=session,
        comparison=settled.comparison,
        warnings=plan.warnings,
        notes=plan.notes,
    )


class _Lent:
    """Things of the process that replays need for a while, perhaps several at once: the last takes them back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: Counter[str] = Counter()

    @contextmanager
    def use(
        self, name: str, *, there: Callable[[], bool], give: Callable[[], object], take: Callable[[], object]
    ) -> Generator[None]:
        """``give()`` unless it is ``there`` by itself, and ``take()`` after the last use of what was given."""
        with self._lock:
            mine = self._users[name] > 0 or not there()
            give()
            self._users[name] += mine
        try:
            yield
        finally:
            with self._lock:
                self._users[name] -= mine
                if mine and not self._users[name]:
                    take()


_lent = _Lent()


def _adapters() -> AbstractContextManager[None]:
    return _lent.use("adapters", there=installed, give=lambda: install(sessions=False), take=_uninstall_own)


def _uninstall_own() -> None:
    # They stay where the user has installed them meanwhile, and while something of a replay is left to be refused.
    if not sessions_wanted() and not any_left():
        uninstall()


@contextmanager
def _placeholder_keys(policy: ModelPolicy) -> Generator[None]:
    """Under model history, a placeholder for each provider key that is missing: clients are not built without one."""
    with ExitStack() as stack:
        for name in PROVIDER_KEYS if isinstance(policy, HistoryModel) else ():
            stack.enter_context(
                _lent.use(
                    name,
                    there=partial(_has_key, name),
                    give=partial(os.environ.setdefault, name, PLACEHOLDER_KEY),
                    take=partial(os.environ.pop, name, None),
                )
            )
        yield


def _has_key(name: str) -> bool:
    if not os.environ.get(name):
        os.environ.pop(name, None)  # an empty one counts as none
    return name in os.environ


def _recorded(spec: RunSpec | None) -> Any:
    if spec is None or spec.entry_point is None:
        raise RefusedError(
            "the session names no entry point to run", hint="pass the agent: playhead.replay(..., agent=my_agent)"
        )
    return load(spec.entry_point, spec.working_dir)
