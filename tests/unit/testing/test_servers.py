"""The scripted servers, talked to by the providers' own clients."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from playhead.testing.servers import Call, ModelServer, Reply

ASK: Any = [{"role": "user", "content": "Is it raining in Oslo?"}]
CALLS = [Call("get_weather", {"city": "Oslo"}, id="c1"), Call("get_weather", {"city": "Bergen"}, id="c2")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([Reply("Let me see.", calls=CALLS), Reply("It rains.")]) as running:
        yield running


def openai_client(server: ModelServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)


def anthropic_client(server: ModelServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def test_chat_gives_text_calls_and_usage(server: ModelServer) -> None:
    with openai_client(server) as client:
        first = client.chat.completions.create(model="small", messages=ASK)
        second = client.chat.completions.create(model="small", messages=ASK)
    said = first.choices[0].message
    assert said.content == "Let me see."
    assert [(c.id, json.loads(c.function.arguments)) for c in said.tool_calls or () if c.type == "function"] == [
        ("c1", {"city": "Oslo"}),
        ("c2", {"city": "Bergen"}),
    ]
    assert first.choices[0].finish_reason == "tool_calls"
    assert first.usage is not None
    assert first.usage.prompt_tokens == 20
    assert second.choices[0].message.content == "It rains."
    assert [r.step for r in server.model_requests] == [0, 1]
    assert server.requests[0].body["model"] == "small"


def test_a_chat_stream_adds_up_to_the_plain_answer(server: ModelServer) -> None:
    with openai_client(server) as client, client.chat.completions.stream(model="small", messages=ASK) as stream:
        final = stream.get_final_completion()
    said = final.choices[0].message
    assert said.content == "Let me see."
    assert [c.function.arguments for c in said.tool_calls or ()] == ['{"city":"Oslo"}', '{"city":"Bergen"}']
    assert final.usage is not None
    assert final.usage.completion_tokens == 5


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_give_items(server: ModelServer, streamed: bool) -> None:
    with openai_client(server) as client:
        if streamed:
            with client.responses.stream(model="small", input="hello") as stream:
                answer: Any = stream.get_final_response()
        else:
            answer = client.responses.create(model="small", input="hello")
    assert answer.output_text == "Let me see."
    assert [i.call_id for i in answer.output if i.type == "function_call"] == ["c1", "c2"]
    assert answer.usage.input_tokens == 20


@pytest.mark.parametrize("streamed", [False, True])
def test_messages_give_blocks(server: ModelServer, streamed: bool) -> None:
    with anthropic_client(server) as client:
        if streamed:
            with client.messages.stream(model="small", max_tokens=50, messages=ASK) as stream:
                answer: Any = stream.get_final_message()
        else:
            answer = client.messages.create(model="small", max_tokens=50, messages=ASK)
    assert [b.type for b in answer.content] == ["text", "tool_use", "tool_use"]
    assert answer.content[1].input == {"city": "Oslo"}
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (16, 5)


def test_tokens_can_be_counted_and_do_not_use_a_step(server: ModelServer) -> None:
    with anthropic_client(server) as client:
        counted = client.messages.count_tokens(model="small", messages=ASK)
        client.messages.create(model="small", max_tokens=50, messages=ASK)
    assert counted.input_tokens == 12
    assert [r.step for r in server.requests] == [None, 0]


def test_gemini_answers_plain_and_streamed(server: ModelServer) -> None:
    asked = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    plain = httpx2.post(f"{server.url}/v1beta/models/g:generateContent", json=asked, timeout=60).json()
    streamed = httpx2.post(f"{server.url}/v1beta/models/g:streamGenerateContent?alt=sse", json=asked, timeout=60)
    assert plain["candidates"][0]["content"]["parts"][1]["functionCall"]["args"] == {"city": "Oslo"}
    assert "It rains." in streamed.text
    assert streamed.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [False, True])
def test_compressed_answers_are_read_by_clients(encoding: Any, streamed: bool) -> None:
    with ModelServer([Reply("It rains.", encoding=encoding)]) as server, openai_client(server) as client:
        if streamed:
            chunks = list(client.chat.completions.create(model="small", messages=ASK, stream=True))
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        else:
            text = client.chat.completions.create(model="small", messages=ASK).choices[0].message.content
    assert text == "It rains."


def test_status_and_headers_are_scripted() -> None:
    replies = [Reply(status=429, headers={"retry-after": "0"}), Reply("It rains.")]
    with ModelServer(replies) as server, openai_client(server) as client:
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="small", messages=ASK)
        client.chat.completions.create(model="small", messages=ASK)
    assert caught.value.response.headers["retry-after"] == "0"


def test_a_cut_stream_breaks_the_connection() -> None:
    with ModelServer([Reply("It rains.", cut_after=2)]) as server, openai_client(server) as client:
        stream = client.chat.completions.create(model="small", messages=ASK, stream=True)
        with pytest.raises(openai.APIConnectionError):
            list(stream)


def test_a_held_stream_waits_and_events_before_are_already_there() -> None:
    gate = threading.Event()
    with ModelServer([Reply("It rains.", hold=gate, hold_after=2)]) as server, openai_client(server) as client:
        stream = client.chat.completions.create(model="small", messages=ASK, stream=True)
        next(stream)
        second = next(stream)
        assert not gate.is_set()
        gate.set()
        rest = list(stream)
    assert second.choices[0].delta.content == "It rains."
    assert rest


def test_get_and_head_are_404(server: ModelServer) -> None:
    assert httpx2.get(f"{server.url}/v1/models", timeout=60).status_code == 404
    assert httpx2.head(server.url).status_code == 404
    assert [r.method for r in server.requests] == ["GET", "HEAD"]


def test_a_stopped_server_has_no_url() -> None:
    server = ModelServer([Reply()]).start()
    server.stop()
    server.stop()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url
