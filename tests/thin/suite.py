"""Runs the conformance suite on a thin adapter, against what was measured of it."""

import os
from collections.abc import Sequence

import pytest

from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import AdapterHarness, Scenario, check, scenarios

WHOLE = os.environ.get("PLAYHEAD_CONFORMANCE") == "all"


def try_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    """A scenario that gives another result than the table says fails, a better one too."""
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict != "supported":
        pytest.skip(f"{found.verdict}: {found.reason}")


def sample(*chosen: str) -> Sequence[Scenario]:
    """Those that say something of this adapter; every one with ``PLAYHEAD_CONFORMANCE=all``, as nox has it."""
    return [scenario for scenario in scenarios() if WHOLE or scenario.id in chosen]
