"""Driving one run of the framework inside its session: awaited, from code without a loop, or streamed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import agents
from agents import RunConfig
from agents.exceptions import InputGuardrailTripwireTriggered
from agents.lifecycle import RunHooksBase
from agents.models.interface import ModelProvider

from playhead.adapters.openai_agents import memories, servers
from playhead.adapters.openai_agents.models import SeamHooks, SeamModel
from playhead.adapters.openai_agents.run import Entered, Run
from playhead.engine.recorder import Recorder


class Naming:
    """How the explicit form names and stores the runs that it begins."""

    def __init__(self, agent: str | None = None, recorder: Recorder | None = None) -> None:
        self.agent = agent
        self.recorder = recorder


class _RefusedError(Exception):
    """Options that the framework does not take."""


class Prepared:
    """A run that is open, with the options that the framework is given for it: copies, with our model and hooks."""

    def __init__(self, run: Run, options: dict[str, Any]) -> None:
        self.run = run
        self.options = options
        self._own_provider: ModelProvider | None = None

    def wire(self) -> None:
        """Puts our model and hooks in.

        Raises:
            _RefusedError: options that the framework will refuse; it says so best itself.
        """
        given = self.options.get("run_config")
        if isinstance(given, RunConfig):
            config = object.__new__(type(given))
            config.__dict__.update(vars(given))
        else:
            fields = cast("dict[str, Any]", given or {})
            try:
                config = RunConfig(**fields)
            except Exception as error:
                raise _RefusedError from error
            if "model_provider" not in fields:
                self._own_provider = config.model_provider
        model = config.model
        if type(model) is SeamModel:  # an agent inside a tool is handed its parent's options
            model = model.given
        config.model = SeamModel(self.run, model, config.model_provider)
        users = self.options.get("hooks")
        self.options["run_config"] = config
        if users is None or isinstance(users, RunHooksBase):
            self.options["hooks"] = SeamHooks(self.run, users or RunHooksBase())

    def keep_memory(self) -> None:
        """In a replay: the run reads and writes a conversation of the replay's own."""
        memory, state = self.options.get("session"), self.run.replay
        if memory is not None and state is not None:
            self.options["session"] = memories.own(state, memory)

    async def close_provider(self) -> None:
        """Closes the model provider that was made for this run, as the framework does with its own."""
        provider, self._own_provider = self._own_provider, None
        if provider is not None:
            await provider.aclose()


def _prepared(agent: Any, given: Any, options: dict[str, Any], naming: Naming) -> Prepared | None:
    """Opens the run; None where it cannot be recorded.

    Raises:
        ReplayStop: in a replay.
    """
    run = Run(agent, given, dict(options))
    prepared = Prepared(run, dict(options))
    try:
        prepared.wire()
    except _RefusedError:
        return None
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        run.trouble(error, "preparing a run")
        return None
    if not run.open(naming.agent, naming.recorder):
        return None
    prepared.keep_memory()
    return prepared


async def run(original: Any, naming: Naming, agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, naming)
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


def run_sync(original: Any, naming: Naming, agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, naming)
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
        loop = asyncio.get_event_loop_policy().get_event_loop()  # pyright: ignore[reportDeprecated] - as the framework
        if not loop.is_closed():
            loop.run_until_complete(prepared.close_provider())
    run.finish(result)
    return result


def _tell_pauses(run: Run, result: Any) -> None:
    if result.interruptions:
        run.paused(result.interruptions)
        around = servers.AROUND.get()
        if around is not None:
            around.paused = True


def run_streamed(original: Any, naming: Naming, agent: Any, given: Any, options: dict[str, Any]) -> Any:
    prepared = _prepared(agent, given, options, naming)
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
