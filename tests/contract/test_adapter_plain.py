"""Agents without a framework against the scenarios that every adapter runs: decorated functions, and raw model clients.

Both are the same small loop. With plain functions its turns stand in the code; with the wire a model is asked, through
the ``openai`` client, what comes next.
"""

import asyncio
import json
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest

import playhead
from playhead.adapters import wire
from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Call,
    Entry,
    NotApplicable,
    Retry,
    Scenario,
    Spec,
    check,
    scenarios,
    started,
)
from playhead.testing.servers import Call as Asked
from playhead.testing.servers import ModelServer, Reply


@dataclass
class Loop:
    """An agent as people write it: calls of a turn side by side, a failure is a text, anything else goes on."""

    spec: Spec
    asked: list[bytes] = field(default_factory=list[bytes])

    def __post_init__(self) -> None:
        self.tools: dict[str, Any] = {t.__name__: playhead.gate(t) for t in self.spec.tools}

    def said(self, results: Sequence[Any]) -> str:
        return self.spec.says(results) if self.spec.says else f"saw {list(results)}"

    def told(self, error: Exception) -> str:
        if isinstance(error, Retry):
            raise NotApplicable("a function has no signal that asks the model to try again") from error
        if isinstance(error, NotApplicable):
            raise error
        return str(error)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            value = self.tools[name](**arguments)
            return asyncio.run(_awaited(value)) if asyncio.iscoroutine(value) else value
        except Exception as error:
            return self.told(error)

    async def call_async(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            value = self.tools[name](**arguments)
            return await value if asyncio.iscoroutine(value) else value
        except Exception as error:
            return self.told(error)

    # --- without a model ---

    def turns(self, prompt: str) -> Iterator[list[tuple[str, dict[str, Any]]]]:
        """The calls of each turn; what the code works from stands for what a model would be asked."""
        for turn in self.spec.turns:
            for call in turn:
                if _mistake(call, self.tools) is not None:
                    raise NotApplicable("plain code calls functions that it has, with arguments that fit")
            self.asked.append(json.dumps([prompt, [[c.tool, c.arguments] for c in turn]]).encode())
            yield [(c.tool, c.arguments or {}) for c in turn]
        self.asked.append(json.dumps([prompt, "answer"]).encode())

    def run_sync(self, prompt: str) -> str:
        return self.said([self.call(*call) for turn in self.turns(prompt) for call in turn])

    async def run(self, prompt: str, entry: Entry) -> str:
        results: list[Any] = []
        for turn in self.turns(prompt):
            results += await asyncio.gather(*(self.call_async(*call) for call in turn))
        return self.said(results)


async def _awaited(value: Any) -> Any:
    return await value


def _mistake(call: Call, tools: Mapping[str, Any]) -> str | None:
    """What is wrong with a call of a model, as a loop would tell it."""
    if call.tool not in tools:
        return f"there is no tool {call.tool}"
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return "the arguments are no JSON"
    hints = typing.get_type_hints(tools[call.tool])
    wrong = [n for n, v in (arguments or {}).items() if hints.get(n) is int and not isinstance(v, int)]
    return f"{wrong[0]} must be a number" if wrong else None


class FunctionsHarness(AdapterHarness):
    name = "functions"
    has_models = False

    def build(self, spec: Spec) -> Any:
        return Loop(spec)

    def run_sync(self, agent: Any, prompt: str) -> str:
        return agent.run_sync(prompt)

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        return await agent.run(prompt, entry)

    def requests(self, agent: Any) -> list[bytes]:
        return agent.asked

    def agent_tool(self, name: str, child: Any) -> Callable[..., Any]:
        @playhead.agent(child.spec.name)
        async def ask_child(q: str) -> str:
            return await child.run(q, "async")

        async def ask(q: str) -> str:
            return await ask_child(q)

        ask.__name__ = name
        return ask


# --- with a model on the wire ---------------------------------------------------------------------------------------


class ChatLoop(Loop):
    """The loop around chat completions of the ``openai`` client."""

    usage: Mapping[str, Any] | None = None
    holds: Callable[[], Any] | None = None
    cut_after: int | None = None

    def plan(self, step: int, body: dict[str, Any]) -> Reply:
        if body["model"] == self.spec.model:
            self.asked.append(json.dumps(body).encode())
        if self.holds is not None:
            self.holds()
            self.released.wait(60)
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        more: dict[str, Any] = {"usage": self.usage, "cut_after": self.cut_after}
        if turn < len(self.spec.turns):
            calls = [Asked(c.tool, c.arguments or {}, c.id) for c in self.spec.turns[turn]]
            return Reply(calls=calls, **more)
        return Reply(self.said([m["content"] for m in body["messages"] if m["role"] == "tool"]), **more)

    def request(self, messages: list[Any]) -> dict[str, Any]:
        schemas = [
            {"type": "function", "function": {"name": name, "parameters": _schema(tool)}}
            for name, tool in self.tools.items()
        ]
        tools = {"tools": schemas} if schemas else {}
        return {"model": self.spec.model, "messages": messages, **tools, **self.spec.settings}

    def started(self, prompt: str) -> list[Any]:
        self.released = threading.Event()
        system = [{"role": "system", "content": self.spec.system}] if self.spec.system else []
        return [*system, {"role": "user", "content": prompt}]

    def wanted(self, message: Any, messages: list[Any]) -> list[Any]:
        """The calls of a response, which is added to the messages with an answer for each that is wrong."""
        messages.append(message.model_dump(exclude_none=True))
        good: list[Any] = []
        for call in message.tool_calls or ():
            wrong = _mistake(Call(call.function.name, call.function.arguments), self.tools)
            if wrong is None:
                good.append(call)
            else:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": wrong})
        return good

    def run_sync(self, prompt: str) -> str:
        messages = self.started(prompt)
        with ModelServer(self.plan) as server, _client(openai.OpenAI, server) as client:
            while True:
                message = client.chat.completions.create(**self.request(messages)).choices[0].message
                for call in self.wanted(message, messages):
                    _answer(messages, call, self.call(call.function.name, json.loads(call.function.arguments)))
                if not message.tool_calls:
                    return message.content or ""

    async def run(self, prompt: str, entry: Entry) -> str:
        messages = self.started(prompt)
        with ModelServer(self.plan) as server:
            async with _client(openai.AsyncOpenAI, server) as client:
                try:
                    while True:
                        message = await self.answer(client, messages, entry)
                        good = self.wanted(message, messages)
                        given = [self.call_async(c.function.name, json.loads(c.function.arguments)) for c in good]
                        for call, value in zip(good, await asyncio.gather(*given), strict=True):
                            _answer(messages, call, value)
                        if not message.tool_calls:
                            return message.content or ""
                finally:
                    self.released.set()

    async def answer(self, client: Any, messages: list[Any], entry: Entry) -> Any:
        if entry != "stream":
            return (await client.chat.completions.create(**self.request(messages))).choices[0].message
        async with client.chat.completions.stream(**self.request(messages)) as stream:
            async for _ in stream:
                pass
            return (await stream.get_final_completion()).choices[0].message

    async def leave_early(self, prompt: str) -> None:
        messages = self.started(prompt)
        with ModelServer(self.plan) as server:
            client = _client(openai.AsyncOpenAI, server)
            async with client, client.chat.completions.stream(**self.request(messages)) as stream:
                async for _ in stream:
                    break


def _client(cls: Any, server: ModelServer) -> Any:
    return cls(base_url=server.openai_url, api_key="none", max_retries=0, timeout=60)


def _answer(messages: list[Any], call: Any, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _schema(tool: Any) -> dict[str, Any]:
    hints = {name: hint for name, hint in typing.get_type_hints(tool).items() if name != "return"}
    properties = {name: {"type": "integer"} if hint is int else {} for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": list(hints)}


class WireHarness(FunctionsHarness):
    name = "wire"
    distribution = "openai"
    entries: Sequence[Entry] = ("sync", "async", "stream")
    other_model = "other"
    has_models = True
    buckets = ("input_uncached", "input_cache_read", "output_visible", "output_reasoning")

    def start(self) -> None:
        wire.install()

    def stop(self) -> None:
        wire.uninstall()

    def build(self, spec: Spec) -> Any:
        return ChatLoop(spec)

    def history(self, agent: Any) -> Any:
        raise NotApplicable("clients of a model have no runs that a next one could start from")

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        agent = ChatLoop(spec)
        given, said = usage["input_uncached"] + usage["input_cache_read"], usage["output_visible"]
        agent.usage = {
            "prompt_tokens": given, "prompt_tokens_details": {"cached_tokens": usage["input_cache_read"]},
            "completion_tokens": said + usage["output_reasoning"],
            "completion_tokens_details": {"reasoning_tokens": usage["output_reasoning"]},
            "total_tokens": given + said + usage["output_reasoning"],
        }  # fmt: skip
        return agent

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        agent = ChatLoop(Spec(name=spec.name, says=lambda _: after))
        agent.cut_after = 2
        return agent

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        agent = ChatLoop(spec)
        agent.holds = asked
        return agent

    async def stop_early(self, agent: Any, prompt: str) -> None:
        await agent.leave_early(prompt)


@pytest.fixture(params=[FunctionsHarness, WireHarness], ids=["functions", "wire"])
def harness(request: pytest.FixtureRequest) -> Iterator[AdapterHarness]:
    with started(request.param()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict == "not_applicable":
        pytest.skip(found.reason)
