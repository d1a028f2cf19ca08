"""Tests of the thin adapters. Each needs its framework; `nox -s thin-<adapter>` makes an environment that has it."""

from collections.abc import Iterator

import pytest

from playhead.testing.conformance.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()
