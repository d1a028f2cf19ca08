"""The OpenAI Agents adapter where the framework has ways of its own: settings, hooks, options, failures, limits."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    ModelProvider,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    SQLiteSession,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    function_tool,
    set_tracing_disabled,
)
from agents.agent import AgentBase
from agents.exceptions import ToolTimeoutError
from agents.models.interface import Model
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseCustomToolCall
from pydantic import BaseModel

from playhead.adapters import openai_agents as adapter
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, NodeStatus, OutcomeKind, ReplayStatus, SessionStatus
from playhead.errors import RecordingError
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.bench import Bench, Recorded, Replayed


class Desk:
    """Runs that are recorded and replayed; what they do is given anew each time."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.live: list[Any] = []
        self.models: list[ScriptedModel] = []

    def model(self, *steps: Any) -> ScriptedModel:
        self.models.append(ScriptedModel(steps))
        return self.models[-1]

    def enter(self, what: Any) -> int:
        self.live.append(what)
        return len(self.live)

    def record(self, run: Callable[..., Any]) -> Recorded:
        return self.bench.record(lambda prompt: asyncio.run(run(prompt)), {"prompt": "go"})

    def replay(self, baseline: Recorded, run: Callable[..., Any], **options: Any) -> Replayed:
        self.live.clear()
        return self.bench.replay(baseline, lambda prompt: asyncio.run(run(prompt)), **options)

    def unchanged(self, run: Callable[..., Any]) -> Recorded:
        """Records, and replays faithfully under a live and a recorded model."""
        baseline = self.record(run)
        for model in (None, HistoryModel()):
            result = self.replay(baseline, run, model_policy=model)
            assert self.live == []
            assert result.faithful, (result.replay.fidelity, result.message)
            assert result.session.output == baseline.session.output
        return baseline


@pytest.fixture
def desk() -> Iterator[Desk]:
    set_tracing_disabled(True)
    adapter.install()
    made = Desk()
    yield made
    made.bench.close()
    adapter.uninstall()


def call(tool: str, arguments: dict[str, Any] | None = None, call_id: str = "c1") -> list[Any]:
    return [function_call(tool, arguments or {}, call_id=call_id)]


def always(context: Any) -> bool:
    return True


def says(text: str = "done") -> list[Any]:
    return [assistant_message(text)]


class Named(ModelProvider):
    """Gives its model for any name, and remembers the names."""

    def __init__(self, *models: Model) -> None:
        self.models = list(models)
        self.names: list[str | None] = []
        self.closed = False

    def get_model(self, model_name: str | None) -> Model:
        self.names.append(model_name)
        return self.models[0]


# --- settings, models, options --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "gpt-5.2", "gpt-4.1"])
@pytest.mark.parametrize("of_agent", [None, "gpt-5", "gpt-4o"])
def test_a_model_known_by_name_keeps_the_settings_that_the_framework_implies(
    desk: Desk, given: str | None, of_agent: str | None
) -> None:
    def seen() -> tuple[Any, list[str | None]]:
        model, found = desk.model(says()), []
        provider = Named(model)

        async def run(prompt: str) -> str:
            agent = Agent(name="a", model=of_agent)
            result = await Runner.run(agent, prompt, run_config=RunConfig(model=given, model_provider=provider))
            return str(result.final_output)

        found.append(run)
        return run, [model, provider]  # type: ignore[return-value]

    run, (plain_model, plain_provider) = seen()  # type: ignore[misc]
    adapter.uninstall()
    asyncio.run(run("go"))
    adapter.install()
    run, (model, provider) = seen()  # type: ignore[misc]
    baseline = desk.record(run)

    assert baseline.error is None
    assert model.last_call.model_settings == plain_model.last_call.model_settings
    assert set(provider.names) == set(plain_provider.names)


def test_an_agent_inside_a_tool_asks_its_own_model(desk: Desk) -> None:
    inner, outer = desk.model(says("inner")), desk.model(call("ask", {"input": "x"}), says("outer"))
    child = Agent(name="child", model=inner)
    parent = Agent(name="parent", model=outer, tools=[child.as_tool("ask", "asks")])

    async def run(prompt: str) -> str:
        return str((await Runner.run(parent, prompt, run_config=RunConfig())).final_output)

    baseline = desk.record(run)

    assert baseline.output == "outer"
    assert len(inner.calls) == 1
    assert len(outer.calls) == 2
    (child_call,) = [n for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL]
    (tool_call,) = baseline.calls
    assert child_call.parent_id == tool_call.id
    assert [n.parent_id for n in baseline.model_calls].count(child_call.id) == 1


def test_options_are_copied_and_stay_as_they_were(desk: Desk) -> None:
    config: dict[str, Any] = {"model": desk.model(says()), "workflow_name": "w"}
    given = dict(config)

    async def run(prompt: str) -> str:
        return str((await Runner.run(Agent(name="a"), prompt, run_config=config)).final_output)

    baseline = desk.record(run)

    assert baseline.output == "done"
    assert config == given
    assert len(baseline.model_calls) == 1


def test_options_that_the_framework_refuses_are_refused_in_its_own_words(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        return str((await Runner.run(Agent(name="a"), prompt, run_config={"modle": 1})).final_output)

    error = desk.record(run).error

    assert isinstance(error, TypeError)
    assert "modle" in str(error)


class Noting(RunHooks[Any]):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_llm_start(self, *args: Any) -> None:
        self.seen.append("llm_start")

    async def on_llm_end(self, *args: Any) -> None:
        self.seen.append("llm_end")

    async def on_tool_start(self, *args: Any) -> None:
        self.seen.append("tool_start")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.seen.append(f"tool_end {result}")

    async def on_agent_end(self, *args: Any) -> None:
        self.seen.append("agent_end")


def test_hooks_of_the_user_run_in_their_order_live_and_served(desk: Desk) -> None:
    noted: list[list[str]] = []

    async def run(prompt: str) -> str:
        def look() -> int:
            return desk.enter("look")

        hooks = Noting()
        agent = Agent(name="a", model=desk.model(call("look"), says()), tools=[function_tool(look)])
        result = await Runner.run(agent, prompt, hooks=hooks)
        noted.append(hooks.seen)
        return str(result.final_output)

    desk.unchanged(run)

    expected = ["llm_start", "llm_end", "tool_start", "tool_end 1", "llm_start", "llm_end", "agent_end"]
    assert noted == [expected] * 3


def test_a_replacing_model_gets_the_settings_of_its_name(desk: Desk) -> None:
    provider = Named(desk.model(says("new")))

    async def run(prompt: str) -> str:
        agent = Agent(name="a", model="gpt-4o")
        return str((await Runner.run(agent, prompt, run_config=RunConfig(model_provider=provider))).final_output)

    baseline = desk.record(run)
    provider.models[0] = desk.model(says("new"))
    result = desk.replay(baseline, run, override=ReplayOverride(model="gpt-5"))

    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert "gpt-5" in provider.names
    assert provider.models[0].last_call.model_settings.verbosity == "low"  # type: ignore[attr-defined]


# --- tools ----------------------------------------------------------------------------------------------------------


class Point(BaseModel):
    x: int


RESULTS: list[Any] = [
    ToolOutputText(text="hello"),
    ToolOutputImage(image_url="data:image/png;base64,AAAA", detail="low"),
    ToolOutputFileContent(file_data="data:text/plain;base64,AAAA", filename="a.txt"),
    [ToolOutputText(text="one"), ToolOutputImage(file_id="f1")],
    {"type": "text", "text": "a dict that the framework knows"},
    Point(x=1),
    (1, 2),
    {"a": (1, None)},
    {1: "a"},
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_what_the_model_is_shown_of_a_result_is_the_same_in_a_replay(desk: Desk, result: Any) -> None:
    async def run(prompt: str) -> str:
        def tool() -> Any:
            desk.enter("tool")
            return result

        model = desk.model(call("tool"), says())
        return str((await Runner.run(Agent(name="a", model=model, tools=[function_tool(tool)]), prompt)).final_output)

    baseline = desk.record(run)
    for _ in range(2):
        replayed = desk.replay(baseline, run)
        assert replayed.faithful, replayed.message
    shown = [model.last_call.input[-1]["output"] for model in desk.models]  # type: ignore[union-attr]
    assert shown[0] == shown[1] == shown[2]


def test_a_record_comes_back_as_itself_where_its_class_is_known(desk: Desk) -> None:
    given: list[Any] = []

    async def run(prompt: str) -> str:
        def tool() -> Point:
            desk.enter("tool")
            return Point(x=1)

        agent = Agent(
            name="a", model=desk.model(call("tool")), tools=[function_tool(tool)],
            tool_use_behavior="stop_on_first_tool", output_type=Point,
        )  # fmt: skip
        given.append((await Runner.run(agent, prompt)).final_output)
        return str(given[-1])

    desk.unchanged(run)

    assert given == [Point(x=1)] * 3


def test_a_failure_that_the_framework_words_is_an_error_result_with_its_cause(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        def tool() -> str:
            desk.enter("tool")
            raise ConnectionError("no route")

        model = desk.model(call("tool"), says())
        return str((await Runner.run(Agent(name="a", model=model, tools=[function_tool(tool)]), prompt)).final_output)

    baseline = desk.unchanged(run)

    (node,) = baseline.calls
    assert node.outcome is not None
    assert node.outcome.kind is OutcomeKind.RESULT_ERROR
    assert "error occurred" in node.outcome.value
    assert node.outcome.error is not None
    assert node.outcome.error.class_name == "ConnectionError"


def test_a_failure_that_ends_the_run_ends_the_replay_with_the_same_class(desk: Desk) -> None:
    raised: list[BaseException] = []

    async def run(prompt: str) -> str:
        def tool() -> str:
            desk.enter("tool")
            raise ConnectionError("no route")

        tools: list[Any] = [function_tool(tool, failure_error_function=None)]
        try:
            await Runner.run(Agent(name="a", model=desk.model(call("tool")), tools=tools), prompt)
        except UserError as error:
            raised.append(error)
            raise
        return "unreachable"

    baseline = desk.record(run)
    result = desk.replay(baseline, run)

    assert desk.live == []
    assert result.session.status is SessionStatus.FAILED
    assert [(str(e), type(e.__cause__), str(e.__cause__)) for e in raised] == [
        ("Error running tool tool: no route", ConnectionError, "no route")
    ] * 2


def test_a_static_error_is_worded_by_the_tools_own_failure_function(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        def tool() -> str:
            desk.enter("tool")
            return "fine"

        model = desk.model(call("tool"), says())
        made = function_tool(tool, failure_error_function=lambda _, error: f"sorry: {error}")
        return str((await Runner.run(Agent(name="a", model=model, tools=[made]), prompt)).final_output)

    baseline = desk.record(run)
    case = {"error": {"message": "closed", "status": 503}}
    result = desk.replay(baseline, run, tool_policy={"default": {"type": "static", "cases": [case]}})

    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert desk.models[-1].last_call.input[-1]["output"] == "sorry: closed"  # type: ignore[union-attr]


@pytest.mark.parametrize("behavior", ["error_as_result", "raise_exception"])
def test_a_time_limit_is_part_of_the_recording(desk: Desk, behavior: Any) -> None:
    async def run(prompt: str) -> str:
        async def slow() -> str:
            desk.enter("slow")
            await asyncio.Event().wait()
            return "never"

        tool = function_tool(slow, timeout=0.02, timeout_behavior=behavior)
        result = await Runner.run(Agent(name="a", model=desk.model(call("slow"), says()), tools=[tool]), prompt)
        return str(result.final_output)

    baseline = desk.record(run)
    result = desk.replay(baseline, run)

    assert desk.live == []
    (node,) = baseline.calls
    assert node.outcome is not None
    assert result.calls[0].outcome is not None
    assert result.session.status is baseline.session.status
    assert result.by == ["served"]
    if behavior == "error_as_result":
        assert node.outcome.kind is OutcomeKind.RESULT_ERROR
        assert "timed out after 0.02 seconds" in node.outcome.value
        assert result.faithful, result.message
    else:
        assert isinstance(baseline.error, ToolTimeoutError)
        assert node.outcome.kind is OutcomeKind.ERROR


def test_tools_made_by_hand_get_the_context_that_they_ask_for(desk: Desk) -> None:
    kinds: list[type] = []

    async def invoke(context: RunContextWrapper[Any], arguments: str) -> str:
        kinds.append(type(context))
        desk.enter(arguments)
        return arguments

    def made() -> FunctionTool:
        return FunctionTool("echo", "says it again", {"type": "object", "properties": {}}, invoke, False)

    async def run(prompt: str) -> str:
        model = desk.model(call("echo", {"a": 1}), says())
        return str((await Runner.run(Agent(name="a", model=model, tools=[made()]), prompt)).final_output)

    adapter.uninstall()
    asyncio.run(run("go"))
    adapter.install()
    baseline = desk.unchanged(run)

    assert kinds == [RunContextWrapper, RunContextWrapper]
    assert baseline.calls[0].call is not None
    assert baseline.calls[0].call.arguments == {"a": 1}


def test_who_has_to_agree_is_asked_of_the_same_arguments_as_without_us(desk: Desk) -> None:
    """The framework asks a person where arguments change on their way to the tool: a gate must not hide that."""

    async def never(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return False

    async def run(prompt: str) -> str:
        def pay(amount: int, currency: str = "EUR") -> str:
            desk.enter(amount)
            return "paid"

        model = desk.model(call("pay", {"amount": 3}), says())
        tool = function_tool(pay, needs_approval=never, strict_mode=False)
        result = await Runner.run(Agent(name="a", model=model, tools=[tool]), prompt)
        return str(len(result.interruptions))

    adapter.uninstall()
    plain = asyncio.run(run("go"))
    adapter.install()

    assert desk.record(run).output == plain == "1"


def test_shells_and_custom_tools_are_answered_by_the_recording(desk: Desk) -> None:
    shell_call: Any = {
        "type": "shell_call", "id": "s", "call_id": "s1", "status": "completed",
        "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
    }  # fmt: skip
    custom = ResponseCustomToolCall(type="custom_tool_call", call_id="u1", name="grep", input="a b", id="u")

    async def run(prompt: str) -> str:
        async def execute(request: Any) -> ShellResult:
            desk.enter(request.data.action.commands)
            return ShellResult(output=[ShellCommandOutput(stdout="a.txt")])

        async def grep(context: Any, text: str) -> str:
            desk.enter(text)
            return f"found {text}"

        model = desk.model([shell_call], [custom], says())
        tools: list[Any] = [ShellTool(executor=execute), CustomTool("grep", "greps", grep)]
        return str((await Runner.run(Agent(name="a", model=model, tools=tools), prompt)).final_output)

    baseline = desk.record(run)
    assert baseline.error is None, baseline.error
    result = desk.replay(baseline, run)

    assert desk.live == []
    assert [n.name for n in baseline.calls] == ["shell", "grep"]
    assert result.by == ["served", "served"]
    assert result.session.output == baseline.session.output
    shown = [model.last_call.input for model in desk.models]  # type: ignore[union-attr]
    assert shown[0] == shown[1]


# --- runs -----------------------------------------------------------------------------------------------------------


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
        settings = ModelSettings(
            retry=ModelRetrySettings(max_retries=3, backoff={"initial_delay": 0}, policy=always)
        )
        model = desk.model(*failing, call("look"), says())
        agent = Agent(name="a", model=model, model_settings=settings, tools=[function_tool(lambda: "x", name_override="look")])
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.unchanged(run)

    node, _ = baseline.model_calls
    assert node.attributes["attempts"] == 3
    assert node.attributes["failed_attempts"] == ["ConnectionError: try 0", "ConnectionError: try 1"]


def test_a_model_that_fails_in_the_end_fails_again_without_being_asked(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        failing = [ModelStep.raise_error(ConnectionError("down")) for _ in range(3)]
        settings = ModelSettings(
            retry=ModelRetrySettings(max_retries=2, backoff={"initial_delay": 0}, policy=always)
        )
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

        agent = Agent(
            name="a", model=desk.model(call("look", {"word": words[0]}), says()), tools=[function_tool(look)]
        )
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


# --- agents as entry points, versions of the framework --------------------------------------------------------------

def test_an_agent_object_starts_again_from_its_inputs(desk: Desk) -> None:
    def look() -> int:
        return desk.enter("look")

    agent = Agent(name="a", model=desk.model(call("look"), says("seen")), tools=[function_tool(look)])
    runner = adapter.Runner(recorder=desk.bench.recorder)
    history: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]

    async def run() -> None:
        result = await runner.run(agent, [*history, {"role": "user", "content": "look"}], context={"user": 7})
        assert result.final_output == "seen"

    asyncio.run(run())
    desk.bench.recorder.flush()
    (found,) = desk.bench.store.sessions.find(SessionQuery()).items
    baseline = desk.bench.read(found.id)
    assert baseline.session.inputs == {"prompt": "look", "message_history": history, "context": {"user": 7}}
    desk.live.clear()
    result = desk.bench.replay(baseline, agent, model_policy=HistoryModel())

    assert desk.live == []
    assert result.faithful, (result.replay.fidelity, result.message)


def test_a_framework_without_a_hook_is_refused_when_it_is_wrapped(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter.uninstall()
    monkeypatch.delattr(AgentBase, "get_all_tools")

    with pytest.raises(RecordingError, match=r"openai-agents .* has no Agent.get_all_tools"):
        adapter.install()


def test_nothing_is_left_behind(desk: Desk) -> None:
    adapter.uninstall()
    before = [vars(agents.Runner)[n] for n in ("run", "run_sync", "run_streamed")], AgentBase.get_all_tools
    adapter.install()
    adapter.install()
    assert vars(agents.Runner)["run"] is not before[0][0]
    adapter.uninstall()

    assert [vars(agents.Runner)[n] for n in ("run", "run_sync", "run_streamed")] == before[0]
    assert AgentBase.get_all_tools is before[1]
