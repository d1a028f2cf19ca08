"""Guards in live use: what a function's caller is given, what the recording says of it, and what a replay does."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import playhead
from playhead.core.values import FidelityKind, Node, NodeKind, OutcomeKind
from playhead.engine.recorder import Recorder

GIVEN: list[Any] = []
"""What the tools give, call by call."""
CALLS: list[str] = []


def given(name: str) -> Any:
    CALLS.append(name)
    result = GIVEN.pop(0)
    if isinstance(result, Exception):
        raise result
    return result


@playhead.tool(effect="read")
def search(q: str) -> Any:
    return given("search")


@playhead.tool(effect="write")
def book(q: str) -> Any:
    return given("book")


@playhead.tool(effect="read")
async def look(q: str) -> Any:
    return given("look")


TOOLS: dict[str, Any] = {"search": search, "book": book}


def shown(tool: Any, q: str) -> Any:
    try:
        return tool(q)
    except playhead.ReplayedToolError as error:
        return f"told: {error}"


@playhead.agent("guarded")
def guarded(tool: str) -> Any:
    if tool == "look":
        try:
            return asyncio.run(look("x"))
        except playhead.ReplayedToolError as error:
            return f"told: {error}"
    return shown(TOOLS[tool], "x")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    CALLS.clear()
    GIVEN.clear()
    yield
    CALLS.clear()


def recorded(recorder: Recorder, tool: str, *results: Any) -> tuple[Any, Node]:
    GIVEN[:] = results
    output = guarded(tool)
    playhead.flush()
    session = recorder.store.sessions.resolve("last")
    return output, next(n for n in recorder.store.sessions.nodes(session) if n.kind is NodeKind.TOOL_CALL)


def replayed_without_live_calls(output: Any) -> None:
    CALLS.clear()
    result = playhead.replay(agent=guarded)
    assert (result.output, result.fidelity.kind, CALLS) == (output, FidelityKind.FAITHFUL, [])
    assert [row.by for row in result.ledger if row.kind == "tool"] == ["served"]


@pytest.mark.parametrize("tool", ["search", "look"])
def test_an_empty_result_of_a_reading_tool_is_asked_for_once_more(recorder: Recorder, tool: str):
    with playhead.guards({tool: {"not_empty": True, "action": "retry"}}):
        output, node = recorded(recorder, tool, [], ["R-1"])
    assert (output, CALLS) == (["R-1"], [tool, tool])
    assert node.outcome is not None
    assert node.outcome.value == ["R-1"]
    guard: Any = node.attributes["guard"]
    assert (guard["fault"], guard["action"], guard["attempts"], guard["withheld"]) == ("empty", "retry", 2, [])
    replayed_without_live_calls(output)


@pytest.mark.parametrize("tool", ["search", "look"])
def test_a_retry_that_helps_nothing_ends_in_a_text_for_the_model(recorder: Recorder, tool: str):
    with playhead.guards({tool: {"not_empty": True, "action": "retry"}}):
        output, node = recorded(recorder, tool, [], {})
    assert "gave an empty result, twice" in output
    assert [tool, tool] == CALLS
    assert node.outcome is not None
    assert node.outcome.kind is OutcomeKind.RESULT_ERROR
    guard: Any = node.attributes["guard"]
    assert (guard["action"], guard["attempts"], guard["withheld"]) == ("message", 2, {})
    replayed_without_live_calls(output)


def test_a_write_is_never_made_again(recorder: Recorder):
    guards = {"book": {"schema": {"type": "object", "required": ["id"]}, "action": "retry"}}
    with playhead.guards(guards):
        output, node = recorded(recorder, "book", {"ok": 1})
    assert CALLS == ["book"]
    assert "Whether the call took effect is not known" in output
    assert node.attributes["guard"] == {
        "fault": "malformed", "pointer": "", "detail": "it does not fit what the tool promises", "action": "message",
        "attempts": 1, "withheld": {"ok": 1},
    }  # fmt: skip
    with playhead.guards(guards, effects={"book": {"class": "write", "idempotent": True}}):
        output, _ = recorded(recorder, "book", {"ok": 1}, {"id": "R-1"})
    assert output == {"id": "R-1"}


def test_a_result_that_passes_is_as_it_was(recorder: Recorder):
    with playhead.guards({"search": {"not_empty": True, "range": {"/total": [0, 10]}}}):
        output, node = recorded(recorder, "search", {"total": 3})
    assert (output, node.attributes, CALLS) == ({"total": 3}, {}, ["search"])


def test_guards_are_off_by_default_and_after_they_were_turned_off(recorder: Recorder):
    scope = playhead.guards({"search": {"not_empty": True}})
    scope.off()
    scope.off()
    output, node = recorded(recorder, "search", [])
    assert (output, node.attributes) == ([], {})


def test_an_error_of_the_retry_is_the_tools_error(recorder: Recorder):
    with playhead.guards({"search": {"not_empty": True, "action": "retry"}}), pytest.raises(LookupError, match="gone"):
        recorded(recorder, "search", [], LookupError("gone"))
    playhead.flush()
    node = recorder.store.sessions.nodes(recorder.store.sessions.resolve("last"))[-1]
    assert node.outcome is not None
    assert node.outcome.kind is OutcomeKind.ERROR


def test_a_recorded_result_is_not_checked_again(recorder: Recorder):
    output, _ = recorded(recorder, "search", [])
    with playhead.guards({"search": {"not_empty": True}}):
        replayed_without_live_calls(output)


def test_a_live_tool_of_a_fork_is_checked(recorder: Recorder):
    recorded(recorder, "search", ["old"])
    GIVEN[:] = [[]]
    live = playhead.ToolPolicy(default=playhead.PassthroughConfig())
    with playhead.guards({"search": {"not_empty": True, "message": "Nothing there."}}):
        result = playhead.replay(agent=guarded, tool_policy=live)
    assert result.output == "told: Nothing there."


def test_what_is_no_guard_is_refused():
    with pytest.raises(playhead.PlayheadError, match="guard of 'search': not_emtpy"):
        playhead.guards({"search": {"not_emtpy": True}})
