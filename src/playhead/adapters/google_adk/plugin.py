# pyright: basic, reportMissingImports=false
"""The plugin: models and tools behind the seam. One for each runner; what is open is kept by what the framework hands
to both ends of a call."""

import functools
from contextvars import Token
from typing import Any

from google.adk.flows.llm_flows.functions import generate_client_function_call_id
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool

from playhead.adapters.google_adk.pauses import Waiting
from playhead.adapters.google_adk.requests import CODEC, override, request_of, response_of, result_of
from playhead.adapters.google_adk.results import DICTS, Returned
from playhead.core.protocol.parts import as_arguments
from playhead.core.values import JSON, OutcomeKind
from playhead.engine.calling import guarded, opened, told
from playhead.engine.frames import FRAME, leave
from playhead.engine.model_step import ModelStep
from playhead.engine.seam import AgentStep, Requested, ToolStep, current, exception_of

NAME = "playhead"


_NOT_CALLS = frozenset({"transfer_to_agent", "set_model_response", "exit_loop", "finish_task"})
"""Tools of the framework that are part of an agent's answer or of its flow: they run, and are no calls."""


class _Open:
    """A step whose call is under way, and the frame that it was entered with."""

    __slots__ = ("served", "step", "token")

    def __init__(self, step: Any, token: Token[Any] | None, *, served: bool = False) -> None:
        self.step = step
        self.token = token
        self.served = served


class PlayheadPlugin(BasePlugin):
    """Records a runner's model and tool calls, and answers them in a replay."""

    def __init__(self) -> None:
        super().__init__(name=NAME)
        self._models: dict[tuple[str, str | None, str], _Open] = {}
        self._tools: dict[int, _Open] = {}
        self._waiting = Waiting()

    # what a person or somebody else says to a call that waits

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        return await self._waiting.answered(user_message)

    # models

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> LlmResponse | None:
        active = current()
        if active is None:
            return None
        step: Any = None
        with guarded(active, "reading a model request"):
            override(active, llm_request, root=_at_root())
            step = active.model_call(llm_request.model or "model", request=request_of(llm_request))
        if not isinstance(step, ModelStep):
            return None
        answer = step.decide()
        if answer is None:
            # the framework asks the model in this context, and tells the end in it: the wire stays silent meanwhile
            self._models[_place(callback_context)] = _Open(step, FRAME.set(step))
            return None
        if answer.kind is not OutcomeKind.VALUE:
            step.observe(answer)
            raise exception_of(answer)
        response = response_of(answer)
        self._tell(step, response, streamed=_streams(callback_context))
        return response

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> None:
        if llm_response.partial:
            return
        found = self._models.pop(_place(callback_context), None)
        if found is not None:
            leave(found.token)
            self._tell(found.step, llm_response, streamed=_streams(callback_context))

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        found = self._models.pop(_place(callback_context), None)
        if found is not None:
            leave(found.token)
            found.step.fail(error)

    def _tell(self, step: ModelStep, response: LlmResponse, *, streamed: bool) -> None:
        with guarded(step.active, "recording a model's answer"):
            result, read = result_of(response, streamed=streamed)
            ids = _with_ids(response)
            asked = [Requested(id, call["name"], as_arguments(call)) for id, call in zip(ids, read.calls, strict=False)]
            step.announce([call for call in asked if call.tool not in _NOT_CALLS])
            step.observe(result)

    # tools

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        if tool.name in _NOT_CALLS or type(tool) is BaseTool:  # the framework's stand-in for an unknown tool
            return None
        step = opened(tool.name, tool_args, by=CODEC, call_id=tool_context.function_call_id, note=_about(tool))
        if step is None:
            return None
        if tool.is_long_running:
            self._waiting.add(step, tool_args)
        answer = await step.decide_async()
        if answer is None:
            self._tools[id(tool_context)] = _Open(step, FRAME.set(step))
            return None
        self._tools[id(tool_context)] = _Open(step, None, served=True)
        step.observe(answer)
        if answer.kind is OutcomeKind.ERROR and answer.error is not None:
            _answering(tool)[id(tool_context)] = exception_of(answer)
            return None
        DICTS.again(answer, tool_context)
        given = DICTS.give(step, answer)
        if given is None:
            _answering(tool)[id(tool_context)] = None
        return given

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        found = self._tools.pop(id(tool_context), None)
        if found is not None and not found.served:
            leave(found.token)
            told(found.step, Returned(result, tool, tool_context), DICTS)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> None:
        found = self._tools.pop(id(tool_context), None)
        if found is not None and not found.served:
            leave(found.token)
            found.step.fail(error)


def _with_ids(response: LlmResponse) -> list[str]:
    """The ids of a response's calls. Those without one get one of the framework's own, as it would give it later."""
    made: list[str] = []
    for part in (response.content.parts or ()) if response.content is not None else ():
        if part.function_call is not None:
            part.function_call.id = part.function_call.id or generate_client_function_call_id()
            made.append(part.function_call.id)
    return made


def _about(tool: Any) -> dict[str, JSON]:
    """Attributes of a call: of a tool of an MCP server its own name."""
    bare = getattr(getattr(tool, "raw_mcp_tool", None), "name", None)
    return {"bare_tool": bare} if isinstance(bare, str) else {}


def _answering(tool: Any) -> dict[int, Exception | None]:
    """What a tool has to raise, or that it gives nothing, by the context of the call.

    What a hook raises is another exception, and a hook that gives nothing has not answered.
    """
    known = getattr(tool, "_playhead_answers", None)
    if known is not None:
        return known
    answers: dict[int, Exception | None] = {}
    live = tool.run_async

    @functools.wraps(live)
    async def run_async(*, args: Any, tool_context: Any) -> Any:
        if id(tool_context) not in answers:
            return await live(args=args, tool_context=tool_context)
        error = answers.pop(id(tool_context))
        if error is not None:
            raise error
        return None

    tool._playhead_answers, tool.run_async = answers, run_async
    return answers


def _place(context: Any) -> tuple[str, str | None, str]:
    """Which model call it is: an agent of a run asks one at a time in each branch."""
    return (
        context.invocation_id,
        getattr(getattr(context, "_invocation_context", None), "branch", None),
        context.agent_name,
    )


def _streams(context: Any) -> bool:
    mode = getattr(getattr(context, "run_config", None), "streaming_mode", None)
    return getattr(mode, "value", None) == "sse"


def _at_root() -> bool:
    frame: Any = FRAME.get()
    while frame is not None:
        if isinstance(frame, ToolStep | AgentStep):
            return False
        frame = frame.parent
    return True
