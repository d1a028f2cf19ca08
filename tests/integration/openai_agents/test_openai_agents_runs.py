"""OpenAI Agents: handoffs, attempts, memories, guardrails, streams, pauses."""

from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    ModelRetrySettings,
    ModelSettings,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.testing import ModelStep, assistant_message, function_call

from playhead.core.policy import HistoryModel
from playhead.core.values import NodeKind, NodeStatus, OutcomeKind, ReplayStatus

Desk = Any  # of conftest.py


def call(tool: str, arguments: dict[str, Any] | None = None, call_id: str = "c1") -> list[Any]:
    return [function_call(tool, arguments or {}, call_id=call_id)]


def always(context: Any) -> bool:
    return True


def says(text: str = "done") -> list[Any]:
    return [assistant_message(text)]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_handoff_is_an_agent_call_from_where_the_old_agent_stopped(desk: Desk, streamed: bool) -> None:
    async def run(prompt: str) -> str:
        def look() -> int:
            return desk.enter("look")

        second = Agent(
            name="second", model=desk.model(call("look", call_id="c2"), says("second")), tools=[function_tool(look)]
        )
        model = desk.model(call("look"), [function_call("transfer_to_second", {}, call_id="h")])
        first = Agent(name="first", model=model, tools=[function_tool(look)], handoffs=[second])
        if not streamed:
            return str((await Runner.run(first, prompt)).final_output)
        result = Runner.run_streamed(first, prompt)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    baseline = desk.unchanged(run)

    (handoff,) = [n for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL]
    assert handoff.name == "second"
    assert handoff.status is NodeStatus.COMPLETED
    assert [n.name for n in baseline.calls] == ["look", "look"]
    assert [n.parent_id for n in baseline.calls] == [None, handoff.id]
    assert [n.parent_id for n in baseline.model_calls] == [None, None, handoff.id, handoff.id]


def test_attempts_of_the_framework_are_one_model_call(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        failing = [ModelStep.raise_error(ConnectionError(f"try {n}")) for n in range(2)]
        settings = ModelSettings(retry=ModelRetrySettings(max_retries=3, backoff={"initial_delay": 0}, policy=always))
        model = desk.model(*failing, call("look"), says())
        agent = Agent(
            name="a", model=model, model_settings=settings, tools=[function_tool(lambda: "x", name_override="look")]
        )
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.unchanged(run)

    node, _ = baseline.model_calls
    assert node.attributes["attempts"] == 3
    assert node.attributes["failed_attempts"] == ["ConnectionError: try 0", "ConnectionError: try 1"]


def test_a_model_that_fails_in_the_end_fails_again_without_being_asked(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        failing = [ModelStep.raise_error(ConnectionError("down")) for _ in range(3)]
        settings = ModelSettings(retry=ModelRetrySettings(max_retries=2, backoff={"initial_delay": 0}, policy=always))
        agent = Agent(name="a", model=desk.model(*failing), model_settings=settings)
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.record(run)
    result = desk.replay(baseline, run, model_policy=HistoryModel())

    assert isinstance(baseline.error, ConnectionError)
    assert baseline.model_calls[0].status is NodeStatus.FAILED
    assert desk.models[-1].calls == ()
    assert result.session.error is not None
    assert result.session.error.message == "down"


def test_a_session_memory_makes_the_next_turn_and_stands_in_its_inputs(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        def look() -> int:
            return desk.enter("look")

        memory = SQLiteSession("m")
        agent = Agent(name="a", model=desk.model(call("look"), says("one"), says("two")), tools=[function_tool(look)])
        await Runner.run(agent, prompt, session=memory)
        return str((await Runner.run(agent, "and?", session=memory)).final_output)

    baseline = desk.unchanged(run)

    assert len(baseline.session.turns) == 2
    second = baseline.session.turns[1].input
    assert second["prompt"] == "and?"
    kinds = [item.get("role", item.get("type")) for item in second["message_history"]]
    assert kinds == ["user", "function_call", "function_call_output", "assistant"]


def test_a_guardrail_that_trips_is_a_span_and_fails_the_run(desk: Desk) -> None:
    async def no(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info="not here", tripwire_triggered=True)

    async def run(prompt: str) -> str:
        guard = InputGuardrail(no, name="polite", run_in_parallel=False)
        agent = Agent(name="a", model=desk.model(says()), input_guardrails=[guard])
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.record(run)

    assert isinstance(baseline.error, InputGuardrailTripwireTriggered)
    (span,) = [n for n in baseline.nodes if n.kind is NodeKind.SPAN]
    assert span.outcome is not None
    assert span.outcome.value == {"tripwire_triggered": True, "info": "not here"}


def test_state_that_the_provider_holds_is_not_taken_up_again_by_a_live_model(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        agent = Agent(name="a", model=desk.model(says()))
        return str((await Runner.run(agent, prompt, previous_response_id="resp_1")).final_output)

    baseline = desk.record(run)
    refused = desk.replay(baseline, run)
    assert refused.replay.status is ReplayStatus.FAILED
    assert "previous_response_id" in refused.message
    assert desk.models[-1].calls == ()

    assert desk.replay(baseline, run, model_policy=HistoryModel()).faithful


def test_a_stop_reaches_the_consumer_of_a_stream(desk: Desk) -> None:
    words = ["a"]
    caught: list[BaseException] = []

    async def run(prompt: str) -> str:
        def look(word: str) -> int:
            return desk.enter(word)

        agent = Agent(name="a", model=desk.model(call("look", {"word": words[0]}), says()), tools=[function_tool(look)])
        result = Runner.run_streamed(agent, prompt)
        try:
            async for _ in result.stream_events():
                pass
        except BaseException as error:
            caught.append(error)
            raise
        return str(result.final_output)

    baseline = desk.record(run)
    words[0] = "changed"
    result = desk.replay(baseline, run)

    assert desk.live == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "changed" in result.message
    assert len(caught) == 1


def test_a_recorded_stream_is_given_piece_by_piece(desk: Desk) -> None:
    seen: list[list[Any]] = []

    async def run(prompt: str) -> str:
        result = Runner.run_streamed(Agent(name="a", model=desk.model(says("one two three"))), prompt)
        raw = [e.data async for e in result.stream_events() if e.type == "raw_response_event"]
        seen.append([event.model_dump(exclude={"response"}, exclude_unset=True) for event in raw])
        return str(result.final_output)

    baseline = desk.record(run)
    result = desk.replay(baseline, run, model_policy=HistoryModel())

    assert result.faithful, result.message
    assert desk.models[-1].calls == ()
    assert [e["type"] for e in seen[0]] == [e["type"] for e in seen[1]]
    assert seen[0][:-1] == seen[1][:-1]


def test_a_pause_inside_an_agent_inside_a_tool_goes_on_in_the_second_attempt(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        def delete() -> str:
            desk.enter("delete")
            return "deleted"

        child = Agent(
            name="child", model=desk.model(call("delete", call_id="d"), says("gone")),
            tools=[function_tool(delete, needs_approval=True)],
        )  # fmt: skip
        model = desk.model(call("ask", {"input": "x"}), says("all done"))
        parent = Agent(name="parent", model=model, tools=[child.as_tool("ask", "asks")])
        result = await Runner.run(parent, prompt)
        while result.interruptions:
            state = result.to_state()
            for item in state.get_interruptions():
                state.approve(item)
            result = await Runner.run(parent, state)
        return str(result.final_output)

    baseline = desk.record(run)
    policy = {"default": {"type": "history"}, "tools": {"ask": {"type": "passthrough"}}}
    result = desk.replay(baseline, run, tool_policy=policy)

    kinds = [(n.name, n.call.attempt, n.outcome.kind) for n in baseline.calls if n.call and n.outcome]
    assert sorted(kinds) == [
        ("ask", 1, OutcomeKind.INTERRUPT), ("ask", 2, OutcomeKind.VALUE),
        ("delete", 1, OutcomeKind.INTERRUPT), ("delete", 2, OutcomeKind.VALUE),
    ]  # fmt: skip
    assert desk.live == []
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert result.session.output == baseline.session.output
