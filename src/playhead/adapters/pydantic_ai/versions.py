"""Finding an agent object again: which module holds it, under which name."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import finalize, ref

from playhead.core.values import JSON, AgentVersion
from playhead.engine.version import CodeVersion, entry_point

CAPABILITIES: dict[str, JSON] = {
    "adapter": "pydantic_ai",
    "tool_policies": True,
    "overrides": {"model": True, "system_prompt": True, "prompt": True, "model_params": True},
    "model_history": True,
}
"""What the conformance suite measures; a test holds this against it."""


class FoundByName:
    """The version of an agent object: which module holds it under which name is looked up when it is captured."""

    def __init__(self, agent: Any) -> None:
        self._agent = ref(agent)

    def capture(self, agent: str) -> AgentVersion:
        return replace(_find(self._agent()).capture(agent), capabilities=dict(CAPABILITIES))


def _find(agent: Any) -> CodeVersion:
    for module in list(sys.modules.values()):
        for name, held in list(getattr(module, "__dict__", {}).items()):
            if held is agent and agent is not None and not name.startswith("__"):
                file = getattr(module, "__file__", None)
                return CodeVersion(entry_point(module, name), Path(file) if file else None)
    return CodeVersion(None, None)


_versions: dict[int, FoundByName] = {}


def version_of(agent: Any) -> FoundByName | None:
    """What captures the version of an agent, the same object each time. Agents have no hash, so they go by identity."""
    if agent is None:
        return None
    known = _versions.get(id(agent))
    if known is None:
        known = _versions[id(agent)] = FoundByName(agent)
        finalize(agent, _versions.pop, id(agent), None).atexit = False
    return known
