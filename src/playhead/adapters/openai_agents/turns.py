"""One model request of a run: what is asked, what answers, and which tool calls the response asks for."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, ModelResponse, ModelSettings

from playhead.adapters.openai_agents import approvals, codec, executors, messages, overrides
from playhead.adapters.openai_agents.run import Run
from playhead.core.canonical import to_stored
from playhead.core.protocol import openai_responses
from playhead.core.protocol.forms import Event
from playhead.core.protocol.parts import as_arguments
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam

PROTOCOL = "openai_agents"
_CALLS = frozenset({"function_call", "custom_tool_call"})
_LOCAL = frozenset({"apply_patch_call", "local_shell_call"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class Asked:
    """One request as it goes out. ``rest`` is what the adapter hands on unread."""

    name: str | None
    system: str | None
    given: Any
    settings: ModelSettings
    tools: list[Any]
    output_schema: Any
    handoffs: list[Any]
    tracing: Any
    rest: dict[str, Any] = field(default_factory=dict[str, Any])
    streamed: bool = False

    def to(self, model: Any) -> Any:
        """Asks a model: a response to wait for, or a stream."""
        ask = model.stream_response if self.streamed else model.get_response
        return ask(
            self.system, self.given, self.settings, self.tools, self.output_schema, self.handoffs, self.tracing,
            **self.rest,
        )  # fmt: skip


class Turn:
    """One model call. Attempts that the framework makes after a failure belong to it; the last one counts."""

    def __init__(self, run: Run, agent: Agent[Any]) -> None:
        self.run = run
        self.agent = agent
        self.step: Any = None
        self.answer: Outcome | None = None
        self._asked: Asked | None = None
        self._failures: list[BaseException] = []
        self._handoffs: frozenset[str] = frozenset()
        self._closed = False

    # --- before ---

    def begin(self, asked: Asked) -> Outcome | None:
        """Opens the step for a request, changed by the override, and gives what was recorded where there is one.

        Raises:
            ReplayStop: the replay ends here.
        """
        state = self.run.replay
        if state is not None:
            state.check()
        active = self.run.active
        if active is None or self._closed:
            return None
        try:
            self._override(asked, active)
            if self.step is None:
                self.step = step = self._opened(asked, active)
                self.answer = step.decide()
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.run.trouble(error, "reading a model request")
        self._asked = asked
        return self.answer

    def _opened(self, asked: Asked, active: seam.ActiveSession) -> Any:
        self.run.read_memory(asked.given)
        self._handoffs = frozenset(handoff.tool_name for handoff in asked.handoffs)
        request = seam.ModelRequest(
            messages=messages.conversation(asked.system, asked.given),
            to_normal=messages.normal,
            tools=self.run.tool_forms.of(asked.tools, asked.handoffs),
            tool_choice=messages.tool_choice(asked.settings),
            params=messages.params(asked.settings, asked.output_schema),
            model=asked.name,
            provider=None,
            protocol=PROTOCOL,
        )
        with self.run.inside():
            if self.run.cut or approvals.any_waits(active):
                approvals.read_outputs(self.run, messages.outputs(asked.given))
            step = active.model_call(asked.name or "model", request=request, agent=self.agent.name)
        held = {name: value for name, value in asked.rest.items() if value is not None and name.endswith("_id")}
        if held:
            step.note(**held)
        return step

    def _override(self, asked: Asked, active: seam.ActiveSession) -> None:
        state = active.replay
        override = state.override if state is not None else None
        if state is None or override is None:
            return
        if override.system_prompt is not None and self.run.is_root and self.agent is self.run.starting:
            given = overrides.with_system_prompt(override.system_prompt, asked.given)
            if asked.system != override.system_prompt or given != asked.given:
                state.override_hits["system_prompt"] += 1
            asked.system, asked.given = override.system_prompt, given
            overrides.remember_system_prompt(active, override.system_prompt)
        if override.model_params is not None:
            changed = overrides.with_params(override.model_params, asked.settings)
            if changed != asked.settings:
                state.override_hits["model_params"] += 1
            asked.settings = changed

    # --- what was recorded ---

    def served(self, answer: Outcome) -> ModelResponse:
        """The recorded response.

        Raises:
            Exception: the recorded or injected failure of the model.
        """
        if answer.kind is not OutcomeKind.VALUE:
            self.step.observe(answer)
            raise seam.exception_of(answer)
        return self._decoded(answer)[0]

    def served_events(self, answer: Outcome) -> list[Any]:
        """The events of the recorded response; raises as `served` does."""
        if answer.kind is not OutcomeKind.VALUE:
            self.served(answer)
        return self._decoded(answer)[1] or []

    def _decoded(self, answer: Outcome) -> tuple[ModelResponse, list[Any] | None]:
        assert self._asked is not None
        try:
            response = codec.decode_response(answer, self._asked.name)
            events = list(codec.decode_events(answer, response, self._asked.name)) if self._asked.streamed else None
        except Exception as error:
            self.run.trouble(error, "reading a recorded response")
            raise
        self.answered(response, events=events)
        return response, events

    # --- after ---

    def answered(self, response: ModelResponse, *, events: list[Any] | None = None, first: int | None = None) -> None:
        """The response is complete: announce its tool calls, then close the step."""
        if self.step is None or self._closed:
            return
        self._closed = True
        try:
            output = messages.plain(response.output)
            said = messages.said(output)
            result = seam.ModelResult(
                message=said,
                native=codec.encode_response(response, output, events[:-1] if events is not None else None),
                usage=messages.usage(response),
                served=_served_name(events),
                response_id=response.response_id,
                streamed=events is not None,
                first_chunk_at=first,
            )
            self._announce(output)
            self._note_failures()
            self.step.observe(result)
            self._provider_calls(said, output)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.step.cancel()
            self.run.trouble(error, "reading a model response")

    def _announce(self, items: list[Any]) -> None:
        """Reserves the response's tool calls, in its order; handoffs belong to the answer itself."""
        self.step.announce(
            [
                _requested(item)
                for item in items
                if (item.get("type") in _CALLS and item.get("name") not in self._handoffs) or item.get("type") in _LOCAL
            ]
        )
        executors.stop_ungated(self.run, items)

    def _provider_calls(self, said: Any, items: list[Any]) -> None:
        """Tools that the provider executed: their results stand in the same response."""
        active = self.run.active
        if active is None or self.step.silent:
            return
        parts = [p for p in said["parts"] if "executor" in p]
        results = {part["id"]: part for part in parts if part["type"] == "tool_result"}
        for part in parts:
            if part["type"] == "tool_call":
                outcome = _provider_outcome(results.get(part["id"]))
                active.provider_call(
                    self.step, part["name"], call_id=part["id"], arguments=as_arguments(part), outcome=outcome
                )
        shells = {item.get("call_id"): item for item in items if item.get("type") == "shell_call_output"}
        for item in items:  # a shell in the provider's container; one that runs here answers in the next request
            call_id = item.get("call_id")
            if item.get("type") == "shell_call" and call_id in shells:
                name, arguments = openai_responses.local_call(item)
                outcome = Outcome(kind=OutcomeKind.VALUE, value=to_stored(shells[call_id].get("output")))
                active.provider_call(self.step, name, call_id=call_id, arguments=arguments, outcome=outcome)

    def failed(self, error: BaseException) -> None:
        """An attempt failed. The framework may make another; if not, `close` ends the step."""
        if isinstance(error, Exception):
            self._failures.append(error)
        elif self.step is not None:
            self._closed = True
            self.step.fail(error)

    def _note_failures(self) -> None:
        if self._failures:
            shown = [f"{type(error).__name__}: {error}"[:500] for error in self._failures]
            self.step.note(attempts=len(shown) + 1, failed_attempts=shown)

    def close(self) -> None:
        """Nothing more comes: the last failure was the call's outcome."""
        if self.step is None or self._closed:
            return
        self._closed = True
        if self._failures:
            error = self._failures.pop()
            self._note_failures()
            self.step.fail(error)
        else:
            self.step.cancel()

    def left(self, events: list[Any], error: BaseException) -> None:
        """A stream that broke is a failure; one whose consumer left keeps what had arrived."""
        if self.step is None or self._closed:
            return
        if isinstance(error, Exception) or not events:
            self.failed(error)
            return
        self._closed = True
        try:
            body = openai_responses.read_stream(Event(event.type, messages.plain(event)) for event in events)
            message = openai_responses.read_response(body).message
            self.step.observe(seam.ModelResult(message=message, streamed=True, partial=True))
        except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.step.cancel(error if isinstance(error, asyncio.CancelledError) else None)
            self.run.trouble(problem, "reading a stream that was left")


def qualified(item: dict[str, Any]) -> str:
    """The name by which a call's tool is known: with its namespace, where it has one of its own."""
    name, namespace = str(item.get("name") or ""), item.get("namespace")
    return f"{namespace}.{name}" if namespace and namespace != name else name


def _requested(item: dict[str, Any]) -> seam.Requested:
    if item.get("type") in _LOCAL:
        return seam.Requested(item.get("call_id"), *openai_responses.local_call(item))
    return seam.Requested(item.get("call_id"), qualified(item), _arguments(item))


def _arguments(item: dict[str, Any]) -> Any:
    return item["arguments"] if "arguments" in item else {"input": item.get("input")}


def is_end(event: Any) -> bool:
    return getattr(event, "type", None) in _ENDS and getattr(event, "response", None) is not None


def _served_name(events: list[Any] | None) -> str | None:
    """The model that answered, which only streams tell."""
    response = getattr(events[-1], "response", None) if events else None
    name = getattr(response, "model", None)
    return name if isinstance(name, str) else None


def _provider_outcome(part: Any) -> Outcome | None:
    if part is None:
        return None
    kind = OutcomeKind.RESULT_ERROR if part.get("is_error") else OutcomeKind.VALUE
    return Outcome(kind=kind, value=part["content"])
