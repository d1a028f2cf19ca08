"""Generators whose bodies run inside a frame, step by step."""

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from playhead.engine.frames import leave


def driven(
    inner: Generator[Any, Any, Any], enter: Callable[[], Any], seen: list[Any]
) -> Generator[Any, Any, Any]:  # fmt: skip
    """A generator whose body, and nothing else, runs inside a frame: the consumer's code between items does not."""
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        token = enter()
        try:
            item = inner.send(sent) if thrown is None else inner.throw(thrown)
        except StopIteration as stop:
            return stop.value
        finally:
            leave(token)
        seen.append(item)
        sent, thrown = None, None
        try:
            sent = yield item
        except GeneratorExit:
            token = enter()
            try:
                inner.close()
            finally:
                leave(token)
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in by the consumer, handed on to the body
            thrown = error


class AsyncDriver:
    """`driven` for async generators, which cannot delegate: each `advance` of the body runs inside the frame."""

    END = object()

    def __init__(self, inner: AsyncGenerator[Any, Any], enter: Callable[[], Any], seen: list[Any]) -> None:
        self._inner = inner
        self._enter = enter
        self._seen = seen

    async def advance(self, sent: Any, thrown: BaseException | None) -> Any:
        """The next item, noted in ``seen``, or ``END``."""
        token = self._enter()
        try:
            item = await (self._inner.asend(sent) if thrown is None else self._inner.athrow(thrown))
        except StopAsyncIteration:
            return self.END
        finally:
            leave(token)
        self._seen.append(item)
        return item

    async def aclose(self) -> None:
        token = self._enter()
        try:
            await self._inner.aclose()
        finally:
            leave(token)
