"""Outcomes handed to the framework from inside a tool's body, in the framework's own shapes."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from langchain_core.messages import ToolMessage
from langchain_core.tools.base import BaseTool, ToolException
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from playhead.adapters.langgraph import channel, codec
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam
from playhead.errors import RecordingError


def give(tool: BaseTool, answer: Outcome, call_id: str | None, config: Any, messages: Sequence[Any] = ()) -> Any:
    """What the tool's body returns for an outcome. State that the tool wrote on the side is written again.

    Args:
        tool: the tool.
        answer: the outcome.
        call_id: the id of the call that gets it, None outside a model's request.
        config: the config that it runs with.
        messages: those of the state that it was given.

    Raises:
        Exception: the recorded failure, or what the framework takes for this kind of outcome.
    """
    writes = codec.writes_of(answer, call_id, messages)
    if writes:
        send = channel.sender(config)
        if send is None:
            raise RecordingError(f"tool {tool.name!r} wrote to the state of a graph, and is called outside of any now")
        send(writes)
    write = channel.stream_writer(config)
    if write is not None:
        for chunk in codec.chunks_of(answer, call_id):
            write(chunk)
    match answer.kind:
        case OutcomeKind.VALUE:
            return codec.decode_result(tool, answer, call_id, messages)
        case OutcomeKind.ERROR:
            raise seam.exception_of(answer)
        case OutcomeKind.INVALID_ARGS:
            raise _invalid(tool, text_of(answer))
        case OutcomeKind.INTERRUPT:
            _interrupt(tool, answer)
        case OutcomeKind.RETRY | OutcomeKind.RESULT_ERROR:
            return _readable(tool, answer, call_id, messages)


def text_of(answer: Outcome) -> str:
    """What the model reads of an error."""
    value = seam.value_of(answer)
    if is_list(value) and value and all(is_object(v) and "msg" in v for v in value):
        return "; ".join(str(v["msg"]) for v in value)
    return codec.as_text(value)


def _readable(tool: BaseTool, answer: Outcome, call_id: str | None, messages: Sequence[Any]) -> Any:
    data = codec.held(answer)
    if "result" in data:
        return codec.decode_result(tool, answer, call_id, messages)
    if data.get("raised") or call_id is None:
        raise ToolException(text_of(answer))
    message = ToolMessage(content=text_of(answer), name=tool.name, tool_call_id=call_id, status="error")
    return (message, None) if tool.response_format == "content_and_artifact" else message


def _invalid(tool: BaseTool, text: str) -> ValidationError:
    problem = InitErrorDetails(type=PydanticCustomError("invalid_arguments", "{text}", {"text": text}), input={})
    return ValidationError.from_exception_data(tool.name, [problem])


def _interrupt(tool: BaseTool, answer: Outcome) -> NoReturn:
    """Pauses as the tool did. Answers that earlier pauses of it were given are passed over."""
    types = sys.modules.get("langgraph.types")
    if types is None:
        raise RecordingError(f"tool {tool.name!r} paused in the recording, and no graph runs it now")
    value = seam.value_of(answer)
    while True:
        types.interrupt(value)
