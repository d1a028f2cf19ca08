"""Tools around model calls on the wire: those nobody wrapped, decorated ones, and requests that cannot be read."""

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from playhead.adapters import wire
from playhead.core.values import NodeKind
from playhead.engine import seam
from playhead.engine.egress import own_traffic
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


# --- tools ----------------------------------------------------------------------------------------------------------


def test_tools_that_nobody_wrapped_are_recorded_from_the_next_request(bench: Any) -> None:
    def agent(server: ModelServer) -> None:
        asked = [*ASK]
        with _openai(server) as client:
            said = client.chat.completions.create(model="m", messages=asked).choices[0].message
            asked.append(said.model_dump(exclude_none=True))
            asked += [{"role": "tool", "tool_call_id": c.id, "content": f"rain {c.id}"} for c in said.tool_calls or ()]
            client.chat.completions.create(model="m", messages=asked)

    with ModelServer([REPLY, Reply("It rains.")]) as server:
        run = bench.record(lambda: agent(server))
    assert [(n.call.tool, n.call.arguments, n.call.source, n.outcome.value) for n in run.tools] == [
        ("weather", {"city": "Oslo"}, "transcript", "rain c1"),
        ("weather", {"city": "Bergen"}, "transcript", "rain c2"),
    ]


def test_tools_that_the_provider_ran_are_recorded_as_such(bench: Any) -> None:
    search = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "x"}}
    text = {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Found.", "annotations": []}],
    }  # fmt: skip
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [search, text]}

    with ModelServer([Reply(body=body)]) as server:
        run = bench.record(lambda: responses(server))
    (tool,) = run.tools
    assert (tool.call.tool, tool.call.source, tool.call.call_id) == ("web_search", "provider", "ws1")
    assert tool.parent_id == run.models[0].id


# --- what is left alone ---------------------------------------------------------------------------------------------


def test_other_requests_to_models_are_spans_and_the_rest_is_nothing(bench: Any) -> None:
    async def count(server: ModelServer) -> None:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none") as client:
            await client.messages.count_tokens(model="m", messages=USER)

    def agent(server: ModelServer) -> None:
        httpx2.get(f"{server.openai_url}/models", timeout=60)
        httpx2.post(f"{server.url}/orders", json={"input": "x"}, timeout=60)
        httpx2.post(f"{server.openai_url}/embeddings", json={"input": "x"}, timeout=60)
        asyncio.run(count(server))

    with ModelServer([REPLY]) as server:
        embed, counted = bench.record(lambda: agent(server)).nodes
    assert (embed.kind, embed.name, embed.inputs) == (NodeKind.SPAN, "POST /v1/embeddings", {"input": "x"})
    assert embed.outcome.value["body"]["data"][0]["embedding"] == [0.5, 0.25]
    assert counted.outcome.value == {"status": 200, "body": {"input_tokens": 12}}


def test_inside_a_model_seam_and_for_our_own_traffic_the_wire_is_silent(bench: Any) -> None:
    def agent(server: ModelServer) -> None:
        active = seam.current()
        assert active is not None
        step = active.model_call("m", request=seam.ModelRequest(messages=[], model="m"))
        with step.inside():
            chat(server)
        step.observe(seam.ModelResult(message={"role": "assistant", "parts": []}))
        with own_traffic():
            chat(server)

    with ModelServer([REPLY]) as server:
        run = bench.record(lambda: agent(server))
        assert len(server.requests) == 2
    assert len(run.models) == 1


def test_a_request_that_cannot_be_read_still_goes_out(bench: Any) -> None:
    def agent(server: ModelServer) -> int:
        return httpx2.post(f"{server.url}/v1/messages", content=b"[1, 2]", timeout=60).status_code

    with ModelServer(lambda step, body: Reply("x")) as server:
        url = server.url

        def plain(request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, content=b"ok")

        def ask() -> bytes:
            with httpx2.Client(transport=httpx2.MockTransport(plain)) as client:
                return client.post(f"{url}/v1/messages", content=b"not json").content

        run = bench.record(ask)
    assert run.output == b"ok"
    assert run.models == []
    assert bench.recorder.counters.pop("errors") == 1


def test_install_twice_undo_and_under_somebody_elses_wrapper(monkeypatch: pytest.MonkeyPatch, bench: Any) -> None:
    wire.install()
    ours: Any = httpx2.Client.send
    assert not hasattr(ours.__wrapped__, "__wrapped__")
    seen: list[str] = []

    def theirs(self: Any, request: Any, **kwargs: Any) -> Any:
        seen.append(request.url.path)
        return ours(self, request, **kwargs)

    monkeypatch.setattr(httpx2.Client, "send", theirs)
    wire.uninstall()
    assert httpx2.Client.send is theirs
    assert not wire.is_installed()
    with ModelServer([REPLY]) as server:
        assert bench.record(lambda: raw(httpx2)(server)).models == []
        wire.install()
        assert len(bench.record(lambda: raw(httpx2)(server)).models) == 1
    assert seen == ["/v1/chat/completions"] * 2
    monkeypatch.undo()
