"""The message stream where the proxy sees the model calls: it shows the consumer what was recorded, not the denials."""

from dataclasses import replace
from typing import Any

from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, ToolResultBlock, UserMessage

from playhead.adapters.claude_agent_sdk.results import Result
from playhead.adapters.claude_agent_sdk.run import Run, log
from playhead.adapters.claude_agent_sdk.wire import Wire
from playhead.core.canonical import NoKeyError, to_stored
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON
from playhead.errors import RecordingError

_UNUSED = "Claude did not send its model requests through playhead's proxy"


class WiredStream:
    """Reads the messages of a run whose model calls are on the wire."""

    def __init__(self, run: Run, wire: Wire) -> None:
        self._run = run
        self._wire = wire
        self._warned = False

    def saw(self, message: Any) -> Any:
        """What the consumer gets: the message itself, or a copy with recorded results in it."""
        match message:
            case UserMessage() if is_list(message.content):
                return self._results(message)
            case AssistantMessage():
                self._check_wire()
            case ResultMessage():
                return self._without_denials(message)
            case SystemMessage() if message.subtype == "init":
                self._remember(obj(message.data))
            case _:
                pass
        return message

    def finish(self) -> None: ...

    def _remember(self, told: dict[str, Any]) -> None:
        names = [n for n in told.get("tools") or () if isinstance(n, str) and n.startswith("mcp__")]
        known: dict[str, JSON] = self._run.active.metadata.setdefault("mcp_tools", {})
        for name in names:
            known.setdefault(name, None)
        version = told.get("claude_code_version")
        if version is not None:
            self._run.root.note(cli_version=version)

    def _check_wire(self) -> None:
        if self._wire.seen or self._warned:
            return
        self._warned = True
        if self._run.replay is not None:
            raise self._run.replay.stop(
                RecordingError(_UNUSED, hint="a base URL in Claude's settings may be the reason")
            )
        log.warning("session %s: %s: its model calls are not recorded", self._run.active.session_id, _UNUSED)

    # --- results ---

    def _results(self, message: UserMessage) -> UserMessage:
        if self._run.left:
            return message
        blocks: list[Any] = list(message.content)
        changes: dict[str, Any] = {}
        for place, block in enumerate(blocks):
            call = self._run.calls.get(block.tool_use_id) if isinstance(block, ToolResultBlock) else None
            if call is None:
                continue
            if call.given is not None:
                shown = call.given.shown
                blocks[place] = replace(block, content=shown.content, is_error=shown.is_error)
                changes = {"tool_use_result": call.given.tool_use_result}
            elif call.is_open:
                call.shown = Result(content=block.content, is_error=block.is_error)
                call.extra = _extra(message if len(blocks) == 1 else None)
                if call.wire is not None:
                    call.observe()
        return replace(message, content=blocks, **changes) if changes else message

    def _without_denials(self, message: ResultMessage) -> ResultMessage:
        denials = message.permission_denials
        if not denials:
            return message
        kept = [d for d in denials if not self._was_served(d)]
        return message if len(kept) == len(denials) else replace(message, permission_denials=kept)

    def _was_served(self, denial: Any) -> bool:
        call = self._run.calls.get(denial.get("tool_use_id")) if is_object(denial) else None
        return call is not None and call.given is not None


def _extra(message: UserMessage | None) -> dict[str, JSON]:
    """What the consumer gets beside the block of a call that came alone."""
    if message is None or message.tool_use_result is None:
        return {}
    try:
        return {"tool_use_result": to_stored(message.tool_use_result)}
    except NoKeyError:
        return {}
