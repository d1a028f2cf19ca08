"""The one private name of LangGraph that is used here: how tools write to the graph's state beside their return value.

Deep agents' file tools, `push_message` and `push_ui_message` write through a function that LangGraph puts into the
config under this name. What a tool writes is part of what it did, so it is recorded and sent again when the tool is
served. A test fails when a version of LangGraph calls the function otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from playhead.core.protocol.shape import is_object

SEND = "__pregel_send"

Write: TypeAlias = tuple[str, Any]
Send: TypeAlias = Callable[[Sequence[Write]], None]


def sender(config: Mapping[str, Any] | None) -> Send | None:
    """The function that writes to the state of the graph around, None outside a graph."""
    configurable: Any = (config or {}).get("configurable")
    return configurable.get(SEND) if is_object(configurable) else None


def watched(config: Mapping[str, Any], kept: list[Write]) -> dict[str, Any]:
    """A copy of the config whose writes are also kept; LangGraph's own channels (``__...__``) are not."""
    send = sender(config)
    assert send is not None

    def send_and_keep(writes: Sequence[Write]) -> None:
        kept.extend((channel, value) for channel, value in writes if not channel.startswith("__"))
        send(writes)

    return {**config, "configurable": {**config["configurable"], SEND: send_and_keep}}
