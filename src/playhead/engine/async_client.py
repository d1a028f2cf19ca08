"""The same client for asyncio: every method of the synchronous one, run in a thread and awaited."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from playhead.engine.client import Client, ReplayHandle, open_client

__all__ = ["AsyncView", "PlayheadClient", "open_async"]


class AsyncView:
    """What another object has, its methods awaitable. Values that are no methods are as they are."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _awaitable(found) if callable(found) and not isinstance(found, type) else found

    def __repr__(self) -> str:
        return f"async {self._inner!r}"


def _awaitable(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        found = await asyncio.to_thread(method, *args, **kwargs)
        return AsyncView(found) if isinstance(found, ReplayHandle) else found

    return call


class PlayheadClient:
    """A client for asyncio: ``await client.replays.create(...)``, ``await replay.wait()``.

    The store is the project's, or the one that ``url`` names, as for `playhead.open`. An async context manager; without
    it, the process's end closes the store.
    """

    def __init__(self, url: str | None = None, *, create: bool = True, client: Client | None = None) -> None:
        self._client = client or open_client(url, create=create)
        self.sessions: Any = AsyncView(self._client.sessions)
        self.agents: Any = AsyncView(self._client.agents)
        self.evaluators: Any = AsyncView(self._client.evaluators)
        self.replays: Any = AsyncView(self._client.replays)
        self.jobs: Any = AsyncView(self._client.jobs)
        self.cohorts: Any = AsyncView(self._client.cohorts)
        self.experiments: Any = AsyncView(self._client.experiments)

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> "PlayheadClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def open_async(url: str | None = None, *, create: bool = True) -> PlayheadClient:
    """`playhead.open` for asyncio.

    Raises:
        UsageError: a URL that cannot be used, or no store there. StoreError: it cannot be opened.
    """
    return PlayheadClient(url, create=create)
