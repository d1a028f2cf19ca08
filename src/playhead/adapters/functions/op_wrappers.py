"""What stands in an op's place: the call that fixtures answer or keep, with its context, timeout and retries.

One for each colour of function; a stream's items are recorded as they come.
"""

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from playhead.core.values import JSON
from playhead.engine.failures import rebuild
from playhead.engine.fixtures.op_calls import OpCall, learn_in_session, learn_variables, open_op
from playhead.engine.fixtures.op_context import OpContext
from playhead.engine.fixtures.op_errors import error_of
from playhead.engine.fixtures.ops import Op
from playhead.errors import OpError


def wrapper(one: Op) -> Any:
    """The function to call in an op's place."""
    return next((wrap for fits, wrap in _WRAPPERS if fits(one.function)), _function)(one)


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
