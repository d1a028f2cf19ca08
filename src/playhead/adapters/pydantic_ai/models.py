"""The model seam: what is asked, what answers, and which tool calls the response asks for.

Where the framework lets a capability wrap the model that sends a request (`get_wrapper_model`), the seam sits there:
it sees what history processors and other capabilities made of the request. Older versions run those before
`wrap_model_request`, so there the seam sits in that hook. In both, that hook looks at the latch first, and records a
response that some other capability gave without asking the model.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import SkipModelRequest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel

from playhead.adapters.pydantic_ai import overrides
from playhead.adapters.pydantic_ai.run import Run
from playhead.adapters.pydantic_ai.turns import Asked, Turn, request_of

WRAPS_MODELS = hasattr(AbstractCapability, "get_wrapper_model")

Handler = Callable[[ModelRequestContext], Awaitable[ModelResponse]]


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
        request = request_of(asked, turn.run)
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
