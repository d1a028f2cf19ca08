"""The wire seam under the providers' own clients and raw HTTP clients: what it records, what it leaves alone."""

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from playhead.adapters import wire
from playhead.core.values import NodeStatus, OutcomeKind, SessionStatus
from playhead.engine import seam
from playhead.testing.servers import Call, LoggedRequest, ModelServer, Reply

ASK: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain in Oslo?"}]
USER: Any = ASK[1:]
SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = [Call("weather", {"city": "Oslo"}, id="c1"), Call("weather", {"city": "Bergen"}, id="c2")]
REPLY = Reply("Let me see.", calls=CALLS)


# --- one way to ask for each client, form and colour ----------------------------------------------------------------


def _openai(server: ModelServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)


def _anthropic(server: ModelServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def chat(server: ModelServer) -> str:
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    with _openai(server) as client:
        answer = client.chat.completions.create(model="m", messages=ASK, tools=tools, max_tokens=50)
    return answer.choices[0].message.content or ""


def chat_stream(server: ModelServer) -> str:
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    with _openai(server) as client:
        chunks = client.chat.completions.create(model="m", messages=ASK, tools=tools, max_tokens=50, stream=True)
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def responses(server: ModelServer) -> str:
    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    with _openai(server) as client:
        answer = client.responses.create(
            model="m", instructions="Be brief.", input=USER, tools=tools, max_output_tokens=50
        )
    return answer.output_text


def responses_stream(server: ModelServer) -> str:
    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    with (
        _openai(server) as client,
        client.responses.stream(
            model="m", instructions="Be brief.", input=USER, tools=tools, max_output_tokens=50
        ) as stream,
    ):
        return stream.get_final_response().output_text


def messages(server: ModelServer) -> str:
    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    with _anthropic(server) as client:
        answer = client.messages.create(model="m", system="Be brief.", messages=USER, tools=tools, max_tokens=50)
    return "".join(b.text for b in answer.content if b.type == "text")


def messages_stream(server: ModelServer) -> str:
    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    with (
        _anthropic(server) as client,
        client.messages.stream(model="m", system="Be brief.", messages=USER, tools=tools, max_tokens=50) as stream,
    ):
        return "".join(stream.text_stream)


def _body(**more: Any) -> Any:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    return {"model": "m", "messages": ASK, "tools": tools, "max_tokens": 50, **more}


def raw(library: Any) -> Callable[[ModelServer], str]:
    def ask(server: ModelServer) -> str:
        with library.Client() as client:
            answer = client.post(f"{server.openai_url}/chat/completions", json=_body())
        return answer.json()["choices"][0]["message"]["content"]

    return ask


def raw_stream(library: Any) -> Callable[[ModelServer], str]:
    def ask(server: ModelServer) -> str:
        url = f"{server.openai_url}/chat/completions"
        with library.Client() as client, client.stream("POST", url, json=_body(stream=True)) as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        return "Let me see." if any("Let me see." in line for line in lines) else ""

    return ask


def gemini(server: ModelServer) -> str:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Rain in Oslo?"}]}],
        "tools": [{"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}],
        "generationConfig": {"maxOutputTokens": 50},
    }
    answer = httpx.post(f"{server.url}/v1beta/models/m:generateContent", json=body, timeout=60).json()
    return answer["candidates"][0]["content"]["parts"][0]["text"]


WAYS: dict[str, Callable[[ModelServer], str]] = {
    "chat": chat,
    "chat stream": chat_stream,
    "responses": responses,
    "responses stream": responses_stream,
    "messages": messages,
    "messages stream": messages_stream,
    "httpx": raw(httpx),
    "httpx stream": raw_stream(httpx),
    "httpx2": raw(httpx2),
    "httpx2 stream": raw_stream(httpx2),
    "gemini": gemini,
}


def streamed(handler: Callable[[httpx2.Request], httpx2.Response], path: str) -> bytes:
    url = f"http://127.0.0.1{path}"
    with (
        httpx2.Client(transport=httpx2.MockTransport(handler)) as client,
        client.stream("POST", url, json=_body(stream=True)) as answer,
    ):
        return b"".join(answer.iter_bytes())


def sent(request: LoggedRequest) -> tuple[str, str, dict[str, str], bytes]:
    headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "idempotency-key")}
    headers = {k: v for k, v in headers.items() if "stainless" not in k.lower()}
    return request.method, request.path, headers, request.raw


@pytest.mark.parametrize("way", WAYS)
def test_every_way_records_the_same_call(bench: Any, way: str) -> None:
    with ModelServer([REPLY]) as server:
        run = bench.record(lambda: WAYS[way](server))
    (node,) = run.models
    assert run.output == "Let me see."
    assert [(m["role"], m["parts"][0]["text"]) for m in node.inputs["messages"]] == [
        ("system", "Be brief."), ("user", "Rain in Oslo?"),
    ]  # fmt: skip
    assert [(t["name"], t["parameters"]) for t in node.inputs["tools"]] == [("weather", SCHEMA)]
    assert node.inputs["params"] == {"max_tokens": 50}
    parts = node.outcome.value["parts"]
    assert [p["type"] for p in parts] == ["text", "tool_call", "tool_call"]
    assert [p["arguments"] for p in parts[1:]] == [{"city": "Oslo"}, {"city": "Bergen"}]
    assert node.outcome.value["finish_reason"] == "tool_calls"
    assert (node.model.requested, node.model.served) == ("m", "scripted-1")
    assert (node.model.streamed, node.model.partial) == ("stream" in way, False)
    assert (node.model.first_chunk_at is not None) is ("stream" in way)
    assert node.model.response_id is not None
    assert node.attributes["http_status"] == 200
    assert [(t.call.tool, t.status) for t in run.tools] == [("weather", NodeStatus.NEVER_RAN)] * 2


@pytest.mark.parametrize("way", WAYS)
def test_usage_is_what_the_provider_said(bench: Any, way: str) -> None:
    with ModelServer([REPLY]) as server:
        usage = bench.record(lambda: WAYS[way](server)).models[0].model.usage
    visible, reasoning = (5, None) if "messages" in way else (3, 2)
    assert (usage.input_uncached, usage.input_cache_read) == (16, 4)
    assert (usage.output_visible, usage.output_reasoning) == (visible, reasoning)


@pytest.mark.parametrize("way", WAYS)
def test_requests_are_byte_identical_with_and_without_recording(bench: Any, way: str) -> None:
    with ModelServer([REPLY]) as server:
        wire.uninstall()
        WAYS[way](server)
        wire.install()
        WAYS[way](server)  # no session
        bench.record(lambda: WAYS[way](server))
        without, idle, recorded = (sent(r) for r in server.requests)
    assert without == idle == recorded


# --- asyncio --------------------------------------------------------------------------------------------------------


def test_asynchronous_clients_are_recorded(bench: Any) -> None:
    async def agent(server: ModelServer) -> None:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="none", max_retries=0) as client:
            await client.chat.completions.create(model="m", messages=ASK)
            async for _ in await client.chat.completions.create(model="m", messages=ASK, stream=True):
                pass
            await client.responses.create(model="m", input="hi")
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as client:
            await client.messages.create(model="m", max_tokens=9, messages=USER)
            async with client.messages.stream(model="m", max_tokens=9, messages=USER) as stream:
                await stream.get_final_message()
        async with httpx.AsyncClient(timeout=60) as raw_client:
            await raw_client.post(f"{server.openai_url}/chat/completions", json=_body())

    with ModelServer([REPLY]) as server:
        run = asyncio.run(bench.record_async(lambda: agent(server)))
    assert [n.model.streamed for n in run.models] == [False, True, False, False, True, False]
    assert all(len(n.outcome.value["parts"]) == 3 for n in run.models)
    assert [n.model.protocol for n in run.models] == [
        "openai_chat", "openai_chat", "openai_responses", "anthropic_messages", "anthropic_messages", "openai_chat",
    ]  # fmt: skip


def test_a_cancelled_request_ends_as_cancelled(bench: Any) -> None:
    gate = threading.Event()

    async def agent(server: ModelServer) -> None:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
            await anext(aiter(stream))

            async def read_on() -> None:
                await anext(aiter(stream))

            waiting = asyncio.create_task(read_on())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        gate.set()

    with ModelServer([Reply("slow", hold=gate)]) as server:
        run = asyncio.run(bench.record_async(lambda: agent(server)))
    assert run.models[0].status is NodeStatus.CANCELLED


def test_sessions_at_the_same_time_do_not_mix(bench: Any) -> None:
    def plan(step: int, body: Any) -> Reply:
        return Reply(body["messages"][-1]["content"])

    async def agent(client: Any, name: str) -> Any:
        async with seam.session(name, recorder=bench.recorder) as active:
            for turn in range(3):
                ask: Any = [{"role": "user", "content": f"{name} {turn}"}]
                if turn % 2:
                    async for _ in await client.chat.completions.create(model="m", messages=ask, stream=True):
                        pass
                else:
                    await client.chat.completions.create(model="m", messages=ask)
            assert active is not None
            return active.session_id

    async def all_of_them(server: ModelServer) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="none") as client:
            return await asyncio.gather(*(agent(client, f"agent-{n}") for n in range(10)))

    with ModelServer(plan) as server:
        ids = asyncio.run(all_of_them(server))
    for number, session_id in enumerate(ids):
        run = bench.read(session_id)
        asked = [n.inputs["messages"][0]["parts"][0]["text"] for n in run.models]
        said = [n.outcome.value["parts"][0]["text"] for n in run.models]
        assert asked == said == [f"agent-{number} {turn}" for turn in range(3)]


# --- bytes and encodings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_compressed_bodies_are_read_and_pass_unchanged(bench: Any, library: Any, encoding: Any) -> None:
    def ask(server: ModelServer, stream: bool) -> bytes:
        url = f"{server.openai_url}/chat/completions"
        with library.Client() as client, client.stream("POST", url, json=_body(stream=stream)) as answer:
            return b"".join(answer.iter_raw())

    said = {"role": "assistant", "content": "It rains."}
    whole: Any = {"id": "x", "model": "m", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
    with ModelServer([Reply(body=whole, encoding=encoding)]) as server:
        wire.uninstall()
        plain, streamed = ask(server, False), ask(server, True)
        wire.install()
        run = bench.record(lambda: (ask(server, False), ask(server, True)))
    assert run.output == (plain, streamed)
    assert [n.outcome.value["parts"][0]["text"] for n in run.models] == ["It rains.", "It rains."]


def test_a_stream_that_cannot_be_decoded_is_not_recorded_as_an_empty_answer(bench: Any) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "unheard-of"}

    def handler(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=headers, content=iter([b"?!"]))

    run = bench.record(lambda: streamed(handler, "/v1/messages"))
    (node,) = run.models
    assert run.output == b"?!"
    assert (node.status, node.outcome) == (NodeStatus.CANCELLED, None)
    assert "cannot be undone" in node.attributes["unreadable"]


def test_streams_are_not_buffered(bench: Any) -> None:
    gate = threading.Event()

    def agent(server: ModelServer) -> str:
        with _openai(server) as client:
            stream = client.chat.completions.create(model="m", messages=ASK, stream=True)
            next(stream)
            second = next(stream)
            gate.set()
            list(stream)
        return second.choices[0].delta.content or ""

    with ModelServer([Reply("It rains.", hold=gate, hold_after=2)]) as server:
        assert bench.record(lambda: agent(server)).output == "It rains."


def test_text_split_in_the_middle_of_a_character_is_put_together(bench: Any) -> None:
    body = 'data: {"choices":[{"index":0,"delta":{"content":"Zürich 🚀"},"finish_reason":"stop"}]}\n\n'.encode()
    pieces = [body[i : i + 1] for i in range(len(body))]

    def handler(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=iter(pieces))

    def agent() -> bytes:
        return streamed(handler, "/v1/chat/completions")

    run = bench.record(agent)
    assert run.output == body
    assert run.models[0].outcome.value["parts"] == [{"type": "text", "text": "Zürich 🚀"}]


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_client_that_retries_makes_an_attempt_each_time(bench: Any) -> None:
    replies = [Reply(status=429, headers={"retry-after": "0.01"}), Reply("It rains.")]

    def agent(server: ModelServer) -> None:
        with openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=2) as client:
            client.chat.completions.create(model="m", messages=ASK)

    with ModelServer(replies) as server:
        run = bench.record(lambda: agent(server))
    failed, good = run.models
    assert (failed.status, failed.outcome.kind, failed.outcome.error.status) == (
        NodeStatus.FAILED,
        OutcomeKind.ERROR,
        429,
    )
    assert failed.outcome.error.retry_after == 0.01
    assert failed.outcome.error.message == "status 429: scripted status 429"
    assert good.status is NodeStatus.COMPLETED
    assert run.tools == []


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_status_is_a_failed_attempt_and_announces_nothing(bench: Any, streamed: bool) -> None:
    def agent(server: ModelServer) -> None:
        with _openai(server) as client, pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="m", messages=ASK, stream=streamed)

    with ModelServer([Reply(status=500)]) as server:
        run = bench.record(lambda: agent(server))
    assert run.models[0].outcome.error.status == 500
    assert run.tools == []


def test_a_connection_that_is_refused_is_the_clients_own_exception(bench: Any) -> None:
    with ModelServer([REPLY]) as server:
        url = f"{server.openai_url}/chat/completions"
    run = bench.record(lambda: httpx2.post(url, json=_body(), timeout=60))
    assert isinstance(run.error, httpx2.ConnectError)
    assert run.models[0].outcome.error.class_name == "ConnectError"
    assert run.session.status is SessionStatus.FAILED


def test_a_stream_that_breaks_keeps_what_arrived(bench: Any) -> None:
    def agent(server: ModelServer) -> None:
        with _openai(server) as client, pytest.raises(openai.APIConnectionError):
            list(client.chat.completions.create(model="m", messages=ASK, stream=True))

    with ModelServer([Reply("It rains.", calls=CALLS, cut_after=3)]) as server:
        run = bench.record(lambda: agent(server))
    (node,) = run.models
    assert node.outcome.kind is OutcomeKind.ERROR
    assert node.outcome.error.class_name == "RemoteProtocolError"
    assert node.outcome.value["parts"][0] == {"type": "text", "text": "It rains."}
    assert run.tools == []


def test_an_error_event_inside_a_stream_is_a_failure(bench: Any) -> None:
    body = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'

    def handler(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=iter([body]))

    error = bench.record(lambda: streamed(handler, "/v1/messages")).models[0].outcome.error
    assert (error.class_name, error.message) == ("overloaded_error", "Overloaded")


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_consumer_that_leaves_early_leaves_a_partial_call(bench: Any, how: str) -> None:
    gate = threading.Event()

    def agent(server: ModelServer) -> None:
        with _openai(server) as client:
            stream = client.chat.completions.create(model="m", messages=ASK, stream=True)
            assert next(stream) is not None
            assert next(stream) is not None
            if how == "close":
                stream.close()
            else:
                del stream
                gc.collect()

    with ModelServer([Reply("It rains.", calls=CALLS, hold=gate, hold_after=2)]) as server:
        run = bench.record(lambda: agent(server))
        gate.set()
    (node,) = run.models
    assert node.model.partial is True
    assert node.outcome.value["parts"] == [{"type": "text", "text": "It rains."}]
    assert run.tools == []


def test_calls_are_announced_as_soon_as_the_message_is_whole(bench: Any) -> None:
    """A loop may run tools before it reads the stream to its last byte."""
    gate = threading.Event()

    def agent(server: ModelServer) -> None:
        active = seam.current()
        assert active is not None
        with _openai(server) as client:
            stream = client.chat.completions.create(model="m", messages=ASK, stream=True)
            while not next(stream).choices[0].finish_reason:
                pass
            step = active.tool_call("weather", arguments={"city": "Oslo"})
            step.returned("rain")
            gate.set()
            list(stream)

    with ModelServer([Reply(calls=CALLS, hold=gate, hold_after=6)]) as server:
        run = bench.record(lambda: agent(server))
    first = next(n for n in run.tools if n.call.arguments == {"city": "Oslo"})
    assert (first.call.call_id, first.call.index, first.outcome.value) == ("c1", 0, "rain")
    assert first.call.model_call == run.models[0].id
