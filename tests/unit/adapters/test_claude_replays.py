"""Replays of Claude queries whose wrapped tools are answered without the program: over a scripted transport."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, ToolResultBlock

from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, Outcome, OutcomeKind
from playhead.engine.models import ToolWriter
from playhead.testing.claude import Ask, ScriptedClaude
from playhead.testing.conformance.adapter import Bench

LOOKUP = "mcp__support__lookup"
EMPTY: dict[str, Any] = {"type": "static", "cases": [], "on_miss": "fail"}
HISTORY: dict[str, Any] = {"default": EMPTY, "tools": {LOOKUP: {"type": "history"}}}
PASSTHROUGH: dict[str, Any] = {"default": {"type": "passthrough"}}
SAFE: dict[str, Any] = {"tools": [], "allowed_tools": [LOOKUP]}


class Desk:
    """An agent over a script: what its tool gives differs from call to call, so that swapped answers show."""

    def __init__(self, *turns: Any, options: Mapping[str, Any] = SAFE, result: Any = None, **script: Any) -> None:
        self.turns = turns or ([Ask(LOOKUP, {"query": "4821"}, id="a")], ["Done."])
        self.options = ClaudeAgentOptions(**options)
        self.script = script
        self.live: list[Any] = []
        self.seen: list[Any] = []
        self.results: list[ToolResultBlock] = []
        self.prompts: list[str] = []
        self._result = result

    async def lookup(self, arguments: dict[str, Any]) -> Any:
        self.live.append(arguments)
        if self._result is not None:
            return self._result(arguments)
        return {"content": [{"type": "text", "text": f"{arguments['query']} number {len(self.live)}"}]}

    def __call__(self, prompt: str) -> str:
        return asyncio.run(self.run(prompt))

    async def run(self, prompt: str) -> str:
        tool = SdkMcpTool(name="lookup", description="d", input_schema={"query": str}, handler=self.lookup)
        server = replayable_sdk_mcp_server(name="support", tools=[tool])
        self.results = []
        transport: Any = ScriptedClaude(self.turns, **self.script)
        runner = PlayheadClaudeRunner("desk")
        async for message in runner.query(
            prompt=prompt, options=self.options, replayable_servers=[server], transport=transport
        ):
            content = getattr(message, "content", None)
            blocks = content if isinstance(content, list) else []
            self.results += [b for b in blocks if isinstance(b, ToolResultBlock)]
        self.prompts = transport.prompts
        return str({b.tool_use_id: b.content for b in self.results})


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def given(result: ToolResultBlock) -> Any:
    content: Any = result.content
    return content[0]["text"], result.is_error


def test_history_answers_wrapped_tools_and_no_handler_runs(bench: Bench):
    desk = Desk()
    recorded = bench.record(desk, {"prompt": "Go"})
    desk.live.clear()
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    assert (desk.live, replayed.by, replayed.message) == ([], ["served"], "")
    assert replayed.session.output == recorded.session.output


@pytest.mark.parametrize("say_ids", [True, False])
@pytest.mark.parametrize("backwards", [True, False])
def test_identical_calls_at_once_keep_their_own_answers(bench: Bench, say_ids: bool, backwards: bool):
    asks = [Ask(LOOKUP, {"query": "4821"}, id=name) for name in ("a", "b", "c")]
    desk = Desk(asks, ["Done."], say_ids=say_ids, backwards=backwards)
    recorded = bench.record(desk, {"prompt": "Go"})
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    assert replayed.session.output == recorded.session.output
    assert replayed.by == ["served"] * 3


def test_a_miss_under_fail_ends_the_replay_although_claude_goes_on(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    changed = Desk([Ask(LOOKUP, {"query": "other"})], [Ask(LOOKUP, {"query": "4821"})], ["Done."])
    replayed = bench.replay(recorded, changed, tool_policy=HISTORY)
    assert (changed.live, replayed.by) == ([], ["missed"])
    assert "other" in replayed.message


def test_a_miss_under_error_result_is_a_text_that_claude_can_read(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    policy = {"default": EMPTY, "tools": {LOOKUP: {"type": "static", "cases": [], "on_miss": "error_result"}}}
    desk = Desk()
    replayed = bench.replay(recorded, desk, tool_policy=policy)
    (result,) = desk.results
    assert (result.is_error, replayed.by, desk.live) == (True, ["missed"], [])
    assert given(result)[0]


def test_a_miss_under_passthrough_runs_the_handler(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    policy = {"default": EMPTY, "tools": {LOOKUP: {"type": "history", "on_miss": "passthrough"}}}
    desk = Desk([Ask(LOOKUP, {"query": "other"})], ["Done."])
    replayed = bench.replay(recorded, desk, tool_policy=policy)
    assert (desk.live, replayed.by) == ([{"query": "other"}], ["missed"])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("refund issued", "refund issued"),
        ({"a": 1}, '{"a":1}'),
        (None, "null"),
        ({"content": [{"type": "text", "text": "as it is"}]}, "as it is"),
    ],
)
def test_static_results_become_text_blocks(bench: Bench, result: Any, text: str):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    policy = {"default": EMPTY, "tools": {LOOKUP: {"type": "static", "cases": [{"result": result}]}}}
    desk = Desk()
    assert bench.replay(recorded, desk, tool_policy=policy).by == ["static"]
    assert given(desk.results[0]) == (text, None)


def test_an_error_result_comes_again_as_one(bench: Bench):
    failed = {"content": [{"type": "text", "text": "no such order"}], "is_error": True}
    desk = Desk(result=lambda _: failed)
    recorded = bench.record(desk, {"prompt": "Go"})
    bench.replay(recorded, desk, tool_policy=HISTORY)
    assert given(desk.results[0]) == ("no such order", True)


def test_blocks_other_than_text_come_again(bench: Bench):
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    desk = Desk(result=lambda _: {"content": [image, {"type": "text", "text": "a cat"}]})
    recorded = bench.record(desk, {"prompt": "Go"})
    before = desk.results[0].content
    bench.replay(recorded, desk, tool_policy=HISTORY)
    assert desk.results[0].content == before


def test_a_raised_error_is_raised_again(bench: Bench):
    def broken(_: Any) -> Any:
        raise LookupError("no such order")

    desk = Desk(result=broken)
    recorded = bench.record(desk, {"prompt": "Go"})
    before = desk.results[0]
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    assert (desk.results[0], replayed.by) == (before, ["served"])


def test_a_result_of_another_shape_is_a_miss_that_says_so(bench: Bench):
    desk = Desk(result=lambda _: {"content": [], "structured": 1})
    recorded = bench.record(desk, {"prompt": "Go"})
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    assert replayed.by == ["missed"]
    assert "repr" in replayed.message


def test_a_model_writes_results_under_the_llm_policy(bench: Bench):
    class Writer(ToolWriter):
        def check(self, config: Any) -> None: ...

        async def write_async(self, config: Any, request: Any) -> Outcome:
            return Outcome(kind=OutcomeKind.VALUE, value=f"made up for {request.arguments['query']}")

    recorded = bench.record(Desk(), {"prompt": "Go"})
    desk = Desk()
    policy = {"default": EMPTY, "tools": {LOOKUP: {"type": "llm", "model": "m"}}}
    assert bench.replay(recorded, desk, tool_policy=policy, writer=Writer()).by == ["generated"]
    assert given(desk.results[0]) == ("made up for 4821", None)


def test_a_failure_is_injected_in_claudes_own_shape(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    desk = Desk()
    policy = {"default": EMPTY, "tools": {LOOKUP: {"type": "inject", "kind": "not_found"}}}
    replayed = bench.replay(recorded, desk, tool_policy=policy)
    assert (replayed.by, desk.results[0].is_error) == (["injected"], True)


def test_an_all_passthrough_replay_keeps_tools_and_settings(bench: Bench):
    options = {"allowed_tools": ["Bash"], "setting_sources": ["user"]}
    turns = [[Ask(LOOKUP, {"query": "4821"}), Ask("Bash", {"command": "ls"})], ["Done."]]
    recorded = bench.record(Desk(*turns, options=options), {"prompt": "Go"})
    desk = Desk(*turns, options=options)
    replayed = bench.replay(recorded, desk, tool_policy=PASSTHROUGH)
    assert (sorted(replayed.by), len(desk.live)) == (["live", "live"], 1)
    root = next(n for n in replayed.nodes if n.name == "claude" and n.kind is NodeKind.AGENT_CALL)
    assert root.attributes["options"]["setting_sources"] == ["user"]


def test_a_substituting_replay_is_isolated_on_a_copy(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    desk = Desk()
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    root = next(n for n in replayed.nodes if n.name == "claude" and n.kind is NodeKind.AGENT_CALL)
    assert root.attributes["options"]["setting_sources"] == []
    assert (desk.options.setting_sources, desk.options.strict_mcp_config) == (None, False)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "options.tools is None; substitution requires ClaudeAgentOptions(tools=[])"),
        ({"tools": ["Bash"]}, "options.tools is ['Bash']"),
        ({"tools": [], "allowed_tools": ["Bash", LOOKUP]}, "options.allowed_tools has ['Bash']"),
        ({"tools": [], "allowed_tools": ["mcp__support__*"]}, "options.allowed_tools has ['mcp__support__*']"),
        ({"tools": [], "mcp_servers": {"x": {"command": "x"}}}, "options.mcp_servers is ['x']"),
        ({"tools": [], "settings": "{}"}, "options.settings is '{}'"),
        ({"tools": [], "plugins": [{"type": "local", "path": "p"}]}, "options.plugins is"),
        ({"tools": [], "skills": "all"}, "options.skills is 'all'"),
        ({"tools": [], "agents": {"a": None}}, "options.agents is ['a']"),
        ({"tools": [], "extra_args": {"debug": None}}, "options.extra_args is ['debug']"),
        ({"tools": [], "resume": "abc"}, "options.resume is 'abc'; a replay starts a fresh conversation"),
        ({"tools": [], "continue_conversation": True}, "options.continue_conversation is True"),
        ({"tools": [], "fork_session": True}, "options.fork_session is True"),
    ],
)
def test_options_that_let_tools_past_the_gate_are_refused_before_claude_starts(
    bench: Bench, options: dict[str, Any], says: str
):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    desk = Desk(options=options)
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY)
    assert says in replayed.message
    assert (replayed.nodes, desk.live, replayed.replay.error.class_name) == ((), [], "RefusedError")


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({}, "Claude SDK MCP replay requires an empty static fail default policy"),
        ({"default": {"type": "passthrough"}, "tools": HISTORY["tools"]}, "requires an empty static fail default"),
        ({"default": {**EMPTY, "on_miss": "error_result"}}, "requires an empty static fail default policy"),
        ({"default": EMPTY, "tools": {"Bash": {"type": "history"}}}, "/tools/Bash: is no tool of a replayable server"),
        ({"default": EMPTY, "tools": {"mcp__support__gone": {"type": "passthrough"}}}, "/tools/mcp__support__gone"),
    ],
)
def test_policies_that_reach_beyond_wrapped_tools_are_refused(bench: Bench, policy: dict[str, Any], says: str):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    replayed = bench.replay(recorded, Desk(), tool_policy=policy)
    assert says in replayed.message
    assert replayed.nodes == ()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ({"model_params": {"temperature": 0}}, "/override/model_params"),
        ({"model": {"claude-a": "claude-b"}}, "a map needs options.model"),
    ],
)
def test_overrides_that_need_the_proxy_are_refused_without_it(bench: Bench, override: dict[str, Any], says: str):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    replayed = bench.replay(recorded, Desk(), tool_policy=HISTORY, override=ReplayOverride(**override))
    assert says in replayed.message


def test_model_history_is_refused_without_the_proxy(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    assert "needs the proxy" in bench.replay(recorded, Desk(), tool_policy=HISTORY, model_policy=HistoryModel()).message


# --- overrides ------------------------------------------------------------------------------------------------------


def test_model_and_system_prompt_are_set_on_the_copy(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    import claude_agent_sdk

    seen: list[ClaudeAgentOptions] = []
    query = claude_agent_sdk.query

    def watched(**given: Any) -> Any:
        seen.append(given["options"])
        return query(**given)

    monkeypatch.setattr(claude_agent_sdk, "query", watched)
    desk = Desk(options={**SAFE, "model": "claude-a"})
    recorded = bench.record(desk, {"prompt": "Go"})
    override = ReplayOverride(model={"claude-a": "claude-b"}, system_prompt="Be brief.")
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY, override=override)
    assert (seen[-1].model, seen[-1].system_prompt, replayed.message) == ("claude-b", "Be brief.", "")
    assert desk.options.model == "claude-a"


def test_a_prompt_override_reaches_claude_and_the_inputs_stay(bench: Bench):
    recorded = bench.record(Desk(), {"prompt": "Go"})
    desk = Desk()
    replayed = bench.replay(recorded, desk, tool_policy=HISTORY, override=ReplayOverride(prompt="Stop"))
    root = next(n for n in replayed.nodes if n.name == "claude" and n.kind is NodeKind.AGENT_CALL)
    assert (desk.prompts, root.attributes["effective_prompt"]) == (["Stop"], "Stop")
    assert replayed.session.inputs == {"prompt": "Go"}
