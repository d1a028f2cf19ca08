"""`ClaudeSDKClient`, recorded and replayed: several turns are one session."""

from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any, Self

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from playhead.adapters.claude_agent_sdk import messages
from playhead.adapters.claude_agent_sdk.pump import Pump
from playhead.adapters.claude_agent_sdk.run import Run
from playhead.adapters.claude_agent_sdk.ways import Way, read
from playhead.engine.active import OpenTurn
from playhead.engine.snapshot import freeze

Begin = Callable[[], tuple[Run, Way] | None]


class PlayheadClaudeClient:
    """A client whose life is a session. Made by `PlayheadClaudeRunner.client`; everything else is the SDK's client's.

    Prompts are texts. The session ends at `disconnect`, which is also where a stopped replay raises.
    """

    def __init__(self, begin: Begin, plain: ClaudeAgentOptions, transport: Any) -> None:
        self._begin = begin
        self._plain = plain
        self._transport = transport
        self._inner: Any = None
        self._run: Run | None = None
        self._way: Way | None = None
        self._pump: Pump | None = None
        self._prompts: list[str] = []
        self._turn_starts: int | None = None
        self._tells_turns = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._inner is None:
            raise AttributeError(name)
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        await self._end(error)

    async def connect(self, prompt: str | None = None) -> None:
        """Starts the program, and asks ``prompt`` where one is given."""
        _check(prompt)
        begun = self._begin()
        if begun is None:
            self._inner = claude_agent_sdk.ClaudeSDKClient(self._plain, self._transport)
            await self._inner.connect()
        else:
            self._run, self._way = begun
            self._run.pending = False
            self._tells_turns = self._run.scope.tells_turns()
            self._inner = claude_agent_sdk.ClaudeSDKClient(self._way.options, self._transport)
            try:
                with self._run.root.inside():
                    await self._inner.connect()
                    self._pump = Pump(self._inner.receive_messages, self._saw)
                    self._pump.start()
                self._run.halt = self._pump.halt
            except BaseException as error:
                await self._end(error)
                raise
        if prompt is not None:
            await self.query(prompt)

    async def query(self, prompt: str, session_id: str = "default") -> None:
        """Asks; the next turn of the session.

        Raises:
            TypeError: the prompt is no text.
            ReplayStop: the replay was stopped.
        """
        _check(prompt)
        run, way = self._run, self._way
        if run is not None and way is not None:
            if run.replay is not None:
                run.replay.check()
            run.result, run.pending = None, True
            self._prompts.append(prompt)
            self._turn_starts = run.active.next_seq()
            way.asked(prompt)
            if run.scope.root:
                run.scope.add_inputs(turns=[{"prompt": p} for p in self._prompts])
        await self._inner.query(prompt, session_id)

    async def receive_messages(self) -> AsyncGenerator[Any]:
        """The SDK's messages, unchanged; ends where a replay was stopped."""
        if self._pump is None:
            async for message in self._inner.receive_messages():
                yield message
            return
        while (message := await self._pump.next()) is not None:
            yield message

    async def receive_response(self) -> AsyncGenerator[Any]:
        """The messages up to and with the next `ResultMessage`."""
        if self._pump is None:
            async for message in self._inner.receive_response():
                yield message
            return
        while (message := await self._pump.next()) is not None:
            yield message
            if isinstance(message, ResultMessage):
                return

    async def disconnect(self) -> None:
        """Ends the program and the session.

        Raises:
            PlayheadError: (or `ReplayStop`) the replay was stopped.
        """
        await self._end(None)

    def _saw(self, message: Any) -> Any:
        run, way = self._run, self._way
        if run is None or way is None:
            return message
        made = read(run, way, message)
        if isinstance(message, ResultMessage) and self._turn_starts is not None:
            run.pending = False
            if self._tells_turns:
                turn = OpenTurn(
                    freeze(self._prompts[-1]), freeze(messages.output(message)), self._turn_starts,
                    run.active.next_seq(),
                )  # fmt: skip
                run.active.turns.append(turn)
        return made

    async def _end(self, error: BaseException | None) -> None:
        run, way, self._run, self._way = self._run, self._way, None, None
        if run is not None and run.pending and run.result is None:
            run.left = True
        try:
            if self._pump is not None:
                await self._pump.stop()
            if self._inner is not None:
                await self._inner.disconnect()
        finally:
            if run is not None and way is not None:
                way.stop()
                way.finish()
                if error is None and run.pending and run.result is None:
                    error = GeneratorExit()  # the consumer left in the middle of a turn
                run.close(error)


def _check(prompt: object) -> None:
    if prompt is not None and not isinstance(prompt, str):
        raise TypeError(f"prompt must be a str, not {type(prompt).__name__}: streams of messages cannot be replayed")
