"""S13, S21 further: tools that the framework gives up or runs again, and model calls that are cancelled."""

import asyncio
from typing import Any

from playhead.core.values import NodeStatus, OutcomeKind
from playhead.testing.conformance.harness import Call, Lab, Spec, finish
from playhead.testing.conformance.scenarios.registry import scenario


@scenario("S13-timeout")
def given_up(lab: Lab) -> None:
    """A tool that the framework gives up after a while: the failure is recorded and served without waiting."""

    async def slow() -> str:
        lab.entered("slow")
        await asyncio.Event().wait()
        return "never"

    def make() -> Any:
        return lab.harness.build(Spec(turns=[[Call("slow", {})]], tools=[lab.harness.timed_tool(slow, 0.05)]))

    baseline, _ = lab.unchanged(lab.runner(make))
    (call,) = baseline.calls
    assert call.outcome is not None
    assert call.outcome.kind is not OutcomeKind.VALUE


@scenario("S13-retry")
def run_again(lab: Lab) -> None:
    """A call that the framework runs again: each attempt is kept and served, under one call."""

    def flaky() -> str:
        if lab.entered("flaky") == 1:
            raise ConnectionError("not yet")
        return "now"

    def make() -> Any:
        return lab.harness.retrying(Spec(turns=[[Call("flaky", {})]], tools=[flaky]), 2)

    baseline, _ = lab.unchanged(lab.runner(make))
    found = [(n.call.attempt, n.outcome.kind) for n in baseline.calls if n.call and n.outcome]
    assert found == [(1, OutcomeKind.ERROR), (2, OutcomeKind.VALUE)]


@scenario("S21-model")
def cancelled_model(lab: Lab) -> None:
    """A run that is cancelled while its model thinks: the model call is cancelled, and the exception passes."""

    async def cancel(prompt: str) -> str:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        agent = lab.harness.thinking(Spec(), lambda: loop.call_soon_threadsafe(asked.set))
        task = asyncio.ensure_future(lab.harness.run(agent, prompt))
        waiting = asyncio.ensure_future(asked.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "not cancelled"

    def run(prompt: str) -> str:
        return finish(cancel(prompt))

    baseline = lab.record(run)
    assert baseline.error is None, baseline.error
    assert baseline.output == "cancelled"
    (node,) = baseline.model_calls
    assert node.status is NodeStatus.CANCELLED
    assert node.outcome is None
