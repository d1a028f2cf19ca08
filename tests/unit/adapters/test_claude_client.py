"""`ClaudeSDKClient` as one session of several turns, over a scripted transport."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SdkMcpTool

from playhead.adapters.claude_agent_sdk import PlayheadClaudeRunner, replayable_sdk_mcp_server
from playhead.core.values import NodeKind, Session, SessionStatus
from playhead.engine.recorder import Recorder
from playhead.errors import MissError
from playhead.store.ports import SessionQuery
from playhead.testing.claude import Ask, ScriptedClaude
from playhead.testing.conformance.adapter import Bench

LOOKUP = "mcp__support__lookup"
POLICY: dict[str, Any] = {
    "default": {"type": "static", "cases": [], "on_miss": "fail"},
    "tools": {LOOKUP: {"type": "history"}},
}


def only_session(recorder: Recorder) -> Session:
    recorder.flush()
    (session,) = recorder.store.sessions.find(SessionQuery()).items
    return session


class Chat:
    """Two turns that call one tool each; the answers differ from call to call."""

    def __init__(self, *, turns: Any = None) -> None:
        self.turns = turns or [[Ask(LOOKUP, {"q": "x"})], ["Done."]]
        self.live: list[Any] = []
        self.seen: list[Any] = []
        self.raised: BaseException | None = None

    async def lookup(self, arguments: dict[str, Any]) -> Any:
        self.live.append(arguments)
        return {"content": [{"type": "text", "text": f"number {len(self.live)}"}]}

    def client(self) -> Any:
        tool = SdkMcpTool(name="lookup", description="d", input_schema={"q": str}, handler=self.lookup)
        transport: Any = ScriptedClaude(self.turns)
        return PlayheadClaudeRunner("desk").client(
            ClaudeAgentOptions(tools=[]),
            replayable_servers=[replayable_sdk_mcp_server(name="support", tools=[tool])],
            transport=transport,
        )

    async def talk(self, prompts: Any) -> str:
        self.seen = []
        async with self.client() as client:
            for prompt in prompts:
                await client.query(prompt)
                async for message in client.receive_response():
                    content = getattr(message, "content", None)
                    self.seen += [b.content for b in content or () if hasattr(b, "tool_use_id")]
        return str(self.seen)

    def __call__(self, prompts: Any) -> str:
        return asyncio.run(self.talk(prompts))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def test_the_turns_of_a_client_are_one_session(recorder: Recorder):
    Chat()(["one", "two"])
    session = only_session(recorder)
    assert session.status is SessionStatus.COMPLETED
    assert [(t.input, t.output) for t in session.turns] == [("one", "Done."), ("two", "Done.")]
    assert session.inputs["turns"] == [{"prompt": "one"}, {"prompt": "two"}]
    models = [n for n in recorder.store.sessions.nodes(session.id) if n.kind is NodeKind.MODEL_CALL]
    assert [len(n.inputs["messages"]) for n in models] == [1, 3, 5, 7]


def test_a_client_that_asks_nothing_is_a_session_too(recorder: Recorder):
    Chat()([])
    assert only_session(recorder).status is SessionStatus.COMPLETED


def test_leaving_in_the_middle_of_a_turn_abandons_the_session(recorder: Recorder):
    async def leave() -> None:
        client = Chat().client()
        await client.connect("one")
        async for _ in client.receive_messages():
            break
        await client.disconnect()

    asyncio.run(leave())
    assert only_session(recorder).status is SessionStatus.ABANDONED


def test_what_the_consumer_raises_is_the_sessions_error(recorder: Recorder):
    async def fail() -> None:
        async with Chat().client() as client:
            await client.query("one")
            raise KeyError("mine")

    with pytest.raises(KeyError):
        asyncio.run(fail())
    assert only_session(recorder).error.class_name == "KeyError"


def test_a_stream_of_messages_is_no_prompt(recorder: Recorder):
    async def ask() -> None:
        async with Chat().client() as client:
            await client.query(iter([]))

    with pytest.raises(TypeError, match="prompt must be a str"):
        asyncio.run(ask())


def test_everything_else_is_the_sdks_client(recorder: Recorder):
    async def ask() -> Any:
        async with Chat().client() as client:
            await client.query("one")
            messages = [m async for m in client.receive_response()]
            return client.options.tools, messages[-1]

    tools, last = asyncio.run(ask())
    assert tools == []
    assert isinstance(last, ResultMessage)


def test_a_client_is_answered_from_history_over_its_turns(bench: Bench):
    chat = Chat()
    recorded = bench.record(chat, {"prompts": ["one", "two"]})
    before = list(chat.seen)
    chat.live.clear()
    replayed = bench.replay(recorded, chat, tool_policy=POLICY)
    assert (replayed.by, replayed.message, chat.live) == (["served", "served"], "", [])
    assert chat.seen == before


def test_a_miss_stops_the_client(bench: Bench):
    recorded = bench.record(Chat(), {"prompts": ["one"]})
    other = Chat(turns=[[Ask(LOOKUP, {"q": "other"})], ["Done."]])
    replayed = bench.replay(recorded, other, tool_policy=POLICY)
    assert (replayed.by, other.live) == (["missed"], [])
    assert replayed.replay.error.class_name == MissError.__name__
