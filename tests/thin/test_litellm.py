"""LiteLLM: a loop over its completions against a scripted server, and the providers that the wire does not know."""

import asyncio
import copy
import inspect
import json
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the network
litellm = pytest.importorskip("litellm", reason="framework not installed")

from suite import try_scenario  # noqa: E402

import playhead  # noqa: E402
from playhead.adapters import litellm as adapter  # noqa: E402
from playhead.core.policy import HistoryModel  # noqa: E402
from playhead.core.values import ReplayStatus  # noqa: E402
from playhead.errors import RecordingError  # noqa: E402
from playhead.testing.conformance.adapter import (  # noqa: E402
    AdapterHarness,
    Entry,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    scenarios,
    started,
)
from playhead.testing.conformance.bench import Bench  # noqa: E402
from playhead.testing.conformance.served import Served, ServedHarness  # noqa: E402
from playhead.testing.servers import ModelServer, Reply  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework's own

INPUTS = {"prompt": "go"}


class Loop:
    """The loop that users of LiteLLM write: ask, call what is asked for, ask again."""

    def __init__(self, spec: Spec, url: str) -> None:
        self.tools = {tool.__name__: playhead.gate(tool) for tool in spec.tools}
        self.system = [{"role": "system", "content": spec.system}] if spec.system else []
        self.options: dict[str, Any] = {
            "model": f"openai/{spec.model}", "api_base": url, "api_key": "none", "max_retries": 0, **spec.settings,
        }  # fmt: skip
        if spec.tools:
            self.options["tools"] = [
                {"type": "function", "function": {"name": name, "parameters": _schema(tool)}}
                for name, tool in self.tools.items()
            ]
        self.messages: list[Any] = []

    def started(self, prompt: str, history: Any = None) -> list[Any]:
        before = list(history) if history else list(self.system)
        self.messages = [*before, {"role": "user", "content": prompt}]
        return self.messages

    def calls(self, message: Any) -> list[tuple[str, Any, dict[str, Any] | None, str]]:
        self.messages.append(message.model_dump(exclude_none=True))
        made: list[tuple[str, Any, dict[str, Any] | None, str]] = []
        for call in message.tool_calls or ():
            try:
                arguments = json.loads(call.function.arguments)
            except ValueError:
                arguments = None
            made.append((call.id, self.tools.get(call.function.name), arguments, call.function.name))
        return made

    def answer(self, call_id: str, name: str, result: Any) -> None:
        content = result if isinstance(result, str) else json.dumps(result)
        self.messages.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": content})

    def sync(self, prompt: str) -> str:
        self.started(prompt)
        while True:
            message = litellm.completion(messages=self.messages, **self.options).choices[0].message
            calls = self.calls(message)
            if not calls:
                return message.content
            for call_id, tool, arguments, name in calls:
                self.answer(call_id, name, asyncio.run(_result(tool, arguments)))

    async def awaited(self, prompt: str, *, stream: bool = False, history: Any = None) -> str:
        self.started(prompt, history)
        while True:
            message = await self._ask(stream)
            calls = self.calls(message)
            if not calls:
                return message.content
            todo = [_result(tool, arguments) for _, tool, arguments, _ in calls]
            for call, result in zip(calls, await asyncio.gather(*todo), strict=True):
                self.answer(call[0], call[3], result)

    async def _ask(self, stream: bool) -> Any:
        if not stream:
            return (await litellm.acompletion(messages=self.messages, **self.options)).choices[0].message
        chunks = [
            chunk async for chunk in await litellm.acompletion(messages=self.messages, stream=True, **self.options)
        ]
        return litellm.stream_chunk_builder(chunks, messages=self.messages).choices[0].message


async def _result(tool: Any, arguments: Any) -> Any:
    if tool is None or arguments is None:
        return "error: cannot be called"
    try:
        found = tool(**arguments)
        return await found if inspect.isawaitable(found) else found
    except (Retry, Refused) as signal:
        raise NotApplicable("a loop of one's own has no signals") from signal
    except Exception as error:  # as loops do, so that the model may read it
        return f"error: {error}"


def _schema(tool: Any) -> dict[str, Any]:
    named = {name: {"type": "string"} for name in inspect.signature(tool).parameters}
    return {"type": "object", "properties": named, "additionalProperties": True}


class LiteLLMHarness(ServedHarness):
    name = "litellm"
    distribution = "litellm"
    entries = ("sync", "async", "stream")
    never = {"S8-schema": "a loop of one's own checks no arguments against a schema"}  # noqa: RUF012

    def make(self, spec: Spec, url: str, served: Served) -> Loop:
        return Loop(spec, url)

    def run_sync(self, agent: Served, prompt: str) -> str:
        return agent.agent.sync(prompt)

    async def run(self, agent: Served, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        return await agent.agent.awaited(prompt, stream=entry == "stream", history=history)

    async def stop_early(self, agent: Served, prompt: str) -> None:
        messages = agent.agent.started(prompt)
        pieces = await litellm.acompletion(messages=messages, stream=True, **agent.agent.options)
        await anext(pieces)
        await pieces.aclose()

    async def conversation(self, agent: Served, prompts: Any) -> str:
        raise NotApplicable("a loop of one's own has no runs: one function is one run")

    def agent_tool(self, name: str, child: Served) -> Callable[..., Any]:
        @playhead.agent(child.spec.name)
        async def ask_child(q: str) -> str:
            return await copy.copy(child.agent).awaited(q)  # each run has messages of its own

        async def ask(q: str) -> str:
            return await ask_child(q)

        ask.__name__ = ask.__qualname__ = name
        return ask

    def deactivate(self) -> None:
        raise NotApplicable("tools are recorded by their decorator")

    def start(self) -> None:
        playhead.install()

    def stop(self) -> None:
        super().stop()
        playhead.uninstall()

    def activate(self) -> None:
        playhead.install()


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(LiteLLMHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)


MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("model", ["anthropic/claude-x", "gemini/gem", "openai/m"])
@pytest.mark.parametrize("stream", [False, True])
def test_providers_that_the_wire_knows_are_recorded_and_served(bench: Bench, model: str, stream: bool) -> None:
    playhead.install()
    with ModelServer([Reply("rain")]) as server:
        url = server.openai_url if model.startswith("openai") else server.url
        options: dict[str, Any] = {"model": model, "api_base": url, "api_key": "none", "messages": MESSAGES}

        def run(prompt: str) -> str:
            found = litellm.completion(stream=stream, **options)
            if stream:
                return "".join(chunk.choices[0].delta.content or "" for chunk in found)
            return found.choices[0].message.content

        baseline = bench.record(run, INPUTS)
        assert (baseline.output, len(baseline.model_calls)) == ("rain", 1)
        result = bench.replay(baseline, run, model_policy=HistoryModel())
        assert result.faithful, result.message
        assert len(server.model_requests) == 1


UNSEEN: dict[str, Any] = {
    "model": "cohere_chat/command-r", "api_key": "none", "messages": MESSAGES, "stream": True,
}  # fmt: skip


def test_a_provider_that_the_wire_does_not_know_is_warned_of(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    playhead.install()
    with ModelServer([Reply()]) as server, caplog.at_level(logging.WARNING, "playhead"):
        bench.record(lambda prompt: str(litellm.completion(api_base=server.url, **UNSEEN) is None), INPUTS)
    assert "cohere_chat/command-r" in caplog.text
    assert "not in the recording" in caplog.text


def test_a_provider_that_the_wire_does_not_know_stops_a_replay(bench: Bench) -> None:
    playhead.install()
    with ModelServer([Reply("x")]) as server:
        models: list[dict[str, Any]] = [{**UNSEEN, "model": "openai/m", "api_base": server.openai_url}]
        run = lambda prompt: str(litellm.completion(**models[0]) is None)  # noqa: E731
        baseline = bench.record(run, INPUTS)
        models[0] = {**UNSEEN, "api_base": server.url}
        result = bench.replay(baseline, run, tool_policy={"default": {"type": "passthrough"}})
    assert result.replay.status is ReplayStatus.FAILED
    assert "cohere_chat/command-r" in result.message


def test_an_answer_that_the_caller_gave_is_not_warned_of(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    playhead.install()
    with caplog.at_level(logging.WARNING, "playhead"):
        bench.record(
            lambda prompt: litellm.completion("m", MESSAGES, mock_response="mocked").choices[0].message.content, INPUTS
        )
    assert "not in the recording" not in caplog.text


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("litellm.llms.custom_httpx.http_handler.HTTPHandler")
    with pytest.raises(RecordingError, match=r"litellm .* has no HTTPHandler"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_wraps_once_and_is_undone() -> None:
    before = litellm.completion
    adapter.install()
    once = litellm.completion
    adapter.install()
    assert litellm.completion is once
    adapter.uninstall()
    assert litellm.completion is before
