"""Finding an agent object again: which module holds it, under which name."""

import sys
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from playhead.core.values import AgentVersion
from playhead.engine.version import CodeVersion, entry_point


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
                return CodeVersion(entry_point(module, name), Path(file) if file else None)
    return CodeVersion(None, None)


_versions: WeakKeyDictionary[Any, FoundByName] = WeakKeyDictionary()


def version_of(agent: Any) -> FoundByName | None:
    """What captures the version of an agent, the same object each time."""
    if agent is None:
        return None
    return _versions.setdefault(agent, FoundByName(agent))
