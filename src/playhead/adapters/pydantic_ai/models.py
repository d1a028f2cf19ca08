"""The model seam: what is asked, what answers, and which tool calls the response asks for.

Where the framework lets a capability wrap the model that sends a request (`get_wrapper_model`), the seam sits there:
it sees what history processors and other capabilities made of the request. Older versions run those before
`wrap_model_request`, so there the seam sits in that hook. In both, that hook looks at the latch first, and records a
response that some other capability gave without asking the model.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, SkipModelRequest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel

from playhead.adapters.pydantic_ai import codec, messages, overrides
from playhead.adapters.pydantic_ai.run import Run
from playhead.core.protocol.parts import result as result_part
from playhead.core.values import Cost, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.errors import ReplayedToolError

WRAPS_MODELS = hasattr(AbstractCapability, "get_wrapper_model")
PROTOCOL = "pydantic_ai"

Handler = Callable[[ModelRequestContext], Awaitable[ModelResponse]]


@dataclass(slots=True)
class Asked:
    """One request as it goes out."""

    model: Model
    messages: list[ModelMessage]
    settings: Any
    parameters: ModelRequestParameters
    streamed: bool = False


@dataclass(slots=True)
class Turn:
    """One model request of a run. ``announced`` once all calls of its response have their places; ``early`` holds the
    ids of those that got theirs before the response was complete."""

    run: Run
    context: ModelRequestContext
    step: Any = None
    announced: bool = False
    early: list[str] = field(default_factory=list[str])
    output_tools: frozenset[str] = field(default_factory=frozenset[str])

    # --- before ---

    def begin(self, asked: Asked) -> ModelResponse | None:
        """Opens the step for a request, changed by the override, and gives the recorded response where there is one.

        Raises:
            ReplayStop: the replay ends here.
            Exception: the recorded or injected failure of the model.
        """
        active = self.run.active
        if active is None:
            return None
        if active.replay is not None:
            active.replay.check()
        try:
            self._override(asked, active)
            request = _request(asked, self.run)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.run.trouble(error, "reading a model request")
            return None
        self.output_tools = frozenset(tool.name for tool in asked.parameters.output_tools)
        self.step = active.model_call(asked.model.model_name, request=request)
        answer = self.step.decide()
        return None if answer is None else self._served(answer, asked)

    def _override(self, asked: Asked, active: seam.ActiveSession) -> None:
        state = active.replay
        override = state.override if state is not None else None
        if state is None or override is None:
            return
        if override.system_prompt is not None and self.run.is_root:
            if overrides.system_texts(asked.messages, asked.parameters) != [override.system_prompt]:
                state.override_hits["system_prompt"] += 1
            asked.messages, asked.parameters = overrides.with_system_prompt(
                override.system_prompt, asked.messages, asked.parameters
            )
            overrides.remember_system_prompt(active, override.system_prompt)
        if override.model_params is not None:
            merged = overrides.with_params(override.model_params, asked.settings)
            if merged != dict(asked.settings or {}):
                state.override_hits["model_params"] += 1
            asked.settings = merged

    def _served(self, answer: Outcome, asked: Asked) -> ModelResponse:
        if answer.kind is not OutcomeKind.VALUE:
            self.step.observe(answer)
            raise _failure(answer, asked.model.model_name)
        try:
            response = codec.decode_response(answer, asked.model.model_name)
        except Exception as error:
            self.run.trouble(error, "reading a recorded response")
            raise
        self.answered(response, streamed=asked.streamed)
        return response

    # --- after ---

    def announce(self, response: ModelResponse) -> None:
        """Reserves the response's tool calls, in its order; output tools belong to the answer itself."""
        if self.announced or self.step is None:
            return
        self.announced = True
        calls = [p for p in response.parts if p.part_kind == "tool-call" and p.tool_name not in self.output_tools]
        self._reserve([call for call in calls if not self._was_early(call)])

    def announce_early(self, call: ToolCallPart) -> None:
        """Reserves a call that runs although nobody has seen the whole response yet."""
        if not self.announced and self.step is not None:
            self.early.append(call.tool_call_id)
            self._reserve([call])

    def _was_early(self, call: ToolCallPart) -> bool:
        if call.tool_call_id not in self.early:
            return False
        self.early.remove(call.tool_call_id)
        return True

    def _reserve(self, calls: Sequence[ToolCallPart]) -> None:
        self.step.announce([seam.Requested(call.tool_call_id, call.tool_name, call.args) for call in calls])

    def answered(self, response: ModelResponse, *, streamed: bool = False, partial: bool = False) -> None:
        """The response is complete (or as complete as it gets): announce, then close the step."""
        if self.step is None:
            return
        try:
            result = _result(response, streamed=streamed, partial=partial)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.run.trouble(error, "reading a model response")
            self.step.cancel()
            return
        self.announce(response)
        self.step.observe(result)
        self.run.last = (response, result.message)
        self._provider_calls(response)

    def _provider_calls(self, response: ModelResponse) -> None:
        """Tools that the provider executed: their results stand in the same response."""
        active = self.run.active
        if active is None or getattr(self.step, "silent", False):
            return
        returns = {p.tool_call_id: p for p in response.parts if p.part_kind == "builtin-tool-return"}
        for part in response.parts:
            if part.part_kind == "builtin-tool-call":
                found = returns.get(part.tool_call_id)
                outcome = None if found is None else _provider_outcome(found)
                active.provider_call(
                    self.step, part.tool_name, call_id=part.tool_call_id, arguments=part.args, outcome=outcome
                )

    def failed(self, error: BaseException) -> None:
        if self.step is not None:
            self.step.fail(error)


def _request(asked: Asked, run: Run) -> seam.ModelRequest:
    system: Sequence[Any] = messages.instructions(asked.parameters)
    return seam.ModelRequest(
        messages=[*system, *asked.messages],
        to_normal=_normal(run),
        tools=run.tool_forms.of(asked.parameters),
        tool_choice=messages.tool_choice(asked.settings, asked.parameters),
        params=messages.params(asked.settings),
        model=asked.model.model_name,
        provider=asked.model.system,
        protocol=PROTOCOL,
    )


def _normal(run: Run) -> Callable[[Any], list[Any]]:
    """Reads messages of a request; the response that was just recorded has its normal form already."""
    response, form = run.last

    def read(message: Any) -> list[Any]:
        if isinstance(message, dict):
            return [message]
        return [form] if message is response else messages.normal(message)

    return read


def _result(response: ModelResponse, *, streamed: bool, partial: bool) -> seam.ModelResult:
    cost = getattr(response.usage, "cost", None)
    return seam.ModelResult(
        message=messages.response_message(response),
        native=codec.encode_response(response),
        usage=messages.usage(response.usage),
        served=response.model_name,
        response_id=getattr(response, "provider_response_id", None),
        cost=Cost(amount=str(cost), source="estimated") if cost is not None else None,
        streamed=streamed,
        partial=partial,
    )


def _provider_outcome(part: Any) -> Outcome:
    failed = getattr(part, "outcome", "success") != "success"
    value = result_part(part.tool_call_id, messages.plain(part.content))["content"]
    return Outcome(kind=OutcomeKind.RESULT_ERROR if failed else OutcomeKind.VALUE, value=value)


def _failure(answer: Outcome, model: str) -> Exception:
    """What the framework raises for a model that fails; a scripted failure has no class of its own."""
    error = seam.exception_of(answer)
    info = answer.error
    if info is None or not isinstance(error, ReplayedToolError | TimeoutError) or info.module not in (None, "builtins"):
        return error
    if info.status is not None:
        return ModelHTTPError(status_code=info.status, model_name=model, body={"message": info.message})
    return ModelAPIError(model_name=model, message=info.message)


# --- the hook around a request --------------------------------------------------------------------------------------


async def around(run: Run, context: ModelRequestContext, handler: Handler) -> ModelResponse:
    """`wrap_model_request`."""
    state = run.replay
    if state is not None:
        state.check()
        try:
            _override_model(run, context)
        except Exception as error:  # noqa: BLE001 - a model that cannot be made
            run.trouble(error, "applying the model override")
    if run.active is None:
        return await handler(context)
    turn = run.turn = Turn(run, context)
    try:
        if not WRAPS_MODELS:
            return await _here(turn, context, handler)
        response = await handler(context)
        if turn.step is None:
            _unasked(turn, context, response)
        return response
    except SkipModelRequest as skip:
        if turn.step is None:
            _unasked(turn, context, skip.response)
        raise
    finally:
        run.turn = None


def _override_model(run: Run, context: ModelRequestContext) -> None:
    state = run.replay
    assert state is not None
    model = overrides.model_for(state.override, context.model, getattr(context, "model_id", None))
    if model is not context.model:
        context.model = model
        if hasattr(context, "model_id"):
            context.model_id = None
        state.override_hits["model"] += 1


async def _here(turn: Turn, context: ModelRequestContext, handler: Handler) -> ModelResponse:
    """The whole seam in the hook, where models cannot be wrapped."""
    streamed = bool(getattr(context, "streaming", False))
    asked = Asked(context.model, context.messages, context.model_settings, context.model_request_parameters, streamed)
    answer = turn.begin(asked)
    if answer is not None:
        return answer
    changed = replace(
        context, messages=asked.messages, model_settings=asked.settings, model_request_parameters=asked.parameters
    )
    with _inside(turn):
        try:
            response = await handler(changed)
        except SkipModelRequest as skip:
            turn.answered(skip.response, streamed=streamed)
            raise
        except BaseException as error:
            if streamed and isinstance(error, asyncio.CancelledError):
                turn.run.cut = turn
            else:
                turn.failed(error)
            raise
    turn.answered(response, streamed=streamed)
    return response


def _unasked(turn: Turn, context: ModelRequestContext, response: ModelResponse) -> None:
    """Another capability answered: the response is part of the run, and its tool calls need their places."""
    active = turn.run.active
    if active is None:
        return
    asked = Asked(context.model, context.messages, context.model_settings, context.model_request_parameters)
    try:
        request = _request(asked, turn.run)
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        turn.run.trouble(error, "reading a model request")
        return
    turn.output_tools = frozenset(tool.name for tool in asked.parameters.output_tools)
    turn.step = active.model_call(asked.model.model_name, request=request, answered_by="capability")
    turn.answered(response)


def _inside(turn: Turn) -> Any:
    from contextlib import nullcontext

    return nullcontext() if turn.step is None else turn.step.inside()


# --- the wrapped model ----------------------------------------------------------------------------------------------


class SeamModel(WrapperModel):
    """The model that sends a request, asked only when no recording answers."""

    def __init__(self, wrapped: Model, turn: Turn) -> None:
        super().__init__(wrapped)
        self._turn = turn

    async def request(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        turn, asked = self._turn, Asked(self.wrapped, messages, model_settings, model_request_parameters)
        answer = turn.begin(asked)
        if answer is not None:
            return answer
        with _inside(turn):
            try:
                response = await self.wrapped.request(asked.messages, asked.settings, asked.parameters)
            except BaseException as error:
                turn.failed(error)
                raise
        turn.answered(response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[Any]:
        turn = self._turn
        asked = Asked(self.wrapped, messages, model_settings, model_request_parameters, streamed=True)
        answer = turn.begin(asked)
        if answer is not None:
            yield CompletedStreamedResponse(
                answer, model_request_parameters=model_request_parameters, replay_events=True
            )
            return
        stream: Any = None
        with _inside(turn):
            try:
                async with self.wrapped.request_stream(
                    asked.messages, asked.settings, asked.parameters, run_context
                ) as stream:
                    yield stream
            except BaseException as error:
                _cut_short(turn, stream, error)
                raise
        turn.answered(stream.get(), streamed=True)


def _cut_short(turn: Turn, stream: Any, error: BaseException) -> None:
    """A stream that broke is a failure; one whose consumer left keeps what had arrived."""
    response = None if stream is None or isinstance(error, Exception) else stream.get()
    if response is None or not response.parts:
        turn.failed(error)
    else:
        turn.answered(response, streamed=True, partial=True)
