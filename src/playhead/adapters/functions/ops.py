"""`op`: functions whose outcomes are recorded in fixtures, declared with what they take, give and may do.

An op is a tool as well. Outside a session and without fixtures in force it is the plain function, with its context,
timeout and retries.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from playhead.adapters.functions.tools import tool
from playhead.core.values import JSON
from playhead.engine.failures import rebuild
from playhead.engine.fixtures.op_calls import OpCall, learn_in_session, learn_variables, open_op
from playhead.engine.fixtures.op_context import OpContext
from playhead.engine.fixtures.op_errors import error_of
from playhead.engine.fixtures.ops import Access, Op, OpOptions, Slot, declared
from playhead.errors import OpError

R = TypeVar("R")


def op(
    name: str | None = None, /, *, effect: str, version: str | None = None,
    config: Mapping[str, Mapping[str, Any]] | None = None, secrets: Mapping[str, Slot] | None = None,
    egress: Sequence[str] = (), env: Sequence[str] = (), input: JSON = None, output: JSON = None,
    ignore: Sequence[str] = (), errors: Sequence[type[Exception]] = (), stream: bool = False, retries: int = 0,
    timeout: float | None = None, scope: Callable[[Any], Mapping[str, JSON]] | None = None,
) -> Callable[[Callable[..., R]], Callable[..., R]]:  # fmt: skip
    """Declares a function as an op, whose outcomes `playhead.fixtures` records and serves.

    For type checkers it then takes any arguments, since ``ctx`` is none of the caller's.

    Args:
        name: the id; the function's name when left out.
        effect: ``read``, ``write`` or ``destructive``: what a call does to the world.
        version: noted in recordings; a recording of another version is served and marked.
        config: parameters by name, each with an optional ``default`` and ``pattern``.
        secrets: what ``ctx.secrets.get`` may read.
        egress: hosts that ``ctx.http`` may reach: ``api.example.com``, ``*.example.com``, ``db.example.com:5432``.
        env: variables that ``ctx.env.get`` may read.
        input: JSON Schema of the arguments, in place of annotations.
        output: JSON Schema of the result, in place of an annotation. Without either the result is not checked.
        ignore: JSON pointers into the arguments that do not count, such as ``/ts`` or ``/items/*/etag``.
        errors: exception classes that are outcomes, beside those with a numeric status.
        stream: the function is a generator.
        retries: how often a ``read`` op is run again after an error whose ``retryable`` is true.
        timeout: seconds; a blocking function then runs in a thread, which is left alone when it is late.
        scope: of a method: what tells its object from others.

    Raises:
        ConfigError: the declaration contradicts itself.
    """
    access = Access(config=config, secrets=secrets, egress=egress, env=env)
    options = OpOptions(
        effect=effect, version=version, input=input, output=output, ignore=ignore, errors=errors, stream=stream,
        retries=retries, timeout=timeout, scope=scope,
    )  # fmt: skip

    def decorate(function: Any) -> Any:
        return _declare(function, name or function.__name__, access, options)

    return decorate


class OpGroup:
    """Ops that share a prefix of their ids, a version, and what they may use. Arguments as of `op`."""

    def __init__(
        self, name: str, *, version: str | None = None, config: Mapping[str, Mapping[str, Any]] | None = None,
        secrets: Mapping[str, Slot] | None = None, egress: Sequence[str] = (), env: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.version = version
        self._access = Access(config=config, secrets=secrets, egress=egress, env=env)

    def op(
        self, name: str | None = None, /, *, effect: str, input: JSON = None, output: JSON = None,
        ignore: Sequence[str] = (), errors: Sequence[type[Exception]] = (), stream: bool = False, retries: int = 0,
        timeout: float | None = None, scope: Callable[[Any], Mapping[str, JSON]] | None = None,
    ) -> Callable[[Callable[..., R]], Callable[..., R]]:  # fmt: skip
        """Declares a function of the group; its id is ``group.name``."""
        options = OpOptions(
            effect=effect, version=self.version, input=input, output=output, ignore=ignore, errors=errors,
            stream=stream, retries=retries, timeout=timeout, scope=scope,
        )  # fmt: skip

        def decorate(function: Any) -> Any:
            return _declare(function, f"{self.name}.{name or function.__name__}", self._access, options)

        return decorate

    def using(
        self, *, config: Mapping[str, JSON] | None = None, slots: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Within the block the group's ops get these parameters, and read these variables for their slots."""
        return self._access.using(config=config, slots=slots)


def _declare(function: Any, name: str, access: Access, options: OpOptions) -> Any:
    one = Op(function, name, access, options)
    wrapped = next((wrap for fits, wrap in _WRAPPERS if fits(function)), _function)(one)
    parameters = [each for each in one.signature.parameters.values() if each.name != one.context]
    wrapped.__signature__ = one.signature.replace(parameters=parameters)
    wrapped.__playhead_op__ = one
    declared[name] = one
    return tool(name, effect=options.effect)(wrapped)


class _Plain:
    """The context of a call without fixtures, closed at its end."""

    def __init__(self, one: Op, *, asynchronous: bool) -> None:
        learn_variables(one, learn_in_session)
        self.context = OpContext(one.id, one.access, learn_in_session, asynchronous=asynchronous)


def _with_context(one: Op, kwargs: dict[str, Any], context: OpContext) -> dict[str, Any]:
    return kwargs if one.context is None else {**kwargs, one.context: context}


def _function(one: Op) -> Any:
    @functools.wraps(one.function)
    def called(*args: Any, **kwargs: Any) -> Any:
        call = open_op(one, args, kwargs, asynchronous=False)
        if call is None:
            return _run(one, args, kwargs, _Plain(one, asynchronous=False).context)
        fixture = call.answer()
        if fixture is not None:
            return call.give(fixture)
        try:
            with call.live():
                result = _run(one, args, kwargs, call.context)
        except BaseException as error:
            call.failed(error)
            raise
        return call.returned(result)

    return called


def _coroutine(one: Op) -> Any:
    @functools.wraps(one.function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        call = open_op(one, args, kwargs, asynchronous=True)
        if call is None:
            return await _run_async(one, args, kwargs, _Plain(one, asynchronous=True).context)
        fixture = call.answer()
        if fixture is not None:
            return call.give(fixture)
        try:
            with call.live():
                result = await _run_async(one, args, kwargs, call.context)
        except BaseException as error:
            call.failed(error)
            raise
        return call.returned(result)

    return called


def _again(one: Op, error: Exception, attempt: int) -> bool:
    """Whether a failed attempt is followed by another."""
    retryable = getattr(error, "retryable", None) is True
    return retryable and one.options.effect == "read" and attempt < one.options.retries


def _run(one: Op, args: Any, kwargs: dict[str, Any], context: OpContext) -> Any:
    attempt = 0
    given = _with_context(one, kwargs, context)
    try:
        while True:
            try:
                return _in_time(one, args, given)
            except Exception as error:
                if not _again(one, error, attempt):
                    raise
                attempt += 1
    finally:
        context.close()


def _in_time(one: Op, args: Any, kwargs: dict[str, Any]) -> Any:
    if one.options.timeout is None:
        return one.function(*args, **kwargs)
    outcome: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            outcome.append((True, one.function(*args, **kwargs)))
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            outcome.append((False, error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True, name=f"op {one.id}")
    thread.start()
    thread.join(one.options.timeout)
    if not outcome:
        raise _late(one)
    worked, value = outcome[0]
    if worked:
        return value
    raise value


def _late(one: Op) -> OpError:
    return OpError(f"{one.id} took longer than {one.options.timeout:g} seconds", code="timeout", retryable=True)


async def _run_async(one: Op, args: Any, kwargs: dict[str, Any], context: OpContext) -> Any:
    attempt = 0
    given = _with_context(one, kwargs, context)
    try:
        while True:
            try:
                return await _in_time_async(one, args, given)
            except Exception as error:
                if not _again(one, error, attempt):
                    raise
                attempt += 1
    finally:
        await context.aclose()


async def _in_time_async(one: Op, args: Any, kwargs: dict[str, Any]) -> Any:
    if one.options.timeout is None:
        return await one.function(*args, **kwargs)
    limit = asyncio.timeout(one.options.timeout)
    try:
        async with limit:
            return await one.function(*args, **kwargs)
    except TimeoutError:
        if limit.expired():
            raise _late(one) from None
        raise


class _Items:
    """The items of a stream as they come: what the consumer gets of each, and what is recorded in the end."""

    def __init__(self, call: OpCall) -> None:
        self._call = call
        self._stored: list[JSON] = []
        self._problem: str | None = None

    def take(self, item: Any) -> Any:
        given, stored, problem = self._call.item(item)
        self._stored.append(stored)
        self._problem = self._problem or problem
        return given

    def finish(self, error: BaseException | None = None) -> None:
        if error is None or isinstance(error, GeneratorExit):
            self._call.ended(self._stored, self._problem, complete=error is None)
        elif self._problem is not None:
            self._call.ended(self._stored, self._problem)
        else:
            self._call.failed(error, self._stored)


def _served_items(call: OpCall, fixture: Any) -> Generator[Any]:
    """Recorded items, then what followed them: the end, an error, or nothing that is known."""
    outcome = call.items(fixture)
    items: Any = outcome.get("items") or ()
    for item in items:
        yield call.made(item)
    if "error" in outcome:
        raise rebuild(error_of(outcome["error"]))
    if outcome.get("complete") is False:
        call.more()


def _generator(one: Op) -> Any:
    @functools.wraps(one.function)
    def called(*args: Any, **kwargs: Any) -> Generator[Any]:
        call = open_op(one, args, kwargs, asynchronous=False)
        if call is None:
            context = _Plain(one, asynchronous=False).context
            try:
                yield from one.function(*args, **_with_context(one, kwargs, context))
            finally:
                context.close()
            return
        fixture = call.answer()
        if fixture is not None:
            yield from _served_items(call, fixture)
            return
        items = _Items(call)
        inner = one.function(*args, **_with_context(one, kwargs, call.context))
        try:
            while True:
                with call.live():
                    item = next(inner, _END)
                if item is _END:
                    break
                yield items.take(item)
        except BaseException as error:
            with call.live():
                inner.close()
            items.finish(error)
            raise
        finally:
            call.context.close()
        items.finish()

    return called


_END: Any = object()


def _async_generator(one: Op) -> Any:
    @functools.wraps(one.function)
    async def called(*args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        call = open_op(one, args, kwargs, asynchronous=True)
        if call is None:
            context = _Plain(one, asynchronous=True).context
            try:
                async for item in one.function(*args, **_with_context(one, kwargs, context)):
                    yield item
            finally:
                await context.aclose()
            return
        fixture = call.answer()
        if fixture is not None:
            for item in _served_items(call, fixture):
                yield item
            return
        items = _Items(call)
        inner = one.function(*args, **_with_context(one, kwargs, call.context))
        try:
            while True:
                with call.live():
                    item = await anext(inner, _END)
                if item is _END:
                    break
                yield items.take(item)
        except BaseException as error:
            with call.live():
                await inner.aclose()
            items.finish(error)
            raise
        finally:
            await call.context.aclose()
        items.finish()

    return called


_WRAPPERS: tuple[tuple[Callable[[Any], bool], Callable[[Op], Any]], ...] = (
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
    (inspect.iscoroutinefunction, _coroutine),
)
