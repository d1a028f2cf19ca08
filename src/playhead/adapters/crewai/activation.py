# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""`install()`: one hook before and one after every tool call, and the public entries of crews."""

import functools
import threading
from typing import Any

from crewai import Crew, hooks

from playhead.adapters.crewai.hooks import Calls
from playhead.engine.calling import Patches, require
from playhead.engine.pricing import prepare
from playhead.engine.running import ran, scope_of, wanted

_lock = threading.Lock()
_state: dict[str, Any] = {}
_HOOKS = tuple(f"{what}_{when}_tool_call_hook" for what in ("register", "unregister") for when in ("before", "after"))


def install() -> None:
    """Sees every tool call while a session is open; whether a crew's run outside one opens its own is for
    `engine.zero_code` to say. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the framework has not the hooks that it takes.
    """
    with _lock:
        if "patches" in _state:
            return
        found = {f"hooks.{name}": hasattr(hooks, name) for name in _HOOKS}
        found |= {f"hooks.get_{when}_tool_call_hooks": hasattr(hooks, f"get_{when}_tool_call_hooks") for when in _WHEN}
        require("crewai", "adapter-crewai.md", {"Crew.kickoff": "kickoff" in vars(Crew), **found})
        prepare()
        calls = _state["calls"] = Calls()
        _register(calls)
        patches = _state["patches"] = Patches()
        patches.replace(Crew, "kickoff", functools.partial(_kickoff, patches, calls))
        if "akickoff" in vars(Crew):
            patches.replace(Crew, "akickoff", functools.partial(_akickoff, patches, calls))


def uninstall() -> None:
    """Undoes `install`."""
    with _lock:
        patches, calls = _state.pop("patches", None), _state.pop("calls", None)
        if patches is not None:
            patches.undo()
            for when in _WHEN:
                getattr(hooks, f"unregister_{when}_tool_call_hook")(getattr(calls, when))


def is_installed() -> bool:
    return "patches" in _state


_WHEN = ("before", "after")


def _register(calls: Calls) -> None:
    """Puts our hooks before all others, where they are not there already: others may have cleared them."""
    for when in _WHEN:
        ours = getattr(calls, when)
        known = getattr(hooks, f"get_{when}_tool_call_hooks")()
        if ours in known:
            continue
        for hook in known:
            getattr(hooks, f"unregister_{when}_tool_call_hook")(hook)
        for hook in (ours, *known):
            getattr(hooks, f"register_{when}_tool_call_hook")(hook)


def _scope(crew: Any, args: Any, kwargs: Any) -> Any:
    inputs = kwargs.get("inputs", args[0] if args else None)
    problems = ["the run takes files, which are not stored"] if kwargs.get("input_files") else []
    return scope_of(crew, crew.name or "crew", {"inputs": inputs}, not_replayable=problems)


def _seen(patches: Patches, calls: Calls, crew: Any) -> bool:
    """Whether the run is ours to record. Crews that stream run once more inside, in a thread: that one counts."""
    if not patches.active or not wanted():
        return False
    _register(calls)
    return not getattr(crew, "stream", False)


def _kickoff(patches: Patches, calls: Calls, original: Any) -> Any:
    @functools.wraps(original)
    def kickoff(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _seen(patches, calls, self):
            return original(self, *args, **kwargs)
        return ran(_scope(self, args, kwargs), lambda: original(self, *args, **kwargs), _output)

    return kickoff


def _akickoff(patches: Patches, calls: Calls, original: Any) -> Any:
    @functools.wraps(original)
    async def akickoff(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _seen(patches, calls, self):
            return await original(self, *args, **kwargs)
        scope = _scope(self, args, kwargs)
        async with scope:
            result = await original(self, *args, **kwargs)
            scope.output = _output(result)
        return result

    return akickoff


def _output(result: Any) -> Any:
    return getattr(result, "raw", None)
