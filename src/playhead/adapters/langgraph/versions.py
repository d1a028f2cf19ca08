"""Finding a graph again: which module holds it, under which name."""

import sys
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from playhead.core.values import AgentVersion
from playhead.engine.version import CodeVersion, entry_point

_ADAPTER = "langgraph"


class GraphVersion:
    """The version of a graph object, looked up among the modules when it is captured."""

    def __init__(self, graph: Any) -> None:
        self._graph = ref(graph)

    def capture(self, agent: str) -> AgentVersion:
        return _found(self._graph()).capture(agent)


def _found(graph: Any) -> CodeVersion:
    for module in list(sys.modules.values()):
        for name, held in list(getattr(module, "__dict__", {}).items()):
            if held is graph and graph is not None and not name.startswith("__"):
                file = getattr(module, "__file__", None)
                return CodeVersion(entry_point(module, name), Path(file) if file else None, adapter=_ADAPTER)
    return CodeVersion(None, None, adapter=_ADAPTER)


_versions: WeakKeyDictionary[Any, GraphVersion] = WeakKeyDictionary()


def version_of(graph: Any) -> GraphVersion:
    """What captures the version of a graph, the same object each time."""
    known = _versions.get(graph)
    if known is None:
        known = _versions[graph] = GraphVersion(graph)
    return known
