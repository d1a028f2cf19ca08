"""Model and tool calls as the message stream shows them, where no proxy sees them on the wire.

The SDK yields one message for each block of a response, all with the same id and the same usage, which is a snapshot
taken when generation began.
"""

from dataclasses import dataclass, field
from typing import Any

from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, ToolResultBlock, ToolUseBlock, UserMessage

from playhead.adapters.claude_agent_sdk import messages
from playhead.adapters.claude_agent_sdk.calls import Call
from playhead.adapters.claude_agent_sdk.results import Result
from playhead.adapters.claude_agent_sdk.run import Run, out_of_sight
from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message, Part
from playhead.core.protocol.shape import obj
from playhead.core.values import ErrorInfo, Outcome, OutcomeKind, Usage
from playhead.engine import seam
from playhead.engine.frames import Inside

_UNSEEN = ("tools", "tool_choice", "params")


@dataclass(slots=True)
class _Turn:
    """A response under way."""

    id: str | None
    step: Any
    model: str
    parts: list[Part] = field(default_factory=list[Part])
    usage: Usage | None = None
    error: str | None = None


@dataclass(slots=True)
class _Conversation:
    """What one agent said and saw so far."""

    frame: Any
    nested: bool
    messages: list[Message]
    turn: _Turn | None = None


class Stream:
    """Reads the messages of a run."""

    def __init__(self, run: Run, prompt: str | None, model: str | None) -> None:
        self._run = run
        self._model = model
        root = _Conversation(run.root, False, [messages.user(prompt)] if prompt is not None else [])
        self._conversations: dict[str | None, _Conversation] = {None: root}

    def asked(self, prompt: str) -> None:
        """The user's next message."""
        self._conversations[None].messages.append(messages.user(prompt))

    def saw(self, message: Any) -> None:
        """Reads one message, before the consumer gets it."""
        match message:
            case AssistantMessage():
                self._assistant(message)
            case UserMessage():
                self._user(message)
            case ResultMessage():
                self.finish()
            case SystemMessage() if message.subtype == "init":
                self._model = self._model or obj(message.data).get("model")
            case _:
                pass

    def finish(self) -> None:
        """Ends responses that are still under way."""
        for conversation in self._conversations.values():
            self._end(conversation)

    def _conversation(self, parent: str | None) -> _Conversation:
        found = self._conversations.get(parent)
        if found is None:
            call = self._run.calls.get(parent)
            if call is None:
                return self._conversations[None]
            prompt = str(obj(call.arguments).get("prompt") or "")
            found = _Conversation(self._run.calls.inside(call), True, [messages.user(prompt)])
            self._conversations[parent] = found
        return found

    def _assistant(self, message: AssistantMessage) -> None:
        place = self._conversation(message.parent_tool_use_id)
        told = message.message_id or message.uuid
        turn = place.turn
        if turn is None or turn.id != told:
            self._end(place)
            turn = place.turn = _Turn(told, self._opened(place), message.model)
        turn.parts += messages.read_blocks(message.content)
        turn.usage = messages.snapshot_usage(message) or turn.usage
        turn.error = message.error or turn.error
        asked = [seam.Requested(b.id, b.name, b.input) for b in message.content if isinstance(b, ToolUseBlock)]
        self._run.calls.announce(turn.step, place.frame, asked)

    def _opened(self, place: _Conversation) -> Any:
        with Inside(place.frame):
            step = self._run.active.model_call(
                self._model or "claude",
                request=seam.ModelRequest(
                    messages=list(place.messages), model=self._model, provider="anthropic",
                    protocol="anthropic_messages", missing=_UNSEEN,
                ),
            )  # fmt: skip
        step.decide()  # always for the real model here; in a replay its ledger says so
        return step

    def _end(self, place: _Conversation) -> None:
        turn, place.turn = place.turn, None
        if turn is None:
            return
        said = parts.message("assistant", turn.parts)
        place.messages.append(said)
        if turn.error is not None:
            error = ErrorInfo(class_name="APIError", message=parts.text_of(said), code=turn.error)
            turn.step.observe(Outcome(kind=OutcomeKind.ERROR, value=said, error=error))
            return
        if turn.usage is not None:
            self._run.usages.append((turn.usage, place.nested))
        turn.step.observe(
            seam.ModelResult(message=said, usage=turn.usage, served=turn.model, response_id=turn.id, streamed=True)
        )

    def _user(self, message: UserMessage) -> None:
        place = self._conversation(message.parent_tool_use_id)
        self._end(place)
        if isinstance(message.content, str):
            self._add(place, parts.message("user", parts.texts([message.content])))
            return
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                said = parts.message("tool", messages.read_blocks([block]))
                self._result(block, said)
                place.messages.append(said)
        rest = messages.read_blocks([b for b in message.content if not isinstance(b, ToolResultBlock)])
        if rest:
            self._add(place, parts.message("user", rest))

    def _add(self, place: _Conversation, said: Message) -> None:
        if place.messages[-1:] != [said]:  # the prompt of a sub-agent is known from the call
            place.messages.append(said)

    def _result(self, block: ToolResultBlock, said: Message) -> None:
        call = self._run.calls.get(block.tool_use_id)
        if call is None:
            return
        call.shown = Result(content=block.content, is_error=block.is_error)
        if call.step is None and block.is_error and not self._may_run_live(call):
            self._refused(call, said)
            return
        if call.step is None:
            self._ran(call)
        call.observe()

    def _refused(self, call: Call, said: Message) -> None:
        """Records a call that the program refused before any tool ran."""
        outcome = Outcome(kind=OutcomeKind.RESULT_ERROR, value=said["parts"][0]["content"])
        with Inside(call.frame):
            self._run.active.refused(call.tool, outcome, arguments=call.arguments, call_id=call.id)

    def _may_run_live(self, call: Call) -> bool:
        state = self._run.replay
        return state is not None and state.policy.config_for(call.tool).type == "passthrough"

    def _ran(self, call: Call) -> None:
        """A tool that no seam of ours stood before."""
        step = self._run.calls.start(call)
        if isinstance(step, seam.ToolStep) and step.decide() is not None and self._run.replay is not None:
            step.cancel()
            raise out_of_sight(self._run.replay, call.tool)
