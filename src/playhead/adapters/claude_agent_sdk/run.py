"""One query, or the life of one client: its session, its root agent call, and what every part of the adapter shares."""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from playhead.adapters.claude_agent_sdk import messages, results
from playhead.adapters.claude_agent_sdk import options as option_rules
from playhead.adapters.claude_agent_sdk.calls import Call, Calls
from playhead.adapters.claude_agent_sdk.stops import STOPPED
from playhead.core.override import PROMPT_LIMIT
from playhead.core.totals import BUCKETS, add_usage, remainder
from playhead.core.values import JSON, Mark, Usage
from playhead.engine import gating, seam
from playhead.engine.frames import FRAME, Inside, leave
from playhead.engine.replaying import ReplayState
from playhead.errors import PlayheadError, RecordingError, ReplayStop

log = logging.getLogger("playhead.adapters.claude_agent_sdk.runner")

UNKNOWN_TOOL = "No such tool available"
"""What the program says of a tool that it does not have; no hook comes for it."""
_PATIENCE = 5.0


class Run:
    """A run that is recorded. ``root`` is its frame; ``usages`` is what each of its model calls spent."""

    def __init__(self, scope: seam.SessionScope, active: seam.ActiveSession, prompt: str | None) -> None:
        self.scope = scope
        self.active = active
        self.calls = Calls(active)
        self.usages: list[tuple[Usage, bool]] = []  # and whether a sub-agent spent it
        self.result: ResultMessage | None = None
        self.pending = True  # whether Claude owes an answer
        self.asking: set[Any] = set()  # model requests under way
        self.left = False  # whether the consumer went away: what the program still does is not the run's
        self.root = self._root(prompt)
        self.halt: Any = lambda: None

    def _root(self, prompt: str | None) -> seam.AgentStep:
        token = self.scope.enter()
        try:
            frame = FRAME.get()
            if isinstance(frame, seam.AgentStep):
                return frame
            return self.active.agent_call("claude", {"prompt": prompt} if prompt is not None else None)
        finally:
            leave(token)

    @property
    def replay(self) -> ReplayState | None:
        return self.active.replay

    def describe(self, options: ClaudeAgentOptions, prompt: str | None, **more: JSON) -> None:
        """What the root keeps: the prompt that is really sent, and the options that may be stored."""
        if prompt is not None:
            self.root.note(effective_prompt=effective_prompt(prompt))
        self.root.note(options=option_rules.recorded(options), **more)

    # --- guards ---

    def trouble(self, error: Exception, doing: str) -> None:
        """A mistake of ours: counted outside a replay, a stop inside one.

        Raises:
            ReplayStop: in a replay.
        """
        if self.replay is not None:
            raise gating.broken(self.replay, error, doing) from error
        self.active.recorder.count("errors", error)

    def stopped(self) -> bool:
        return self.replay is not None and self.replay.latch is not None

    @property
    def asks_models(self) -> bool:
        """Whether requests may go out for real."""
        return self.replay is None or self.replay.answers is None or self.replay.model_policy.type != "history"

    def remember_tools(self, tools: Sequence[dict[str, Any]]) -> None:
        """Keeps the definitions of MCP tools, from which a replay makes stand-ins for their servers."""
        kept: dict[str, JSON] = self.active.metadata.setdefault("mcp_tools", {})
        for tool in tools:
            name = str(tool.get("name"))
            if name.startswith("mcp__") and kept.get(name) is None:
                kept[name] = {"description": tool.get("description"), "input_schema": tool.get("input_schema")}

    def decide_late(self, call: Call) -> None:
        """Asks what answers a call that the program refused because it has no such tool."""
        step = self.calls.start(call)
        answer = step.decide()
        if answer is None:
            step.cancel()
            return
        if not (answer.native is None and isinstance(answer.value, str) and UNKNOWN_TOOL in answer.value):
            call.given = results.read_outcome(answer)  # else it was unknown in the recording too
        step.observe(answer)

    # --- tools of wrapped servers ---

    async def gate(self, tool: str, call_id: str | None, arguments: Any, handler: Any) -> Any:
        """What runs in place of a handler: the recorded result, or the handler itself."""
        try:
            step = await self._step(tool, call_id, arguments)
            answer = await step.decide_async()
            if answer is not None:
                return self._give(step, answer)
        except ReplayStop:
            return self._stop_tool()
        return await self.live(step, handler, arguments)

    def _stop_tool(self) -> dict[str, Any]:
        self.halt()
        return results.to_handler(results.Result(content=[{"type": "text", "text": STOPPED}], is_error=True))

    async def _step(self, tool: str, call_id: str | None, arguments: Any) -> Any:
        call = await self.calls.announced(tool, arguments, call_id, _PATIENCE)
        if call is not None:
            return call.step if call.is_open else self.calls.start(call)
        with Inside(self.root):
            return self.active.tool_call(tool, arguments=arguments, call_id=call_id)

    def _give(self, step: Any, answer: Any) -> Any:
        if answer.kind.value == "error" and answer.error is not None:
            step.observe(answer)
            raise seam.exception_of(answer)
        try:
            given = results.to_handler(results.read_outcome(answer).given)
        except Exception as error:
            step.cancel()
            self.trouble(error, "giving a recorded result to Claude")
            raise
        step.observe(answer)
        return given

    async def live(self, step: Any, handler: Any, arguments: Any) -> Any:
        """The handler, recorded."""
        try:
            with step.inside():
                value = await handler(arguments)
        except BaseException as error:
            step.fail(error)
            raise
        read = results.read_handler(value)
        if read is not None:
            step.observe(results.outcome_of(read))
        else:
            if isinstance(step, seam.ToolStep):
                step.mark = Mark.REPR
                step.note(not_replayable="the handler's result is not of the format claude.tool_result/1")
            step.returned(value)
        return value

    # --- the end ---

    def close(self, error: BaseException | None) -> None:
        """Ends what is open and closes the session with what Claude said, else with ``error``.

        Raises:
            PlayheadError: (or `ReplayStop`) a stop was latched.
        """
        try:
            error = self._ending(error)
        except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.active.recorder.count("errors", problem)
        self.scope.close(error)

    def _ending(self, error: BaseException | None) -> BaseException | None:
        self.calls.finish()
        result = self.result
        if result is not None:
            self._account(result)
            error = messages.failure(result) or (error if not isinstance(error, GeneratorExit) else None)
            self.scope.output = messages.output(result)
        elif error is None and self.pending and not self.stopped():
            error = messages.ClaudeRunError(messages.NO_END)
        if self.stopped() or error is not None:
            latch = self.replay.latch if self.replay is not None else None
            self.root.fail(latch or error or GeneratorExit())
        else:
            self.root.returned(self.scope.output)
        return error

    def _account(self, result: ResultMessage) -> None:
        told = messages.terminal(result)
        self.active.metadata["terminal"] = told
        self.root.note(**told)
        total, whole = messages.total_usage(result)
        # Claude spent tokens: where no model call was seen, neither wire nor messages are as they were
        self.scope.asks_models = total is not None and bool(total.output_visible)
        counted = add_usage([u for u, nested in self.usages if whole or not nested])
        rest = remainder(total, counted) if total is not None else None
        if rest is not None:
            self.active.usage_beside.append(rest)
            self.root.note(usage_remainder={b: n for b in BUCKETS if (n := getattr(rest, b)) is not None})
        if total is not None and total.raw is not None:
            self.root.note(usage_reported=total.raw)
        cost = messages.reported_cost(result)
        if cost is not None and not self._asks_nobody():
            self.active.costs_reported.append(cost)
            self.root.note(cost={"amount": cost.amount, "currency": cost.currency, "source": cost.source})

    def _asks_nobody(self) -> bool:
        """Under model history, what Claude reckons was never spent."""
        return not self.asks_models


def effective_prompt(prompt: str, limit: int = PROMPT_LIMIT) -> JSON:
    """The prompt as the root keeps it; above ``limit`` characters its beginning, with a mark that says so."""
    if len(prompt) <= limit:
        return prompt
    whole = prompt.encode("utf-8", "surrogatepass")
    return {
        "value": prompt[:limit],
        "truncated": True,
        "bytes": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
    }


def refused(state: ReplayState, reasons: Sequence[str]) -> None:
    """Stops a replay that cannot hold what it promises, before anything of it exists.

    Raises:
        ReplayStop: there is a reason.
    """
    try:
        option_rules.refuse(reasons)
    except PlayheadError as error:
        raise state.stop(error) from error


def out_of_sight(state: ReplayState, tool: str) -> ReplayStop:
    """The stop for a tool that ran although nothing was asked."""
    return state.stop(RecordingError(f"tool {tool!r} ran outside playhead: nothing asked for a decision"))
