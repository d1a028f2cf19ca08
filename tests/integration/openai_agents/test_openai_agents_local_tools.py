"""Tools that the provider defines and the agent runs: a local shell, an editor of files, a computer."""

from typing import Any

import pytest
from agents import Agent, ApplyPatchResult, ApplyPatchTool, Computer, ComputerTool, LocalShellTool, Runner, ShellTool
from agents.testing import assistant_message

from playhead.core.policy import HistoryModel
from playhead.core.protocol import openai_responses
from playhead.core.values import ReplayStatus
from playhead.errors import RefusedError

from .conftest import Desk

COMPUTER: Any = {
    "type": "computer_call", "id": "c", "call_id": "c1", "status": "completed", "pending_safety_checks": [],
    "action": {"type": "screenshot"},
}  # fmt: skip
ACTION = {"type": "exec", "command": ["ls"], "env": {}}


def local_shell() -> Any:
    return {"type": "local_shell_call", "id": "l", "call_id": "l1", "status": "completed", "action": dict(ACTION)}


def patch(path: str, diff: str = "+hello", call_id: str = "p1") -> Any:
    operation = {"type": "create_file", "path": path, "diff": diff}
    return {
        "type": "apply_patch_call", "id": call_id, "call_id": call_id, "status": "completed", "operation": operation,
    }  # fmt: skip


class Editor:
    """An editor that tells the desk what it did."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def create_file(self, operation: Any) -> Any:
        number = self.desk.enter(operation.path)
        return ApplyPatchResult(status="completed", output=f"made {operation.path} {number}")

    def update_file(self, operation: Any) -> Any:
        self.desk.enter(operation.path)
        return "changed"

    def delete_file(self, operation: Any) -> Any:
        self.desk.enter(operation.path)


def test_a_local_shell_is_answered_by_the_recording(desk: Desk) -> None:
    def execute(request: Any) -> str:
        return f"listed {desk.enter('shell')}"

    async def run(prompt: str) -> str:
        model = desk.model([local_shell()], [assistant_message("done")])
        agent = Agent(name="desk", model=model, tools=[LocalShellTool(executor=execute)])
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.unchanged(run)
    assert [(n.name, n.call.arguments, n.outcome.value) for n in baseline.calls] == [
        ("local_shell", ACTION, "listed 1")
    ]


def test_an_editor_of_files_is_answered_by_the_recording(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        model = desk.model([patch("a.txt"), patch("b.txt", call_id="p2")], [assistant_message("done")])
        agent = Agent(name="desk", model=model, tools=[ApplyPatchTool(editor=Editor(desk))])
        result = await Runner.run(agent, prompt)
        return str([item.output for item in result.new_items if item.type == "tool_call_output_item"])

    baseline = desk.unchanged(run)
    assert [(n.name, n.call.arguments["path"]) for n in baseline.calls] == [
        ("apply_patch", "a.txt"), ("apply_patch", "b.txt"),
    ]  # fmt: skip
    assert "made a.txt 1" in baseline.session.output
    assert "made b.txt 2" in baseline.session.output


def test_an_edit_that_was_not_recorded_is_not_made(desk: Desk) -> None:
    path = ["a.txt"]

    async def run(prompt: str) -> str:
        model = desk.model([patch(path[0])], [assistant_message("done")])
        agent = Agent(name="desk", model=model, tools=[ApplyPatchTool(editor=Editor(desk))])
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.record(run)
    path[0] = "other.txt"
    result = desk.replay(baseline, run)
    assert desk.live == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "other.txt" in result.message


class Screen(Computer):
    """A computer that does nothing."""

    environment: Any = "linux"
    dimensions: Any = (8, 8)

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def screenshot(self) -> str:
        self.desk.enter("screenshot")
        return "aGk="

    def click(self, *args: Any, **kwargs: Any) -> None: ...
    def double_click(self, *args: Any, **kwargs: Any) -> None: ...
    def scroll(self, *args: Any, **kwargs: Any) -> None: ...
    def type(self, *args: Any, **kwargs: Any) -> None: ...
    def wait(self, *args: Any, **kwargs: Any) -> None: ...
    def move(self, *args: Any, **kwargs: Any) -> None: ...
    def keypress(self, *args: Any, **kwargs: Any) -> None: ...
    def drag(self, *args: Any, **kwargs: Any) -> None: ...


def test_a_computer_is_refused_in_preflight_unless_it_may_run_live(desk: Desk) -> None:
    async def run(prompt: str) -> str:
        agent = Agent(
            name="desk", model=desk.model([COMPUTER], [assistant_message("done")]), tools=[ComputerTool(Screen(desk))]
        )
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.record(run)
    assert baseline.error is None, baseline.error
    assert desk.live == ["screenshot"]
    with pytest.raises(RefusedError, match="'computer' was used: one request of the model is many calls"):
        desk.replay(baseline, run)
    result = desk.replay(baseline, run, tool_policy={"tools": {"computer": {"type": "passthrough"}}})
    assert (result.replay.status, desk.live) == (ReplayStatus.COMPLETED, ["screenshot"])


def test_a_model_that_asks_for_a_computer_that_was_not_recorded_is_stopped(desk: Desk) -> None:
    steps: list[list[Any]] = [[assistant_message("done")]]

    async def run(prompt: str) -> str:
        agent = Agent(name="desk", model=desk.model(*steps), tools=[ComputerTool(Screen(desk))])
        return str((await Runner.run(agent, prompt)).final_output)

    baseline = desk.record(run)
    steps.insert(0, [COMPUTER])
    result = desk.replay(baseline, run)
    assert "the model asks for tool 'computer': one request of the model is many calls" in (result.message or "")
    assert desk.live == []


def test_a_shell_in_the_providers_container_is_a_call_of_the_provider(desk: Desk) -> None:
    action = {"commands": ["ls"], "timeout_ms": 500, "max_output_length": 100}
    output = [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    items: list[Any] = [
        {"type": "shell_call", "id": "s", "call_id": "s1", "status": "completed", "action": action},
        {"type": "shell_call_output", "id": "o", "call_id": "s1", "status": "completed", "output": output},
        assistant_message("done"),
    ]

    async def run(prompt: str) -> str:
        tools: list[Any] = [ShellTool(environment={"type": "container_auto"})]
        return str((await Runner.run(Agent(name="desk", model=desk.model(items), tools=tools), prompt)).final_output)

    baseline = desk.record(run)
    (call,) = baseline.calls
    assert (call.name, call.call.arguments, call.call.source) == ("shell", action, "provider")
    assert call.outcome.value[0]["stdout"] == "a.txt"
    for model, by in ((None, "live"), (HistoryModel(), "served")):
        result = desk.replay(baseline, run, model_policy=model)
        assert [(row.by, row.tool) for row in result.replay.ledger if row.kind == "tool"] == [(by, "shell")]


def test_what_the_agent_runs_is_no_call_of_the_provider() -> None:
    output = {"type": "local_shell_call_output", "id": "l1", "call_id": "l1", "output": "a.txt"}
    said, told = openai_responses.read_items([local_shell(), output])
    assert said["parts"] == [{"type": "tool_call", "id": "l1", "name": "local_shell", "arguments": ACTION}]
    assert told["role"] == "tool"
    assert (told["parts"][0]["id"], told["parts"][0]["content"]) == ("l1", "a.txt")
