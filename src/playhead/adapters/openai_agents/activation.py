"""Where runs begin: `Runner`, which takes the place of the framework's, and `install()`, which sees every run.

Both wrap the framework's three public ways to run an agent and the method by which agents offer tools. The wrappers do
nothing but for `install`, or inside a run that `Runner` began: agents inside its tools are seen too.
"""

import functools
import inspect
import threading
from typing import Any

import agents
from agents.agent import AgentBase

from playhead.adapters.openai_agents import driving, hooks, servers, tools
from playhead.adapters.openai_agents.driving import Naming
from playhead.adapters.openai_agents.run import RUN
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.zero_code import sessions_wanted

_lock = threading.Lock()
_state = {"installed": False}
_originals: dict[str, Any] = {}


_DRIVERS: dict[str, Any] = {"run": driving.run, "run_sync": driving.run_sync, "run_streamed": driving.run_streamed}


def _wrap() -> None:
    with _lock:
        if _originals:
            return
        hooks.check()
        for name in hooks.RUNNERS:
            method: Any = vars(agents.Runner)[name]
            _originals[name] = method
            setattr(agents.Runner, name, classmethod(_wrapped_runner(method.__func__, _DRIVERS[name])))
        offered = AgentBase.get_all_tools
        _originals["get_all_tools"] = offered

        @functools.wraps(offered)
        async def get_all_tools(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = await offered(self, *args, **kwargs)
            run = RUN.get()
            return found if run is None else tools.gated(run, found)

        AgentBase.get_all_tools = get_all_tools
        _originals["call_tool"] = servers.wrap()


def _wanted() -> bool:
    return seam.is_seen(wanted=sessions_wanted())


def _wrapped_runner(original: Any, driver: Any) -> Any:
    names = [name for name in inspect.signature(original).parameters][3:]

    def begin(cls: Any, starting_agent: Any, input: Any, *args: Any, **options: Any) -> Any:
        options.update(zip(names, args, strict=False))
        if RUN.get() is None and not (_state["installed"] and _wanted()):
            return original(cls, starting_agent, input, **options)
        return driver(original, Naming(), starting_agent, input, options)

    if not inspect.iscoroutinefunction(original):
        return functools.wraps(original)(begin)

    @functools.wraps(original)
    async def begin_async(cls: Any, starting_agent: Any, input: Any, *args: Any, **options: Any) -> Any:
        return await begin(cls, starting_agent, input, *args, **options)

    return begin_async


def install() -> None:
    """Sees every run of an agent; whether one outside a session opens its own is for `engine.zero_code` to say.

    Calling it again changes nothing.

    Raises:
        RecordingError: this version of the framework has not the hooks that it takes.
    """
    _wrap()
    _state["installed"] = True


def uninstall() -> None:
    """Undoes `install`, and what `Runner` wrapped. Runs that have started keep what they have."""
    _state["installed"] = False
    with _lock:
        for name in hooks.RUNNERS:
            if name in _originals:
                setattr(agents.Runner, name, _originals[name])
        if "get_all_tools" in _originals:
            AgentBase.get_all_tools = _originals["get_all_tools"]
            servers.unwrap(_originals["call_tool"])
        _originals.clear()


def is_installed() -> bool:
    return _state["installed"]


class _Either:
    """A method that can be called on the class, or on an instance with settings of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: "Runner | None", owner: type["Runner"]) -> Any:
        _wrap()
        original: Any = _originals[self._name].__func__
        driver, runner = _DRIVERS[self._name], instance or owner()

        @functools.wraps(original)
        def method(starting_agent: Any, input: Any, **options: Any) -> Any:
            return driver(original, runner, starting_agent, input, options)

        return method


class Runner(Naming):
    """The framework's `Runner`, recording: ``await Runner.run(agent, "...")``, or `run_sync`, or `run_streamed`.

    Without a session around, a run opens one of its own; inside a session it is its next turn, or an agent call.

    Args:
        agent: the agent's name in recordings; left out, the starting agent's.
        recorder: where to record; left out, the project's.
    """

    run = _Either("run")
    run_sync = _Either("run_sync")
    run_streamed = _Either("run_streamed")

    def __init__(self, *, agent: str | None = None, recorder: Recorder | None = None) -> None:
        super().__init__(agent, recorder)
