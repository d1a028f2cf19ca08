"""Recording of queries of the Claude Agent SDK, over a scripted transport."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SdkMcpTool, SystemMessage

import playhead
from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.core.values import Mark, Node, NodeKind, Session, SessionStatus
from playhead.engine.recorder import Recorder
from playhead.errors import RefusedError
from playhead.store.ports import SessionQuery
from playhead.testing.claude import Ask, Raw, ScriptedClaude

LOOKUP = "mcp__support__lookup"
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def server(body: Callable[[dict[str, Any]], Any] | None = None, name: str = "support") -> Any:
    async def lookup(arguments: dict[str, Any]) -> Any:
        if body is not None:
            return body(arguments)
        return {"content": [{"type": "text", "text": f"Result for {arguments['query']}"}]}

    tool = SdkMcpTool(name="lookup", description="Look up.", input_schema=SCHEMA, handler=lookup)
    return replayable_sdk_mcp_server(name=name, tools=[tool])


async def collect(stream: AsyncIterator[Any]) -> list[Any]:
    return [message async for message in stream]


def run(transport: Any, *, prompt: str = "Go", runner: PlayheadClaudeRunner | None = None, **more: Any) -> list[Any]:
    return asyncio.run(
        collect((runner or PlayheadClaudeRunner("desk")).query(prompt=prompt, transport=transport, **more))
    )


def sessions(recorder: Recorder) -> list[Session]:
    recorder.flush()
    return list(recorder.store.sessions.find(SessionQuery()).items)


def nodes(recorder: Recorder, kind: NodeKind | None = None) -> list[Node]:
    found = recorder.store.sessions.nodes(sessions(recorder)[0].id)
    return [node for node in found if kind is None or node.kind is kind]


def test_the_consumer_gets_the_messages_of_the_sdk_unchanged(recorder: Recorder):
    turns = [["Hm.", Ask("Bash", {"command": "ls"}, result="a.txt")], ["There is a.txt."]]
    bare = asyncio.run(collect(claude_agent_sdk.query(prompt="Go", transport=ScriptedClaude(turns))))  # type: ignore[arg-type]
    assert run(ScriptedClaude(turns)) == bare


def test_a_query_is_a_session_with_a_root_agent_call(recorder: Recorder):
    run(ScriptedClaude([["Hello."]]), runner=PlayheadClaudeRunner("desk", session_name="first"))
    (session,) = sessions(recorder)
    root = nodes(recorder)[0]
    assert (session.agent, session.name, session.status) == ("desk", "first", SessionStatus.COMPLETED)
    assert (session.inputs, session.output) == ({"prompt": "Go"}, "Hello.")
    assert (root.kind, root.attributes["effective_prompt"]) == (NodeKind.AGENT_CALL, "Go")
    assert all(node.parent_id == root.id for node in nodes(recorder)[1:])


def test_blocks_of_one_response_are_one_model_call_with_their_usage_once(recorder: Recorder):
    run(ScriptedClaude([["One.", "Two.", Ask("Bash", {"command": "ls"})], ["Done."]]))
    first, second = nodes(recorder, NodeKind.MODEL_CALL)
    assert [part["type"] for part in first.outcome.value["parts"]] == ["text", "text", "tool_call"]
    assert (first.model.usage.input_uncached, first.model.usage.output_visible) == (10, 1)
    assert [m["role"] for m in second.inputs["messages"]] == ["user", "assistant", "tool"]


def test_calls_of_wrapped_and_other_tools_are_recorded_with_id_and_result(recorder: Recorder):
    asks = [Ask(LOOKUP, {"query": "4821"}, id="a"), Ask("Bash", {"command": "ls"}, id="b", result="x", is_error=True)]
    run(ScriptedClaude([asks, ["Done."]]), replayable_servers=[server()])
    wrapped, other = nodes(recorder, NodeKind.TOOL_CALL)
    assert (wrapped.call.call_id, wrapped.call.arguments) == ("a", {"query": "4821"})
    assert wrapped.outcome.value == "Result for 4821"
    assert wrapped.outcome.native.data == {"content": [{"type": "text", "text": "Result for 4821"}]}
    assert wrapped.attributes["server"] == "support"
    assert (other.name, other.outcome.kind.value, other.outcome.value) == ("Bash", "result_error", "x")


def test_a_result_of_another_shape_is_recorded_and_marked_as_not_replayable(recorder: Recorder):
    shaped = {"content": [{"type": "text", "text": "x"}], "structured": {"a": 1}}
    run(ScriptedClaude([[Ask(LOOKUP, {"query": "1"})], ["Done."]]), replayable_servers=[server(lambda _: shaped)])
    (call,) = nodes(recorder, NodeKind.TOOL_CALL)
    assert (call.outcome.value, call.call.mark) == (shaped, Mark.REPR)
    assert "not_replayable" in call.attributes


def test_what_a_handler_raises_reaches_claude_as_it_would_and_is_recorded(recorder: Recorder):
    def broken(_: Any) -> Any:
        raise KeyError("nothing there")

    messages = run(ScriptedClaude([[Ask(LOOKUP, {"query": "1"})], ["Done."]]), replayable_servers=[server(broken)])
    (result,) = [b for m in messages for b in getattr(m, "content", ()) if hasattr(b, "tool_use_id")]
    (call,) = nodes(recorder, NodeKind.TOOL_CALL)
    assert (result.is_error, call.outcome.error.class_name) == (True, "KeyError")


def test_arguments_that_the_server_refuses_leave_a_node(recorder: Recorder):
    run(ScriptedClaude([[Ask(LOOKUP, {"wrong": 1})], ["Done."]]), replayable_servers=[server()])
    (call,) = nodes(recorder, NodeKind.TOOL_CALL)
    assert (call.call.source, call.outcome.kind.value) == ("transcript", "result_error")


# --- usage, cost ----------------------------------------------------------------------------------------------------


def models(**usage: int) -> dict[str, Any]:
    return {"modelUsage": {"claude-test-1": {"webSearchRequests": 0, "costUSD": 0.01, **usage}}}


def test_the_root_carries_what_the_total_has_beyond_the_calls(recorder: Recorder):
    total = models(
        inputTokens=100, outputTokens=60, cacheReadInputTokens=8, cacheCreationInputTokens=5, thinkingTokens=20
    )
    run(ScriptedClaude([["Hm.", Ask("Bash")], ["Done."]], result=total))
    (session,) = sessions(recorder)
    used = session.usage
    assert (used.input_uncached, used.output_visible, used.output_reasoning) == (100, 40, 20)
    assert (used.input_cache_read, used.input_cache_write) == (8, 5)
    rest = nodes(recorder)[0].attributes["usage_remainder"]
    assert rest == {"input_uncached": 80, "input_cache_write": 5, "output_visible": 38, "output_reasoning": 20}
    assert (session.cost.amount, session.cost.source) == ("0.01", "reported")


def test_a_bucket_above_the_total_puts_nothing_on_the_root(recorder: Recorder):
    total = models(inputTokens=3, outputTokens=60, cacheReadInputTokens=8, cacheCreationInputTokens=0)
    run(ScriptedClaude([["Hm."], ["Done."]], result=total))
    (session,) = sessions(recorder)
    assert session.usage.input_uncached == 20
    assert "input_uncached" not in nodes(recorder)[0].attributes["usage_remainder"]


def test_without_a_terminal_message_only_the_partial_counts_are_kept(recorder: Recorder):
    run(ScriptedClaude([["Hm."]], result=None))
    (session,) = sessions(recorder)
    assert (session.status, session.cost, session.usage.output_visible) == (SessionStatus.FAILED, None, 1)
    assert session.error.message == "Claude ended without a terminal message"


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"errors": ["first", "second"], "result": "text"}, "first; second"),
        ({"result": "API Error: 529 Overloaded", "subtype": "success"}, "API Error: 529 Overloaded"),
        ({"result": "", "terminal_reason": "prompt_too_long", "subtype": "error_x"}, "prompt_too_long"),
        ({"result": "", "terminal_reason": "completed", "subtype": "error_max_turns"}, "error_max_turns"),
        ({"result": None, "terminal_reason": "completed", "subtype": "success"}, "Claude reported a failed result"),
        ({"result": "", "terminal_reason": "success", "subtype": "completed"}, "Claude reported a failed result"),
    ],
)
def test_the_recorded_reason_is_the_most_readable_cause(recorder: Recorder, fields: dict[str, Any], reason: str):
    run(ScriptedClaude([["Hm."]], result={"is_error": True, **fields}))
    (session,) = sessions(recorder)
    assert (session.status, session.error.message) == (SessionStatus.FAILED, reason)


@pytest.mark.parametrize("status", [400, 429, 529])
def test_the_status_of_the_api_is_in_the_terminal_metadata(recorder: Recorder, status: int):
    failed = {"is_error": True, "result": f"API Error: {status}", "api_error_status": status}
    run(ScriptedClaude([["Hm."]], result=failed))
    (session,) = sessions(recorder)
    assert session.metadata["terminal"]["api_error_status"] == status
    assert session.error.status == status


def test_what_the_sdk_raises_passes_and_the_recorded_reason_stays(recorder: Recorder, monkeypatch: pytest.MonkeyPatch):
    async def failing(**_: Any) -> AsyncIterator[Any]:
        yield ResultMessage(
            subtype="success", duration_ms=1, duration_api_ms=1, is_error=True, num_turns=1, session_id="s",
            result="API Error: 529",
        )  # fmt: skip
        raise RuntimeError("exit code 1")

    monkeypatch.setattr(claude_agent_sdk, "query", failing)
    with pytest.raises(RuntimeError, match="exit code 1"):
        run(None)
    (session,) = sessions(recorder)
    assert (session.status, session.error.message) == (SessionStatus.FAILED, "API Error: 529")


# --- early stops ----------------------------------------------------------------------------------------------------


def leave_early(transport: Any) -> None:
    async def first() -> None:
        async with aclosing(PlayheadClaudeRunner("desk").query(prompt="Go", transport=transport)) as messages:
            async for _ in messages:
                break

    asyncio.run(first())


def test_leaving_early_closes_claude_and_the_partial_session(recorder: Recorder):
    transport = ScriptedClaude([["Hm."], ["Never read."]], result=None)
    leave_early(transport)
    (session,) = sessions(recorder)
    assert (session.status, transport.closed) == (SessionStatus.ABANDONED, True)
    assert nodes(recorder, NodeKind.MODEL_CALL)


def test_trouble_after_leaving_early_is_logged_with_the_session(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async def stubborn(**_: Any) -> AsyncIterator[Any]:
        try:
            yield SystemMessage(subtype="init", data={})
            await asyncio.sleep(30)
        finally:
            raise OSError("broken pipe")

    monkeypatch.setattr(claude_agent_sdk, "query", stubborn)
    with caplog.at_level(logging.WARNING, logger="playhead.adapters.claude_agent_sdk.runner"):
        leave_early(None)
    (session,) = sessions(recorder)
    (line,) = [r for r in caplog.records if r.name == "playhead.adapters.claude_agent_sdk.runner"]
    assert session.id in line.getMessage()
    assert "broken pipe" in line.getMessage()


def test_a_session_that_cannot_be_closed_after_leaving_early_is_logged(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk gone")

    monkeypatch.setattr("playhead.engine.active.ActiveSession.finish", broken)
    with caplog.at_level(logging.WARNING, logger="playhead.adapters.claude_agent_sdk.runner"):
        leave_early(ScriptedClaude([["Hm."]], result=None))
    assert any("closing the session" in r.getMessage() for r in caplog.records)


# --- options, prompts, identity -------------------------------------------------------------------------------------


def test_the_callers_options_stay_as_they_were(recorder: Recorder):
    options = ClaudeAgentOptions(model="claude-test-1", allowed_tools=["Bash"], mcp_servers={}, env={"A": "b"})
    before = replace(options, allowed_tools=["Bash"], mcp_servers={}, env={"A": "b"})
    run(ScriptedClaude([["Hm."]]), options=options, replayable_servers=[server()])
    assert options == before
    assert "env" not in nodes(recorder)[0].attributes["options"]


def test_a_long_prompt_is_kept_with_a_mark(recorder: Recorder):
    run(ScriptedClaude([["Hm."]]), prompt="x" * 200_000)
    kept = nodes(recorder)[0].attributes["effective_prompt"]
    assert (len(kept["value"]), kept["truncated"], kept["bytes"]) == (100_000, True, 200_000)


def test_a_stream_of_messages_is_no_prompt(recorder: Recorder):
    async def prompts() -> AsyncIterator[Any]:
        yield {}

    with pytest.raises(TypeError, match="prompt must be a str"):
        PlayheadClaudeRunner("desk").query(prompt=prompts())  # type: ignore[arg-type]


def test_a_standalone_query_needs_an_identity(recorder: Recorder, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match="needs agent_id or agent_version_id"):
        run(ScriptedClaude([["Hm."]]), runner=PlayheadClaudeRunner())


def test_a_project_is_identity_enough(recorder: Recorder, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".playhead").mkdir()
    monkeypatch.chdir(tmp_path)
    run(ScriptedClaude([["Hm."]]), runner=PlayheadClaudeRunner())
    assert sessions(recorder)[0].agent == "claude"


def test_an_agent_version_names_the_agent(recorder: Recorder):
    run(ScriptedClaude([["Hm."]]))
    (first,) = sessions(recorder)
    run(ScriptedClaude([["Hm."]]), runner=PlayheadClaudeRunner(agent_version_id=first.agent_version))
    assert {(s.agent, s.agent_version) for s in sessions(recorder)} == {("desk", first.agent_version)}


@pytest.mark.parametrize(
    ("servers", "options", "says"),
    [
        ([server(), server()], ClaudeAgentOptions(), "'support' comes more than once"),
        ([server()], ClaudeAgentOptions(mcp_servers="servers.json"), "can only be added to a mapping"),
        ([server()], ClaudeAgentOptions(mcp_servers={"support": {"command": "x"}}), "has a server 'support' already"),
    ],
)
def test_servers_that_do_not_fit_are_refused_before_anything_starts(
    recorder: Recorder, servers: Any, options: ClaudeAgentOptions, says: str
):
    with pytest.raises(RefusedError, match=says):
        PlayheadClaudeRunner("desk").query(prompt="Go", options=options, replayable_servers=servers)
    assert sessions(recorder) == []


def test_a_server_definition_is_checked_when_it_is_made():
    with pytest.raises(ValueError, match="not empty"):
        replayable_sdk_mcp_server(name="", tools=[])
    with pytest.raises(ValueError, match="more than one tool called 'lookup'"):
        replayable_sdk_mcp_server(name="a", tools=[*server().tools, *server().tools])


def test_queries_at_once_have_nothing_in_common(recorder: Recorder):
    shared = server()

    async def both() -> None:
        async def one(number: int) -> list[Any]:
            transport: Any = ScriptedClaude([[Ask(LOOKUP, {"query": str(number)})], [f"Done {number}."]])
            stream = PlayheadClaudeRunner("desk").query(
                prompt=f"Go {number}", transport=transport, replayable_servers=[shared]
            )
            return await collect(stream)

        await asyncio.gather(*(one(n) for n in range(5)))

    asyncio.run(both())
    seen: set[tuple[str, str]] = set()
    for session in sessions(recorder):
        (call,) = [n for n in recorder.store.sessions.nodes(session.id) if n.kind is NodeKind.TOOL_CALL]
        seen.add((session.inputs["prompt"], call.outcome.value))
    assert seen == {(f"Go {n}", f"Result for {n}") for n in range(5)}


def test_messages_of_a_sub_agent_are_below_the_call_that_runs_it(recorder: Recorder):
    def inner(block: dict[str, Any], uuid: str) -> Raw:
        said = {"id": uuid, "role": "assistant", "model": "m", "content": [block], "usage": {"output_tokens": 3}}
        return Raw(
            {"type": "assistant", "message": said, "parent_tool_use_id": "outer", "session_id": "s", "uuid": uuid}
        )

    asks = [Ask("Agent", {"prompt": "Help.", "subagent_type": "helper"}, id="outer", result="Helped.")]
    run(ScriptedClaude([[*asks, inner({"type": "text", "text": "Hm."}, "i1")], ["Done."]]))
    (outer,) = nodes(recorder, NodeKind.TOOL_CALL)
    helper = next(n for n in nodes(recorder, NodeKind.AGENT_CALL) if n.name == "helper")
    inside = next(n for n in nodes(recorder, NodeKind.MODEL_CALL) if n.model.response_id == "i1")
    assert (helper.parent_id, inside.parent_id) == (outer.id, helper.id)
    assert inside.inputs["messages"][0]["parts"][0]["text"] == "Help."


# --- install --------------------------------------------------------------------------------------------------------


def ask(transport: Any) -> list[Any]:
    return asyncio.run(collect(claude_agent_sdk.query(prompt="Go", transport=transport)))


def test_installed_queries_are_sessions_once_and_uninstalled_ones_are_not(recorder: Recorder):
    original = claude_agent_sdk.query
    playhead.install()
    try:
        playhead.install()
        ask(ScriptedClaude([["Hm."]]))
        run(ScriptedClaude([["Hm."]]))
        assert sorted(s.agent for s in sessions(recorder)) == ["claude", "desk"]
    finally:
        playhead.uninstall()
    ask(ScriptedClaude([["Hm."]]))
    assert (claude_agent_sdk.query, len(sessions(recorder))) == (original, 2)


def test_a_query_whose_recording_fails_goes_on(recorder: Recorder, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no store")

    monkeypatch.setattr("playhead.engine.boundary.SessionScope._open", broken)
    turns = [[Ask(LOOKUP, {"query": "1"})], ["Done."]]
    assert run(ScriptedClaude(turns), replayable_servers=[server()])[-1].result == "Done."
