"""Servers that are reached over HTTP, in a replay: their transport asks a stand-in and makes no connection."""

import functools
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import mcp.types as types
from mcp.shared.message import SessionMessage

from playhead.adapters.mcp import recorded
from playhead.engine import seam
from playhead.engine.patching import Patches

_stand_ins: WeakKeyDictionary[Any, recorded.Answers] = WeakKeyDictionary()
"""By transport. One without has its server."""


def made(patches: Patches, original: Any) -> Any:
    """The making of a transport, before anything is sent; in a replay in which nothing may go live, with a stand-in."""

    @functools.wraps(original)
    def made(self: Any, url: str, *args: Any, **kwargs: Any) -> None:
        original(self, url, *args, **kwargs)
        if not patches.active:
            return
        state, program = seam.replay_here(), recorded.program_of(url)
        if state is not None and state.listings is not None:
            _stand_ins[self] = recorded.stand_in(state, program, told=_shown(url), verb="contact")
        else:
            recorded.PROGRAM.set(program)

    return made


def sent(patches: Patches, original: Any) -> Any:
    """The sending of one message, whose answer goes to the session's stream."""

    @functools.wraps(original)
    async def sent(self: Any, ctx: Any) -> None:
        stand_in = _stand_ins.get(self) if patches.active else None
        if stand_in is None:
            return await original(self, ctx)
        reply = stand_in.reply(ctx.session_message.message.model_dump(mode="json", by_alias=True, exclude_none=True))
        if reply is not None:
            await ctx.read_stream_writer.send(SessionMessage(_message(reply)))

    return sent


def _message(reply: dict[str, Any]) -> Any:
    adapter: Any = getattr(types, "jsonrpc_message_adapter", None)
    known: Any = types.JSONRPCMessage  # one class around all kinds in older versions
    return known.model_validate(reply) if adapter is None else adapter.validate_python(reply)


def _shown(url: str) -> str:
    """Host and port: what else an address holds may be secret."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2]
