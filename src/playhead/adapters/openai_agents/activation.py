"""Where runs begin: `Runner`, which takes the place of the framework's, and `install()`, which sees every run.

Both wrap the framework's three public ways to run an agent and the method by which agents offer tools. The wrappers do
nothing but for `install`, or inside a run that `Runner` began: agents inside its tools are seen too.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import agents
from agents import RunConfig
from agents.agent import AgentBase
from agents.exceptions import InputGuardrailTripwireTriggered
from agents.lifecycle import RunHooksBase
from agents.models.interface import ModelProvider

from playhead.adapters.openai_agents import hooks, tools
from playhead.adapters.openai_agents.models import SeamHooks, SeamModel
from playhead.adapters.openai_agents.run import RUN, Entered, Run
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.zero_code import sessions_wanted

_lock = threading.Lock()
_state = {"installed": False}
_originals: dict[str, Any] = {}


# --- one run --------------------------------------------------------------------------------------------------------


class Prepared:
    """A run that is open, with the options that the framework is given for it: copies, with our model and hooks."""

    def __init__(self, run: Run, options: dict[str, Any]) -> None:
        self.run = run
        self.options = options
        self._own_provider: ModelProvider | None = None

    def wire(self) -> None:
        """Puts our model and hooks in.

        Raises:
            Exception: options that the framework will refuse; it says so best itself.
        """
        given = self.options.get("run_config")
        if isinstance(given, RunConfig):
            config = object.__new__(type(given))
            config.__dict__.update(vars(given))
        else:
            config = RunConfig(**(given or {}))
            if "model_provider" not in (given or {}):
                self._own_provider = config.model_provider
        model = config.model
        if type(model) is SeamModel:  # an agent inside a tool is handed its parent's options
            model = model.given
        config.model = SeamModel(self.run, model, config.model_provider)
        users = self.options.get("hooks")
        self.options["run_config"] = config
        if users is None or isinstance(users, RunHooksBase):
            self.options["hooks"] = SeamHooks(self.run, users or RunHooksBase())

    async def close_provider(self) -> None:
        """Closes the model provider that was made for this run, as the framework does with its own."""
        provider, self._own_provider = self._own_provider, None
        if provider is not None:
            await provider.aclose()


def _prepared(agent: Any, given: Any, options: dict[str, Any], explicit: "Runner | None") -> Prepared | None:
    """Opens the run; None where it is not to be recorded.

    Raises:
        ReplayStop: in a replay.
    """
    if explicit is None and RUN.get() is None and not (_state["installed"] and _wanted()):
        return None
    run = Run(agent, given, dict(options))
    prepared = Prepared(run, dict(options))
    try:
        prepared.wire()
    except Exception:  # noqa: BLE001 - the framework refuses the same options with its own words
        return None
    name, recorder = (explicit.agent, explicit.recorder) if explicit is not None else (None, None)
    return prepared if run.open(name, recorder) else None


def _wanted() -> bool:
    return sessions_wanted() or seam.current() is not None


async def _run(original: Any, explicit: "Runner | None", agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, explicit)
    if prepared is None:
        return await original(agents.Runner, agent, given, **options)
    run = prepared.run
    try:
        with Entered(run):
            result = await original(agents.Runner, agent, given, **prepared.options)
            _tell_pauses(run, result)
    except BaseException as error:
        run.finish(error=error)
        raise
    finally:
        await prepared.close_provider()
    run.finish(result)
    return result


def _run_sync(original: Any, explicit: "Runner | None", agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, explicit)
    if prepared is None:
        return original(agents.Runner, agent, given, **options)
    run = prepared.run
    try:
        with Entered(run):
            result = original(agents.Runner, agent, given, **prepared.options)
            _tell_pauses(run, result)
    except BaseException as error:
        run.finish(error=error)
        raise
    finally:
        loop = asyncio.get_event_loop_policy().get_event_loop()
        if not loop.is_closed():
            loop.run_until_complete(prepared.close_provider())
    run.finish(result)
    return result


def _tell_pauses(run: Run, result: Any) -> None:
    if result.interruptions:
        run.paused(result.interruptions)
        around = tools.AROUND.get()
        if around is not None:
            around.paused = True


# --- a streamed run -------------------------------------------------------------------------------------------------


def _run_streamed(original: Any, explicit: "Runner | None", agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, explicit)
    if prepared is None:
        return original(agents.Runner, agent, given, **options)
    run = prepared.run
    try:
        with Entered(run):
            result = original(agents.Runner, agent, given, **prepared.options)
    except BaseException as error:
        run.finish(error=error)
        raise
    _watch(prepared, result)
    return result


def _watch(prepared: Prepared, result: Any) -> None:
    """Closes the run when its task ends, and lets the consumer of its events see how."""
    run, events = prepared.run, result.stream_events

    def done(task: Any) -> None:
        try:
            if task.cancelled():
                run.finish(error=_tripped(result) or asyncio.CancelledError())
            elif task.exception() is not None:
                run.finish(error=task.exception())
            else:
                with Entered(run):
                    _tell_pauses(run, result)
                run.finish(result)
        except BaseException:  # noqa: BLE001, S110 - kept in the run, for whoever reads the events
            pass

    async def stream_events() -> AsyncGenerator[Any]:
        try:
            async with aclosing(events()) as found:
                async for event in found:
                    yield event
        except Exception:
            await _ended(task)
            if run.ending is not None:
                raise run.ending from None
            raise
        finally:
            await prepared.close_provider()
        await _ended(task)
        if run.ending is not None:
            raise run.ending

    task = result.run_loop_task
    task.add_done_callback(done)
    result.stream_events = stream_events


async def _ended(task: Any) -> None:
    """Waits for the end of a task, and for what is told of it."""
    await asyncio.wait([task])
    await asyncio.sleep(0)


def _tripped(result: Any) -> BaseException | None:
    for each in result.input_guardrail_results:
        if each.output.tripwire_triggered:
            return InputGuardrailTripwireTriggered(each)
    return None


# --- wrapping -------------------------------------------------------------------------------------------------------

_DRIVERS: dict[str, Any] = {"run": _run, "run_sync": _run_sync, "run_streamed": _run_streamed}


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


def _wrapped_runner(original: Any, driver: Any) -> Any:
    names = [name for name in inspect.signature(original).parameters][3:]

    def begin(cls: Any, starting_agent: Any, input: Any, *args: Any, **options: Any) -> Any:
        options.update(zip(names, args, strict=False))
        return driver(original, None, starting_agent, input, options)

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


class Runner:
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
        self.agent = agent
        self.recorder = recorder
