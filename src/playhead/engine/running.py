"""The run of a framework as a session, a turn of one, or an agent call: for frameworks whose runs are plain calls."""

import sys
from collections.abc import Callable, Generator, Sequence
from itertools import repeat
from operator import is_
from pathlib import Path
from typing import Any
from weakref import finalize, ref

from playhead.core.values import AgentVersion
from playhead.engine.boundary import SessionScope
from playhead.engine.context import current
from playhead.engine.frames import leave
from playhead.engine.version import CodeVersion, entry_point, file_of
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


_STDLIB = sys.stdlib_module_names - {"__main__"}


class NamedObject:
    """The version of an agent object: which module holds it under which name is looked up when it is captured."""

    def __init__(self, agent: Any, adapter: str | None) -> None:
        self._agent = ref(agent)
        self._adapter = adapter

    def capture(self, agent: str) -> AgentVersion:
        return CodeVersion(*_place(self._agent()), adapter=self._adapter).capture(agent)


def _place(agent: Any) -> tuple[str | None, Path | None]:
    """The entry point and file of an object that a module holds. Looks fast: agents made for one run are in none."""
    for full_name, module in list(sys.modules.items()):
        if agent is None or full_name.partition(".")[0] in _STDLIB:
            continue
        held: dict[str, Any] = getattr(module, "__dict__", {})
        if any(map(is_, list(held.values()), repeat(agent))):
            name = next((n for n, found in list(held.items()) if found is agent and not n.startswith("__")), None)
            if name is not None:
                return entry_point(module, name), file_of(module)
    return None, None


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
