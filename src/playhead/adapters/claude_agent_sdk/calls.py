"""The tool calls of a run by the id that the model gave, from the announcement to the result."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from playhead.adapters.claude_agent_sdk.results import Result, Served, outcome_of
from playhead.core.protocol.parts import json_or_text
from playhead.core.protocol.shape import obj
from playhead.core.values import JSON
from playhead.engine import seam
from playhead.engine.frames import Inside
from playhead.engine.snapshot import freeze_emitted, same_arguments

AGENT_TOOLS = frozenset({"Agent", "Task"})
"""Tools of the program that run a sub-agent."""
OUTPUT_TOOL = "StructuredOutput"
"""The tool by which a model gives an answer in the caller's ``output_format``; no call of the agent's."""


@dataclass(slots=True, kw_only=True)
class Call:
    """One call. ``frame`` is where the model asked for it: the run, or a sub-agent of it.

    ``agent`` is the sub-agent that the call runs; ``raised`` is what its handler raised. ``given`` is what a recording
    gives in place of the tool; ``wire`` and ``shown`` are what Claude and the consumer got of a tool that ran.
    """

    id: str
    tool: str
    arguments: Any
    frame: Any
    step: seam.ToolStep | seam.SilentStep | None = None
    agent: seam.AgentStep | None = None
    given: Served | None = None
    wire: Result | None = None
    shown: Result | None = None
    extra: dict[str, JSON] | None = None
    raised: Exception | None = None

    @property
    def is_open(self) -> bool:
        """Whether its tool runs, as far as is known."""
        return self.step is not None and self.step.ended_at is None

    def observe(self) -> None:
        """Ends the step with what is known of its result; cancelled where that is nothing."""
        if self.agent is not None and self.agent.ended_at is None:
            self.agent.returned(None)
        if not self.is_open or self.step is None:
            return
        first = self.wire or self.shown
        if first is None:
            self.step.cancel()
        else:
            self.step.observe(outcome_of(first, self.shown, self.extra, raised=self.raised))


class Calls:
    """The calls of one run. An id that comes again stands for the newest call."""

    def __init__(self, active: seam.ActiveSession) -> None:
        self._active = active
        self._known: dict[str, Call] = {}
        self._news = asyncio.Event()

    def __iter__(self) -> Iterator[Call]:
        return iter(list(self._known.values()))

    def get(self, call_id: str | None) -> Call | None:
        return self._known.get(call_id) if call_id is not None else None

    def announce(self, step: seam.ModelStep | seam.SilentStep, frame: Any, calls: Sequence[seam.Requested]) -> None:
        """Reserves the calls of a response, in its order."""
        calls = [replace(call, tool=self.named(call.tool)) for call in calls if call.tool != OUTPUT_TOOL]
        if not calls:
            return
        for call in calls:
            if call.call_id is not None:
                self.add(call.call_id, call.tool, call.arguments, frame)
        step.announce(calls)
        self._news.set()
        self._news = asyncio.Event()

    def add(self, call_id: str, tool: str, arguments: Any, frame: Any) -> Call:
        """A call, announced or seen by a hook first."""
        given = json_or_text(arguments) if isinstance(arguments, str) else arguments
        tool = self.named(tool)
        call = self._known[call_id] = Call(id=call_id, tool=tool, arguments=given, frame=frame)
        return call

    def named(self, tool: str) -> str:
        """The name under which a call is recorded and answered.

        That is Claude's own, unless a recording knows the tool of an MCP server by its bare name alone, as other
        frameworks have it.
        """
        state = self._active.replay
        bare = str(server_of(tool).get("bare_tool") or "")
        if state is None or not bare or tool in state.policy.tools or state.tape.recorded(tool):
            return tool
        return bare if state.tape.recorded(bare) else tool

    async def announced(self, tool: str, arguments: Any, call_id: str | None, patience: float) -> Call | None:
        """The announced call that a handler answers, once it is; None when that takes too long."""
        try:
            async with asyncio.timeout(patience):
                while (found := self._waiting(tool, arguments, call_id)) is None:
                    await self._news.wait()
                return found
        except TimeoutError:
            return None

    def _waiting(self, tool: str, arguments: Any, call_id: str | None) -> Call | None:
        if call_id is not None:
            return self._known.get(call_id)
        seen, tool = freeze_emitted(arguments), self.named(tool)
        for call in self._known.values():
            if call.step is None and call.tool == tool and same_arguments(freeze_emitted(call.arguments), seen):
                return call
        return None

    def start(self, call: Call) -> seam.ToolStep | seam.SilentStep:
        """Opens the step of an announced call, in the frame where the model asked for it."""
        with Inside(call.frame):
            call.step = self._active.tool_call(
                call.tool, arguments=call.arguments, call_id=call.id, **server_of(call.tool)
            )
        return call.step

    def inside(self, call: Call) -> Any:
        """The frame for what a sub-agent does that a call runs."""
        step = call.step or self.start(call)
        if call.agent is None:
            if isinstance(step, seam.SilentStep):
                return call.frame
            arguments = obj(call.arguments)
            name = str(arguments.get("subagent_type") or arguments.get("description") or call.tool)
            with step.inside():
                call.agent = self._active.agent_call(name, arguments)
        return call.agent

    def finish(self) -> None:
        """Ends what is still open."""
        for call in self:
            call.observe()


def server_of(tool: str) -> dict[str, JSON]:
    """Server and bare name of an MCP tool, as attributes."""
    if not tool.startswith("mcp__"):
        return {}
    _, server, bare = tool.split("__", 2) if tool.count("__") >= 2 else ("", "", tool)
    return {"server": server, "bare_tool": bare} if server else {}
