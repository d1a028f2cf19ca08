"""What every adapter of a framework must do, as scenarios that anybody can run against theirs.

Implement `AdapterHarness` for the framework and call `measure`, or ``python -m playhead.testing.conformance
module:Harness``; each scenario then says ``supported``, ``unsupported`` with the reason, or ``not_applicable``.
Scenarios use scripted models and no network; in a replay a live tool that is entered is a failure.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from playhead.core.capabilities import Findings, summary
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
    "Retry", "Scenario", "Spec", "Turn", "Verdict", "check", "findings", "finish", "measure", "run_scenario",
    "scenarios", "started",
]  # fmt: skip


def scenarios() -> list[Scenario]:
    """Every scenario, in order: families as they are numbered, cases of other tools at the end."""
    return sorted(ALL, key=_place)


def _place(scenario: Scenario) -> tuple[bool, int]:
    family = scenario.id.partition("-")[0]
    return not family.startswith("S"), int(family[1:])


@contextmanager
def started(harness: AdapterHarness) -> Generator[AdapterHarness]:
    """A harness between its start and its stop."""
    harness.start()
    try:
        yield harness
    finally:
        harness.stop()


def run_scenario(harness: AdapterHarness, scenario: Scenario) -> Finding:
    """Runs one scenario. The reason why one is not supported is the harness's, else what was raised."""
    try:
        return _run(harness, scenario)
    except Exception as problem:  # noqa: BLE001 - whatever an adapter under test does
        reason = harness.reasons.get(scenario.id) or f"{type(problem).__name__}: {problem}"
        return Finding(scenario.id, "unsupported", reason)


def check(harness: AdapterHarness, scenario: Scenario, known: Findings) -> Finding:
    """Runs one scenario and holds the result against what was measured before.

    Raises:
        AssertionError: they differ. A failure that was not known is raised as it is.
    """
    verdict, reason = known.get(scenario.id, ("nothing", ""))
    finding = run_scenario(harness, scenario) if verdict == "unsupported" else _run(harness, scenario)
    found = (finding.verdict, finding.reason)
    assert found == (verdict, reason), f"{scenario.id}: {found} was measured as {(verdict, reason)}: make capabilities"
    return finding


def _run(harness: AdapterHarness, scenario: Scenario) -> Finding:
    if why := harness.never.get(scenario.id):
        return Finding(scenario.id, "not_applicable", why)
    if why := harness.luck.get(scenario.id):
        return Finding(scenario.id, "unsupported", why)
    lab = Lab(harness)
    try:
        scenario.run(lab)
    except NotApplicable as reason:
        return Finding(scenario.id, "not_applicable", str(reason))
    finally:
        lab.bench.close()
    return Finding(scenario.id, "supported")


def findings(harness: AdapterHarness, only: Sequence[str] | None = None) -> Iterator[Finding]:
    """Runs the scenarios one after the other; ``only`` names some, or families of them (``S14``)."""
    with started(harness):
        for scenario in scenarios():
            if only is None or scenario.id in only or scenario.id.partition("-")[0] in only:
                yield run_scenario(harness, scenario)


def measure(
    harness: AdapterHarness, *, framework: Mapping[str, JSON] | None = None, only: Sequence[str] | None = None
) -> dict[str, JSON]:
    """What the adapter can do, in the form that an agent version keeps as its capabilities.

    Args:
        framework: name and version of the framework, kept with the result.
        only: scenarios or families of them to run; what was not run counts as not there.
    """
    found = {finding.scenario: (finding.verdict, finding.reason) for finding in findings(harness, only)}
    return summary(harness.name, framework or {}, found)
