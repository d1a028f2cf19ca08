"""The two ways to see a run: by hook and proxy (all of it), or by the message stream and wrapped servers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, Transport

from playhead.adapters.claude_agent_sdk import hooks
from playhead.adapters.claude_agent_sdk.proxy import Proxy
from playhead.adapters.claude_agent_sdk.run import Run
from playhead.adapters.claude_agent_sdk.servers import ReplayableSdkMcpServer, built
from playhead.adapters.claude_agent_sdk.stream import Stream
from playhead.adapters.claude_agent_sdk.stubs import stubbed
from playhead.adapters.claude_agent_sdk.wire import Wire
from playhead.adapters.claude_agent_sdk.wired import WiredStream
from playhead.core.values import LedgerRow
from playhead.errors import ReplayStop

UPSTREAM = "https://api.anthropic.com"
_BASE_URL = "ANTHROPIC_BASE_URL"
_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_LOOPBACK = "127.0.0.1,localhost"
_NO_BLOCK = "this version of claude-agent-sdk lets a tool run when a hook fails; newer ones do not"


class Way(Protocol):
    """How a run is seen."""

    options: ClaudeAgentOptions

    def asked(self, prompt: str) -> None: ...
    def saw(self, message: Any) -> Any: ...
    def finish(self) -> None: ...
    def stop(self) -> None: ...


def can_be_full(options: ClaudeAgentOptions, transport: Transport | None) -> bool:
    """Whether a proxy can stand between the program and its model."""
    environment: Mapping[str, str] = {**os.environ, **options.env}
    return transport is None and not any(environment.get(n, "") not in ("", "0", "false") for n in _ELSEWHERE)


class Wrapped:
    """Model calls from the message stream; only wrapped servers can be answered."""

    def __init__(
        self, run: Run, options: ClaudeAgentOptions, servers: Sequence[ReplayableSdkMcpServer], prompt: str | None
    ) -> None:
        self._run = run
        self.options = with_servers(options, servers, run.gate)
        self._stream = Stream(run, prompt, options.model)

    def asked(self, prompt: str) -> None:
        self._stream.asked(prompt)

    def saw(self, message: Any) -> Any:
        if isinstance(message, ResultMessage):
            self._run.result = message
        self._stream.saw(message)
        return message

    def finish(self) -> None:
        self._stream.finish()

    def stop(self) -> None: ...


class Full:
    """Model calls from the wire, every tool by a hook."""

    def __init__(
        self, run: Run, options: ClaudeAgentOptions, servers: Sequence[ReplayableSdkMcpServer], prompt: str | None
    ) -> None:
        self._run = run
        upstream = options.env.get(_BASE_URL) or os.environ.get(_BASE_URL) or UPSTREAM
        wire = Wire(run)
        self._stream = WiredStream(run, wire)
        with run.root.inside():
            self._proxy = Proxy(wire, upstream)
        options = with_servers(stubbed(options, run), servers, partial(_within, run))
        self.options = replace(hooks.hooked(options, run), env=_environment(options.env, self._proxy.url))
        if run.replay is not None and not hooks.CAN_BLOCK:
            run.replay.note(LedgerRow(kind="note", by="note", detail=_NO_BLOCK))
        self._proxy.start()

    def asked(self, prompt: str) -> None: ...

    def saw(self, message: Any) -> Any:
        made = self._stream.saw(message)
        if isinstance(message, ResultMessage):
            self._run.result = message
        return made

    def finish(self) -> None:
        for exchange in list(self._run.asking) if self._run.left else ():
            exchange.abandon()
        self._stream.finish()

    def stop(self) -> None:
        self._proxy.stop()


async def _within(run: Run, tool: str, call_id: str | None, arguments: Any, handler: Any) -> Any:
    return await hooks.within(run, call_id, tool, arguments, handler)


def _environment(given: Mapping[str, str], url: str) -> dict[str, str]:
    """The caller's variables with the proxy's address, which no other proxy may stand before."""
    made = {**given, _BASE_URL: url}
    for name in ("NO_PROXY", "no_proxy"):
        known = given.get(name) or os.environ.get(name)
        made[name] = f"{known},{_LOOPBACK}" if known else _LOOPBACK
    return made


def with_servers(
    options: ClaudeAgentOptions, servers: Sequence[ReplayableSdkMcpServer], around: Any
) -> ClaudeAgentOptions:
    """A copy with a new server of each definition."""
    if not servers:
        return options
    own: Any = options.mcp_servers
    return replace(options, mcp_servers={**own, **{s.name: built(s, around) for s in servers}})


async def unrecorded(_identity: str, _call_id: str | None, arguments: Any, handler: Any) -> Any:
    """In place of a gate, where nothing is recorded."""
    return await handler(arguments)


def read(run: Run, way: Way, message: Any) -> Any:
    """Reads a message before the consumer gets it; gives what the consumer gets."""
    try:
        return way.saw(message)
    except ReplayStop:
        run.halt()
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        try:
            run.trouble(error, "reading a message of Claude")
        except ReplayStop:
            run.halt()
    return message
