"""`tool` and `gate`: functions behind the seam.

Outside a replay every line of ours is guarded: what goes wrong here is counted and logged once, and the function runs
as if it were not wrapped.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from typing import Any, TypeVar, cast, overload

from playhead.adapters.functions.generators import AsyncDriver, driven
from playhead.core.canonical import to_stored
from playhead.core.values import JSON, Effect, Mark, Outcome, OutcomeKind
from playhead.engine.binding import FunctionBinder, comes_back, lowered, record_types
from playhead.engine.frames import FRAME, leave
from playhead.engine.gating import broken
from playhead.engine.guards import checked, checked_async
from playhead.engine.seam import ToolStep, current, exception_of, refuse_outside, value_of
from playhead.engine.snapshot import Snapshot, freeze, freeze_bound
from playhead.errors import RecordingError, ReplayStop, StaleError

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    name: str | None = None, /, *, effect: Effect | str = Effect.UNKNOWN, exclude: Collection[str] = (),
    output_schema: JSON = None,
) -> Callable[[F], F]: ...  # fmt: skip
def tool(
    name: Any = None, /, *, effect: Effect | str = Effect.UNKNOWN, exclude: Collection[str] = (),
    output_schema: JSON = None,
) -> Any:  # fmt: skip
    """Records every call of a function as a tool call, and lets a replay answer it in the function's place.

    Args:
        name: the name the model sees; the function's own when left out.
        effect: what a call does to the world: ``read``, ``write`` or ``destructive``.
        exclude: parameters that are no arguments of the call, such as an injected context.
        output_schema: JSON Schema that served values have to fit.
    """
    if callable(name) or isinstance(name, classmethod):
        return _tool(name, name.__name__, Effect(effect), exclude, output_schema)

    def decorate(function: Any) -> Any:
        return _tool(function, name or function.__name__, Effect(effect), exclude, output_schema)

    return decorate


def gate(
    function: F, /, *, name: str | None = None, effect: Effect | str = Effect.UNKNOWN, exclude: Collection[str] = (),
    output_schema: JSON = None,
) -> F:  # fmt: skip
    """`tool` for a function that is not yours to decorate, such as the entries of a dispatch table."""
    return _tool(function, name or function.__name__, Effect(effect), exclude, output_schema)


_METHODS: tuple[Any, ...] = (classmethod, staticmethod)


class _Gate:
    """What the wrappers of one function share."""

    def __init__(
        self, function: Any, name: str, effect: Effect, exclude: Collection[str], output_schema: JSON
    ) -> None:  # fmt: skip
        self.name = name
        self._effect = effect
        self._output_schema = output_schema
        self._binder = FunctionBinder(function, exclude)

    def open(self, args: Any, kwargs: Any) -> ToolStep | None:
        """The step of a call, None when it is not ours to record.

        Raises:
            ReplayStop: in a replay, when it is not clear what answers.
        """
        active = current()
        if active is None:
            refuse_outside(self.name)
            return None
        try:
            step = active.open_tool(self.name, freeze_bound(self._binder, args, kwargs))
        except Exception as error:
            if active.replay is not None:
                raise broken(active.replay, error, f"opening tool call {self.name!r}") from error
            active.recorder.count("errors", error)
            return None
        if not isinstance(step, ToolStep):
            return None
        step.effect = self._effect
        step.output_schema = self._output_schema
        return step

    def returned(self, step: ToolStep, value: Any) -> None:
        try:
            snapshot = freeze(value)
            if snapshot[0] == "stored":
                snapshot = self._returned_record(step, value, snapshot)
            step.returned_as(snapshot)
        except Exception as error:  # noqa: BLE001 - the tool's result stands, whatever happens here
            step.active.recorder.count("errors", error)

    def _returned_record(self, step: ToolStep, value: Any, snapshot: Snapshot) -> Snapshot:
        """A typed value. One that reading would not give back is kept for people to see and never served."""
        if self._result_type is not None:
            return ("stored", to_stored(value, lower=lowered))
        if not comes_back(snapshot[1]):
            step.mark = Mark.REPR
            step.note(
                not_served=f"{type(value).__name__} cannot be made again: register it with playhead.register_type"
            )
        return snapshot

    @functools.cached_property
    def _result_type(self) -> Any:
        hint = self._binder.hints.get("return")
        return hint if len(record_types(hint)) == 1 else None

    def give(self, step: ToolStep, outcome: Outcome) -> Any:
        """Gives the answer of a replay as the function would: returns it, or raises it."""
        step.observe(outcome)
        if outcome.kind is OutcomeKind.INTERRUPT:
            raise self._stop(step, RecordingError(f"the recorded call of {self.name!r} paused for a person"))
        if outcome.kind is not OutcomeKind.VALUE:
            raise exception_of(outcome)
        value = value_of(outcome)
        return value if self._result_type is None else self._made(step, value)

    def _made(self, step: ToolStep, value: Any) -> Any:
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(self._result_type).validate_python(value)
        except Exception as error:
            problem = StaleError(f"the recorded result of {self.name!r} does not fit its declared type: {error}")
            raise self._stop(step, problem) from error

    def _stop(self, step: ToolStep, error: RecordingError) -> ReplayStop:
        state = step.active.replay
        return state.stop(error) if state is not None else ReplayStop(error)


def _tool(function: Any, name: str, effect: Effect, exclude: Collection[str], output_schema: JSON) -> Any:
    for kind in _METHODS:
        if function.__class__ is kind:  # decorated already: what it holds is the function
            return kind(_function_tool(function.__func__, name, effect, exclude, output_schema))
    return _function_tool(function, name, effect, exclude, output_schema)


def _function_tool(function: Any, name: str, effect: Effect, exclude: Collection[str], output_schema: JSON) -> Any:
    gate = _Gate(function, name, effect, exclude, output_schema)
    if inspect.isasyncgenfunction(function):
        return _async_generator_tool(function, gate)
    if inspect.isgeneratorfunction(function):
        return _generator_tool(function, gate)
    if inspect.iscoroutinefunction(function):
        return _coroutine_tool(function, gate)

    @functools.wraps(function)
    def gated(*args: Any, **kwargs: Any) -> Any:
        step = gate.open(args, kwargs)
        if step is None:
            return function(*args, **kwargs)
        if step.active.replay is not None:
            answer = step.decide()
            if answer is not None:
                return gate.give(step, answer)
        token = FRAME.set(step)
        try:
            result = function(*args, **kwargs)
            result, instead = checked(step, result, lambda: function(*args, **kwargs))
        except BaseException as error:
            step.fail(error)
            raise
        finally:
            leave(token)
        if instead is not None:
            return gate.give(step, instead)
        gate.returned(step, result)
        return result

    return gated


def _coroutine_tool(function: Any, gate: _Gate) -> Any:
    @functools.wraps(function)
    async def gated(*args: Any, **kwargs: Any) -> Any:
        step = gate.open(args, kwargs)
        if step is None:
            return await function(*args, **kwargs)
        answer = await step.decide_async()
        if answer is not None:
            return gate.give(step, answer)
        token = FRAME.set(step)
        try:
            result = await function(*args, **kwargs)
            result, instead = await checked_async(step, result, lambda: function(*args, **kwargs))
        except BaseException as error:
            step.fail(error)
            raise
        finally:
            leave(token)
        if instead is not None:
            return gate.give(step, instead)
        gate.returned(step, result)
        return result

    return gated


def _generator_tool(function: Any, gate: _Gate) -> Any:
    @functools.wraps(function)
    def gated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        step = gate.open(args, kwargs)
        if step is None:
            plain: Generator[Any, Any, Any] = function(*args, **kwargs)
            return (yield from plain)
        answer = step.decide()
        if answer is not None:
            yield from _items(gate.give(step, answer))
            return None
        items: list[Any] = []
        try:
            result = yield from driven(function(*args, **kwargs), lambda: FRAME.set(step), items)
        except BaseException as error:
            _dropped(step, error)
            raise
        gate.returned(step, items)
        return result

    return gated


def _async_generator_tool(function: Any, gate: _Gate) -> Any:
    @functools.wraps(function)
    async def gated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        step = gate.open(args, kwargs)
        if step is None:
            async for item in function(*args, **kwargs):
                yield item
            return
        answer = await step.decide_async()
        if answer is not None:
            for item in _items(gate.give(step, answer)):
                yield item
            return
        items: list[Any] = []
        inner = AsyncDriver(function(*args, **kwargs), lambda: FRAME.set(step), items)
        try:
            sent: Any = None
            thrown: Exception | None = None
            while (item := await inner.advance(sent, thrown)) is not inner.END:
                try:
                    sent, thrown = (yield item), None
                except Exception as error:  # noqa: BLE001 - thrown in by the consumer, handed on to the body
                    sent, thrown = None, error
        except BaseException as error:
            await inner.aclose()
            _dropped(step, error)
            raise
        gate.returned(step, items)

    return gated


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _dropped(step: ToolStep, error: BaseException) -> None:
    if isinstance(error, GeneratorExit):
        step.note(partial=True)
    step.fail(error)
