"""What a program keeps between runs (checkpointers, stores, caches of nodes and of models) is not touched by a replay.

A replay has one of its own in the place of each, empty but for a copy of a store in memory. Its threads are not those
of real users, an answer that it was given does not come up in a later live run, and what a live run left there does
not answer for the recording.
"""

from collections.abc import Callable
from typing import Any

from langchain_core.caches import BaseCache as ModelCache
from langchain_core.caches import InMemoryCache as OwnModelCache
from langchain_core.globals import get_llm_cache

from playhead.engine import seam


class _Kept:
    """An attribute of graphs that gives the replay's own instead of the user's.

    Graphs keep theirs under the same name in their ``__dict__``, where copies of a graph find it.
    """

    def __init__(self, name: str, replace: Callable[[Any], Any]) -> None:
        self._name = name
        self._replace = replace

    def __get__(self, graph: Any, owner: type | None = None) -> Any:
        return None if graph is None else self._replace(graph.__dict__.get(self._name))

    def __set__(self, graph: Any, value: Any) -> None:
        graph.__dict__[self._name] = value

    def __delete__(self, graph: Any) -> None:
        del graph.__dict__[self._name]


def of_graphs() -> dict[str, Any]:
    """The attributes of `Pregel` that hold what a graph keeps between runs, as a replay is to see them."""
    from langgraph.cache.base import BaseCache
    from langgraph.cache.memory import InMemoryCache  # pyright: ignore[reportMissingTypeStubs]
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.store.base import BaseStore
    from langgraph.store.memory import InMemoryStore

    class OwnSaver(InMemorySaver):
        """Threads of one replay."""

    class OwnCache(InMemoryCache):  # pyright: ignore[reportMissingTypeArgument]
        """Results of nodes of one replay."""

    def saver(value: Any) -> Any:
        if not isinstance(value, BaseCheckpointSaver) or isinstance(value, OwnSaver):
            return value
        return _own(value, InMemorySaver, lambda: OwnSaver(serde=value.serde))  # pyright: ignore[reportUnknownMemberType]

    def cache(value: Any) -> Any:
        if not isinstance(value, BaseCache) or isinstance(value, OwnCache):
            return value
        return _own(value, InMemoryCache, lambda: OwnCache(serde=value.serde))  # pyright: ignore[reportUnknownMemberType]

    class OwnStore(InMemoryStore):
        """What one replay keeps."""

    def beginning_like(value: Any) -> Any:
        # A new process fills a store in memory before its agent runs, so that is part of how the agent starts. The
        # framework promises the names of the two.
        made: Any = OwnStore(index=getattr(value, "index_config", None))
        if isinstance(value, InMemoryStore):
            for name in ("_data", "_vectors"):
                held: Any = getattr(value, name)
                getattr(made, name).update({namespace: held[namespace].copy() for namespace in list(held)})
        return made

    def store(value: Any) -> Any:
        if not isinstance(value, BaseStore) or isinstance(value, OwnStore):
            return value
        return _own(value, InMemoryStore, lambda: beginning_like(value))

    return {
        "checkpointer": _Kept("checkpointer", saver),
        "cache": _Kept("cache", cache),
        "store": _Kept("store", store),
    }


def _own(value: Any, in_memory: type, make: Callable[[], Any]) -> Any:
    state = seam.replay_around()
    if state is None:
        return value
    # Programs open a store for each request, whose threads are the same; what is in memory is its object's own.
    key = id(value) if isinstance(value, in_memory) else value.__class__
    return state.stand_in(("langgraph", key), value, make)


def _model_cache(model: Any) -> Any:
    value: Any = model.__dict__.get("cache")
    if value is False:
        return value
    own = isinstance(value, ModelCache)
    found: Any = value if own else get_llm_cache()
    if found is None:
        return value
    return _own(found, OwnModelCache, OwnModelCache)


MODEL_FIELDS = {"cache": property(_model_cache)}
"""How the twin of a model reads the field that says where its answers are cached."""
