"""Agents of OpenAI Agents that are recorded and replayed by the tests here."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import set_tracing_disabled
from agents.testing import ScriptedModel

from playhead.adapters import openai_agents as adapter
from playhead.core.policy import HistoryModel
from playhead.testing.conformance.bench import Bench, Recorded, Replayed


class Desk:
    """Runs that are recorded and replayed; what they do is given anew each time."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.live: list[Any] = []
        self.models: list[ScriptedModel] = []

    def model(self, *steps: Any) -> ScriptedModel:
        self.models.append(ScriptedModel(steps))
        return self.models[-1]

    def enter(self, what: Any) -> int:
        self.live.append(what)
        return len(self.live)

    def record(self, run: Callable[..., Any]) -> Recorded:
        return self.bench.record(lambda prompt: asyncio.run(run(prompt)), {"prompt": "go"})

    def replay(self, baseline: Recorded, run: Callable[..., Any], **options: Any) -> Replayed:
        self.live.clear()
        return self.bench.replay(baseline, lambda prompt: asyncio.run(run(prompt)), **options)

    def unchanged(self, run: Callable[..., Any]) -> Recorded:
        """Records, and replays faithfully under a live and a recorded model."""
        baseline = self.record(run)
        for model in (None, HistoryModel()):
            result = self.replay(baseline, run, model_policy=model)
            assert self.live == []
            assert result.faithful, (result.replay.fidelity, result.message)
            assert result.session.output == baseline.session.output
        return baseline


@pytest.fixture
def desk() -> Iterator[Desk]:
    set_tracing_disabled(True)
    adapter.install()
    made = Desk()
    yield made
    made.bench.close()
    adapter.uninstall()
