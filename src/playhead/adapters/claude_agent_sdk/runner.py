"""`PlayheadClaudeRunner`: the SDK's `query()`, recorded and replayed."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Literal

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, Transport

from playhead.adapters.claude_agent_sdk import options as rules
from playhead.adapters.claude_agent_sdk.client import PlayheadClaudeClient
from playhead.adapters.claude_agent_sdk.identity import Identity, identify
from playhead.adapters.claude_agent_sdk.pump import Pump
from playhead.adapters.claude_agent_sdk.run import Run, log, refused
from playhead.adapters.claude_agent_sdk.servers import ReplayableSdkMcpServer, check_servers
from playhead.adapters.claude_agent_sdk.ways import Full, Way, Wrapped, can_be_full, read, unrecorded, with_servers
from playhead.core.override import effective
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import ReplayState

Isolation = Literal["full", "strict"]


class PlayheadClaudeRunner:
    """Runs queries of the Claude Agent SDK as sessions. Creating one does nothing.

    Args:
        agent_id: the agent, an id or a name. It or ``agent_version_id`` is needed outside sessions and projects.
        agent_version_id: the id of a stored agent version.
        session_name: the name of the sessions.
        isolation: ``strict`` holds a replay to the rules of wrapped servers.
        proxy: whether model calls go through a proxy on loopback; without it only wrapped tools can be answered.
        keep_settings: a replay that substitutes tools takes options that may run commands outside playhead.
        recorder: where to record; left out, the project's.
    """

    def __init__(
        self, agent_id: Any = None, agent_version_id: Any = None, session_name: str | None = None, *,
        isolation: Isolation = "full", proxy: bool = True, keep_settings: bool = False,
        recorder: Recorder | None = None,
    ) -> None:  # fmt: skip
        self._agent_id = agent_id
        self._agent_version_id = agent_version_id
        self._session_name = session_name
        self._isolation: Isolation = isolation
        self._proxy = proxy
        self._keep_settings = keep_settings
        self._recorder = recorder

    def query(
        self, *, prompt: str, options: ClaudeAgentOptions | None = None,
        replayable_servers: Sequence[ReplayableSdkMcpServer] = (), transport: Transport | None = None,
    ) -> AsyncGenerator[Any]:  # fmt: skip
        """`claude_agent_sdk.query`, with its messages unchanged.

        A consumer that may leave early wraps the stream in `contextlib.aclosing`.

        Raises:
            TypeError: the prompt is no text.
            RefusedError: servers that do not fit together; nothing says whose session it is; or, when it is iterated
                in a replay, options or a policy that the replay could not hold.
        """
        if not isinstance(prompt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"prompt must be a str, not {type(prompt).__name__}: streams of messages cannot be replayed"
            )
        given = rules.copied(options)
        check_servers(replayable_servers, given.mcp_servers)
        return self._query(prompt, given, tuple(replayable_servers), transport)

    def client(
        self, options: ClaudeAgentOptions | None = None, *,
        replayable_servers: Sequence[ReplayableSdkMcpServer] = (), transport: Transport | None = None,
    ) -> PlayheadClaudeClient:  # fmt: skip
        """`claude_agent_sdk.ClaudeSDKClient`, for several turns, interrupts and partial messages in one session.

        Raises:
            RefusedError: servers that do not fit together; at `connect`, as `query`.
        """
        given = rules.copied(options)
        check_servers(replayable_servers, given.mcp_servers)
        servers = tuple(replayable_servers)
        return PlayheadClaudeClient(
            partial(self._begin, None, given, servers, transport),
            with_servers(given, servers, unrecorded),
            transport,
        )

    async def _query(
        self, prompt: str, options: ClaudeAgentOptions, servers: tuple[ReplayableSdkMcpServer, ...],
        transport: Transport | None,
    ) -> AsyncGenerator[Any]:  # fmt: skip
        begun = self._begin(prompt, options, servers, transport)
        if begun is None:
            options = with_servers(options, servers, unrecorded)
            plain: Any = _sdk_query()(prompt=prompt, options=options, transport=transport)
            async with contextlib.aclosing(plain) as messages:
                async for message in messages:
                    yield message
            return
        run, way = begun
        pump = Pump(
            lambda: _sdk_query()(prompt=prompt, options=way.options, transport=transport),
            partial(read, run, way),
        )
        async with contextlib.aclosing(driven(run, pump, way)) as messages:
            async for message in messages:
                yield message

    def _begin(
        self, prompt: str | None, options: ClaudeAgentOptions, servers: tuple[ReplayableSdkMcpServer, ...],
        transport: Transport | None,
    ) -> tuple[Run, Way] | None:  # fmt: skip
        """The session of a query and the way to see it; None where it cannot be recorded."""
        who = identify(self._agent_id, self._agent_version_id, self._recorder)
        full = self._proxy and can_be_full(options, transport)
        state = seam.replay_here()
        if state is not None:
            options = self._for_replay(state, options, servers, full)
        run = self._opened(who, prompt)
        if run is None:
            return None
        run.describe(options, prompt, sdk_version=claude_agent_sdk.__version__)
        if state is not None and state.override is not None and state.override.system_prompt is not None:
            run.active.effective_system_prompt = effective(state.override.system_prompt)
        try:
            return run, (Full if full else Wrapped)(run, options, servers, prompt)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            run.trouble(error, "preparing a query")
            return run, Wrapped(run, options, servers, prompt)

    def _opened(self, who: Identity, prompt: str | None) -> Run | None:
        inputs = {"prompt": prompt} if prompt is not None else {}
        scope = seam.session(
            who.agent, inputs=inputs, recorder=self._recorder, name=self._session_name, version=who.version
        )
        active = scope.open()
        return None if active is None else Run(scope, active, prompt)

    def _for_replay(
        self, state: ReplayState, options: ClaudeAgentOptions, servers: Sequence[ReplayableSdkMcpServer], full: bool
    ) -> ClaudeAgentOptions:
        """The options of a replay, isolated where anything is substituted.

        Raises:
            ReplayStop: the replay could not hold what it promises.
        """
        reasons = rules.resuming(options)
        substitutes = rules.substitutes(state.policy)
        if not full:
            reasons += rules.without_proxy(options, state.override)
            if state.answers is not None:
                reasons.append("the model policy is history, which needs the proxy: it is off for this query")
        if substitutes and (not full or self._isolation == "strict"):
            names = [name for server in servers for name in server.identities]
            reasons += rules.strict(options, state.policy, names)
        elif substitutes and not self._keep_settings:
            reasons += rules.outside_the_gate(options)
        refused(state, reasons)
        options, changed = rules.overridden(options, state.override)
        with state.lock:
            state.override_hits.update(changed)
        return rules.isolated(options) if substitutes else options


def _sdk_query() -> Any:
    """The SDK's own `query`, also where `install` wrapped it."""
    return getattr(claude_agent_sdk.query, "__wrapped__", claude_agent_sdk.query)


async def driven(run: Run, pump: Pump, way: Way) -> AsyncGenerator[Any]:
    """The messages of a run; closes what was opened, however it ends."""
    run.halt = pump.halt
    with run.root.inside():
        pump.start()
    error: BaseException | None = None
    try:
        while (message := await pump.next()) is not None:
            yield message
    except BaseException as raised:
        error = raised
        raise
    finally:
        early = isinstance(error, GeneratorExit | asyncio.CancelledError)
        await _ended(run, pump, way, error, early)


async def _ended(run: Run, pump: Pump, way: Way, error: BaseException | None, early: bool) -> None:
    run.left = early
    problem = await pump.stop()
    if problem is not None and early:
        _tell(run, "closing Claude's messages", problem)
    try:
        way.stop()
        way.finish()
        run.close(error)
    except BaseException as raised:
        if not early:
            raise
        _tell(run, "closing the session", raised)
    if not run.active.closed and run.scope.root and early:
        _tell(run, "closing the session", None)


def _tell(run: Run, doing: str, problem: BaseException | None) -> None:
    """An asynchronous generator that is being closed drops what is raised in it: this line is all that is left."""
    why = f": {type(problem).__name__}: {problem}" if problem is not None else ""
    log.warning("session %s: %s failed after the consumer had stopped early%s", run.active.session_id, doing, why)
