"""Runs the SDK's iterator in a task of its own.

Messages are then read when they come, not when the consumer asks for one, so a tool call is announced before its
handler starts; and the SDK starts its tasks in the run's context, while the consumer's own is never touched.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

_END = object()
_HALT = object()


class Pump:
    """A queue between the SDK and the consumer. ``saw`` reads each message and gives what the consumer gets."""

    def __init__(self, make: Callable[[], AsyncIterator[Any]], saw: Callable[[Any], Any]) -> None:
        self._make = make
        self._saw = saw
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._failed: BaseException | None = None
        self._closing: BaseException | None = None
        self._stopping = False

    def start(self) -> None:
        """Begins to read, in a copy of the calling context."""
        self._task = asyncio.create_task(self._run())

    def halt(self) -> None:
        """Ends the messages at once. May be called from any thread."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, _HALT)

    async def next(self) -> Any:
        """The next message for the consumer, None at the end; raises what the SDK raised."""
        item = await self._queue.get()
        if item is _END and self._failed is not None:
            raise self._failed
        return None if item is _END or item is _HALT else item

    async def stop(self) -> BaseException | None:
        """Closes the SDK's iterator; gives what that raised."""
        task = self._task
        if task is None:
            return None
        self._stopping = True
        if not task.done():
            task.cancel()  # which runs the clean-up of the SDK's own generators, as `aclose` alone would not
        await asyncio.wait([task])
        return self._closing

    async def _run(self) -> None:
        iterator: Any = self._make()
        try:
            async for message in iterator:
                self._queue.put_nowait(self._saw(message))
        except asyncio.CancelledError:
            pass  # by `stop`
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, or to whoever stops the pump
            if self._stopping:
                self._closing = error
            else:
                self._failed = error
        try:
            await iterator.aclose()
        except BaseException as error:  # noqa: BLE001 - handed to whoever stops the pump
            self._closing = self._closing or error
        self._queue.put_nowait(_END)
