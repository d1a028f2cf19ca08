"""What is known of a tool: which arguments a model may give it, what it may change, which MCP server has it."""

import inspect
from typing import Any, NamedTuple, cast

from langchain_core.tools.base import BaseTool

from playhead.core.values import JSON, Effect
from playhead.engine import seam


class About(NamedTuple):
    """``names`` are the parameters that a model sees; None when the tool does not say. ``state`` is whose it is."""

    state: Any
    names: frozenset[str] | None
    effect: Effect
    attributes: dict[str, JSON]


_MOST = 1000
_known: dict[int, About] = {}


def about(tool: BaseTool) -> About:
    """Read once per tool. Tools have no hash, so they go by the identity of their state, which twins share."""
    state = vars(tool)
    known = _known.get(id(state))
    if known is None or known.state is not state:
        if len(_known) >= _MOST:
            _known.clear()
        known = _known[id(state)] = About(state, _names(tool), _effect(tool), _server(tool))
    return known


def arguments(active: seam.ActiveSession, tool: BaseTool, call_id: str | None, given: Any) -> Any:
    """The arguments as far as a model may have given them: never what the framework injects.

    An announced call has its own already, so nothing is read for it.
    """
    if call_id is not None and any(slot.tool == tool.name for slot in active.slots.by_id.get(call_id, ())):
        return None
    names = about(tool).names
    if not isinstance(given, dict):
        return {next(iter(names)) if names is not None and len(names) == 1 else "input": given}
    shown = cast("dict[str, Any]", given)
    return shown if names is None else {name: value for name, value in shown.items() if name in names}


def _names(tool: BaseTool) -> frozenset[str] | None:
    try:
        return frozenset(tool.args)
    except Exception:  # noqa: BLE001 - schemas are the user's
        return None


def _effect(tool: BaseTool) -> Effect:
    hints: dict[str, Any] = tool.metadata or {}
    if hints.get("readOnlyHint"):
        return Effect.READ
    if hints.get("destructiveHint"):
        return Effect.DESTRUCTIVE
    return Effect.WRITE if hints.get("readOnlyHint") is False else Effect.UNKNOWN


def _server(tool: BaseTool) -> dict[str, JSON]:
    """Server and bare name of an MCP tool: its function, whoever made it, closes over what the server listed."""
    function = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    if not inspect.isfunction(function) or function.__closure__ is None:
        return {}
    held = inspect.getclosurevars(function).nonlocals
    listed = next((v for v in held.values() if type(v).__module__.partition(".")[0] in ("mcp", "mcp_types")
                   and type(v).__name__ == "Tool"), None)  # fmt: skip
    if listed is None:
        return {}
    server = held.get("server_name")
    return {"bare_tool": str(listed.name), **({"server": server} if isinstance(server, str) else {})}
