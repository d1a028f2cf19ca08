"""OpenAI Agents: what tools of every kind give, and how they fail."""

import asyncio
from typing import Any

import pytest
from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    RunContextWrapper,
    Runner,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    function_tool,
)
from agents.exceptions import ToolTimeoutError
from agents.testing import assistant_message, function_call
from openai.types.responses import ResponseCustomToolCall
from pydantic import BaseModel

from playhead.adapters import openai_agents as adapter
from playhead.core.values import OutcomeKind, ReplayStatus, SessionStatus

Desk = Any  # of conftest.py


def call(tool: str, arguments: dict[str, Any] | None = None, call_id: str = "c1") -> list[Any]:
    return [function_call(tool, arguments or {}, call_id=call_id)]


def always(context: Any) -> bool:
    return True


def says(text: str = "done") -> list[Any]:
    return [assistant_message(text)]


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
