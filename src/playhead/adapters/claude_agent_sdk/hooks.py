"""The hook before every tool: built-in ones, those of MCP servers, sub-agents, and what sub-agents call."""

from dataclasses import fields, replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from playhead.adapters.claude_agent_sdk import results
from playhead.adapters.claude_agent_sdk.calls import OUTPUT_TOOL
from playhead.adapters.claude_agent_sdk.run import Run
from playhead.adapters.claude_agent_sdk.stops import SERVED, STOPPED, denied
from playhead.engine import seam
from playhead.errors import ReplayStop

_TIMEOUT = 3600.0  # longer than any model that writes a result

CAN_BLOCK = any(f.name == "on_failure" for f in fields(HookMatcher))
"""Whether a hook that fails keeps its tool from running; older SDKs let the tool run."""


def hooked(options: ClaudeAgentOptions, run: Run) -> ClaudeAgentOptions:
    """A copy with our hook beside the caller's, which all keep running."""
    more: dict[str, Any] = {"on_failure": "block"} if CAN_BLOCK and run.replay is not None else {}
    matcher = HookMatcher(hooks=[_Gate(run).before], timeout=_TIMEOUT, **more)
    hooks: dict[Any, Any] = dict(options.hooks or {})
    hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), matcher]
    return replace(options, hooks=hooks)


class _Gate:
    def __init__(self, run: Run) -> None:
        self._run = run

    async def before(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        """A denial where a recording answers; nothing where the tool runs."""
        try:
            return await self._before(given, tool_use_id or given.get("tool_use_id"))
        except ReplayStop:
            self._run.halt()
            return denied(STOPPED, stop=True)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            try:
                self._run.trouble(error, f"answering tool {given.get('tool_name')!r}")
            except ReplayStop:
                self._run.halt()
                return denied(STOPPED, stop=True)
            return {}

    async def _before(self, given: Any, call_id: str | None) -> Any:
        run = self._run
        if given.get("tool_name") == OUTPUT_TOOL:
            return {}
        call = run.calls.get(call_id)
        if call is None:
            call = run.calls.add(str(call_id), str(given.get("tool_name")), given.get("tool_input"), run.root)
        step: Any = run.calls.start(call)
        answer = None if run.replay is None else await step.decide_async()
        if answer is None:
            if isinstance(step, seam.ToolStep):
                run.active.runs_elsewhere(step)
            return {}
        try:
            call.given = results.read_outcome(answer)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a recording ends the replay
            step.cancel()
            run.trouble(error, "giving a recorded result to Claude")
        step.observe(answer)
        return denied(SERVED)


async def within(run: Run, call_id: str | None, tool: str, arguments: Any, handler: Any) -> Any:
    """A handler of ours that runs because its hook let it: what it calls is below its call."""
    call = await run.calls.announced(tool, arguments, call_id, 0.0) if call_id is None else run.calls.get(call_id)
    step = call.step if call is not None else None
    if call is None or step is None or isinstance(step, seam.SilentStep):
        return await handler(arguments)
    with step.inside():
        try:
            return await handler(arguments)
        except Exception as error:  # which Claude gets as a text
            call.raised = error
            raise
