"""What a replay will do, and whether it may: everything that can be refused before the agent starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.core.capabilities import needs, unmet
from playhead.core.decide import policy_warnings
from playhead.core.override import check_override
from playhead.core.policy import (
    HistoryConfig,
    HistoryModel,
    InjectConfig,
    LiveModel,
    LLMConfig,
    ModelPolicy,
    PassthroughConfig,
    ReplayOverride,
    StaticConfig,
    ToolConfig,
    ToolPolicy,
)
from playhead.core.protocol.shape import obj, objects
from playhead.core.requests import ReplayCreateRequest
from playhead.core.values import (
    JSON,
    SERVED_MARKS,
    AgentVersion,
    FidelityKind,
    Node,
    NodeKind,
    Replay,
    ReplayStatus,
    RunSpec,
    Session,
    SessionStatus,
)
from playhead.engine.capabilities import capabilities_of
from playhead.engine.clock import Clock, IdSource
from playhead.engine.evaluators import DEFAULT, resolve
from playhead.engine.evaluators import notes as changed_notes
from playhead.engine.judge import unusable
from playhead.engine.models import ToolWriter
from playhead.errors import NotFoundError, RefusedError
from playhead.store.ports import Store

PROVIDER_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY",
                 "GROQ_API_KEY", "CO_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY")  # fmt: skip
PROVIDER_SETTINGS = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A replay that passed preflight. ``live_tools`` names what may run for real, ``*`` for any tool;
    ``unservable`` are recorded calls that history cannot answer, with their mark; ``notes`` are worth telling."""

    baseline: Session
    nodes: tuple[Node, ...]
    version: AgentVersion | None
    run_spec: RunSpec | None
    policy: ToolPolicy
    model_policy: ModelPolicy
    override: ReplayOverride | None
    request: ReplayCreateRequest
    fork: bool
    cohort: str | None = None
    evaluators: tuple[JSON, ...] = ()
    live_tools: tuple[str, ...] = ()
    unservable: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def replays(self, clock: Clock, ids: IdSource) -> list[Replay]:
        """The replays to store, one for each repeat."""
        group = ids() if self.request.repeats > 1 else None
        key = self.request.idempotency_key
        return [
            Replay(
                id=ids(),
                baseline_session_id=self.baseline.id,
                created_at=clock.now(),
                status=ReplayStatus.PENDING,
                agent_version=self.version.id if self.version else None,
                tool_policy=self.policy.model_dump(mode="json", exclude_defaults=False, by_alias=True),
                model_policy=self.model_policy.model_dump(mode="json", exclude_none=True),
                override=self.override.model_dump(mode="json", exclude_none=True) if self.override else None,
                evaluators=self.evaluators,
                evaluate_baselines=_baseline_mode(self.request.evaluate_baselines),
                label=self.request.label,
                idempotency_key=f"{key}#{n}" if key and n else key,
                group_id=group,
                cohort=self.cohort,
                baseline_revision=self.baseline.revision,
            )
            for n in range(self.request.repeats)
        ]


def _baseline_mode(value: bool | str) -> str:
    return {True: "if_missing", False: "none"}.get(value, str(value)) if isinstance(value, bool) else value


def plan_replay(
    store: Store,
    request: ReplayCreateRequest,
    *,
    run_spec: RunSpec | None = None,
    default_policy: ToolPolicy | None = None,
    writer: ToolWriter | None = None,
    owner_alive: Callable[[str], bool] = lambda _: True,
    inline: bool = False,
    environment: Mapping[str, str] | None = None,
    cohort: str | None = None,
) -> Plan:
    """Reads what a replay needs and refuses what cannot work.

    Args:
        run_spec: how to start the agent, where that is not the recorded version's own.
        default_policy: the project's policy, for a request that names none.
        owner_alive: whether the process that writes an open session still runs.
        inline: the caller brings the agent itself, so no run spec is needed.
        environment: for the provider keys that model history has to stand in for.
        cohort: the cohort version (``name@version``) of the experiment run that the replay is part of.

    Raises:
        RefusedError: with every reason at once in ``details["reasons"]``.
        NotFoundError: no such session, agent version or evaluator.
    """
    baseline = store.sessions.get(store.sessions.resolve(request.baseline_session_id))
    nodes = tuple(store.sessions.nodes(baseline.id))
    version = _version(store, request, baseline)
    spec = run_spec or (version.run_spec if version else None)
    policy = request.tool_policy or default_policy or ToolPolicy()
    model_policy = request.model_policy or LiveModel()
    reasons = [
        *_baseline_reasons(baseline, request.force, owner_alive),
        *_version_reasons(version, spec, policy, request, inline),
        *_unmet(version, baseline, policy, model_policy, request, nodes),
        *_unanswerable(baseline, policy),
        *_unseen(baseline, policy, request.force),
        *_policy_reasons(policy, writer, cohort),
    ]
    if request.override is not None:
        reasons += check_override(request.override, turns=len(baseline.turns))
    if reasons:
        raise RefusedError(reasons[0], hint=_hint(reasons), reasons=reasons)
    evaluators = resolve(store, request.evaluators or (DEFAULT,))
    reasons = unusable(evaluators, default_model=writer.default_model if writer else None)
    if reasons:
        raise RefusedError(reasons[0], hint=_hint(reasons), reasons=reasons)
    schemas = {name: tool.get("parameters") for name, tool in offered_tools(nodes).items()}
    known = {n.call.tool for n in nodes if n.call is not None} | set(schemas)
    fork = _is_fork(policy, request, baseline, version)
    return Plan(
        baseline=baseline,
        nodes=nodes,
        version=version,
        run_spec=spec,
        policy=policy,
        model_policy=model_policy,
        override=request.override,
        request=request,
        fork=fork,
        cohort=cohort,
        evaluators=evaluators,
        live_tools=live_tools(policy),
        unservable=_unservable(nodes),
        warnings=tuple(policy_warnings(policy, known, schemas)) if known else (),
        notes=(
            *_notes(store, baseline, nodes, model_policy, fork, environment or {}),
            *changed_notes(store, evaluators),
        ),
    )


def _hint(reasons: Sequence[str]) -> str | None:
    return None if len(reasons) == 1 else "also: " + "; ".join(reasons[1:])


def _version(store: Store, request: ReplayCreateRequest, baseline: Session) -> AgentVersion | None:
    wanted = request.agent_version
    if wanted is None:
        if baseline.agent_version is None:
            return None
        try:
            return store.agents.get(baseline.agent_version)
        except NotFoundError:
            return None
    if "@" in wanted or not _looks_like_id(wanted):
        name, _, number = wanted.partition("@")
        if number and not number.isdigit():
            raise NotFoundError(f"{wanted!r} is not an agent version", hint="write NAME@NUMBER, or an id")
        return store.agents.find(name or baseline.agent, int(number) if number else None)
    return store.agents.get(wanted)


def _looks_like_id(text: str) -> bool:
    return len(text) == 36 and text.count("-") == 4


def _baseline_reasons(baseline: Session, force: bool, owner_alive: Callable[[str], bool]) -> list[str]:
    reasons: list[str] = []
    if baseline.status is SessionStatus.OPEN:
        running = baseline.owner is not None and owner_alive(baseline.owner)
        reasons.append(
            f"session {baseline.id} is still running" if running else f"session {baseline.id} was never closed"
        )
    elif baseline.status is SessionStatus.ABANDONED and not force:
        reasons.append(f"session {baseline.id} was abandoned before its end; --force replays what there is of it")
    reasons += [
        f"session {baseline.id} cannot be replayed: {_NOT_REPLAYABLE.get(why, why)}" for why in baseline.not_replayable
    ]
    return reasons


_NOT_REPLAYABLE = {
    "inputs": "its inputs cannot be stored",
    "inputs_not_captured": "the recording does not show what the agent was started with (inputs_not_captured)",
    "content_not_captured": "the messages of its model calls were not captured (content_not_captured)",
}
"""Reasons that are stored as a word, in words."""


def _version_reasons(
    version: AgentVersion | None, spec: RunSpec | None, policy: ToolPolicy, request: ReplayCreateRequest, inline: bool
) -> list[str]:
    reasons: list[str] = []
    if not inline and (spec is None or not (spec.entry_point or spec.command)):
        reasons.append(
            "no agent to run: the session names no agent version with an entry point "
            "(an agent that is made inside a function has none); give --entry-point module:name, an agent or a "
            "function that takes the recorded inputs and runs it, or --agent-version"
        )
    can = version.capabilities if version else {}
    if "scenarios" not in can and can.get("tool_policies") is False and not _all_passthrough(policy):
        reasons.append("this agent version cannot intercept tools; only an all-passthrough policy can run it")
    able = can.get("overrides") if "scenarios" not in can else None
    if request.override is not None and able is not None:
        for field in request.override.model_dump(exclude_none=True):
            if able is False or obj(able).get(field) is False:
                reasons.append(f"/override/{field}: this agent version cannot apply it")
    return reasons


def _unanswerable(baseline: Session, policy: ToolPolicy) -> list[str]:
    """Tools of which the adapter said, when it recorded them, that nothing but the live tool can answer."""
    found = obj(baseline.metadata.get("unanswerable"))
    return [
        f'tool {tool!r} was used: {reason}; let it run live: {{"tools": {{"{tool}": {{"type": "passthrough"}}}}}}'
        for tool, reason in found.items()
        if not isinstance(policy.config_for(tool), PassthroughConfig)
    ]


def _unseen(baseline: Session, policy: ToolPolicy, force: bool) -> list[str]:
    """Tools that ran without being seen: as long as they do, they run for real, and a replay is stopped after that."""
    found: Any = baseline.metadata.get("unseen_tools") or ()
    return [
        f"tool {tool!r} ran without being seen when this was recorded, so it would run for real before the replay is "
        "stopped; wrap it (@playhead.tool, or the adapter of its framework), then --force (force=True) replays; or let "
        f'it run live: {{"tools": {{"{tool}": {{"type": "passthrough"}}}}}}'
        for tool in found
        if not force and not isinstance(policy.config_for(tool), PassthroughConfig)
    ]


def _unmet(
    version: AgentVersion | None, baseline: Session, policy: ToolPolicy, model_policy: ModelPolicy,
    request: ReplayCreateRequest, nodes: Sequence[Node],
) -> list[str]:  # fmt: skip
    """What the replay needs that an adapter did not pass when it was measured: the version's, or one that saw calls."""
    can = version.capabilities if version is not None else {}
    if "scenarios" not in can:
        can = capabilities_of(str(can.get("adapter")))
    seen: Any = baseline.metadata.get("adapters") or ()
    met = [capabilities_of(str(adapter)) for adapter in seen if adapter != can.get("adapter")]
    wanted = needs(policy, model_policy, request.override, nodes)
    return [reason for one in (can, *met) for reason in unmet(one, wanted)]


def _all_passthrough(policy: ToolPolicy) -> bool:
    return all(isinstance(c, PassthroughConfig) for c in [policy.default, *policy.tools.values()])


def _configs(policy: ToolPolicy) -> list[tuple[str, ToolConfig]]:
    """Every config of a policy with the tool it is for (``*`` for the default), inner ones of injections too."""
    found: list[tuple[str, ToolConfig]] = []
    todo: list[tuple[str, ToolConfig | None]] = [("*", policy.default), *policy.tools.items()]
    while todo:
        tool, config = todo.pop(0)
        if config is None:
            continue
        found.append((tool, config))
        if isinstance(config, InjectConfig):
            todo.append((tool, config.then))
    return found


def live_tools(policy: ToolPolicy) -> tuple[str, ...]:
    """The tools that a policy may run for real; ``*`` stands for every tool that is not named."""
    return tuple(
        dict.fromkeys(
            tool
            for tool, config in _configs(policy)
            if isinstance(config, PassthroughConfig)
            or (isinstance(config, HistoryConfig | StaticConfig) and config.on_miss == "passthrough")
        )
    )


def _policy_reasons(policy: ToolPolicy, writer: ToolWriter | None, cohort: str | None) -> list[str]:
    reasons: list[str] = []
    for tool, config in _configs(policy):
        at = "/default" if tool == "*" else f"/tools/{tool}"
        if isinstance(config, HistoryConfig) and config.scope == "cohort_version" and cohort is None:
            reasons.append(f"{at}/scope: cohort_version is valid only inside experiments; use baseline or agent")
        if isinstance(config, LLMConfig):
            try:
                (writer or ToolWriter()).check(config)
            except RefusedError as error:
                reasons.append(f"{at}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    return reasons


def _is_fork(policy: ToolPolicy, request: ReplayCreateRequest, baseline: Session, version: AgentVersion | None) -> bool:
    """Whether the replay changes something: then its differences are the point, not a fault."""
    if request.override is not None or (request.model_policy is not None and request.model_policy.inject is not None):
        return True
    if any(not isinstance(c, HistoryConfig) for _, c in _configs(policy)):
        return True
    return version is not None and baseline.agent_version is not None and version.id != baseline.agent_version


def offered_tools(nodes: Sequence[Node]) -> dict[str, dict[str, JSON]]:
    """The tools that the recorded model calls offered, by name: description, parameters, output schema."""
    found: dict[str, dict[str, JSON]] = {}
    for node in nodes:
        if node.kind is NodeKind.MODEL_CALL:
            for tool in objects(obj(node.inputs).get("tools")):
                found[str(tool.get("name"))] = tool
    return found


def _unservable(nodes: Sequence[Node]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (n.call.tool, n.call.mark.value) for n in nodes if n.call is not None and n.call.mark not in SERVED_MARKS
    )


def _notes(
    store: Store, baseline: Session, nodes: Sequence[Node], model_policy: ModelPolicy, fork: bool,
    environment: Mapping[str, str],
) -> list[str]:  # fmt: skip
    notes: list[str] = []
    hosted = sorted({n.call.tool for n in nodes if n.call is not None and n.call.source == "provider"})
    if hosted and isinstance(model_policy, LiveModel):
        notes.append(f"run at the model's provider and stay live: {', '.join(hosted)}")
    if isinstance(model_policy, HistoryModel):
        missing = [name for name in PROVIDER_KEYS[:2] if not environment.get(name)]
        if missing:
            notes.append(f"placeholders stand in for {', '.join(missing)}")
    if fork and not _was_faithful(store, baseline):
        notes.append("no unchanged replay of this session has been faithful yet; run one first, to know what is noise")
    return notes


def _was_faithful(store: Store, baseline: Session) -> bool:
    page = store.replays.find(baseline_session_id=baseline.id, limit=100)
    return any(r.fidelity is not None and r.fidelity.kind is FidelityKind.FAITHFUL for r in page.items)
