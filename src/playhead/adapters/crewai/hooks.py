"""The two hooks: the one before a call asks what answers it, the one after gives the answer, or tells what came."""

import json
from contextvars import Token
from typing import Any

from playhead.core.canonical import NoKeyError, to_stored
from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON, Native, Outcome, OutcomeKind
from playhead.engine.calling import Shape, opened, told
from playhead.engine.frames import FRAME, leave
from playhead.engine.seam import ToolStep, value_of

CODEC = "crewai"
VERSION = 1
FAILED = "Error executing tool: "
"""How the framework begins the text that stands for a tool's exception."""


class Texts(Shape):
    """The framework shows the model a text, whatever a tool gives."""

    def outcome(self, result: Any) -> Outcome:
        """Of the text and the raw value that the hook after a call sees."""
        text, raw = result
        reported = hasattr(raw, "as_agent_message")  # a tool's own report that it failed, an MCP server's among them
        if reported or (isinstance(raw, str) and raw == text and text.startswith(FAILED)):
            return Outcome(kind=OutcomeKind.RESULT_ERROR, value=to_stored(text))
        try:
            value: JSON = to_stored(raw)
        except NoKeyError:
            value = to_stored(text)
        native = Native(codec=CODEC, version=VERSION, data={"text": to_stored(text)}) if raw != text else None
        return Outcome(kind=OutcomeKind.VALUE, value=value, native=native)

    def value(self, outcome: Outcome) -> str:
        native = outcome.native
        if native is not None and native.codec == CODEC and native.version == VERSION and is_object(native.data):
            return str(native.data.get("text"))
        value = value_of(outcome)
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)

    def refusal(self, outcome: Outcome) -> str:
        if outcome.error is not None:
            return FAILED + outcome.error.message
        return outcome.value if isinstance(outcome.value, str) else repr(outcome.value)

    def give(self, step: ToolStep, outcome: Outcome) -> str:
        """A tool that raises reads as a text too."""
        return self.refusal(outcome) if outcome.kind is OutcomeKind.ERROR else super().give(step, outcome)


TEXTS = Texts()


def _about(context: Any) -> dict[str, JSON]:
    """Attributes of a call: of a tool of an MCP server the name that the server knows it by."""
    tool = getattr(context.tool, "_original_tool", None) or context.tool
    bare = getattr(tool, "original_tool_name", None)
    return {"bare_tool": bare} if isinstance(bare, str) else {}


class _Pending:
    __slots__ = ("answer", "step", "token")

    def __init__(self, step: ToolStep, answer: Outcome | None, token: Token[Any] | None) -> None:
        self.step = step
        self.answer = answer
        self.token = token


class Calls:
    """Calls between the two hooks. Both see the same object of arguments, by which they are known."""

    def __init__(self) -> None:
        self._pending: dict[int, _Pending] = {}

    def before(self, context: Any) -> bool | None:
        """False, which keeps the tool from running, where something else answers.

        Raises:
            ReplayStop: the replay ends here.
        """
        step = opened(str(context.tool_name), dict(context.tool_input or {}), by=CODEC, note=_about(context))
        if step is None:
            return None
        answer = step.decide()
        token = FRAME.set(step) if answer is None else None
        self._pending[id(context.tool_input)] = _Pending(step, answer, token)
        return None if answer is None else False

    def after(self, context: Any) -> str | None:
        """The text of the answer, None for what the tool gave itself."""
        pending = self._pending.pop(id(context.tool_input), None)
        if pending is None:
            return None
        if pending.answer is not None:
            pending.step.observe(pending.answer)
            return TEXTS.give(pending.step, pending.answer)
        leave(pending.token)
        told(pending.step, (context.tool_result, getattr(context, "raw_tool_result", context.tool_result)), TEXTS)
        return None
