"""S22 to S24, S27 to S29: sessions side by side, trouble of our own, activation, secrets, usage, history."""

import asyncio
import contextlib
from typing import Any

from playhead.core.redaction.redact import Redactor
from playhead.core.totals import BUCKETS
from playhead.core.values import Usage
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.testing.conformance.bench import NotApplicable
from playhead.testing.conformance.harness import Call, Lab, Spec, finish
from playhead.testing.conformance.scenarios.registry import scenario


@scenario("S22")
def side_by_side(lab: Lab) -> None:
    """Sessions side by side do not mix."""

    async def look(who: str) -> str:
        await asyncio.sleep(0)
        return f"seen {who}"

    async def one(who: str) -> str:
        agent = lab.harness.build(Spec(turns=[[Call("look", {"who": who})]], tools=[look]))
        scope = seam.session(who, inputs={"prompt": who}, recorder=lab.bench.recorder, function=True)
        async with scope as active:
            assert active is not None
            scope.output = await lab.harness.run(agent, who)
            return active.session_id

    async def all_of() -> list[str]:
        return await asyncio.gather(*(one(f"s{n}") for n in range(lab.harness.many)))

    for number, session_id in enumerate(finish(all_of())):
        read = lab.bench.read(session_id)
        assert [n.call.arguments for n in read.calls if n.call] == [{"who": f"s{number}"}]
        assert len(read.model_calls) == (2 if lab.harness.has_models else 0)
        assert f"seen s{number}" in str(read.session.output)


class _BrokenSessions:
    def __getattr__(self, name: str) -> Any:
        raise OSError("the disk is gone")


def _broken_store() -> MemoryStore:
    store: Any = MemoryStore()
    store.sessions = store.agents = _BrokenSessions()
    return store


@scenario("S23")
def store_fails(lab: Lab) -> None:
    """A store that fails at every call: the agent's result stands."""

    def look(x: int) -> int:
        return x + 1

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call("look", {"x": 1})]], tools=[look])))
    plain = run("go")
    recorder = Recorder(_broken_store(), interval=0.001)
    scope = seam.session("broken", inputs={"prompt": "go"}, recorder=recorder, function=True)
    with scope:
        said = run("go")
    recorder.close()
    assert said == plain


class _BrokenIds:
    """An id source that fails once a session is open: every step of ours raises."""

    def __init__(self) -> None:
        self.left = 1

    def __call__(self) -> str:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no more ids")
        return "00000000-0000-7000-8000-000000000000"


@scenario("S23-seam")
def seam_fails(lab: Lab) -> None:
    """Mistakes inside playhead while recording: the agent's result stands."""

    def look(x: int) -> int:
        return x + 1

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[[Call("look", {"x": 1})]], tools=[look])))
    plain = run("go")
    recorder = Recorder(MemoryStore(), ids=_BrokenIds(), interval=0.001)
    with seam.session("broken", inputs={"prompt": "go"}, recorder=recorder, function=True):
        said = run("go")
    recorder.close()
    assert said == plain


@scenario("S24")
def activation(lab: Lab) -> None:
    """The global form twice, beside an explicit one, and undone: each call is recorded once, or not at all."""

    def look(x: int) -> int:
        return x + 1

    def build() -> Any:
        return lab.harness.build(Spec(turns=[[Call("look", {"x": 1})]], tools=[look]))

    runs = [(lab.runner(build), 0)]  # with the calls that are recorded while the global form is off
    with contextlib.suppress(NotApplicable):
        lab.harness.explicit(build())
        runs.append((lab.runner(lambda: lab.harness.explicit(build())), 1))
    lab.harness.deactivate()
    try:
        for run, seen in runs:
            assert len(lab.record(run).calls) == seen
        lab.harness.activate()
        lab.harness.activate()
        for run, _ in runs:
            assert len(lab.record(run).calls) == 1
    finally:
        lab.harness.activate()


@scenario("S27")
def secrets(lab: Lab) -> None:
    """A configured secret in arguments, results and errors is not stored, and calls with it still match."""
    secret = "hunter2-hunter2"

    def login(token: str) -> str:
        lab.entered("login")
        return f"welcome {token}"

    recorder = Recorder(MemoryStore(), redactor=Redactor({"TOKEN": secret}), interval=0.001)
    own = Lab(lab.harness, recorder)
    own.live = lab.live
    turns = [[Call("login", {"token": secret})]]
    run = own.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[login])))
    try:
        baseline = own.record(run)
        result = own.replay(baseline, run)
        assert own.live == [], "the live tool was entered"
        assert result.by == ["served"], result.message
        for read in (baseline, result):
            assert secret not in repr(read.nodes)
            assert secret not in repr(read.session)
    finally:
        own.bench.close()


@scenario("S28")
def usage(lab: Lab) -> None:
    """Usage equals what the model reported, in exclusive buckets; the session's is the sum."""
    every = {
        "input_uncached": 70, "input_cache_read": 20, "input_cache_write": 10, "output_visible": 6,
        "output_reasoning": 4,
    }  # fmt: skip
    reported = {name: count for name, count in every.items() if name in lab.harness.buckets}

    def look() -> str:
        return "seen"

    spec = Spec(turns=[[Call("look", {})]], tools=[look])
    baseline = lab.record(lab.runner(lambda: lab.harness.with_usage(spec, reported)))
    assert len(baseline.model_calls) == 2
    for node in baseline.model_calls:
        assert node.model is not None
        assert _buckets(node.model.usage) == reported
    assert _buckets(baseline.session.usage) == {name: 2 * count for name, count in reported.items()}


def _buckets(found: Usage | None) -> dict[str, int]:
    return {name: count for name in BUCKETS if (count := getattr(found, name)) is not None}


@scenario("S29")
def second_turn(lab: Lab) -> None:
    """A second run that starts from the first one's messages is the session's next turn."""
    harness = lab.harness

    def look(x: int) -> int:
        return lab.entered(x)

    def run(prompt: str) -> str:
        agent = harness.build(Spec(turns=[[Call("look", {"x": 1})]], tools=[look]))

        return finish(harness.conversation(agent, [prompt, "and now?"]))

    baseline, _ = lab.unchanged(run)
    assert len(baseline.session.turns) == 2, baseline.session.turns
    assert len(baseline.model_calls) == (4 if harness.has_models else 0)
    assert len({n.parent_id for n in baseline.model_calls}) <= 1
