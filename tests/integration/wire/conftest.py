"""A bench: a store, a recorder, the wire seam installed, and replays of what was recorded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from playhead.adapters import wire
from playhead.core.policy import HistoryModel, LiveModel, ReplayOverride, ToolPolicy
from playhead.core.tape import Tape
from playhead.core.values import Node, NodeKind, Session
from playhead.engine import seam
from playhead.engine.answers import RecordedAnswers
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import ReplayState
from playhead.store.memory import MemoryStore


@dataclass(frozen=True)
class Run:
    """What one run recorded, and what it returned."""

    session: Session
    nodes: list[Node]
    output: Any = None
    error: BaseException | None = None

    @property
    def models(self) -> list[Node]:
        return [n for n in self.nodes if n.kind is NodeKind.MODEL_CALL]

    @property
    def tools(self) -> list[Node]:
        return [n for n in self.nodes if n.kind is NodeKind.TOOL_CALL]


class Bench:
    """Runs agents inside sessions."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.recorder = Recorder(self.store)

    def record(self, agent: Callable[[], Any]) -> Run:
        output, error, active = None, None, None
        scope = seam.session("desk", inputs={"prompt": "hi"}, recorder=self.recorder)
        try:
            with scope as active:
                output = scope.output = agent()
        except Exception as caught:
            error = caught
        assert active is not None
        return self.read(active.session_id, output, error)

    async def record_async(self, agent: Callable[[], Any]) -> Run:
        async with seam.session("desk", inputs={"prompt": "hi"}, recorder=self.recorder) as active:
            output = await agent()
        assert active is not None
        return self.read(active.session_id, output)

    def read(self, session_id: str, output: Any = None, error: BaseException | None = None) -> Run:
        self.recorder.flush()
        session = self.store.sessions.get(session_id)
        return Run(session, list(self.store.sessions.nodes(session_id)), output, error)

    def state(
        self,
        baseline: Run,
        *,
        model: HistoryModel | LiveModel | None = None,
        policy: ToolPolicy | None = None,
        override: ReplayOverride | None = None,
    ) -> ReplayState:
        policy, model = policy or ToolPolicy(), model or HistoryModel()
        tape = Tape.build(baseline.nodes, policy)
        answers = None
        if isinstance(model, HistoryModel):
            answers = RecordedAnswers(baseline.nodes, tape, baseline.session, on_miss=model.on_miss)
        return ReplayState(
            tape=tape, baseline=baseline.session, policy=policy, model_policy=model, answers=answers, override=override
        )

    def replay(self, state: ReplayState, agent: Callable[[], Any]) -> Run:
        with seam.replaying(state):
            return self.record(agent)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    wire.install()
    yield made
    wire.uninstall()
    assert made.recorder.counters["errors"] == 0
    made.recorder.close()
