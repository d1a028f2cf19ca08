"""Server-sent events as bytes and back."""

from collections.abc import Iterable
from typing import Any

from playhead.core.protocol.forms import Event
from playhead.core.protocol.parts import as_text, json_or_text, stored


def read(body: bytes) -> list[Event]:
    """The events of a body; data that is JSON is parsed. A last event without its blank line is not an event."""
    return [e for block in _blocks(body) if (e := _event(block)) is not None]


def _blocks(body: bytes) -> list[list[str]]:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return [block.split("\n") for block in text.split("\n\n")[:-1]]


def _event(lines: Iterable[str]) -> Event | None:
    name, data = None, list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return Event(name, json_or_text("\n".join(data))) if data else None


def write(event: Event) -> bytes:
    head = f"event: {event.name}\n" if event.name else ""
    data: Any = event.data if isinstance(event.data, str) else as_text(stored(event.data))
    return f"{head}data: {data}\n\n".encode()
