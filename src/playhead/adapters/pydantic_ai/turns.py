"""One model request of a run: opened, answered by a recording, announced, closed with what the model gave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters

from playhead.adapters.pydantic_ai import codec, messages, overrides
from playhead.adapters.pydantic_ai.run import Run
from playhead.core.protocol.parts import result as result_part
from playhead.core.values import Cost, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.errors import ReplayedToolError

PROTOCOL = "pydantic_ai"


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
            request = request_of(asked, self.run)
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


def request_of(asked: Asked, run: Run) -> seam.ModelRequest:
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
