"""`agent` and `session`: boundaries of runs that are code of the user."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from types import TracebackType
from typing import Any, TypeAlias, TypeVar, overload

from playhead.adapters.functions.generators import AsyncDriver, driven
from playhead.core.values import JSON
from playhead.engine import version
from playhead.engine.binding import FunctionBinder
from playhead.engine.recorder import Recorder
from playhead.engine.seam import ActiveSession, SessionScope

F = TypeVar("F", bound=Callable[..., Any])
_Scope: TypeAlias = Callable[[Any, Any], SessionScope]


@overload
def agent(function: F, /) -> F: ...
@overload
def agent(
    name: str | None = None, /, *, recorder: Recorder | None = None, tags: Sequence[str] = ()
) -> Callable[[F], F]: ...
def agent(name: Any = None, /, *, recorder: Recorder | None = None, tags: Sequence[str] = ()) -> Any:
    """Records every call of a function as a session; its arguments are the inputs, what it returns is the output.

    Args:
        name: the agent's name; the function's own when left out.
        recorder: where to record, in place of the project's store.
    """
    if callable(name):
        return _agent(name, name.__name__, recorder, tags)

    def decorate(function: Any) -> Any:
        return _agent(function, name or function.__name__, recorder, tags)

    return decorate


def _agent(function: Any, name: str, recorder: Recorder | None, tags: Sequence[str]) -> Any:
    binder = FunctionBinder(function)
    code = functools.cache(lambda: version.of_function(function, adapter="functions"))

    def scope(args: Any, kwargs: Any) -> SessionScope:
        inputs = binder.inputs(args, kwargs)
        return SessionScope(
            name,
            snapshot=inputs.snapshot,
            not_replayable=inputs.not_replayable,
            recorder=recorder,
            version=code(),
            tags=tags,
            function=True,
        )

    for fits, wrap in _WRAPPERS:
        if fits(function):
            return wrap(function, scope)
    return _function(function, scope)


def _function(function: Any, scope: _Scope) -> Any:
    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        around = scope(args, kwargs)
        with around:
            around.output = function(*args, **kwargs)
        return around.output

    return recorded


def _coroutine(function: Any, scope: _Scope) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        around = scope(args, kwargs)
        async with around:
            around.output = await function(*args, **kwargs)
        return around.output

    return recorded


def _generator(function: Any, scope: _Scope) -> Any:
    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        around = scope(args, kwargs)
        around.open()
        around.output = []
        try:
            result = yield from driven(function(*args, **kwargs), around.enter, around.output)
        except BaseException as error:
            around.close(error)
            raise
        around.close()
        return result

    return recorded


def _async_generator(function: Any, scope: _Scope) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        around = scope(args, kwargs)
        around.open()
        around.output = []
        inner = AsyncDriver(function(*args, **kwargs), around.enter, around.output)
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
            around.close(error)
            raise
        around.close()

    return recorded


_WRAPPERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, _Scope], Any]], ...] = (
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
    (inspect.iscoroutinefunction, _coroutine),
)


class Session:
    """What ``with playhead.session(...)`` gives: a session being recorded. Does nothing when recording failed."""

    def __init__(self, active: ActiveSession | None) -> None:
        self._active = active

    @property
    def id(self) -> str | None:
        """The session's id, None when it is not recorded."""
        return self._active.session_id if self._active is not None else None

    def set_output(self, value: Any) -> None:
        """Gives the run's output."""
        if self._active is not None:
            self._active.set_output(value)

    def tag(self, *tags: str) -> None:
        """Adds tags."""
        if self._active is not None:
            self._active.tags = tuple(dict.fromkeys((*self._active.tags, *tags)))

    def note(self, **metadata: JSON) -> None:
        """Adds members to the session's metadata."""
        if self._active is not None:
            self._active.metadata.update(metadata)


class SessionBlock:
    def __init__(self, scope: SessionScope) -> None:
        self._scope = scope

    def __enter__(self) -> Session:
        return Session(self._scope.__enter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        self._scope.__exit__(kind, error, at)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        self.__exit__(kind, error, at)


def session(
    agent: str, *, inputs: Any = None, name: str | None = None, tags: Sequence[str] = (),
    metadata: dict[str, JSON] | None = None, recorder: Recorder | None = None,
) -> SessionBlock:  # fmt: skip
    """Records a block as a session; inside another session, as a run inside it. For ``with`` and ``async with``."""
    return SessionBlock(
        SessionScope(
            agent, inputs=inputs, name=name, tags=tags, metadata=metadata, recorder=recorder, function=True,
            version=version.CodeVersion(None, None, adapter="functions"),
        )
    )  # fmt: skip
