"""The run of a framework as a session, a turn of one, or an agent call: for frameworks whose runs are plain calls."""

import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize, ref

from playhead.core.values import AgentVersion
from playhead.engine.boundary import SessionScope
from playhead.engine.context import current
from playhead.engine.frames import leave
from playhead.engine.version import CodeVersion, entry_point
from playhead.engine.zero_code import sessions_wanted


def wanted() -> bool:
    """Whether a run that starts here is recorded: inside a session, or because runs open sessions of their own."""
    return sessions_wanted() or current() is not None


def ran(scope: SessionScope, live: Callable[[], Any], output: Callable[[Any], Any]) -> Any:
    """Runs inside a scope and gives what the framework gave; ``output`` is what the session keeps of it."""
    with scope:
        result = live()
        scope.output = output(result)
    return result


def streamed(scope: SessionScope, items: Generator[Any], output: Callable[[Any], Any]) -> Generator[Any]:
    """A run that gives its steps one by one; the consumer's code between them is not part of it."""
    last: Any = None
    scope.open()
    try:
        while True:
            token = scope.enter()
            try:
                last = next(items)
            except StopIteration:
                break
            finally:
                leave(token)
            yield last
    except BaseException as error:
        try:
            items.close()
        finally:
            scope.close(error)
        raise
    scope.output = output(last)
    scope.close()


class NamedObject:
    """The version of an agent object: which module holds it under which name is looked up when it is captured."""

    def __init__(self, agent: Any, adapter: str | None) -> None:
        self._agent = ref(agent)
        self._adapter = adapter

    def capture(self, agent: str) -> AgentVersion:
        held = self._agent()
        for module in list(sys.modules.values()):
            for name, found in list(getattr(module, "__dict__", {}).items()):
                if found is held and held is not None and not name.startswith("__"):
                    file = getattr(module, "__file__", None)
                    place = entry_point(module, name), Path(file) if file else None
                    return CodeVersion(*place, adapter=self._adapter).capture(agent)
        return CodeVersion(None, None, adapter=self._adapter).capture(agent)


_versions: dict[int, NamedObject] = {}


def version_of(agent: Any, adapter: str | None = None) -> NamedObject:
    """What captures the version of an agent, the same object each time. Agents need no hash: they go by identity."""
    known = _versions.get(id(agent))
    if known is None:
        known = _versions[id(agent)] = NamedObject(agent, adapter)
        finalize(agent, _versions.pop, id(agent), None).atexit = False
    return known


def scope_of(
    agent: Any, name: str, inputs: Any, *, by: str, history: Sequence[Any] = (), not_replayable: Sequence[str] = ()
) -> SessionScope:
    """The scope of a run of an agent object. ``by`` is the adapter that sees it."""
    version = version_of(agent, by)
    scope = SessionScope(name, inputs=inputs, version=version, history=history, not_replayable=not_replayable)
    scope.asks_models = True
    return scope
