"""S17, S19, S20, S30: agents inside tools, MCP, approvals, output tools."""

import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playhead.core.values import NodeKind, OutcomeKind, ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Spec, finish
from playhead.testing.conformance.scenarios.registry import scenario


def family(lab: Lab, *, outside: bool = False, twice: bool = False) -> Any:
    """Builds an agent with a tool ``ask`` that runs another agent, which calls ``lookup``."""

    def lookup(q: str) -> str:
        return f"fact {lab.entered(q)}"

    def make() -> Any:
        child = lab.harness.build(Spec(name="child", turns=[[Call("lookup", {"q": "x"})]], tools=[lookup]))
        ask = lab.harness.agent_tool("ask", child)
        first = [Call("ask", {"q": "one"}), Call("ask", {"q": "two"})] if twice else [Call("ask", {"q": "one"})]
        turns = [[Call("lookup", {"q": "x"})], first, [Call("lookup", {"q": "x"})]] if outside else [first]
        return lab.harness.build(Spec(name="parent", turns=turns, tools=[ask, lookup]))

    return make


@scenario("S17-covered")
def outer_served(lab: Lab) -> None:
    """A served tool covers what its agent did: nothing below happens, nothing is left over."""
    run = lab.runner(family(lab))
    baseline, result = lab.unchanged(run)
    assert [n.name for n in baseline.calls] == [lab.tool("ask"), lab.tool("lookup")]
    asked = baseline.calls[0].id
    assert [n.name for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL and n.parent_id == asked] == ["child"]
    assert [by for by in result.by if by != "covered"] == ["served"], result.by
    assert len(result.model_calls) == (2 if lab.harness.has_models else 0), "the inner agent ran"


@scenario("S17-inside")
def inner_served(lab: Lab) -> None:
    """The outer tool live, the calls inside served: faithful, and nothing live but the outer body."""
    run = lab.runner(family(lab))
    baseline = lab.record(run)
    policy = {"default": {"type": "history"}, "tools": {lab.tool("ask"): {"type": "passthrough"}}}
    result = lab.replay(baseline, run, policy=policy)
    lab.check_faithful(baseline, result)
    assert [(row.tool, row.by) for row in result.rows] == [
        (lab.tool("ask"), "live"), (lab.tool("lookup"), "served"),
    ]  # fmt: skip
    assert "decided inside" in result.rows[0].marks


@scenario("S17-keys")
def same_key_inside(lab: Lab) -> None:
    """The same call outside, inside and outside again: serving the inside does not shift the others."""
    run = lab.runner(family(lab, outside=True))
    baseline, _ = lab.unchanged(run)
    values = [n.outcome.value for n in baseline.calls if n.outcome and n.name == lab.tool("lookup")]
    assert values == ["fact 1", "fact 2", "fact 3"]


@scenario("S17-parallel")
def two_at_once(lab: Lab) -> None:
    """Two agents inside tools, side by side, that ask the same."""
    run = lab.runner(family(lab, twice=True))
    baseline = lab.record(run)
    policy = {"default": {"type": "history"}, "tools": {lab.tool("ask"): {"type": "passthrough"}}}
    for _ in range(min(3, lab.harness.rounds)):
        lab.check_faithful(baseline, lab.replay(baseline, run))
        lab.check_faithful(baseline, lab.replay(baseline, run, policy=policy))


_SERVER = """
    import json, sys

    SCHEMA = {{"type": "object", "properties": {{"item": {{"type": "string"}}}}, "required": ["item"]}}

    with open({log!r}, "a") as log:
        log.write("started\\n")

    def answer(method, params):
        if method == "initialize":
            info = {{"name": "shop", "version": "1"}}
            version = params["protocolVersion"]
            return {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": info}}
        if method == "tools/list":
            return {{"tools": [{{"name": "price", "description": "A price.", "inputSchema": SCHEMA}}]}}
        if method == "tools/call":
            with open({log!r}, "a") as log:
                log.write("price\\n")
            missing = params["arguments"]["item"] == "none"
            text = "no such item" if missing else "7"
            return {{"content": [{{"type": "text", "text": text}}], "isError": missing}}
        return {{}} if method == "ping" else None

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {{}})
        body = {{"error": {{"code": -32601, "message": "no such method"}}}} if result is None else {{"result": result}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **body}}), flush=True)
"""


@scenario("S19")
def mcp_tool(lab: Lab) -> None:
    """A tool of an MCP server: value and error are recorded and served; the server is not even started."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        script = Path(folder, "server.py")
        script.write_text(textwrap.dedent(_SERVER.format(log=str(log))))
        turns = [[Call("price", {"item": "tea"})], [Call("price", {"item": "none"})]]
        run = lab.runner(lambda: lab.harness.with_mcp(Spec(turns=turns), [sys.executable, str(script)]))
        baseline = lab.record(run)
        assert baseline.error is None, baseline.error
        assert log.read_text().count("price") == 2
        value, failed = (n.outcome for n in baseline.calls)
        assert value is not None
        assert value.kind is OutcomeKind.VALUE
        assert failed is not None
        assert (failed.kind is not OutcomeKind.VALUE) is lab.harness.tells_mcp_errors
        assert baseline.calls[0].attributes.get("bare_tool") == "price"
        log.write_text("")
        result = lab.replay(baseline, run)
        assert "price" not in log.read_text(), "a call reached the server"
        assert log.read_text() == "", "the server was started"
        assert result.session.output == baseline.session.output
        assert result.by == ["served", "served"]


def approving(lab: Lab, answers: list[bool]) -> Any:
    """A run with a tool that a person has to agree to; ``answers`` are taken from the front."""

    def delete(path: str) -> str:
        lab.entered(path)
        return f"deleted {path}"

    def run(prompt: str) -> str:
        left = list(answers)
        tool = lab.harness.approval_tool(delete)
        agent = lab.harness.build(Spec(turns=[[Call("delete", {"path": "/tmp/x"})]], tools=[tool]))
        return finish(lab.harness.run_with_approval(agent, prompt, lambda _: left.pop(0)))

    return run


def _pause(lab: Lab) -> list[OutcomeKind]:
    """The attempt that asks a person, where asking ends the run."""
    return [OutcomeKind.INTERRUPT] if lab.harness.pauses else []


@scenario("S20-granted")
def granted(lab: Lab) -> None:
    """A person agrees: a pause, then the call; both are served again."""
    run = approving(lab, [True])
    baseline = lab.record(run)
    assert lab.live == ["/tmp/x"]
    assert [n.outcome.kind for n in baseline.calls if n.outcome] == [*_pause(lab), OutcomeKind.VALUE]
    assert [n.call.attempt for n in baseline.calls if n.call] == list(range(1, len(baseline.calls) + 1))
    lab.check_faithful(baseline, lab.replay(baseline, run))


@scenario("S20-denied")
def denied(lab: Lab) -> None:
    """A person refuses: the tool does not run, and the refusal is part of the recording."""
    run = approving(lab, [False])
    baseline = lab.record(run)
    assert lab.live == []
    assert [n.outcome.kind for n in baseline.calls if n.outcome] == [*_pause(lab), OutcomeKind.RESULT_ERROR]
    lab.check_faithful(baseline, lab.replay(baseline, run))


@scenario("S20-changed")
def denied_then_agreed(lab: Lab) -> None:
    """Refused in the recording, agreed to in the replay: the recorded refusal is served, the tool does not run."""
    baseline = lab.record(approving(lab, [False]))
    result = lab.replay(baseline, approving(lab, [True]))
    assert lab.live == [], "the forbidden tool ran"
    assert result.session.output == baseline.session.output


@scenario("S30")
def output_tool(lab: Lab) -> None:
    """A structured answer through an output tool is no tool call: it is neither recorded nor decided as one."""
    run = lab.runner(lambda: lab.harness.structured(Spec()))
    baseline = lab.record(run)
    assert baseline.error is None, baseline.error
    assert baseline.calls == []
    result = lab.replay(baseline, run)
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert result.rows == []
