"""Tests of the thin adapters. Each needs its framework; `nox -s thin-<adapter>` makes an environment that has it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.testing.conformance.bench import Bench

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()
