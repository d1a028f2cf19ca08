"""MCP client sessions against a server that talks over stdio and writes down what reaches it."""

import asyncio
import contextvars
import gc
import inspect
import json
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="framework not installed")

import anyio  # noqa: E402
from mcp import ClientSession, StdioServerParameters, types  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402
from mcp.shared.message import SessionMessage  # noqa: E402
from suite import sample, try_scenario  # noqa: E402

from playhead.adapters import mcp as adapter  # noqa: E402
from playhead.adapters.mcp.results import Results  # noqa: E402
from playhead.core.values import JSON, NodeKind, OutcomeKind, ReplayStatus  # noqa: E402
from playhead.engine.calling import called_async, opened  # noqa: E402
from playhead.errors import RecordingError  # noqa: E402
from playhead.testing.conformance.adapter import (  # noqa: E402
    AdapterHarness,
    Entry,
    NotApplicable,
    Refused,
    Scenario,
    Spec,
    started,
)
from playhead.testing.conformance.bench import Bench  # noqa: E402

_SERVER = """
    import json, sys

    SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}}

    def note(what):
        with open(sys.argv[1], "a") as log:
            log.write(what + chr(10))

    def called(name, arguments):
        note(name)
        item = arguments.get("item")
        if item == "none":
            return {"content": [{"type": "text", "text": "no such item"}], "isError": True}
        if name == "stock":
            return {"content": [{"type": "text", "text": "3 of " + item}], "structuredContent": {"left": 3}}
        with open(sys.argv[1]) as log:
            seen = log.read().count("price")
        return {"content": [{"type": "text", "text": item + " costs " + str(seen)}]}

    note("started")

    def answer(method, params):
        if method == "initialize":
            about = {"tools": {}, "resources": {}, "prompts": {}}
            info = {"name": "shop", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": about, "serverInfo": info}
        if method == "tools/list":
            return {"tools": [{"name": n, "description": n, "inputSchema": SCHEMA} for n in ("price", "stock")]}
        if method == "tools/call":
            return called(params["name"], params.get("arguments") or {})
        if method == "resources/read":
            note("read")
            return {"contents": [{"uri": params["uri"], "text": "open 9 to 5"}]}
        if method == "prompts/get":
            note("prompt")
            said = {"type": "text", "text": "greet " + params["arguments"]["who"]}
            return {"messages": [{"role": "user", "content": said}]}
        return {} if method == "ping" else None

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        body = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""

_Asking = Callable[[ClientSession], Any]


class Shop:
    """The server, what has reached it, and runs of agents that ask it."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "server.py"
        self.script.write_text(textwrap.dedent(_SERVER))
        self.log = folder / "log"
        self.log.touch()

    @property
    def reached(self) -> list[str]:
        found = self.log.read_text().split()
        self.log.write_text("")
        return found

    def runs(self, ask: _Asking) -> Callable[..., Any]:
        def run(prompt: str) -> Any:
            return asyncio.run(self._run(ask))

        return run

    async def _run(self, ask: _Asking) -> Any:
        server = StdioServerParameters(command=sys.executable, args=[str(self.script), str(self.log)])
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            return await ask(session)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    adapter.install()
    yield Shop(tmp_path)
    adapter.uninstall()


def dumped(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def everything(session: ClientSession) -> list[Any]:
    await session.list_tools()
    results: list[Any] = [await session.call_tool("price", {"item": item}) for item in ("tea", "none", "tea")]
    results.append(await session.call_tool("stock", {"item": "tea"}))
    results.append(await session.read_resource("shop://hours"))  # type: ignore[arg-type]
    results.append(await session.get_prompt("greeting", {"who": "Ada"}))
    return [dumped(result) for result in results]


INPUTS = {"prompt": "go"}


def test_results_of_every_kind_are_recorded_and_served_without_reaching_the_server(shop: Shop, bench: Bench) -> None:
    baseline = bench.record(shop.runs(everything), INPUTS)
    assert baseline.error is None
    assert shop.reached == ["started", "price", "price", "price", "stock", "read", "prompt"]
    assert [(c.name, c.outcome.kind, c.outcome.value) for c in baseline.calls[:4] if c.outcome] == [
        ("price", OutcomeKind.VALUE, "tea costs 1"),
        ("price", OutcomeKind.RESULT_ERROR, "no such item"),
        ("price", OutcomeKind.VALUE, "tea costs 3"),
        ("stock", OutcomeKind.VALUE, {"left": 3}),
    ]
    assert [c.name for c in baseline.calls[4:]] == ["resources/read", "prompts/get"]
    assert baseline.calls[0].attributes["bare_tool"] == "price"
    spans = [n.name for n in baseline.nodes if n.kind is NodeKind.SPAN]
    assert spans[0] == "mcp initialize"
    assert "mcp list_tools" in spans
    for _ in range(2):
        result = bench.replay(baseline, shop.runs(everything))
        assert result.faithful, result.message
        assert result.by == ["served"] * 6
        assert result.output == baseline.session.output
        assert shop.reached == []


def test_a_server_whose_handshake_was_not_recorded_is_not_started(shop: Shop, bench: Bench) -> None:
    baseline = bench.record(lambda prompt: None, INPUTS)
    result = bench.replay(baseline, shop.runs(everything))
    assert shop.reached == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "would start the MCP server" in result.message
    assert "holds no handshake" in result.message


def test_a_connection_that_is_gone_leaves_its_number_to_nobody(shop: Shop, bench: Bench) -> None:
    async def connect(session: ClientSession) -> None:
        await session.list_tools()

    def run(prompt: str) -> None:
        for _ in range(2):
            shop.runs(connect)(prompt)
            gc.collect()

    baseline = bench.record(run, INPUTS)
    numbers = [n.attributes["connection"] for n in baseline.nodes if n.name == "mcp initialize"]
    assert numbers == [1, 2]


def test_two_servers_are_told_apart_by_their_programs_in_whatever_order_they_are_started(
    shop: Shop, bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    other.script.write_text(other.script.read_text().replace('("price", "stock")', '("weather",)'))
    order = [shop, other]

    def run(prompt: str) -> dict[str, list[str]]:
        async def names(session: ClientSession) -> list[str]:
            return [tool.name for tool in (await session.list_tools()).tools]

        return {one.script.parent.name: one.runs(names)(prompt) for one in order}

    baseline = bench.record(run, INPUTS)
    assert (shop.reached, other.reached) == (["started"], ["started"])
    order.reverse()
    result = bench.replay(baseline, run)
    assert (shop.reached, other.reached) == ([], [])
    assert result.output == baseline.session.output


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": "cheap"}, {"content": [{"type": "text", "text": "cheap"}], "isError": False}),
        ({"result": {"pence": 7}}, {"structuredContent": {"pence": 7}, "isError": False}),
        ({"result": [{"type": "text", "text": "a block"}]}, {"content": [{"type": "text", "text": "a block"}]}),
        ({"result": None}, {"content": [{"type": "text", "text": "null"}]}),
    ],
)
def test_values_that_no_server_wrote_become_results(shop: Shop, bench: Bench, answer: Any, expected: Any) -> None:
    async def ask(session: ClientSession) -> Any:
        return dumped(await session.call_tool("price", {"item": "tea"}))

    baseline = bench.record(shop.runs(ask), INPUTS)
    policy = {"default": {"type": "static", "cases": [{"match": {}, "match_mode": "subset", **answer}]}}
    result = bench.replay(baseline, shop.runs(ask), tool_policy=policy)
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert isinstance(result.output, dict)
    assert {name: result.output[name] for name in expected} == expected


@pytest.mark.parametrize("on_miss", ["fail", "error_result", "passthrough"])
def test_a_call_that_was_not_recorded_is_decided_by_the_policy(shop: Shop, bench: Bench, on_miss: str) -> None:
    items = ["tea", "tea"]

    async def ask(session: ClientSession) -> Any:
        return [dumped(await session.call_tool("price", {"item": item})) for item in items]

    baseline = bench.record(shop.runs(ask), INPUTS)
    assert shop.reached == ["started", "price", "price"]
    items[1] = "coffee"
    policy = {"default": {"type": "history", "on_miss": on_miss}}
    result = bench.replay(baseline, shop.runs(ask), tool_policy=policy)
    assert result.by[:2] == ["served", "missed"]
    assert shop.reached == (["started", "price"] if on_miss == "passthrough" else [])
    if on_miss == "fail":
        assert result.replay.status is ReplayStatus.FAILED
        assert "coffee" in result.message
    else:
        assert result.replay.status is ReplayStatus.COMPLETED, result.message
        assert isinstance(result.output, list)
        assert result.output[1]["isError"] is (on_miss == "error_result")


def test_a_framework_that_names_a_server_s_tool_otherwise_records_the_call_once(shop: Shop, bench: Bench) -> None:
    async def ask(session: ClientSession) -> Any:
        own: dict[str, JSON] = {"bare_tool": "price", "server": "the shop"}
        step = opened("shop_price", {"item": "tea"}, by="framework", note=own)
        return dumped(await called_async(step, lambda: session.call_tool("price", {"item": "tea"}), shape))

    shape = Results(types.CallToolResult)
    baseline = bench.record(shop.runs(ask), INPUTS)
    assert [(c.name, c.attributes) for c in baseline.calls] == [
        ("shop_price", {"bare_tool": "price", "server": "the shop"})
    ]


def test_a_failure_of_the_protocol_is_recorded_and_raised_again(shop: Shop, bench: Bench) -> None:
    async def ask(session: ClientSession) -> Any:
        try:
            await session.call_tool("price", {"item": 7})  # the server stumbles over a number
        except Exception as error:
            return str(error)

    shop.script.write_text(shop.script.read_text().replace("note(name)", "note(name); sys.exit(1)"))
    baseline = bench.record(shop.runs(ask), INPUTS)
    (call,) = baseline.calls
    assert call.outcome is not None
    assert call.outcome.kind is OutcomeKind.ERROR
    shop.log.write_text("")
    result = bench.replay(baseline, shop.runs(ask))
    assert result.output == baseline.session.output
    assert shop.reached == []


def test_a_version_without_the_hook_is_refused_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ClientSession, "call_tool")
    with pytest.raises(RecordingError, match=r"mcp .* has no ClientSession\.call_tool"):
        adapter.install()
    assert not adapter.is_installed()


def test_installing_twice_wraps_once_and_is_undone() -> None:
    before = {name: vars(ClientSession)[name] for name in ("call_tool", "list_tools", "initialize")}
    adapter.install()
    once = ClientSession.call_tool
    adapter.install()
    assert ClientSession.call_tool is once
    assert once.__wrapped__ is before["call_tool"]  # type: ignore[attr-defined]
    adapter.uninstall()
    assert {name: vars(ClientSession)[name] for name in before} == before


# --- the scenarios that every adapter runs --------------------------------------------------------------------------


class Program:
    """A program that calls the tools of a server turn by turn, and shows what it saw."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.tools = {tool.__name__: tool for tool in spec.tools}
        self.asked: list[bytes] = []

    async def run(self, prompt: str) -> str:
        results: list[str] = []
        async with Memory(self.tools) as session:
            await session.initialize()
            await session.list_tools()
            for turn in self.spec.turns:
                self.asked.append(json.dumps([prompt, results]).encode())
                found = await asyncio.gather(*(session.call_tool(c.tool, c.arguments or {}) for c in turn))
                results += [dumped(result)["content"][0]["text"] for result in found]
            self.asked.append(json.dumps([prompt, results]).encode())
        return self.spec.says(results) if self.spec.says else f"saw {results}"


class Memory:
    """A client session with a server in memory, which knows nothing of the program: it has a context of its own."""

    def __init__(self, tools: dict[str, Callable[..., Any]]) -> None:
        self.tools = tools

    async def __aenter__(self) -> ClientSession:
        self.to_client, reading = anyio.create_memory_object_stream[Any](100)
        writing, self.from_client = anyio.create_memory_object_stream[Any](100)
        context = contextvars.Context()
        self.serving = asyncio.get_running_loop().create_task(self.serve(), context=context)
        self.streams = [self.to_client, self.from_client, reading, writing]
        self.session = ClientSession(reading, writing)
        return await self.session.__aenter__()

    async def __aexit__(self, *about: Any) -> None:
        try:
            await self.session.__aexit__(*about)
        finally:
            self.serving.cancel()
            await asyncio.wait([self.serving])
            for stream in self.streams:
                stream.close()

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as calls:
            async for given in self.from_client:
                message = given.message.model_dump(mode="json", by_alias=True, exclude_none=True)
                if "id" in message:
                    calls.create_task(self.answer(message))

    async def answer(self, message: dict[str, Any]) -> None:
        result = await self.result(message["method"], message.get("params") or {})
        reply = types.JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=result)
        made: Any = reply if OPEN else types.JSONRPCMessage(reply)  # type: ignore[operator]
        await self.to_client.send(SessionMessage(made))

    async def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            about = {"name": "shop", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": _schema(tool)} for name, tool in self.tools.items()]}
        return await self.called(params["name"], params.get("arguments") or {}) if method == "tools/call" else {}

    async def called(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            if name not in self.tools:
                raise Refused(f"there is no tool {name}")
            wrong = [
                n for n, kind in typing.get_type_hints(self.tools[name]).items() if _is_wrong(kind, arguments.get(n))
            ]
            if wrong:
                raise Refused(f"{wrong[0]} must be a number")
            found = self.tools[name](**arguments)
            value = await found if inspect.isawaitable(found) else found
        except Exception as error:  # as servers do
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        return {"content": [{"type": "text", "text": _text(value)}]}


OPEN = not hasattr(types.JSONRPCMessage, "model_validate")
"""Whether messages are a union of classes, not one around them."""


def _is_wrong(kind: Any, value: Any) -> bool:
    return kind is int and value is not None and not isinstance(value, int)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _schema(tool: Callable[..., Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in inspect.signature(tool).parameters}}


_NO_MODEL = "a program without a model gives arguments as objects, and signals nothing"
_ELSEWHERE = "what a tool does is done by a server, elsewhere"


class MCPHarness(AdapterHarness):
    name = "mcp"
    distribution = "mcp"
    has_models = False
    rounds = 5
    never: Mapping[str, str] = {
        "S7": "a server tells of a tool's exception in an error result: no exception arrives",
        "S8-retry": _NO_MODEL,
        "S8-unparsable": _NO_MODEL,
        "S19": "every call of this adapter is one of an MCP server",
        "S25": _ELSEWHERE,
    }

    def start(self) -> None:
        adapter.install()

    def stop(self) -> None:
        adapter.uninstall()

    def activate(self) -> None:
        adapter.install()

    def deactivate(self) -> None:
        adapter.uninstall()

    def build(self, spec: Spec) -> Program:
        return Program(spec)

    async def run(self, agent: Program, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        return await agent.run(prompt)

    def run_sync(self, agent: Program, prompt: str) -> str:
        return asyncio.run(agent.run(prompt))

    def requests(self, agent: Program) -> list[bytes]:
        return agent.asked

    def shown(self, value: Any) -> str:
        return _text(value)

    def agent_tool(self, name: str, child: Any) -> Callable[..., Any]:
        raise NotApplicable(_ELSEWHERE)

    def history(self, agent: Any) -> Any:
        raise NotApplicable("sessions of a server have no messages that a next run could start from")


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(MCPHarness()) as made:
        yield made


CHOSEN = ("S2", "S3", "S5", "S6", "S8-schema", "S9", "S10", "S12-inject", "S21", "S22", "S26-from", "R14", "R37")


@pytest.mark.parametrize("scenario", sample(*CHOSEN), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    try_scenario(harness, scenario)
