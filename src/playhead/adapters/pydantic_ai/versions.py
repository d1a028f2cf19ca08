"""Finding an agent object again: which module holds it, under which name."""

import sys
from pathlib import Path
from typing import Any
from weakref import finalize, ref

from playhead.core.values import AgentVersion
from playhead.engine.version import CodeVersion, entry_point

_ADAPTER = "pydantic_ai"


class FoundByName:
    """The version of an agent object: which module holds it under which name is looked up when it is captured."""

    def __init__(self, agent: Any) -> None:
        self._agent = ref(agent)

    def capture(self, agent: str) -> AgentVersion:
        return _find(self._agent()).capture(agent)


def _find(agent: Any) -> CodeVersion:
    for module in list(sys.modules.values()):
        for name, held in list(getattr(module, "__dict__", {}).items()):
            if held is agent and agent is not None and not name.startswith("__"):
                file = getattr(module, "__file__", None)
                return CodeVersion(entry_point(module, name), Path(file) if file else None, adapter=_ADAPTER)
    return CodeVersion(None, None, adapter=_ADAPTER)


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
