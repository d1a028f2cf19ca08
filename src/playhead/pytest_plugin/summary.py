"""What a whole run of pytest came to: one summary, whichever processes ran the tests."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from playhead.pytest_plugin.rates import Rate, rate_of

_COUNTS = ("served", "recorded", "missed", "leftovers", "outdated")
_PARTS = ("  closest", "  differs", "  or  ")


class Gathered(Protocol):
    """What the plugin has by the end."""

    config: pytest.Config
    rows: list[dict[str, Any]]
    trials: list[dict[str, Any]]
    collected: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """``orphans``: sets whose test is gone; ``common``: files of sets of several tests that nothing asked for. Both are
    looked for only if the suite was collected ``whole``."""

    rows: Sequence[Mapping[str, Any]]
    orphans: Sequence[str]
    common: Sequence[str]
    unused: str
    whole: bool
    rate: Rate | None = None

    @property
    def totals(self) -> dict[str, int]:
        found = {name: sum(row.get(name, 0) for row in self.rows) for name in _COUNTS}
        found["leftovers"] += len(self.common)
        return {**found, "orphans": len(self.orphans)}

    @property
    def failed(self) -> bool:
        """Whether the whole run fails for what no single test answers for."""
        return bool(self.common and self.unused == "fail") or (self.rate is not None and not self.rate.reached)

    def tell(self, out: pytest.TerminalReporter) -> None:
        """The summary at the end of pytest's own output; nothing where no test used fixtures or cases."""
        out.section("playhead")
        if self.rows:
            known = {name: count for name, count in self.totals.items() if name != "orphans" or self.whole}
            out.line(", ".join(f"{count} {_word(name, count)}" for name, count in known.items()))
            self._misses(out)
            self._unused(out)
        if self.rate is not None:
            for line in self.rate.lines():
                out.line(line)

    def _misses(self, out: pytest.TerminalReporter) -> None:
        for row in self.rows:
            for text in row.get("misses", ()):
                first, *rest = text.splitlines()
                out.line(f"missed {row['test']}: {first}", red=True)
                for line in rest:
                    if line.startswith(_PARTS):
                        out.line(f"  {line}")

    def _unused(self, out: pytest.TerminalReporter) -> None:
        for row in self.rows:
            if row.get("unused"):
                out.line(f"not asked for by {row['test']}: {', '.join(row['unused'])}", yellow=True)
            outdated = sorted({call["file"] for call in row["calls"] if "outdated" in call["marks"]})
            if outdated:
                out.line(f"outdated in {row['test']}: {', '.join(outdated)}", yellow=True)
        if self.common:
            out.line(f"not asked for by any test: {', '.join(self.common)}", yellow=True)
        if self.orphans:
            out.line(f"sets without a test: {', '.join(self.orphans)}", yellow=True)

    def data(self) -> dict[str, Any]:
        """The report as JSON."""
        found: dict[str, Any] = {
            "playhead": "pytest/1", "totals": self.totals, "tests": list(self.rows),
            "orphans": list(self.orphans), "leftovers_of_all": list(self.common),
        }  # fmt: skip
        return found if self.rate is None else {**found, "cases": self.rate.data()}

    def write(self, name: str | None, here: Path) -> None:
        """Writes the report, whole or not at all, readable by its owner only."""
        if name is None:
            return
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.new")
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(_without_secrets(self.data(), here), indent=1, ensure_ascii=True) + "\n")
        draft.replace(path)


def _without_secrets(data: dict[str, Any], here: Path) -> Any:
    """The report; without what the ids of tests give away."""
    from playhead.engine.project import find_project
    from playhead.errors import PlayheadError

    try:
        redactor = find_project(here).redactor()
    except PlayheadError:  # which is told elsewhere
        return data
    return data if redactor.given_away_by(json.dumps(data)) is None else redactor.redact(data).value


def summary_of(gathered: Gathered) -> Summary:
    """The summary of everything that was gathered."""
    option = gathered.config.option
    collected = gathered.collected or {}
    unused = "fail" if option.playhead_strict else option.playhead_unused
    return Summary(
        rows=gathered.rows,
        orphans=() if unused == "ignore" else collected.get("orphans", ()),
        common=() if unused == "ignore" else _common(gathered.rows, collected),
        unused=unused,
        whole=bool(collected),
        rate=rate_of(gathered.trials, option.playhead_min_rate, literal=option.playhead_literal),
    )


def _common(rows: Sequence[Mapping[str, Any]], collected: Mapping[str, Any]) -> list[str]:
    """Files of sets that several tests share and none of them asked for; known only if all of them ran to their end."""
    ended = {row["test"] for row in rows if row["ended"]}
    tests = collected.get("tests", ())
    if not tests or not ended.issuperset(tests):
        return []
    used = {(call["set"], call["file"]) for row in rows for call in row["calls"] if call["status"] != "recorded"}
    return [
        f"{name}/{file}" if name else file
        for name, files in collected.get("files", {}).items()
        for file in files
        if (name, file) not in used
    ]


def _word(name: str, count: int) -> str:
    return name.removesuffix("s") if name in ("orphans", "leftovers") and count == 1 else name
