"""What the conformance suite measured of each adapter, as a table."""

from playhead.cli.output import Result, Table
from playhead.core.values import JSON
from playhead.engine.capabilities import Measured, measured
from playhead.engine.capabilities import Table as Known


def measured_capabilities() -> Result:
    """One item for each adapter; as text, its scenarios that are not supported with the reason."""
    known = measured()
    items = [_item(one, known) for one in known.adapters.values()]
    rows = [
        {
            "adapter": one.adapter,
            "framework": one.distribution,
            "measured": one.version,
            "installed": one.installed,
            "supported": sum(verdict == "supported" for verdict, _ in one.found.values()),
            "not applicable": sum(verdict == "not_applicable" for verdict, _ in one.found.values()),
            "unsupported": sum(verdict == "unsupported" for verdict, _ in one.found.values()),
        }
        for one in known.adapters.values()
    ]
    others = [
        {"adapter": one.adapter, "scenario": scenario, "verdict": verdict.replace("_", " "), "reason": reason}
        for one in known.adapters.values()
        for scenario, (verdict, reason) in one.found.items()
        if verdict != "supported"
    ]
    text = [
        Table(tuple(rows[0]), rows),
        Table(("adapter", "scenario", "verdict", "reason"), others),
    ]
    return Result(data=items, items=True, text=text)


def _item(one: Measured, known: Known) -> dict[str, JSON]:
    return {
        "adapter": one.adapter,
        "framework": one.distribution,
        "measured": one.version,
        "installed": one.installed,
        "scenarios": [
            {"scenario": scenario, "title": known.titles.get(scenario), "verdict": verdict, "reason": reason or None}
            for scenario, (verdict, reason) in one.found.items()
        ],
    }
