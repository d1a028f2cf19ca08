"""What an adapter could not do when it was measured refuses the replays that need it, whoever opened the session."""

from collections.abc import Iterator

import pytest

from playhead.engine.calling import opened
from playhead.errors import RefusedError
from playhead.testing.conformance.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def polled_twice_at_once(adapter: str) -> None:
    steps = [opened("poll", {"job": "a"}, by=adapter) for _ in range(2)]
    for number, step in enumerate(steps):
        assert step is not None
        if step.decide() is None:
            step.returned(number)


@pytest.mark.parametrize("adapter", ["crewai", "smolagents"])
def test_equal_calls_at_once_are_not_replayed_where_no_ids_tell_them_apart(bench: Bench, adapter: str) -> None:
    baseline = bench.record(lambda prompt: polled_twice_at_once(adapter), {"prompt": "go"})
    assert baseline.session.metadata["adapters"] == [adapter]
    with pytest.raises(RefusedError, match=f"adapter {adapter} does not pass conformance scenario S3: .*arrival") as no:
        bench.replay(baseline, lambda prompt: polled_twice_at_once(adapter))
    assert no.value.exit_code == 2
    live = {"default": {"type": "passthrough"}}
    bench.replay(baseline, lambda prompt: polled_twice_at_once(adapter), tool_policy=live)


def test_they_are_replayed_where_the_adapter_tells_them_apart(bench: Bench) -> None:
    baseline = bench.record(lambda prompt: polled_twice_at_once("google_adk"), {"prompt": "go"})
    assert baseline.session.metadata["adapters"] == ["google_adk"]
    assert bench.replay(baseline, lambda prompt: polled_twice_at_once("google_adk")).by == ["served", "served"]
