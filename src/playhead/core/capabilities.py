"""What an adapter can do, as the conformance suite measured it, and what a replay needs of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from playhead.core.policy import (
    HistoryConfig,
    HistoryModel,
    InjectConfig,
    LLMConfig,
    ModelPolicy,
    PassthroughConfig,
    ReplayOverride,
    StaticConfig,
    ToolConfig,
    ToolPolicy,
)
from playhead.core.protocol.shape import obj
from playhead.core.values import JSON, Node, NodeKind, OutcomeKind

Findings: TypeAlias = Mapping[str, tuple[str, str]]
"""By scenario: ``supported``, ``unsupported`` or ``not_applicable``, and the reason for the last two."""
Need: TypeAlias = tuple[str, str]
"""What asks for it (a place in the request, or a word), and the scenario."""

_POLICIES = {"history": ("S2",), "static": ("S12", "S12-misses"), "passthrough": ("S11",), "llm": ("S12-llm",),
             "inject": ("S12-inject",)}  # fmt: skip
_MISSES = {"fail": "S9", "error_result": "S10", "passthrough": "S11"}
_OVERRIDES = {name: f"S14-{name}" for name in ("model", "system_prompt", "prompt", "model_params")}
_MODEL = ("S15", "S15-diff")
_OUTCOMES = {
    OutcomeKind.ERROR: ("a call that raised", "S7"),
    OutcomeKind.RETRY: ("a call that asked the model to try again", "S8-retry"),
    OutcomeKind.RESULT_ERROR: ("an error that the model can read", "S8-error"),
    OutcomeKind.INTERRUPT: ("a call that paused for a person", "S20-granted"),
}


def summary(adapter: str, framework: Mapping[str, JSON], found: Findings) -> dict[str, JSON]:
    """The form that an agent version keeps as its capabilities."""

    def able(*scenarios: str) -> bool:
        """Whether what was measured of them holds; what was not measured counts as not there."""
        verdicts = [found[s][0] for s in scenarios if s in found]
        return bool(verdicts) and "unsupported" not in verdicts

    return {
        "adapter": adapter,
        "framework": dict(framework),
        "tool_policies": all(able(*scenarios) for scenarios in _POLICIES.values()),
        "policies": {policy: able(*scenarios) for policy, scenarios in _POLICIES.items()},
        "overrides": {name: able(scenario) for name, scenario in _OVERRIDES.items()},
        "model_history": able(*_MODEL),
        "scenarios": {name: verdict for name, (verdict, _) in found.items()},
        "reasons": {name: reason for name, (_, reason) in found.items() if reason},
    }


def unmet(capabilities: Mapping[str, JSON], needs: Iterable[Need]) -> list[str]:
    """Why a replay with these needs cannot work: each scenario that was measured and not passed, once."""
    verdicts, reasons = obj(capabilities.get("scenarios")), obj(capabilities.get("reasons"))
    found: dict[str, str] = {}
    for what, scenario in needs:
        if verdicts.get(scenario) == "unsupported" and scenario not in found:
            why = reasons.get(scenario) or "it failed when it was measured"
            found[scenario] = (
                f"{what}: adapter {capabilities.get('adapter')} does not pass conformance scenario {scenario}: {why}"
            )
    return list(found.values())


def needs(
    policy: ToolPolicy, model_policy: ModelPolicy, override: ReplayOverride | None, nodes: Sequence[Node]
) -> list[Need]:
    """The scenarios that stand for what a replay of these nodes asks of its adapter."""
    found: list[Need] = []
    for at, config in _configs(policy):
        found += _of_config(at, config)
    if isinstance(model_policy, HistoryModel):
        found += [("/model_policy", scenario) for scenario in _MODEL]
    if override is not None:
        fields = override.model_dump(exclude_none=True)
        found += [(f"/override/{name}", _OVERRIDES[name]) for name in fields if name in _OVERRIDES]
    if any(not isinstance(config, PassthroughConfig) for _, config in _configs(policy)):
        found += _of_nodes(nodes)
    return found


def _configs(policy: ToolPolicy) -> Iterator[tuple[str, ToolConfig]]:
    yield "/tool_policy/default", policy.default
    for tool, config in policy.tools.items():
        yield f"/tool_policy/tools/{tool}", config


def _of_config(at: str, config: ToolConfig) -> list[Need]:
    found: list[Need] = [(at, scenario) for scenario in _POLICIES.get(config.type, ())]
    if isinstance(config, HistoryConfig | StaticConfig | LLMConfig):
        on_miss = getattr(config, "on_miss", None)
        if on_miss in _MISSES:
            found.append((f"{at}/on_miss", _MISSES[on_miss]))
    if isinstance(config, InjectConfig) and config.then is not None:
        found += _of_config(f"{at}/then", config.then)
    return found


def _of_nodes(nodes: Sequence[Node]) -> list[Need]:
    found: list[Need] = []
    known = {node.id: node for node in nodes}
    together: dict[tuple[str | None, str], int] = {}  # when the last of them ended
    inside: dict[str, str] = {}  # by model call, the first of its tools that has an agent inside
    for node in nodes:
        outer = known.get(node.parent_id or "")
        if node.kind is NodeKind.AGENT_CALL and outer is not None and outer.call is not None:
            found.append(("an agent inside a tool", "S17-covered"))
            if outer.call.model_call and inside.setdefault(outer.call.model_call, outer.id) != outer.id:
                found.append(("agents inside tools, side by side", "S17-parallel"))
        if node.call is None:
            continue
        if node.attributes.get("bare_tool") is not None:
            found.append(("a tool of an MCP server", "S19"))
        if node.outcome is not None and node.outcome.kind in _OUTCOMES:
            found.append(_OUTCOMES[node.outcome.kind])
        if node.call.attempt > 1 and node.outcome is not None:
            found.append(("a call that was tried again", "S13-retry"))
        same = (node.call.model_call, node.call.key or node.id)
        # calls that no response announced come one after the other in plain code, which is clear enough
        if same in together and (node.call.model_call is not None or node.started_at < together[same]):
            found.append(("equal calls of one response", "S3"))
        together[same] = max(together.get(same, 0), node.ended_at or 0)
    return list(dict.fromkeys(found))
