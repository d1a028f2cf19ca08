"""The caller's options: copied, never changed; refused where a replay could not hold what it promises."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from playhead.core.override import override_model
from playhead.core.policy import PassthroughConfig, ReplayOverride, StaticConfig, ToolPolicy
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON
from playhead.errors import RefusedError

STRICT_DEFAULT = "Claude SDK MCP replay requires an empty static fail default policy"
_STRICT_HINT = '{"default": {"type": "static", "cases": [], "on_miss": "fail"}, "tools": {"mcp__server__tool": ...}}'
_RESUMING = ("resume", "continue_conversation", "fork_session", "resume_session_at", "resume_drops_turn")
_SAFE = {
    "mcp_servers": "{}",
    "settings": "None",
    "plugins": "[]",
    "skills": "None",
    "agents": "None",
    "extra_args": "{}",
}
"""Options that may add tools, with what to pass where tools are substituted."""
_OUTSIDE = ("settings", "plugins", "extra_args")


def copied(options: ClaudeAgentOptions | None) -> ClaudeAgentOptions:
    """A copy that shares no container with the caller's options. Servers, hooks and callables themselves are shared."""
    given = options if options is not None else ClaudeAgentOptions()
    return replace(given, **{f.name: _copy(getattr(given, f.name)) for f in fields(given) if f.init})


def _copy(value: Any) -> Any:
    if is_object(value):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if is_list(value) else value


def substitutes(policy: ToolPolicy) -> bool:
    """Whether any call may be answered by something else than its live tool."""
    return any(not isinstance(c, PassthroughConfig) for c in (policy.default, *policy.tools.values()))


def isolated(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """A copy into which settings of the user, the project and ``.mcp.json`` bring nothing."""
    return replace(options, setting_sources=[], strict_mcp_config=True)


# --- what is refused ------------------------------------------------------------------------------------------------


def refuse(reasons: Sequence[str], hint: str | None = None) -> None:
    """Raises `RefusedError` when there is a reason."""
    if reasons:
        others = f"also: {'; '.join(reasons[1:])}" if len(reasons) > 1 else None
        raise RefusedError(reasons[0], hint=hint or others, reasons=list(reasons))


def resuming(options: ClaudeAgentOptions) -> list[str]:
    """Options that start from an earlier conversation, which a replay does not have."""
    return [
        f"options.{name} is {value!r}; a replay starts a fresh conversation: leave it out"
        for name in _RESUMING
        if (value := getattr(options, name, None))
    ]


def outside_the_gate(options: ClaudeAgentOptions) -> list[str]:
    """Options that may bring in commands which no hook sees."""
    return [
        f"options.{name} is {value!r}; it can run commands outside playhead: pass {name}={_SAFE[name]}, "
        "or keep_settings=True to the runner"
        for name in _OUTSIDE
        if (value := getattr(options, name))
    ]


def strict(options: ClaudeAgentOptions, policy: ToolPolicy, identities: Sequence[str]) -> list[str]:
    """Why a replay that substitutes tools of wrapped servers only cannot run; empty when it can."""
    default = policy.default
    reasons: list[str] = []
    if not (isinstance(default, StaticConfig) and not default.cases and default.on_miss == "fail"):
        reasons.append(f"{STRICT_DEFAULT}; it is {default.type!r}: pass {_STRICT_HINT}")
    known = set(identities)
    for target in policy.tools:
        if target not in known:
            reasons.append(f"/tools/{target}: is no tool of a replayable server; known are: {_names(identities)}")
    return [*reasons, *_strict_options(options, known)]


def _strict_options(options: ClaudeAgentOptions, known: set[str]) -> list[str]:
    reasons: list[str] = []
    if options.tools != []:
        reasons.append(f"options.tools is {options.tools!r}; substitution requires ClaudeAgentOptions(tools=[])")
    unwrapped = [name for name in options.allowed_tools if name not in known]
    if unwrapped:
        reasons.append(
            f"options.allowed_tools has {unwrapped!r}; only exact names of replayable tools are allowed: "
            f"{_names(sorted(known))}"
        )
    for name, value in _SAFE.items():
        given: Any = getattr(options, name)
        if given:
            shown: Any = sorted(given) if is_object(given) else given
            reasons.append(f"options.{name} is {shown!r}; it can add tools outside playhead: pass {name}={value}")
    return reasons


def _names(identities: Sequence[str]) -> str:
    return ", ".join(identities) or "none"


def without_proxy(options: ClaudeAgentOptions, override: ReplayOverride | None) -> list[str]:
    """Overrides that only the proxy can apply."""
    if override is None:
        return []
    reasons: list[str] = []
    if override.model_params is not None:
        reasons.append("/override/model_params: can only be applied by the proxy, which is off for this query")
    if isinstance(override.model, dict):
        if options.model is None:
            reasons.append("/override/model: a map needs options.model where the proxy is off; it is None")
        elif override_model(override, options.model) == options.model and options.model not in override.model.values():
            reasons.append(f"/override/model: the map has no entry for options.model {options.model!r}")
    return reasons


# --- what is changed on the copy ------------------------------------------------------------------------------------


def overridden(options: ClaudeAgentOptions, override: ReplayOverride | None) -> tuple[ClaudeAgentOptions, list[str]]:
    """A copy with the override's model and system prompt, and the names of the fields that changed something."""
    if override is None:
        return options, []
    changes: dict[str, Any] = {}
    wanted = override.model if isinstance(override.model, str) else (
        override_model(override, options.model) if options.model else options.model
    )  # fmt: skip
    if override.model is not None and wanted != options.model:
        changes["model"] = wanted
    if override.system_prompt is not None and override.system_prompt != options.system_prompt:
        changes["system_prompt"] = override.system_prompt
    return replace(options, **changes), list(changes)


def recorded(options: ClaudeAgentOptions) -> dict[str, JSON]:
    """What of the options may be stored: never the environment, headers or callables."""
    shown: dict[str, Any] = {
        "model": options.model,
        "tools": options.tools,
        "allowed_tools": options.allowed_tools,
        "disallowed_tools": options.disallowed_tools,
        "permission_mode": options.permission_mode,
        "max_turns": options.max_turns,
        "cwd": str(options.cwd) if isinstance(options.cwd, Path) else options.cwd,
        "setting_sources": options.setting_sources,
        "mcp_servers": sorted(options.mcp_servers) if isinstance(options.mcp_servers, Mapping) else None,
        "agents": sorted(options.agents) if options.agents else None,
    }
    shown |= {name: True for name in _RESUMING if getattr(options, name, None)}
    return {name: value for name, value in shown.items() if value is not None}
