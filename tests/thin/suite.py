"""Runs the conformance suite on a thin adapter, scenario by scenario."""

from typing import Any

import pytest

from playhead.testing.conformance.adapter import Lab, NotApplicable, Scenario


def try_scenario(harness: Any, scenario: Scenario) -> None:
    """A scenario the adapter cannot pass is named with its reason, and has to fail: else the reason is out of date."""
    if never := getattr(harness, "never", {}).get(scenario.id):
        pytest.skip(f"not applicable: {never}")
    if luck := getattr(harness, "luck", {}).get(scenario.id):
        pytest.skip(f"unsupported, though it may pass: {luck}")
    lab = Lab(harness)
    reason = harness.reasons.get(scenario.id)
    try:
        scenario.run(lab)
    except NotApplicable as not_there:
        pytest.skip(f"not applicable: {not_there}")
    except Exception:
        if reason is None:
            raise
        pytest.skip(f"unsupported: {reason}")
    finally:
        lab.bench.close()
    assert reason is None, f"{scenario.id} passes now; it is listed as unsupported: {reason}"
