"""google-genai against a scripted server: functions that the client calls by itself, sync, async, chats and streams."""

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

genai = pytest.importorskip("google.genai", reason="framework not installed")

from google.genai import _extra_utils, errors, types  # noqa: E402
from suite import sample, try_scenario  # noqa: E402

import playhead  # noqa: E402
from playhead.adapters import google_genai as adapter  # noqa: E402
from playhead.adapters import wire  # noqa: E402
from playhead.core.policy import HistoryModel, ReplayOverride  # noqa: E402
from playhead.core.values import OutcomeKind, ReplayStatus  # noqa: E402
from playhead.engine import unseen  # noqa: E402
from playhead.errors import RecordingError  # noqa: E402
from playhead.testing.conformance.adapter import (  # noqa: E402
    AdapterHarness,
    Entry,
    NotApplicable,
    Retry,
    Scenario,
    Spec,
    started,
)
from playhead.testing.conformance.bench import Bench  # noqa: E402
from playhead.testing.conformance.served import Served, ServedHarness  # noqa: E402
from playhead.testing.servers import Call, ModelServer, Reply  # noqa: E402


class Signalled(BaseException):
    """Gets a signal of a scenario out of the client, which has no such thing."""


def function_of(body: Callable[..., Any], *, awaited: bool) -> Callable[..., Any]:
    """A function that the client calls by itself: a coroutine function where the client is asynchronous."""

    @functools.wraps(body)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        try:
            found = body(*args, **kwargs)
            return await found if inspect.isawaitable(found) else found
        except Retry as signal:
            raise Signalled from signal

    signature = inspect.signature(body)
    named = [
        p.replace(annotation=object if p.annotation is Any else p.annotation) for p in signature.parameters.values()
    ]
    coroutine.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined] - Any is refused
    if awaited:
        return coroutine

    @functools.wraps(body)
    def plain(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(coroutine(*args, **kwargs))

    plain.__signature__ = coroutine.__signature__  # type: ignore[attr-defined]
    return plain


class GenAIHarness(ServedHarness):
    name = "google_genai"
    distribution = "google-genai"
    form = "gemini"
    breaks_after = 0  # the one event is the whole answer
    entries: Sequence[Entry] = ("sync", "async", "stream")
    rounds = 5
    never: Mapping[str, str] = {
        "S8-unparsable": "the provider gives arguments as objects",
        "S19": "a session of an MCP server is a tool of the client: its calls are the MCP adapter's",
        "S8-unknown": "the client raises where a function is not there, and the run ends",
    }

    def start(self) -> None:
        playhead.install()

    def stop(self) -> None:
        super().stop()
        playhead.uninstall()

    def make(self, spec: Spec, url: str, served: Served) -> str:
        return url

    def config(self, agent: Served, *, awaited: bool) -> Any:
        tools: list[Any] = [function_of(tool, awaited=awaited) for tool in agent.spec.tools]
        settings = dict(agent.spec.settings)
        return types.GenerateContentConfig(tools=tools, system_instruction=agent.spec.system, **settings)

    def client(self, agent: Served) -> Any:
        return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=agent.agent))

    def run_sync(self, agent: Served, prompt: str) -> str:
        client, config = self.client(agent), self.config(agent, awaited=False)
        with _signals():
            chat = client.chats.create(model=agent.spec.model, config=config)
            return chat.send_message(prompt).text or ""

    async def run(self, agent: Served, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        client, config = self.client(agent), self.config(agent, awaited=True)
        try:
            with _signals():
                models = client.aio.models
                if entry == "stream":
                    pieces = await models.generate_content_stream(
                        model=agent.spec.model, contents=prompt, config=config
                    )
                    return "".join([piece.text or "" async for piece in pieces])
                said = await models.generate_content(model=agent.spec.model, contents=prompt, config=config)
                return said.text or ""
        finally:
            await client.aio.aclose()

    async def stop_early(self, agent: Served, prompt: str) -> None:
        client = self.client(agent)
        pieces = await client.aio.models.generate_content_stream(model=agent.spec.model, contents=prompt)
        await anext(pieces)
        await pieces.aclose()
        await client.aio.aclose()

    async def conversation(self, agent: Served, prompts: Any) -> str:
        raise NotApplicable("a client has no runs: one function is one run")

    def agent_tool(self, name: str, child: Served) -> Callable[..., Any]:
        @playhead.agent(child.spec.name)
        async def ask_child(q: str) -> str:
            return await self.run(child, q)

        async def ask(q: str) -> str:
            return await ask_child(q)

        ask.__name__ = ask.__qualname__ = name
        return ask

    def activate(self) -> None:
        playhead.install()

    def deactivate(self) -> None:
        playhead.uninstall()

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Served:
        made = self.build(spec)
        read = usage.get("input_cache_read", 0)
        made.usage = {
            "promptTokenCount": usage["input_uncached"] + read,
            "cachedContentTokenCount": read,
            "candidatesTokenCount": usage["output_visible"],
            "thoughtsTokenCount": usage["output_reasoning"],
        }
        return made


class _signals:  # noqa: N801 - a block
    """Tells a scenario that the client has no signals of tools."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, at: Any) -> None:
        if isinstance(error, Signalled):
            raise NotApplicable("the client has no signal by which a function asks for another try") from error


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(GenAIHarness()) as made:
        yield made


CHOSEN = ("S6", "S8-schema", "S9", "S14-unapplied", "S16-early", "S17-inside")


@pytest.mark.parametrize("scenario", sample(*CHOSEN), ids=lambda s: s.id)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)


CITIES = ("Oslo", "Oslo", "Nowhere")
INPUTS = {"prompt": "Where does it rain?"}


def plan(step: int, body: dict[str, Any]) -> Reply:
    """Asks for the weather in each city, one after the other, then says how many answers it saw."""
    asked = sum("functionResponse" in part for content in body["contents"] for part in content["parts"])
    last = body["contents"][-1]["parts"]
    if asked and asked % 4 == 0 and any("functionResponse" in part for part in last):
        return Reply(f"seen {[part['functionResponse']['response'] for part in last]}")
    if any("functionResponse" in part for part in last):
        return Reply(calls=[Call("weather", {"city": CITIES[asked % 4 - 1]})])
    return Reply(calls=[Call("weather", {"city": "Rome"})])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    playhead.install()
    with ModelServer(plan) as running:
        yield running


class Agents:
    """Runs of a client with one tool, and what ran for real."""

    def __init__(self, server: ModelServer) -> None:
        self.live: list[str] = []
        self.url = server.url

    def client(self) -> Any:
        return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=self.url))

    def weather(self, city: str) -> dict[str, Any]:
        """The weather in a city."""
        self.live.append(city)
        if city == "Nowhere":
            raise KeyError(city)
        return {"rain": len(self.live)}

    def config(self) -> Any:
        def weather(city: str) -> dict[str, Any]:
            """The weather in a city."""
            return self.weather(city)

        return types.GenerateContentConfig(tools=[weather], temperature=0.5, system_instruction="be brief")

    def generated(self, prompt: str) -> str:
        client = self.client()  # which closes itself when nobody holds it
        return client.models.generate_content(model="gem", contents=prompt, config=self.config()).text

    def streamed(self, prompt: str) -> str:
        client = self.client()
        pieces = client.models.generate_content_stream(model="gem", contents=prompt, config=self.config())
        return "".join(piece.text or "" for piece in pieces)

    def chatted(self, prompt: str) -> str:
        client = self.client()
        chat = client.chats.create(model="gem", config=self.config())
        return chat.send_message(prompt).text + chat.send_message("and now?").text

    def awaited(self, prompt: str) -> str:
        async def weather(city: str) -> dict[str, Any]:
            """The weather in a city."""
            await asyncio.sleep(0)
            return self.weather(city)

        async def run() -> str:
            config = types.GenerateContentConfig(tools=[weather])
            client = self.client()
            said = await client.aio.models.generate_content(model="gem", contents=prompt, config=config)
            await client.aio.aclose()
            return said.text

        return asyncio.run(run())


@pytest.mark.parametrize("entry", ["generated", "streamed", "chatted", "awaited"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_functions_that_the_client_calls_are_recorded_and_served(server: ModelServer, bench: Bench, entry: str) -> None:
    agents = Agents(server)
    run: Callable[[str], str] = getattr(agents, entry)
    baseline = bench.record(run, INPUTS)
    assert baseline.error is None, baseline.error
    turns = 2 if entry == "chatted" else 1
    assert [call.call.arguments for call in baseline.calls if call.call] == [
        {"city": city} for city in ("Rome", *CITIES)
    ] * turns  # fmt: skip
    kinds = [call.outcome.kind for call in baseline.calls if call.outcome]
    assert kinds == [*[OutcomeKind.VALUE] * 3, OutcomeKind.ERROR] * turns
    assert len(baseline.model_calls) == 5 * turns
    agents.live.clear()
    asked = len(server.model_requests)
    result = bench.replay(baseline, run)
    assert result.faithful, result.message
    assert result.output == baseline.session.output
    assert agents.live == []
    sent = server.model_requests
    assert [r.raw for r in sent[asked:]] == [r.raw for r in sent[:asked]]
    result = bench.replay(baseline, run, model_policy=HistoryModel())
    assert result.faithful, result.message
    assert agents.live == []
    assert len(server.model_requests) == 2 * asked


def test_recording_changes_no_request_and_no_result(server: ModelServer, bench: Bench) -> None:
    agents = Agents(server)
    plain = agents.generated("Where does it rain?")
    agents.live.clear()
    assert bench.record(agents.generated, INPUTS).output == plain
    sent = [request.raw for request in server.model_requests]
    assert sent[:5] == sent[5:]


@pytest.mark.parametrize("on_miss", ["fail", "error_result", "passthrough"])
def test_a_call_that_was_not_recorded_is_decided_by_the_policy(server: ModelServer, bench: Bench, on_miss: str) -> None:
    agents = Agents(server)
    baseline = bench.record(agents.generated, INPUTS)
    agents.live.clear()
    asked = len(server.model_requests)
    server.plan = lambda step, body: (
        Reply(calls=[Call("weather", {"city": "Rome" if len(body["contents"]) == 1 else "Paris"})])
        if len(body["contents"]) < 5
        else Reply("done")
    )
    policy = {"default": {"type": "history", "on_miss": on_miss}}
    result = bench.replay(baseline, agents.generated, tool_policy=policy)
    assert result.by[:2] == ["served", "missed"]
    assert agents.live == (["Paris"] if on_miss == "passthrough" else [])
    if on_miss == "fail":
        assert "Paris" in result.message
        assert len(server.model_requests) == asked + 2, "the model was asked after the stop"
    else:
        assert result.replay.status is ReplayStatus.COMPLETED, result.message
        last = server.model_requests[-1].body["contents"][-1]["parts"][0]["functionResponse"]["response"]
        assert ("error" in last) is (on_miss == "error_result")


def test_overrides_reach_the_request(server: ModelServer, bench: Bench) -> None:
    agents = Agents(server)
    baseline = bench.record(agents.generated, INPUTS)
    asked = len(server.model_requests)
    override = ReplayOverride(model="other", system_prompt="be thorough", model_params={"max_tokens": 9})
    result = bench.replay(baseline, agents.generated, override=override)
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    for request in server.model_requests[asked:]:
        assert "/models/other:" in request.path
        assert request.body["systemInstruction"]["parts"] == [{"text": "be thorough"}]
        assert request.body["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 9}


def test_a_refused_request_is_a_failed_model_call(server: ModelServer, bench: Bench) -> None:
    def run(prompt: str) -> str:
        try:
            return Agents(server).generated(prompt)
        except errors.ServerError as error:
            return f"{error.code}"

    server.plan = [Reply(status=503)]
    baseline = bench.record(run, INPUTS)
    assert baseline.output == "503"
    result = bench.replay(baseline, run, model_policy=HistoryModel())
    assert result.faithful, result.message


@pytest.mark.parametrize("entry", ["streamed", "awaited"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_requests_that_the_wire_no_longer_sees_are_warned_of(
    server: ModelServer, bench: Bench, entry: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unseen, "_warned", set())
    run: Callable[[str], str] = getattr(Agents(server), entry)
    with caplog.at_level(logging.WARNING, "playhead"):
        assert bench.record(run, INPUTS).model_calls
        assert "wire does not see" not in caplog.text
        wire.uninstall()
        bench.record(run, INPUTS)
    assert "google-genai asked 'gem' in a way that the wire does not see" in caplog.text


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_extra_utils, "get_function_map")
    with pytest.raises(RecordingError, match=r"google-genai .* has no _extra_utils\.get_function_map"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_wraps_once_and_is_undone() -> None:
    before = _extra_utils.get_function_map
    adapter.install()
    once = _extra_utils.get_function_map
    adapter.install()
    assert _extra_utils.get_function_map is once
    adapter.uninstall()
    assert _extra_utils.get_function_map is before
