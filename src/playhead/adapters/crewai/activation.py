# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""`install()`: one hook before and one after every tool call, and the public entries of crews."""

import functools
from typing import Any

from crewai import Crew, hooks

from playhead.adapters.crewai.hooks import CODEC, Calls
from playhead.engine.patching import Activation, Patches
from playhead.engine.pricing import prepare
from playhead.engine.running import ran, scope_of, wanted

_CALLS = Calls()
_WHEN = ("before", "after")
_HOOKS = tuple(f"{what}_{when}_tool_call_hook" for what in ("register", "unregister") for when in ("before", "after"))


def _has_hooks() -> dict[str, bool]:
    found = {f"hooks.{name}": hasattr(hooks, name) for name in _HOOKS}
    found |= {f"hooks.get_{when}_tool_call_hooks": hasattr(hooks, f"get_{when}_tool_call_hooks") for when in _WHEN}
    return {"Crew.kickoff": "kickoff" in vars(Crew), **found}


def _wrap(patches: Patches) -> None:
    prepare()
    _register(_CALLS)
    patches.wrap(Crew, "kickoff", functools.partial(_kickoff, patches))
    if "akickoff" in vars(Crew):
        patches.wrap(Crew, "akickoff", functools.partial(_akickoff, patches))


def _unregister() -> None:
    for when in _WHEN:
        getattr(hooks, f"unregister_{when}_tool_call_hook")(getattr(_CALLS, when))


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
    return scope_of(crew, crew.name or "crew", {"inputs": inputs}, by=CODEC, not_replayable=problems)


def _seen(patches: Patches, crew: Any) -> bool:
    """Whether the run is ours to record. Crews that stream run once more inside, in a thread: that one counts."""
    if not patches.active or not wanted():
        return False
    _register(_CALLS)
    return not getattr(crew, "stream", False)


def _kickoff(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    def kickoff(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _seen(patches, self):
            return original(self, *args, **kwargs)
        return ran(_scope(self, args, kwargs), lambda: original(self, *args, **kwargs), _output)

    return kickoff


def _akickoff(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    async def akickoff(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _seen(patches, self):
            return await original(self, *args, **kwargs)
        scope = _scope(self, args, kwargs)
        async with scope:
            result = await original(self, *args, **kwargs)
            scope.output = _output(result)
        return result

    return akickoff


def _output(result: Any) -> Any:
    return getattr(result, "raw", None)


_activation = Activation("crewai", "adapter-crewai.md", hooks=_has_hooks, wrap=_wrap, unwrap=_unregister)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
