"""Replays through the wire seam: recorded responses without a connection, overrides, stops."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

import playhead
from playhead.core.canonical import parse_emitted
from playhead.core.policy import HistoryModel, LiveModel, ModelFailure, PassthroughConfig, ReplayOverride, ToolPolicy
from playhead.core.values import NodeStatus
from playhead.engine import seam
from playhead.errors import MissError
from playhead.testing.servers import Call, ModelServer, Reply

ASK: Any = [{"role": "user", "content": "Rain in Oslo and Bergen?"}]
CALLS = [Call("weather", {"city": "Oslo"}, id="c1"), Call("weather", {"city": "Bergen"}, id="c2")]
PLAN = [Reply("Let me see.", calls=CALLS), Reply("Rain in both.")]
LIVE_TOOLS = ToolPolicy(default=PassthroughConfig())
ran: list[str] = []


def weather(city: str) -> str:
    ran.append(city)
    return f"rain in {city}"


def call_tool(call_id: str, arguments: Any) -> Any:
    """What a decorator does around a tool."""
    active = seam.current()
    assert active is not None
    step = active.tool_call("weather", arguments=arguments, call_id=call_id)
    answer = step.decide()
    if answer is None:
        with step.inside():
            value = weather(**parse_emitted(arguments))
        step.returned(value)
        return value
    step.observe(answer)
    return seam.value_of(answer)


# --- one loop for each form -----------------------------------------------------------------------------------------


def chat_loop(url: str, stream: bool) -> str:
    asked = [*ASK]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        while True:
            if stream:
                with client.chat.completions.stream(model="m", messages=asked) as events:
                    said: Any = events.get_final_completion().choices[0].message
            else:
                said = client.chat.completions.create(model="m", messages=asked).choices[0].message
            if not said.tool_calls:
                return said.content or ""
            calls = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.function.name, "arguments": c.function.arguments},
                }
                for c in said.tool_calls
            ]
            asked.append({"role": "assistant", "content": said.content, "tool_calls": calls})
            for call in said.tool_calls:
                content = call_tool(call.id, call.function.arguments)
                asked.append({"role": "tool", "tool_call_id": call.id, "content": content})


def responses_loop(url: str, stream: bool) -> str:
    asked = [*ASK]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        while True:
            if stream:
                with client.responses.stream(model="m", input=asked) as events:
                    answer: Any = events.get_final_response()
            else:
                answer = client.responses.create(model="m", input=asked)
            calls = [i for i in answer.output if i.type == "function_call"]
            if not calls:
                return answer.output_text
            for item in answer.output:
                kept = item.model_dump(exclude_none=True)
                asked.append({k: v for k, v in kept.items() if k != "parsed_arguments"})
            for call in calls:
                output = call_tool(call.call_id, call.arguments)
                asked.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


def messages_loop(url: str, stream: bool) -> str:
    asked = [*ASK]
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        while True:
            if stream:
                with client.messages.stream(model="m", max_tokens=50, messages=asked) as events:
                    answer: Any = events.get_final_message()
            else:
                answer = client.messages.create(model="m", max_tokens=50, messages=asked)
            calls = [b for b in answer.content if b.type == "tool_use"]
            if not calls:
                return "".join(b.text for b in answer.content if b.type == "text")
            asked.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in answer.content]})
            results = [{"type": "tool_result", "tool_use_id": c.id, "content": call_tool(c.id, c.input)} for c in calls]
            asked.append({"role": "user", "content": results})


LOOPS: dict[str, Callable[[str, bool], str]] = {
    "chat": chat_loop, "responses": responses_loop, "messages": messages_loop,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


# --- model history --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_unchanged_replay_needs_no_server_and_runs_no_tool(bench: Any, loop: str, stream: bool) -> None:
    with ModelServer(PLAN) as server:
        url = server.url
        baseline = bench.record(lambda: LOOPS[loop](url, stream))
    assert baseline.error is None
    assert ran == ["Oslo", "Bergen"]
    ran.clear()
    state = bench.state(baseline)
    result = bench.replay(state, lambda: LOOPS[loop](url, stream))
    assert result.error is None
    assert result.output == baseline.output == "Rain in both."
    assert ran == []
    assert [(row.kind, row.by) for row in state.ledger] == [
        ("model", "served"), ("tool", "served"), ("tool", "served"), ("model", "served"),
    ]  # fmt: skip
    assert state.tape.leftovers() == []
    assert [n.model.key for n in result.models] == [n.model.key for n in baseline.models]
    assert [n.model.usage for n in result.models] == [n.model.usage for n in baseline.models]
    assert [n.outcome.value for n in result.models] == [n.outcome.value for n in baseline.models]


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_recorded_chunks_come_back_one_by_one(bench: Any, library: Any, asynchronous: bool) -> None:
    body = {"model": "m", "messages": ASK, "stream": True}

    async def ask_async(url: str) -> list[bytes]:
        async with library.AsyncClient() as client, client.stream("POST", url, json=body) as answer:
            assert answer.headers["content-type"] == "text/event-stream"
            return [chunk async for chunk in answer.aiter_raw()]

    def ask(url: str) -> list[bytes]:
        if asynchronous:
            return asyncio.run(ask_async(url))
        with library.Client() as client, client.stream("POST", url, json=body) as answer:
            return list(answer.iter_raw())

    with ModelServer(PLAN) as server:
        url = f"{server.openai_url}/chat/completions"
        baseline = bench.record(lambda: ask(url))
    result = bench.replay(bench.state(baseline), lambda: ask(url))
    assert b"".join(result.output) == b"".join(baseline.output)
    assert len(result.output) == len(baseline.models[0].outcome.native.data["chunks"])


@pytest.mark.parametrize("recorded_as", LOOPS)
@pytest.mark.parametrize(("before", "after"), [(False, True), (True, False)])
def test_a_plain_answer_can_be_streamed_and_a_stream_given_whole(
    bench: Any, recorded_as: str, before: bool, after: bool
) -> None:
    with ModelServer(PLAN) as server:
        url = server.url
        baseline = bench.record(lambda: LOOPS[recorded_as](url, before))
    result = bench.replay(bench.state(baseline), lambda: LOOPS[recorded_as](url, after))
    assert result.error is None
    assert result.output == "Rain in both."


@pytest.mark.parametrize(("recorded_as", "asked_as"), [("chat", "responses"), ("responses", "chat")])
@pytest.mark.parametrize("stream", [False, True])
def test_what_one_form_recorded_answers_an_equal_request_of_another(
    bench: Any, recorded_as: str, asked_as: str, stream: bool
) -> None:
    with ModelServer(PLAN) as server:
        url = server.url
        baseline = bench.record(lambda: LOOPS[recorded_as](url, stream))
    result = bench.replay(bench.state(baseline), lambda: LOOPS[asked_as](url, stream))
    assert result.error is None
    assert result.output == "Rain in both."


def test_a_retry_is_replayed_attempt_by_attempt(bench: Any) -> None:
    def agent(url: str) -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2) as client:
            return client.chat.completions.create(model="m", messages=ASK).choices[0].message.content or ""

    with ModelServer([Reply(status=429, headers={"retry-after-ms": "1"}), Reply("It rains.")]) as server:
        url = server.url
        baseline = bench.record(lambda: agent(url))
    result = bench.replay(bench.state(baseline), lambda: agent(url))
    assert result.output == "It rains."
    assert [n.outcome.error.status if n.outcome.error else 200 for n in result.models] == [429, 200]


@pytest.mark.parametrize(
    ("failure", "statuses", "answered"),
    [
        (ModelFailure(kind="rate_limit", retry_after=0.001), [429, 200], True),
        (ModelFailure(kind="error", status=503, times=2), [503, 503, 200], True),
        (ModelFailure(kind="timeout"), [None, 200], True),
        (ModelFailure(kind="error", times=9), [500, 500, 500], False),
    ],
    ids=lambda v: v.kind if isinstance(v, ModelFailure) else None,
)
def test_a_failure_made_at_the_model_is_met_by_the_clients_own_retries(
    bench: Any, monkeypatch: pytest.MonkeyPatch, failure: ModelFailure, statuses: list[int | None], answered: bool
) -> None:
    monkeypatch.setattr(openai.OpenAI, "_calculate_retry_timeout", lambda *_: 0.001)

    def agent(url: str) -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2) as client:
            return client.chat.completions.create(model="m", messages=ASK).choices[0].message.content or ""

    with ModelServer([Reply("It rains.")]) as server:
        url = server.url
        baseline = bench.record(lambda: agent(url))
    state = bench.state(baseline, model=HistoryModel(inject=failure))
    result = bench.replay(state, lambda: agent(url))
    assert (result.output == "It rains.") is answered
    assert isinstance(result.error, type(None) if answered else openai.InternalServerError)
    assert [n.outcome.error.status if n.outcome.error else 200 for n in result.models] == statuses
    rows = [row for row in state.ledger if row.kind == "model"]
    assert [row.by for row in rows] == ["injected" if status != 200 else "served" for status in statuses]
    assert {row.from_node for row in rows} == {baseline.models[0].id}  # what a failure hides is named
    assert rows[0].detail == failure.kind


def test_a_recorded_connection_error_is_raised_again(bench: Any) -> None:
    with ModelServer(PLAN) as server:
        url = f"{server.openai_url}/chat/completions"
    body = {"model": "m", "messages": ASK}
    baseline = bench.record(lambda: httpx2.post(url, json=body, timeout=60))
    result = bench.replay(bench.state(baseline), lambda: httpx2.post(url, json=body, timeout=60))
    assert type(result.error) is httpx2.ConnectError
    assert str(result.error) == str(baseline.error)


def test_a_stream_that_broke_breaks_again_at_the_same_place(bench: Any) -> None:
    seen: list[int] = []

    def agent(url: str) -> None:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            count = 0
            try:
                for _ in client.chat.completions.create(model="m", messages=ASK, stream=True):
                    count += 1
            finally:
                seen.append(count)

    with ModelServer([Reply("It rains.", cut_after=2)]) as server:
        url = server.url
        baseline = bench.record(lambda: agent(url))
    result = bench.replay(bench.state(baseline), lambda: agent(url))
    assert type(result.error) is type(baseline.error) is openai.APIConnectionError
    assert seen == [2, 2]


def test_a_request_that_differs_stops_and_is_shown_as_a_diff(bench: Any) -> None:
    def agent(url: str, text: str) -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=5) as client:
            asked: Any = [{"role": "user", "content": text}]
            for _ in range(3):
                try:
                    client.chat.completions.create(model="m", messages=asked)
                except Exception:
                    continue
        return "swallowed"

    with ModelServer([Reply("x")]) as server:
        url = server.url
        baseline = bench.record(lambda: agent(url, "Rain in Oslo?"))
        before = len(server.requests)
        result = bench.replay(bench.state(baseline), lambda: agent(url, "Rain in Bergen?"))
        assert len(server.requests) == before
    assert isinstance(result.error, MissError)
    assert "-Rain in Oslo?" in str(result.error)
    assert "+Rain in Bergen?" in str(result.error)
    assert len(result.models) == 1
    assert result.models[0].status is NodeStatus.CANCELLED


def test_a_miss_may_go_live(bench: Any) -> None:
    with ModelServer([Reply("x")]) as server:
        url = f"{server.openai_url}/chat/completions"
        one, two = {"model": "m", "messages": ASK}, {"model": "n", "messages": ASK}
        baseline = bench.record(lambda: httpx2.post(url, json=one, timeout=60).json())
        result = bench.replay(
            bench.state(baseline, model=HistoryModel(on_miss="live")),
            lambda: httpx2.post(url, json=two, timeout=60).json(),
        )
        assert [r.body["model"] for r in server.requests] == ["m", "n"]
    assert result.error is None


def test_in_a_replay_a_request_that_cannot_be_read_does_not_go_out(bench: Any) -> None:
    with ModelServer([Reply("x")]) as server:
        url = f"{server.openai_url}/chat/completions"
        baseline = bench.record(lambda: httpx2.post(url, json={"model": "m", "messages": ASK}, timeout=60).json())
        result = bench.replay(bench.state(baseline), lambda: httpx2.post(url, content=b"[]", timeout=60))
        assert len(server.requests) == 1
    assert "cannot be read" in str(result.error) or "can be read" in str(result.error)


def test_history_made_by_another_adapter_is_written_in_the_form_of_the_request(bench: Any) -> None:
    """A recording without an envelope of the wire: an import, or a framework's adapter."""

    def foreign() -> None:
        active = seam.current()
        assert active is not None
        messages = [{"role": "user", "parts": [{"type": "text", "text": ASK[0]["content"]}]}]
        step = active.model_call("m", request=seam.ModelRequest(messages=messages, model="m"))
        parts = [{"type": "text", "text": "From elsewhere."}]
        step.observe(seam.ModelResult(message={"role": "assistant", "parts": parts, "finish_reason": "stop"}))

    def agent(stream: bool) -> str:
        return chat_loop("http://127.0.0.1:9", stream)

    baseline = bench.record(foreign)
    for stream in (False, True):
        result = bench.replay(bench.state(baseline), lambda stream=stream: agent(stream))
        assert (result.error, result.output) == (None, "From elsewhere.")


# --- overrides ------------------------------------------------------------------------------------------------------


def ask_all(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        system: Any = [{"role": "system", "content": "Old."}, *ASK]
        client.chat.completions.create(model="m", messages=system, max_completion_tokens=5, top_p=0.5)
        client.responses.create(model="m", instructions="Old.", input=ASK, max_output_tokens=5, top_p=0.5)
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        client.messages.create(model="m", system="Old.", messages=ASK, max_tokens=5, extra_body={"top_p": 0.5})
    generation = {"maxOutputTokens": 5, "topP": 0.5}
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    old = {"parts": [{"text": "Old."}]}
    httpx.post(
        f"{url}/v1beta/models/m:generateContent?x=1",
        json={"systemInstruction": old, "contents": contents, "generationConfig": generation},
        timeout=60,
    )


def forked(bench: Any, override: ReplayOverride) -> tuple[Any, list[Any], list[str]]:
    with ModelServer([Reply("x")]) as server:
        baseline = bench.record(lambda: ask_all(server.url))
        state = bench.state(baseline, model=LiveModel(), policy=LIVE_TOOLS, override=override)
        result = bench.replay(state, lambda: ask_all(server.url))
        assert result.error is None
        again = server.requests[4:]
        for request in again:
            assert int(request.headers.get("content-length") or request.headers["Content-Length"]) == len(request.raw)
        return state, [r.body for r in again], [r.path for r in again]


def test_the_model_is_replaced_in_every_form(bench: Any) -> None:
    state, bodies, paths = forked(bench, ReplayOverride(model="openai:new"))
    assert [b["model"] for b in bodies[:2]] == ["new", "new"]
    state, bodies, paths = forked(bench, ReplayOverride(model={"m": "new"}))
    assert [b["model"] for b in bodies[:3]] == ["new"] * 3
    assert paths[3] == "/v1beta/models/new:generateContent?x=1"
    assert "model" not in bodies[3]
    assert state.override_hits["model"] == 4


def test_a_map_without_the_model_changes_nothing(bench: Any) -> None:
    state, bodies, _ = forked(bench, ReplayOverride(model={"other": "new"}))
    assert [b["model"] for b in bodies[:3]] == ["m"] * 3
    assert state.override_hits["model"] == 0


def test_the_system_prompt_is_replaced_in_every_form(bench: Any) -> None:
    state, (chat, responses, messages, gemini), _ = forked(bench, ReplayOverride(system_prompt="New."))
    assert chat["messages"][0] == {"role": "system", "content": "New."}
    assert responses["instructions"] == "New."
    assert messages["system"] == "New."
    assert gemini["systemInstruction"] == {"parts": [{"text": "New."}]}
    assert "Old." not in json.dumps([chat, responses, messages, gemini])
    assert state.override_hits["system_prompt"] == 4


def test_sub_agents_and_tools_keep_their_system_prompt(bench: Any) -> None:
    def agent(url: str) -> None:
        active = seam.current()
        assert active is not None
        for step in (active.agent_call("helper"), active.tool_call("research", arguments={})):
            with step.inside():
                httpx2.post(f"{url}/v1/messages", json={"model": "m", "system": "Mine.", "messages": ASK}, timeout=60)
            step.returned(None)

    with ModelServer([Reply("x")]) as server:
        baseline = bench.record(lambda: agent(server.url))
        override = ReplayOverride(system_prompt="New.")
        state = bench.state(baseline, model=LiveModel(), policy=LIVE_TOOLS, override=override)
        bench.replay(state, lambda: agent(server.url))
        assert [r.body["system"] for r in server.requests] == ["Mine."] * 4
    assert state.override_hits["system_prompt"] == 0


def test_parameters_are_merged_and_null_removes_one(bench: Any) -> None:
    override = ReplayOverride(model_params={"max_tokens": 99, "top_p": None, "temperature": 0})
    state, (chat, responses, messages, gemini), _ = forked(bench, override)
    assert (chat["max_completion_tokens"], chat["temperature"]) == (99, 0)
    assert "max_tokens" not in chat
    assert (responses["max_output_tokens"], messages["max_tokens"]) == (99, 99)
    assert gemini["generationConfig"] == {"maxOutputTokens": 99, "temperature": 0}
    assert not any("top_p" in b for b in (chat, responses, messages))
    assert state.override_hits["model_params"] == 4


def test_an_override_changes_only_its_own_replay(bench: Any) -> None:
    _, bodies, _ = forked(bench, ReplayOverride(model="new"))
    assert bodies[0]["messages"][0]["content"] == "Old."
    with ModelServer([Reply("x")]) as server:
        bench.record(lambda: ask_all(server.url))
        assert server.requests[0].body["model"] == "m"


# --- a hand-written loop with decorated tools -----------------------------------------------------------------------


@playhead.tool
def lookup(city: str, unit: str = "c") -> dict[str, Any]:
    ran.append(city)
    return {"city": city, "unit": unit, "rain": True}


def test_decorated_tools_claim_what_the_model_asked_for(bench: Any) -> None:
    """Decorated functions have no call id: arguments, defaults included, find the announced call."""
    calls = [Call("lookup", {"city": "Oslo"}, id="a"), Call("lookup", {"city": "Bergen", "unit": "c"}, id="b")]

    def agent(url: str) -> str:
        asked = [*ASK]
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            said: Any = client.chat.completions.create(model="m", messages=asked).choices[0].message
            asked.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                content = json.dumps(lookup(**json.loads(call.function.arguments)))
                asked.append({"role": "tool", "tool_call_id": call.id, "content": content})
            return client.chat.completions.create(model="m", messages=asked).choices[0].message.content or ""

    with ModelServer([Reply(calls=calls), Reply("Rain in both.")]) as server:
        url = server.url
        baseline = bench.record(lambda: agent(url))
    assert ran == ["Oslo", "Bergen"]
    assert [(n.call.call_id, n.call.source) for n in baseline.tools] == [("a", "seam"), ("b", "seam")]
    ran.clear()
    state = bench.state(baseline)
    result = bench.replay(state, lambda: agent(url))
    assert (result.error, result.output) == (None, "Rain in both.")
    assert ran == []
    assert state.tape.leftovers() == []
    assert [row.by for row in state.ledger] == ["served"] * 4
