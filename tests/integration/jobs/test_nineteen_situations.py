"""Nineteen situations in which a replay has to give back exactly what was recorded, as jobs of one warm worker: each by
``replay create --wait``, recorded by another process, and no live tool may be touched."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.context import Context
from playhead.cli.output import Result
from playhead.cli.run import call, find_command
from playhead.core.values import FidelityKind, Replay, ReplayStatus, Session, SessionStatus
from playhead.engine.client import Client
from playhead.engine.worker import Worker

AGENTS = """
import asyncio, itertools, os, time
from datetime import date
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, ToolReturn
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
import playhead

HERE = os.path.dirname(os.path.abspath(__file__))
calls = itertools.count(1)

def live(name):
    with open(f"{HERE}/live.log", "a") as log:
        log.write(f"{name}\\n")
    return next(calls)

def prompts(messages):
    return [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]

def results(messages):
    return [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]

def asks(*turns, final=None):
    def answer(messages, info):
        turn = sum(isinstance(m, ModelResponse) for m in messages)
        if turn < len(turns):
            asked = [ToolCallPart(c[0], c[1], tool_call_id=c[2] if len(c) > 2 else f"c{turn}-{i}")
                     for i, c in enumerate(turns[turn])]
            return ModelResponse(parts=asked)
        return ModelResponse(parts=[TextPart(final(messages) if final else f"saw {results(messages)}")])
    return FunctionModel(answer, model_name="scripted")

def with_tool(tool, *turns, final=None, **options):
    agent = Agent(asks(*turns, final=final))
    agent.tool_plain(**options)(tool)
    return agent

def two_turns():
    def look(x: int) -> dict:
        return {"x": x, "n": live("look")}
    return with_tool(look, [("look", {"x": 1})], [("look", {"x": 2})]).run_sync("go").output

def same_call_in_three_turns():
    def poll(job: str) -> str:
        return f"state {live('poll')}"
    return with_tool(poll, *[[("poll", {"job": "a"})]] * 3).run_sync("go").output

def same_call_twice_at_once():
    first = []
    async def poll(job: str) -> str:
        mine = live("poll")
        first.append(mine)
        for _ in range(5 if first[0] == mine else 0):
            await asyncio.sleep(0)
        return f"state {mine}"
    return asyncio.run(with_tool(poll, [("poll", {"job": "a"}), ("poll", {"job": "a"})]).run("go")).output

def retried():
    def book(day: str) -> str:
        live("book")
        if day != "tomorrow":
            raise ModelRetry("day must be today or tomorrow")
        return "booked"
    turns = [("book", {"day": "tomorow"})], [("book", {"day": "tomorrow"})]
    return with_tool(book, *turns, retries=2).run_sync("go").output

def invalid_arguments():
    def book(day: date) -> str:
        live("book")
        return f"booked {day.isoformat()}"
    turns = [("book", {"day": "no date"})], [("book", {"day": "2026-01-02"})]
    return with_tool(book, *turns, retries=2).run_sync("go").output

def tool_fails():
    def pay(amount: int) -> str:
        live("pay")
        raise ConnectionError("gateway timeout")
    return with_tool(pay, [("pay", {"amount": 5})]).run_sync("go").output

def tool_fails_and_code_copes():
    try:
        return tool_fails()
    except ConnectionError as error:
        return f"fell back after {error}"

def tool_return_object():
    def shot(n: int) -> ToolReturn:
        live("shot")
        return ToolReturn(return_value="taken", content=["the screen", "42 items"], metadata={"n": n})
    def final(messages):
        part = next(p for m in messages for p in m.parts if isinstance(p, ToolReturnPart))
        return f"{part.content!r} {part.metadata!r} {prompts(messages)[1:]}"
    return with_tool(shot, [("shot", {"n": 1})], final=final).run_sync("go").output

class Order(BaseModel):
    id: int
    total: float

def model_instance():
    def order(id: int) -> Order:
        live("order")
        return Order(id=id, total=12.5)
    return with_tool(order, [("order", {"id": 3})]).run_sync("go").output

def nothing_returned():
    def delete(id: int) -> None:
        live("delete")
    return with_tool(delete, [("delete", {"id": 3})]).run_sync("go").output

def repeated_call_ids():
    def look(x: int) -> int:
        return x * 10 + live("look")
    return with_tool(look, [("look", {"x": 1}, "call_0")], [("look", {"x": 2}, "call_0")]).run_sync("go").output

def changed_template():
    with open(f"{HERE}/template") as template:
        prompt = f"[{template.read()}] refund"
    return Agent(asks(final=lambda m: f"saw {prompts(m)[-1]}")).run_sync(prompt).output

def two_agents_in_a_row():
    plan = Agent(asks(final=lambda m: f"plan for {prompts(m)[-1]}"), name="plan")
    def do(x: int) -> int:
        return x + live("do")
    act = with_tool(do, [("do", {"x": 1})], final=lambda m: f"acted on {prompts(m)[-1]} {results(m)}")
    return act.run_sync(f"step: {plan.run_sync('the goal').output}").output

def agent_inside_a_tool():
    def lookup(q: str) -> str:
        return f"fact {live('lookup')}"
    child = with_tool(lookup, [("lookup", {"q": "x"})], final=lambda m: f"child says {results(m)}")
    async def ask(q: str) -> str:
        live("ask")
        return (await child.run(f"sub question {q}")).output
    return with_tool(ask, [("ask", {"q": "why"})]).run_sync("go").output

def streamed():
    async def stream(messages, info):
        if results(messages):
            yield "saw "
            yield str(results(messages)[0])
        else:
            yield {0: DeltaToolCall(name="look", json_args='{"x": 1}', tool_call_id="s0")}
    agent = Agent(FunctionModel(stream_function=stream, model_name="scripted"))
    @agent.tool_plain
    def look(x: int) -> int:
        return x * 10 + live("look")
    async def go():
        async with agent.run_stream("go") as run:
            return await run.get_output()
    return asyncio.run(go())

def large_prompt():
    return Agent(asks(final=lambda m: f"saw {len(prompts(m)[-1])} characters")).run_sync("y" * 200_000).output

def structured_output():
    def answer(messages, info):
        part = ToolCallPart(info.output_tools[0].name, {"id": 1, "total": 2.5}, tool_call_id="o")
        return ModelResponse(parts=[part])
    return str(Agent(FunctionModel(answer, model_name="scripted"), output_type=Order).run_sync("go").output)

def changing_argument():
    def since(t: int, topic: str) -> str:
        live("since")
        return "3 new"
    return with_tool(since, [("since", {"t": time.time_ns(), "topic": "orders"})]).run_sync("go").output

@playhead.agent("desk")
def desk(situation: str) -> str:
    return globals()[situation]()

chat = Agent(asks(final=lambda m: f"heard {prompts(m)}"), name="chat")

def record(situations):
    for situation in situations:
        if situation == "message_history":
            said, heard = UserPromptPart("my name is Ada"), TextPart("hi Ada")
            earlier = [ModelRequest(parts=[said]), ModelResponse(parts=[heard])]
            chat.run_sync("what is my name?", message_history=earlier)
            continue
        try:
            desk(situation)
        except ConnectionError:
            print(situation, "failed")
"""
SITUATIONS = (
    "two_turns", "same_call_in_three_turns", "same_call_twice_at_once", "retried", "invalid_arguments", "tool_fails",
    "tool_fails_and_code_copes", "tool_return_object", "model_instance", "nothing_returned", "repeated_call_ids",
    "message_history", "changed_template", "two_agents_in_a_row", "agent_inside_a_tool", "streamed", "large_prompt",
    "structured_output", "changing_argument",
)  # fmt: skip
IGNORE_TIME = '{"tools": {"since": {"type": "history", "ignore": ["/t"]}}}'


@pytest.fixture
def recorded(project: Path) -> Iterator[tuple[Client, dict[str, Session]]]:
    (project / "agents.py").write_text(AGENTS)
    (project / "template").write_text("v1")
    code = f"import playhead; playhead.install(); import agents; agents.record({SITUATIONS!r})"
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, timeout=120)
    (project / "live.log").unlink()
    (project / "template").write_text("v2")
    with playhead.open() as client:
        found = client.sessions.find(playhead.SessionQuery(oldest_first=True), limit=100).items
        yield client, dict(zip(SITUATIONS, found, strict=True))


def replayed(client: Client, session: Session, *options: str) -> tuple[Replay, int]:
    found = find_command(["replay", "create", session.id, "--wait", *options])
    assert not isinstance(found, str)
    name, function, rest = found
    result = call(name, function, rest, Context(opened=client.store, url=client.store.url))
    assert isinstance(result, Result)
    assert isinstance(result.data, dict)
    return client.replays.get(result.data["id"]), result.exit_code


def test_all_nineteen_are_right(
    recorded: tuple[Client, dict[str, Session]], client_worker: Callable[[Client], Worker], project: Path
):
    client, sessions = recorded
    client_worker(client)
    wrong: dict[str, Any] = {}
    for situation, session in sessions.items():
        options = ["--tool-policy", IGNORE_TIME] if situation == "changing_argument" else ["--model-history"]
        options = [] if situation == "changed_template" else options
        replay, code = replayed(client, session, *options)
        result = client.sessions.get(replay.result_session_id or "")
        seen = (replay.status, code, replay.fidelity and replay.fidelity.kind, result.status, result.output)
        right = (ReplayStatus.COMPLETED, 0, FidelityKind.FAITHFUL, session.status, session.output)
        if situation == "changed_template":  # the change has to show
            right = (ReplayStatus.COMPLETED, 4, FidelityKind.UNPROVEN, SessionStatus.COMPLETED, "saw [v2] refund")
        if situation == "changing_argument":
            right = (ReplayStatus.COMPLETED, 4, FidelityKind.UNPROVEN, session.status, session.output)
        if seen != right or (result.error and result.error.message) != (session.error and session.error.message):
            wrong[situation] = (seen, right, replay.error)
    assert wrong == {}
    assert not (project / "live.log").exists()

    # and without the setting, the argument that always changes is an honest miss
    replay, code = replayed(client, sessions["changing_argument"])
    assert (replay.status, code) == (ReplayStatus.FAILED, 1)
    assert replay.error is not None
    assert "/t" in replay.error.message
    assert "/topic" not in replay.error.message
    assert not (project / "live.log").exists()
