"""What every adapter of a framework must do, as scenarios that anybody can run against theirs.

Implement `AdapterHarness` for the framework and call `measure`; each scenario then says ``supported``,
``unsupported`` with the reason, or ``not_applicable``. Scenarios use scripted models and no network; in a replay a live
tool that is entered is a failure.
"""

from collections.abc import Mapping, Sequence

from playhead.core.values import JSON
from playhead.testing.conformance.bench import Bench, NotApplicable, Recorded, Replayed
from playhead.testing.conformance.harness import (
    AdapterHarness,
    Call,
    Entry,
    Finding,
    Lab,
    Refused,
    Retry,
    Scenario,
    Spec,
    Turn,
    Verdict,
    finish,
)
from playhead.testing.conformance.scenarios import ALL

__all__ = [
    "AdapterHarness", "Bench", "Call", "Entry", "Finding", "Lab", "NotApplicable", "Recorded", "Refused", "Replayed",
    "Retry", "Scenario", "Spec", "Turn", "Verdict", "finish", "measure", "run_scenario", "scenarios",
]  # fmt: skip


def scenarios() -> list[Scenario]:
    """Every scenario, in order."""
    return list(ALL)


def run_scenario(harness: AdapterHarness, scenario: Scenario) -> Finding:
    """Runs one scenario. What it raises is the reason why it is not supported."""
    lab = Lab(harness)
    try:
        scenario.run(lab)
    except NotApplicable as reason:
        return Finding(scenario.id, "not_applicable", str(reason))
    except Exception as problem:  # noqa: BLE001 - whatever an adapter under test does
        return Finding(scenario.id, "unsupported", f"{type(problem).__name__}: {problem}")
    finally:
        lab.bench.close()
    return Finding(scenario.id, "supported")


_POLICIES = {"history": "S2", "static": "S12", "passthrough": "S11", "llm": "S12-llm", "inject": "S12-inject"}
_OVERRIDES = {name: f"S14-{name}" for name in ("model", "system_prompt", "prompt", "model_params")}


def measure(
    harness: AdapterHarness, *, framework: Mapping[str, JSON] | None = None, only: Sequence[str] | None = None
) -> dict[str, JSON]:
    """What the adapter can do, in the form that an agent version keeps as its capabilities.

    Args:
        framework: name and version of the framework, kept with the result.
        only: families of scenarios to run (``S14``); what was not run counts as not there.
    """
    chosen = [s for s in scenarios() if only is None or s.id.partition("-")[0] in only]
    found = {finding.scenario: finding for finding in (run_scenario(harness, s) for s in chosen)}

    def all_of(prefix: str) -> bool:
        """Whether the scenario and everything that refines it is supported, as far as the framework has it."""
        fitting = [f for name, f in found.items() if name == prefix or name.startswith(f"{prefix}-")]
        return bool(fitting) and all(f.verdict != "unsupported" for f in fitting)

    return {
        "adapter": harness.name,
        "framework": dict(framework or {}),
        "tool_policies": all(all_of(scenario) for scenario in _POLICIES.values()),
        "policies": {policy: all_of(scenario) for policy, scenario in _POLICIES.items()},
        "overrides": {name: all_of(scenario) for name, scenario in _OVERRIDES.items()},
        "model_history": all_of("S15"),
        "scenarios": {name: finding.verdict for name, finding in found.items()},
        "reasons": {name: f.reason for name, f in found.items() if f.reason},
    }
