"""`install()`: every graph, chat model and tool of the process is seen, without a change to its code.

What is wrapped are public methods of base classes: `BaseTool.run`, the calls of `BaseChatModel`, the runs of `Pregel`.
Inside a session each puts the object's twin in its place. Nothing of the framework is imported for it: what is there is
wrapped, and `playhead.adapters.installation` calls again when more of it is imported.
"""

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from playhead.engine import seam
from playhead.engine.patching import require

TOOLS, MODELS, GRAPHS = "langchain_core.tools.base", "langchain_core.language_models.chat_models", "langgraph.pregel"

_WRAPPED = {TOOLS: "BaseTool", MODELS: "BaseChatModel", GRAPHS: "Pregel"}
_MODEL_CALLS = ("generate", "agenerate", "stream", "astream", "stream_events", "astream_events")
_GRAPH_RUNS = ("invoke", "ainvoke", "stream", "astream")

_lock = threading.RLock()  # wrapping imports more of the framework, whose import hook calls `install` again
_undo: dict[str, Callable[[], None]] = {}
_wrapping: set[str] = set()


def install() -> None:
    """Wraps what is imported of the framework. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the framework lacks a method that recording needs.
    """
    with _lock:
        for module, wrap in ((TOOLS, _wrap_tools), (MODELS, _wrap_models), (GRAPHS, _wrap_graphs)):
            if module in _undo or module in _wrapping or not _is_there(module):
                continue
            _wrapping.add(module)
            try:
                _undo[module] = wrap()
            finally:
                _wrapping.discard(module)


def _require(cls: type, *names: str) -> None:
    package = "langgraph" if cls.__module__.startswith("langgraph") else "langchain-core"
    found = {f"{cls.__qualname__}.{name}": callable(vars(cls).get(name)) for name in names}
    require(package, "adapter-langgraph.md", found)


def _is_there(module: str) -> bool:
    """Whether what is wrapped exists: the hook of a module further in calls while this one is still executed."""
    return module in sys.modules and hasattr(sys.modules[module], _WRAPPED[module])


def uninstall() -> None:
    """Undoes `install`. Runs that have started keep what they have."""
    with _lock:
        for undo in _undo.values():
            undo()
        _undo.clear()


def is_installed() -> bool:
    return bool(_undo)


def _replace(cls: type, wrapped: dict[str, Callable[..., Any]]) -> Callable[[], None]:
    """Puts methods into a class and gives the function that takes them out again."""
    return _put(cls, {name: functools.wraps(getattr(cls, name))(method) for name, method in wrapped.items()})


def _put(cls: type, members: Mapping[str, Any]) -> Callable[[], None]:
    """Puts attributes into a class and gives the function that takes them out again."""
    absent = object()
    before = {name: cls.__dict__.get(name, absent) for name in members}
    for name, member in members.items():
        setattr(cls, name, member)

    def undo() -> None:
        for name, member in before.items():
            if member is absent:
                delattr(cls, name)
            else:
                setattr(cls, name, member)

    return undo


# --- tools ----------------------------------------------------------------------------------------------------------


def _wrap_tools() -> Callable[[], None]:
    from langchain_core.tools.base import BaseTool

    from playhead.adapters.langgraph import errors, tools, twins

    errors.register()
    _require(BaseTool, "run", "arun", "_run", "_arun")
    run, arun = BaseTool.run, BaseTool.arun

    def seen(tool: Any) -> Any:
        """The twin to run, None where the call goes on as it is."""
        if twins.is_twin(tool):
            return None
        if seam.current() is None:
            seam.refuse_outside(tool.name)
            return None
        return tools.seen(tool)

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = seen(self)
        if twin is None:
            return run(self, *args, **kwargs)
        return tools.arrive(twin, functools.partial(run, twin), args, kwargs)

    async def wrapped_async(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = seen(self)
        if twin is None:
            return await arun(self, *args, **kwargs)
        return await tools.arrive_async(twin, functools.partial(arun, twin), args, kwargs)

    return _replace(BaseTool, {"run": wrapped, "arun": wrapped_async})


# --- models ---------------------------------------------------------------------------------------------------------


def _wrap_models() -> Callable[[], None]:
    from langchain_core.language_models.chat_models import BaseChatModel

    from playhead.adapters.langgraph import models, twins

    calls = [name for name in _MODEL_CALLS if hasattr(BaseChatModel, name)]
    _require(BaseChatModel, "generate", "agenerate", "stream", "astream", "_generate", "_agenerate")
    _require(BaseChatModel, "_stream", "_astream")

    def wrapping(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not twins.is_twin(self) and seam.current() is not None:
                self = models.seen(self)
            return original(self, *args, **kwargs)

        return wrapped

    return _replace(BaseChatModel, {name: wrapping(getattr(BaseChatModel, name)) for name in calls})


# --- graphs ---------------------------------------------------------------------------------------------------------


def _wrap_graphs() -> Callable[[], None]:
    from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

    from playhead.adapters.langgraph import boundary, memories, starting

    starting.register()
    _require(Pregel, *_GRAPH_RUNS)
    makers = {"invoke": boundary.invoke, "ainvoke": boundary.ainvoke, "stream": boundary.stream}
    makers["astream"] = boundary.astream
    undo_runs = _replace(Pregel, {name: make(getattr(Pregel, name)) for name, make in makers.items()})
    undo_memories = _put(Pregel, memories.of_graphs())

    def undo() -> None:
        undo_runs()
        undo_memories()

    return undo
