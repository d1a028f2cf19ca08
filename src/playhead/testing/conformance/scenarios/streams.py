"""S16, S21: streams, consumers that leave, cancellation."""

import asyncio
from typing import Any

from playhead.core.values import NodeStatus, ReplayStatus, SessionStatus
from playhead.testing.conformance.bench import NotApplicable
from playhead.testing.conformance.harness import Call, Lab, Spec, finish
from playhead.testing.conformance.scenarios.registry import scenario


def streaming(lab: Lab) -> list[Any]:
    found = [entry for entry in lab.harness.entries if entry in ("stream", "events")]
    if not found:
        raise NotApplicable("no streams")
    return found


@scenario("S16")
def same_as_plain(lab: Lab) -> None:
    """A streamed run records what its plain twin does, but for being streamed."""

    def look(x: int) -> int:
        return x + lab.entered(x)

    spec = Spec(turns=[[Call("look", {"x": 1})]], tools=[look])
    plain = lab.record(lab.runner(lambda: lab.harness.build(spec)))
    for entry in streaming(lab):
        lab.live.clear()
        streamed = lab.record(lab.runner(lambda: lab.harness.build(spec), entry))
        assert [(n.kind, n.name) for n in streamed.nodes] == [(n.kind, n.name) for n in plain.nodes]
        assert [n.outcome.value for n in streamed.calls if n.outcome] == lab.shown(2)
        assert all(n.model and n.model.streamed and not n.model.partial for n in streamed.model_calls)
        assert streamed.output == plain.output


@scenario("S16-broken")
def broken(lab: Lab) -> None:
    """A provider that fails in mid-stream: the error is recorded and raised unchanged."""
    streaming(lab)
    agent = lab.harness.breaking_stream(Spec(), "part of an ans", ConnectionError("cut"))

    def run(prompt: str) -> str:
        return finish(lab.harness.run(agent, prompt, entry="stream"))

    baseline = lab.record(run)
    assert baseline.session.status is SessionStatus.FAILED
    (node,) = baseline.model_calls
    assert node.outcome is not None
    assert node.outcome.error is not None
    raised: list[tuple[str, str]] = []
    error: BaseException | None = baseline.error
    while error is not None:
        raised.append((type(error).__name__, str(error)))
        error = error.__cause__ or error.__context__
    assert (node.outcome.error.class_name, node.outcome.error.message) in raised


@scenario("S16-early")
def left_early(lab: Lab) -> None:
    """A consumer that leaves early: what had arrived is kept, no step stays open."""
    streaming(lab)
    agent = lab.harness.build(Spec())

    def run(prompt: str) -> str:
        finish(lab.harness.stop_early(agent, prompt))
        return "left"

    baseline = lab.record(run)
    assert baseline.output == "left"
    (node,) = baseline.model_calls
    assert node.ended_at is not None
    assert node.status in (NodeStatus.COMPLETED, NodeStatus.CANCELLED)


@scenario("S21")
def cancelled_tool(lab: Lab) -> None:
    """A run that is cancelled inside a tool: the call is cancelled, without an outcome, and the exception passes."""

    async def slow() -> str:
        lab.entered("slow")
        started.set()
        await asyncio.Event().wait()
        return "never"

    started = asyncio.Event()

    async def cancel(prompt: str) -> str:
        agent = lab.harness.build(Spec(turns=[[Call("slow", {})]], tools=[slow]))
        task = asyncio.ensure_future(lab.harness.run(agent, prompt))
        await started.wait()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "not cancelled"

    def run(prompt: str) -> str:
        nonlocal started
        started = asyncio.Event()
        return finish(cancel(prompt))

    baseline = lab.record(run)
    assert baseline.output == "cancelled"
    (node,) = baseline.calls
    assert node.status is NodeStatus.CANCELLED
    assert node.outcome is None


@scenario("S31")
def stop_in_parallel(lab: Lab) -> None:
    """A stop while tools run side by side: nothing new starts, the replay ends."""
    words = ["a", "b", "c"]

    async def search(q: str) -> str:
        await asyncio.sleep(0)
        return f"{q}: {lab.entered(q)}"

    def make() -> Any:
        return lab.harness.build(Spec(turns=[[Call("search", {"q": w}) for w in words]], tools=[search]))

    run = lab.runner(make)
    baseline = lab.record(run)
    words[1] = "changed"
    result = lab.replay(baseline, run)
    assert lab.live == [], "a live tool was entered"
    assert result.replay.status is ReplayStatus.FAILED
    assert "changed" in result.message
    assert len(result.model_calls) == (1 if lab.harness.has_models else 0)
