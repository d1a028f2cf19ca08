"""`playhead.install()`: recording without a line of the user's code changed.

Adapters wrap public methods of frameworks that are imported already; for those imported later an import hook waits, so
that nothing is ever imported for the user.
"""

import importlib
import sys
from functools import partial
from typing import NamedTuple

from playhead.engine.import_hook import ImportHook
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


_state: dict[str, ImportHook] = {}


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
        _state["waiting"] = ImportHook({a.framework: partial(_activate, a) for a in _ADAPTERS})
        _state["waiting"].start()
    for adapter in _ADAPTERS:
        if adapter.framework in sys.modules:
            _activate(adapter)


def uninstall() -> None:
    """Takes back what `install` did."""
    want_sessions(False)
    waiting = _state.pop("waiting", None)
    if waiting is not None:
        waiting.stop()
    for module in {a.module for a in _ADAPTERS}:
        if module in sys.modules:
            sys.modules[module].uninstall()


def installed() -> bool:
    """Whether `install` is in force."""
    return "waiting" in _state
