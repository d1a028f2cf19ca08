"""Names of tools that a provider takes, for names that it would refuse, and back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from playhead.core.protocol.parts import Message
from playhead.core.suites.drive import ModelAsk

LONGEST = 64


def provider_names(names: Iterable[str]) -> dict[str, str]:
    """For each name one of letters, digits, ``_`` and ``-``: most as they are, a number behind those that collide."""
    given = list(dict.fromkeys(names))
    fine = {name for name in given if _plain(name) == name}
    made: dict[str, str] = {name: name for name in fine}
    taken = set(fine)
    for name in given:
        if name in fine:
            continue
        plain, number = _plain(name), 2
        wanted = plain
        while wanted in taken:
            wanted = f"{plain[: LONGEST - len(str(number)) - 1]}_{number}"
            number += 1
        taken.add(wanted)
        made[name] = wanted
    return made


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST] or "_"


def mapped(ask: ModelAsk) -> tuple[ModelAsk, dict[str, str]]:
    """The request with names that any provider takes, and the original of each name that was changed."""
    called = [p["name"] for m in ask.messages for p in m["parts"] if p["type"] == "tool_call"]
    names = provider_names([*(tool.name for tool in ask.tools), *called])
    if all(name == other for name, other in names.items()):
        return ask, {}
    tools = tuple(tool.model_copy(update={"name": names[tool.name]}) for tool in ask.tools)
    back = {other: name for name, other in names.items() if name != other}
    return replace(ask, tools=tools, messages=[renamed(m, names) for m in ask.messages]), back


def renamed(message: Message, names: Mapping[str, str]) -> Message:
    """A message with other names of tools."""
    if not any(part.get("name") in names for part in message["parts"]):
        return message
    changed = [
        {**part, "name": names.get(part["name"], part["name"])}
        if part["type"] in ("tool_call", "tool_result") and part.get("name")
        else part
        for part in message["parts"]
    ]
    return {**message, "parts": changed}
