"""The boundary of a graph's run: its session, turn or agent call, and what the hooks inside share.

`invoke` goes through `stream` in the framework; the inner of the two is then let through.
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage
from langchain_core.tools.base import BaseTool

from playhead.adapters.langgraph import inputs
from playhead.adapters.langgraph.guard import trouble
from playhead.adapters.langgraph.scope import RUNNING, Running
from playhead.core.protocol.shape import obj
from playhead.engine import seam
from playhead.engine.frames import FRAME, leave
from playhead.engine.running import version_of
from playhead.engine.zero_code import sessions_wanted

_root_graphs: WeakKeyDictionary[seam.ActiveSession, Any] = WeakKeyDictionary()
"""The graph that ran first, directly in a session."""

OUTPUTS: ContextVar[list[Any] | None] = ContextVar("playhead_langgraph_outputs", default=None)
"""Takes the outputs of runs that end, for who starts a graph and sees only its stream."""

_BY_MODEL = ("run-", "lc_run-")
"""How the ids of messages begin that a chat model made."""

_INVOKED: ContextVar[Any] = ContextVar("playhead_langgraph_invoked", default=None)


class _End:
    """How a later run is known to be the next turn: it starts from the last message, or on the same thread."""

    def __init__(self, message: Any, thread: Any) -> None:
        self.message = message
        self.thread = thread

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _End):
            return self.thread is not None and self.thread == other.thread
        return self.message is not None and (self.message is other or bool(self.message == other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _Run:
    """One run of a graph."""

    def __init__(self, graph: Any, given: Any, config: Any, context: Any, entry: str) -> None:
        self._alone = not (getattr(graph, "checkpointer", None) or getattr(graph, "cache", None))
        self._given = given
        self.thread: Any = obj(obj(config).get("configurable")).get("thread_id")
        self.state: Any = None
        kept, refused = inputs.encode(given, config, context, entry)
        direct = (frame := FRAME.get()) is None or isinstance(frame, seam.ActiveSession)
        self.scope = seam.session(
            graph.name or "graph",
            inputs=kept,
            version=version_of(graph, "langgraph"),
            not_replayable=refused,
            history=[*inputs.messages_of(given), _End(None, self.thread)],
        )
        active = self.scope.open()
        root = active is not None and direct and _root_graphs.setdefault(active, graph) is graph
        if active is not None:
            active.watched |= _watched_tools(graph)
        self.running = Running(root, _executable(graph))

    @contextmanager
    def entered(self) -> Generator[None]:
        """Inside the run. Not held across a ``yield`` to the caller, whose own context it would change."""
        frame, running = self.scope.enter(), RUNNING.set(self.running)
        try:
            yield
        finally:
            leave(running)
            leave(frame)

    def close(self, error: BaseException | None = None) -> None:
        if error is None:
            try:
                self._conclude()
            except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
                trouble(problem, "reading the result of a graph")
        self.scope.close(error)

    def _conclude(self) -> None:
        said = inputs.messages_of(self.state)
        self.scope.asks_models = bool(self.running.root) and self._alone and self._was_answered(said)
        last = said[-1] if said else self.running.answers.get("last")
        self.scope.output = inputs.output(self.state, self.running.answers.get("last"))
        if (ended := OUTPUTS.get()) is not None:
            ended.append(self.scope.output)
        self.scope.messages = [_End(last, self.thread)]

    def _was_answered(self, said: Sequence[Any]) -> bool:
        """Whether the state holds a message that a chat model made in this run: the framework marks it with its id."""
        before = {getattr(message, "id", None) for message in inputs.messages_of(self._given)}
        ids = {str(message.id) for message in said if isinstance(message, AIMessage) and message.id not in before}
        return any(id.startswith(_BY_MODEL) for id in ids)


def _executable(graph: Any) -> frozenset[str] | None:
    """The tools that a graph with a structured answer can run: what else its model calls are output tools."""
    if "structured_response" not in graph.channels:
        return None
    found = [node.bound.tools_by_name for node in graph.nodes.values() if hasattr(node.bound, "tools_by_name")]
    return frozenset(name for tools in found for name in tools)


def _watched_tools(graph: Any) -> frozenset[str]:
    """The tools of the graph's tool nodes that run by `BaseTool.run`, which is ours: where one of them was answered and
    did not run, middleware answered it."""
    nodes = [node.bound.tools_by_name for node in graph.nodes.values() if hasattr(node.bound, "tools_by_name")]
    return frozenset(name for tools in nodes for name, tool in tools.items() if _runs_as_every_tool(tool.__class__))


def _runs_as_every_tool(cls: type[BaseTool]) -> bool:
    ways = (cls.invoke, cls.ainvoke, cls.run, cls.arun)
    return all(getattr(way, "__module__", "").startswith("langchain_core.") for way in ways)


def _begin(graph: Any, given: Any, config: Any, options: dict[str, Any], entry: str) -> _Run | None:
    """The run to record; None where nothing is, or where an outer call of the same run is recorded already."""
    if _INVOKED.get() is graph:
        _INVOKED.set(None)
        return None
    if not seam.is_seen(wanted=sessions_wanted()):
        return None
    try:
        return _Run(graph, given, config, options.get("context"), entry)
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        trouble(error, "opening a run of a graph")
        return None


# --- the four ways to run a graph -----------------------------------------------------------------------------------


def invoke(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        run = _begin(self, input, config, options, "invoke")
        if run is None:
            return original(self, input, config, **options)
        token = _INVOKED.set(self)
        try:
            with run.entered():
                run.state = original(self, input, config, **options)
        except BaseException as error:
            run.close(error)
            raise
        finally:
            leave(token)
        run.close()
        return run.state

    return wrapped


def ainvoke(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapped(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        run = _begin(self, input, config, options, "ainvoke")
        if run is None:
            return await original(self, input, config, **options)
        token = _INVOKED.set(self)
        try:
            with run.entered():
                run.state = await original(self, input, config, **options)
        except BaseException as error:
            run.close(error)
            raise
        finally:
            leave(token)
        run.close()
        return run.state

    return wrapped


def stream(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        run = _begin(self, input, config, options, "stream")
        source = original(self, input, config, **options)
        return source if run is None else _watched(run, source)

    return wrapped


def _watched(run: _Run, source: Iterator[Any]) -> Iterator[Any]:
    nothing = object()
    try:
        while True:
            with run.entered():
                chunk = next(source, nothing)
            if chunk is nothing:
                break
            yield chunk
    except BaseException as error:
        _shut(source, run)
        run.close(error)
        raise
    run.close()


def _shut(source: Any, run: _Run) -> None:
    """A consumer that left: the framework's own generator ends first."""
    with run.entered():
        source.close()


def astream(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        run = _begin(self, input, config, options, "astream")
        source = original(self, input, config, **options)
        return source if run is None else _awatched(run, source)

    return wrapped


async def _awatched(run: _Run, source: Any) -> AsyncIterator[Any]:
    nothing = object()
    try:
        while True:
            with run.entered():
                chunk = await anext(source, nothing)
            if chunk is nothing:
                break
            yield chunk
    except BaseException as error:
        with run.entered():
            await source.aclose()
        run.close(error)
        raise
    run.close()
