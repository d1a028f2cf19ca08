"""Plain functions: faults of ours, and what a replay does with them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.functions import agent, session, tool
from playhead.core.policy import HistoryConfig, PassthroughConfig, StaticCase, StaticConfig, ToolPolicy
from playhead.core.tape import Tape
from playhead.core.values import Mark, Session
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import ReplayState
from playhead.errors import MissError, RecordingError, ReplayedToolError, ReplayStop, StaleError
from playhead.store.ports import SessionQuery

pytestmark = pytest.mark.usefixtures("recorder")
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@dataclass
class Order:
    id: str
    total: float


@tool
def add(a: int, b: int = 2) -> int:
    RAN.append("add")
    return a + b


@tool("look-up", effect="read")
async def look_up(n: int) -> Order:
    RAN.append("look-up")
    await asyncio.sleep(0)
    return Order(id=str(n), total=1.5)


@tool
def count(n: int) -> Iterator[int]:
    RAN.append("count")
    yield from range(n)


@tool
async def acount(n: int) -> AsyncIterator[int]:
    RAN.append("acount")
    for number in range(n):
        yield number


def sessions(recorder: Recorder) -> list[Session]:
    assert recorder.flush()
    return list(recorder.store.sessions.find(SessionQuery(oldest_first=True)).items)


def nodes(recorder: Recorder) -> list[Any]:
    return recorder.store.sessions.nodes(sessions(recorder)[-1].id)


def replay(recorder: Recorder, run: Any, policy: ToolPolicy | None = None) -> ReplayState:
    baseline = recorder.store.sessions.nodes(sessions(recorder)[0].id)
    state = ReplayState(tape=Tape.build(baseline, policy), policy=policy or ToolPolicy())
    RAN.clear()
    with seam.replaying(state):
        state.parameters["result"] = run()
    return state


@pytest.mark.parametrize("broken", ["open_tool", "push", "freeze"])
def test_a_fault_of_ours_never_reaches_the_agent(
    recorder: Recorder, broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fault(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ours")

    target = {
        "open_tool": "playhead.engine.active.ActiveSession.open_tool",
        "push": "playhead.engine.recorder.Recorder.push",
        "freeze": "playhead.adapters.functions.tools.freeze",
    }[broken]

    @agent
    async def desk() -> Any:
        return [add(1), add(2), (await look_up(1)).id, list(count(2))]

    with monkeypatch.context() as patched:
        patched.setattr(target, fault)
        assert asyncio.run(desk()) == [3, 4, "1", [0, 1]]
        with session("x") as run:
            run.set_output(1)
    assert len({r.message for r in caplog.records if "ours" in r.message}) >= 1


def test_a_store_that_cannot_be_opened_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from playhead.engine.project import use_recorder

    before = use_recorder(None)
    (tmp_path / "store.db").write_text("this is no database, and it is long enough to be read as one" * 20)
    monkeypatch.setenv("PLAYHEAD_URL", str(tmp_path / "store.db"))
    try:
        assert [agent("a")(lambda: 7)() for _ in range(3)] == [7] * 3
    finally:
        use_recorder(before)
    assert len([r for r in caplog.records if "cannot record" in r.message]) == 1


# replays


def test_a_replay_serves_every_colour_without_running_it(recorder: Recorder):
    async def run() -> list[Any]:
        return [add(1), (await look_up(1)), list(count(2)), [n async for n in acount(2)]]

    with session("desk"):
        live = asyncio.run(run())

    def again() -> Any:
        with session("desk"):
            return asyncio.run(run())

    state = replay(recorder, again)
    assert (state.parameters["result"], RAN) == (live, [])
    assert [row.by for row in state.ledger] == ["served"] * 4


def test_a_typed_result_comes_back_as_its_declared_class_or_stops(recorder: Recorder):
    @tool
    def order() -> Order:
        return Order("1", 2.0)

    with session("desk"):
        order()
    recorded = nodes(recorder)
    assert recorded[0].outcome.value == {"id": "1", "total": 2.0}

    def again() -> Any:
        with session("desk"):
            return order()

    assert replay(recorder, again).parameters["result"] == Order("1", 2.0)
    policy = ToolPolicy(tools={"order": StaticConfig(cases=(StaticCase(result={"id": "1"}),))})
    with pytest.raises(StaleError, match="declared type"):
        replay(recorder, again, policy)


def test_a_result_whose_class_nobody_knows_is_kept_to_see_and_never_served(recorder: Recorder):
    @tool
    def order() -> Any:
        return Order("1", 2.0)

    def run() -> Any:
        with session("desk"):
            return order()

    run()
    (node,) = nodes(recorder)
    assert node.call.mark is Mark.REPR
    with pytest.raises(MissError, match="cannot be made again: register it"):
        replay(recorder, run)


def test_an_agent_that_swallows_the_stop_still_ends_in_a_miss_and_runs_nothing_more(recorder: Recorder):
    with session("desk"):
        add(1)

    def again() -> None:
        with session("desk"):
            for number in (9, 1):
                try:
                    add(number)
                except BaseException:
                    RAN.append("swallowed")

    with pytest.raises(MissError, match="add"):
        replay(recorder, again)
    assert RAN == ["swallowed", "swallowed"]


def test_a_recorded_failure_is_raised_again(recorder: Recorder):
    @tool
    def fails(n: int) -> None:
        raise [KeyError("a"), TimeoutError("b")][n]

    def run() -> list[str]:
        seen: list[str] = []
        with session("desk"):
            for number in (0, 1):
                try:
                    fails(number)
                except Exception as error:
                    seen.append(repr(error))
        return seen

    live = run()
    assert replay(recorder, run).parameters["result"] == live


def test_a_miss_under_error_result_reaches_the_agent_as_an_error_it_may_handle(recorder: Recorder):
    with session("desk"):
        add(1)

    def again() -> str:
        with session("desk"), pytest.raises(ReplayedToolError) as caught:
            add(9)
        return str(caught.value)

    policy = ToolPolicy(default=HistoryConfig(on_miss="error_result"))
    state = replay(recorder, again, policy)
    assert "add" in state.parameters["result"]
    assert [row.by for row in state.ledger] == ["missed"]


def test_a_tool_outside_the_session_of_a_replay_does_not_run(recorder: Recorder):
    with session("desk"):
        add(1)
    with pytest.raises(ReplayStop, match="outside the session"):
        replay(recorder, lambda: add(1))
    assert RAN == []
    policy = ToolPolicy(default=PassthroughConfig())
    assert replay(recorder, lambda: add(1), policy).parameters["result"] == 3


def test_a_fault_of_ours_in_a_replay_is_a_stop_and_nothing_runs(recorder: Recorder, monkeypatch: pytest.MonkeyPatch):
    with session("desk"):
        add(1)

    def again() -> None:
        with session("desk"):
            add(1)

    def fault(*args: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr("playhead.engine.gating.decide", fault)
    with pytest.raises(RecordingError, match="ours"):
        replay(recorder, again)
    assert RAN == []


def test_serving_an_outer_tool_covers_what_it_called(recorder: Recorder):
    @tool
    def outer() -> int:
        RAN.append("outer")
        return add(1) + add(1)

    def run() -> list[int]:
        with session("desk"):
            return [outer(), add(1)]

    live = run()
    state = replay(recorder, run)
    assert (state.parameters["result"], RAN) == (live, [])
    assert state.tape.leftovers() == []
    live_outer = ToolPolicy(tools={"outer": PassthroughConfig()})
    state = replay(recorder, run, live_outer)
    assert (state.parameters["result"], RAN) == (live, ["outer"])
    assert [(row.tool, row.by, row.marks) for row in state.ledger] == [
        ("outer", "live", ("decided inside",)), ("add", "served", ()), ("add", "served", ()), ("add", "served", ())
    ]  # fmt: skip
