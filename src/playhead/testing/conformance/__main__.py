"""``python -m playhead.testing.conformance module:Harness``: runs the adapter scenarios and shows what came of them.

A harness may also be given as ``path/to/file.py:Harness``. Exit code 1 when a scenario is not supported.
"""

import argparse
import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playhead.core.capabilities import summary
from playhead.engine.capabilities import Measured, Table, read, write
from playhead.testing.conformance.adapter import AdapterHarness, Finding, findings, scenarios

_MARKS = {"supported": "ok", "unsupported": "FAILED", "not_applicable": "n.a."}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(prog="python -m playhead.testing.conformance", description=__doc__)
    parser.add_argument("harness", nargs="+", help="module:Class or path/to/file.py:Class")
    parser.add_argument("--only", help="scenarios or families, with commas between (S3,S14)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the result in this file, beside others'")
    given = parser.parse_args(arguments)
    only = given.only.split(",") if given.only else None
    measured = [_measured(_harness(name), only, given.output == "text") for name in given.harness]
    if given.save is not None:
        _save(given.save, measured)
    if given.output == "json":
        _say(json.dumps([summary(one.adapter, one.framework, one.found) for one in measured], indent=1))
    return 1 if any(verdict == "unsupported" for one in measured for verdict, _ in one.found.values()) else 0


def _harness(name: str) -> AdapterHarness:
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None:
            raise SystemExit(f"{place} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look for it there
        sys.path.insert(0, str(Path(place).resolve().parent))  # as when the file is run
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    made: Any = getattr(module, attribute)
    return made()


def _measured(harness: AdapterHarness, only: Sequence[str] | None, show: bool) -> Measured:
    found: dict[str, tuple[str, str]] = {}
    titles = {scenario.id: scenario.title for scenario in scenarios()}
    for finding in findings(harness, only):
        found[finding.scenario] = (finding.verdict, finding.reason)
        if show:
            _show(harness.name, finding, titles[finding.scenario])
    one = Measured(adapter=harness.name, distribution=harness.distribution, found=found)
    return Measured(adapter=one.adapter, distribution=one.distribution, version=one.installed, found=found)


def _show(adapter: str, finding: Finding, title: str) -> None:
    told = finding.reason or title
    _say(f"{adapter:18} {finding.scenario:18} {_MARKS[finding.verdict]:7} {told}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _save(path: Path, measured: Sequence[Measured]) -> None:
    """Keeps what was measured beside the adapters that were not."""
    known = dict(read(path.read_text("utf-8")).adapters) if path.exists() else {}
    for one in measured:
        before = known.get(one.adapter)
        found = {**(before.found if before else {}), **one.found}
        order = [scenario.id for scenario in scenarios() if scenario.id in found]
        known[one.adapter] = Measured(
            adapter=one.adapter, distribution=one.distribution, version=one.version,
            found={name: found[name] for name in order},
        )  # fmt: skip
    titles = {scenario.id: scenario.title for scenario in scenarios()}
    path.write_text(write(Table(titles=titles, adapters=known)), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
