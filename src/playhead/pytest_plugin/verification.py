"""``--playhead-verify``: a test that was recorded is replayed at once."""

from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from playhead.pytest_plugin.tests import FixtureTest

_SAID = "playhead: it passed while it was recorded; this is its replay (--playhead-verify)"


def run_twice(item: pytest.Item, nextitem: pytest.Item | None, test: FixtureTest) -> None:
    """Records a test; if it passed, runs it again from the recording. Of the two, the replay's failure is reported."""
    hook: Any = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if test.recorded and all(report.passed for report in reports):
        recorded = list(item.user_properties)
        test.mode = "replay"
        test.begin()
        again = runtestprotocol(item, nextitem=nextitem, log=False)
        test.mode = "record"
        if any(report.failed for report in again):
            for report in again:
                report.sections.append((_SAID, "what was recorded is kept"))
            reports = [*again[:-1], _with_rows(again[-1], reports[-1])]
        item.user_properties[:] = recorded
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _with_rows(report: pytest.TestReport, recorded: pytest.TestReport) -> pytest.TestReport:
    rows: list[dict[str, Any]] = getattr(recorded, "playhead", [])
    report.playhead = [*rows, *getattr(report, "playhead", [])]  # type: ignore[attr-defined]
    return report
