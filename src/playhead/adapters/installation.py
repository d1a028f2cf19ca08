"""`playhead.install()`: recording without a line of the user's code changed.

Adapters wrap public methods of frameworks that are imported already; for those imported later an import hook waits, so
that nothing is ever imported for the user.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NamedTuple

from playhead.engine.zero_code import want_sessions


class _Adapter(NamedTuple):
    """``module`` of ours to import once ``framework`` is there; it has ``install()`` and ``uninstall()``.

    ``sign`` is a name that the framework has and another package of the same name has not.
    """

    framework: str
    module: str
    sign: str | None = None


_ADAPTERS = (
    _Adapter("httpx", "playhead.adapters.wire"),
    _Adapter("httpx2", "playhead.adapters.wire"),
    _Adapter("pydantic_ai", "playhead.adapters.pydantic_ai"),
    _Adapter("claude_agent_sdk", "playhead.adapters.claude_agent_sdk"),
    _Adapter("agents", "playhead.adapters.openai_agents", sign="FunctionTool"),
    _Adapter("langchain_core.tools.base", "playhead.adapters.langgraph"),
    _Adapter("langchain_core.language_models.chat_models", "playhead.adapters.langgraph"),
    _Adapter("langgraph.pregel", "playhead.adapters.langgraph"),
    _Adapter("mcp", "playhead.adapters.mcp", sign="ClientSession"),
    _Adapter("google.genai", "playhead.adapters.google_genai", sign="Client"),
    _Adapter("smolagents", "playhead.adapters.smolagents", sign="MultiStepAgent"),
    _Adapter("crewai", "playhead.adapters.crewai", sign="Crew"),
    _Adapter("google.adk.runners", "playhead.adapters.google_adk", sign="Runner"),
    _Adapter("litellm", "playhead.adapters.litellm", sign="acompletion"),
)


class _Waiting(MetaPathFinder):
    """Sees a framework being imported and installs its adapter right after."""

    def __init__(self, adapters: Sequence[_Adapter]) -> None:
        self.pending = {a.framework: a for a in adapters}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        adapter = self.pending.pop(fullname, None)
        if adapter is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            self.pending[fullname] = adapter
            return None
        spec.loader = _After(spec.loader, lambda: _activate(adapter))
        return spec


class _After(Loader):
    """Runs the real loader, then what was waiting for it."""

    def __init__(self, inner: Loader, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._inner
        self._then()


_state: dict[str, _Waiting] = {}


def _activate(adapter: _Adapter) -> None:
    if adapter.sign is not None and not hasattr(sys.modules.get(adapter.framework), adapter.sign):
        return
    importlib.import_module(adapter.module).install()


def install(*, sessions: bool = True) -> None:
    """Turns on every adapter whose framework is imported, now or later. Doing it twice changes nothing.

    Args:
        sessions: a framework's run outside any session is recorded as one of its own. Without it, and for clients that
            have no notion of a run, only what happens inside a session is seen.
    """
    if sessions:
        want_sessions(True)
    if "waiting" not in _state:
        _state["waiting"] = _Waiting([a for a in _ADAPTERS if a.framework not in sys.modules])
        sys.meta_path.insert(0, _state["waiting"])
    for adapter in _ADAPTERS:
        if adapter.framework in sys.modules:
            _activate(adapter)


def uninstall() -> None:
    """Takes back what `install` did."""
    want_sessions(False)
    waiting = _state.pop("waiting", None)
    if waiting is not None and waiting in sys.meta_path:
        sys.meta_path.remove(waiting)
    for module in {a.module for a in _ADAPTERS}:
        if module in sys.modules:
            sys.modules[module].uninstall()


def installed() -> bool:
    """Whether `install` is in force."""
    return "waiting" in _state
