"""What tools do beside returning: write to the graph's state, and to the stream that its caller reads.

Deep agents' file tools, `push_message` and `push_ui_message` write through a function that LangGraph puts into the
config; `get_stream_writer` takes its function from there too, from the runtime, of which a tool may also be given a
form of its own. Both are part of what the tool did, so they are recorded and come again when the tool is served. The
two names are private to LangGraph, and used nowhere else; a test fails when a version calls them otherwise.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from playhead.core.protocol.shape import is_object, obj

SEND, RUNTIME = "__pregel_send", "__pregel_runtime"

Write: TypeAlias = tuple[str, Any]
Send: TypeAlias = Callable[[Sequence[Write]], None]


@dataclasses.dataclass(slots=True)
class Beside:
    """What a tool did beside returning: ``writes`` to the state, ``chunks`` for the stream."""

    writes: list[Write] = dataclasses.field(default_factory=list[Write])
    chunks: list[Any] = dataclasses.field(default_factory=list[Any])

    @property
    def anything(self) -> bool:
        return bool(self.writes or self.chunks)


def sender(config: Mapping[str, Any] | None) -> Send | None:
    """The function that writes to the state of the graph around, None outside a graph."""
    return _configurable(config).get(SEND)


def stream_writer(config: Mapping[str, Any] | None) -> Callable[[Any], None] | None:
    """The function that writes to the stream of the graph around, None outside a graph."""
    return getattr(_configurable(config).get(RUNTIME), "stream_writer", None)


def _configurable(config: Mapping[str, Any] | None) -> dict[str, Any]:
    return obj((config or {}).get("configurable"))


def watched(config: Mapping[str, Any], kept: list[Write], chunks: list[Any]) -> dict[str, Any]:
    """A copy of the config whose writes and chunks are also kept; LangGraph's own channels (``__...__``) are not."""
    send = sender(config)
    assert send is not None

    def send_and_keep(writes: Sequence[Write]) -> None:
        kept.extend((channel, value) for channel, value in writes if not channel.startswith("__"))
        send(writes)

    configurable = {**config["configurable"], SEND: send_and_keep}
    if stream_writer(config) is not None:
        configurable[RUNTIME] = _watched_runtime(configurable[RUNTIME], chunks)
    return {**config, "configurable": configurable}


def watched_arguments(given: Any, chunks: list[Any]) -> Any:
    """What a tool is given, with its form of the runtime replaced by one whose chunks are also kept."""
    if not is_object(given) or not any(_is_runtime(value) for value in given.values()):
        return given
    return {name: _watched_runtime(v, chunks) if _is_runtime(v) else v for name, v in given.items()}


def _is_runtime(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and callable(getattr(value, "stream_writer", None))


def _watched_runtime(runtime: Any, chunks: list[Any]) -> Any:
    write = runtime.stream_writer

    def write_and_keep(chunk: Any) -> None:
        chunks.append(chunk)
        write(chunk)

    return dataclasses.replace(runtime, stream_writer=write_and_keep)
