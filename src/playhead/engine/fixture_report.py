"""What runs with fixtures tell the command that they are part of: one file per run, in a folder of its own.

`playhead fixtures run` names the folder to the processes that it starts. A run of a whole process (`join`) leaves its
recordings for the command to put in use; a block or a test inside settles its own, and only says what came of it.
"""

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from playhead.core.values import JSON
from playhead.engine.fixture_calls import FixtureRow
from playhead.engine.fixture_run import FixtureRun, watchers
from playhead.errors import FormatError

FOLDER = "PLAYHEAD_FIXTURE_RUN"
"""Variable that names the folder of reports."""

OPTIONS = "PLAYHEAD_FIXTURE_OPTIONS"
"""Variable with what the command was told beside mode, folder and set, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What holds for every run of a command. ``http``: None for requests left alone, an empty list for every host;
    ``command``: how to record what is missing."""

    http: tuple[str, ...] | None = None
    effects: str | None = None
    save: Literal["success", "always"] = "success"
    strict: bool = False
    command: str = ""


def options_here() -> RunOptions:
    """The options of the command that this process belongs to; the defaults where it belongs to none."""
    text = os.environ.get(OPTIONS)
    if not text or FOLDER not in os.environ:
        return RunOptions()
    said: dict[str, Any] = json.loads(text)
    hosts = said["http"]
    return RunOptions(
        http=None if hosts is None else tuple(hosts), effects=said["effects"], save=said["save"], strict=said["strict"],
        command=said["command"],
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run that is over. ``handed``: the folder of what it recorded, where that is left to the command."""

    at: int
    mode: str
    set_name: str
    rows: Sequence[FixtureRow]
    reasons: Sequence[str]
    handed: Path | None = None

    @property
    def failed(self) -> bool:
        return bool(self.reasons)


def report_runs() -> None:
    """From now on every run of this process that ends leaves a report, if the process belongs to a command."""
    if os.environ.get(FOLDER) and _tell not in watchers:
        watchers.append(_tell)


_numbers = iter(range(1, 2**62))
_lock = threading.Lock()


def _tell(run: FixtureRun) -> None:
    folder = os.environ.get(FOLDER)
    if not folder or not Path(folder).is_dir():
        return
    reasons = [row.note for row in run.rows if row.status == "missed"]
    reasons += [each for each in run.reasons() if each not in reasons]
    if run.latch is not None and run.latch.error.message not in reasons:
        reasons.append(run.latch.error.message)
    document: dict[str, JSON] = {
        "at": run.clock.now(),
        "mode": run.mode,
        "set": run.options.set_name,
        "rows": [asdict(row) for row in run.rows],
        "reasons": reasons,
        "handed": None if run.handed is None else str(run.handed),
    }
    with _lock:
        number = next(_numbers)
    path = Path(folder) / f"{run.clock.now():020d}-{os.getpid()}-{number}.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(run.redactor.redact(document).value))
    fresh.replace(path)


def reports_in(folder: Path) -> list[RunReport]:
    """The reports of a command's runs, in the order of their ends.

    Raises:
        FormatError: one of them is no report.
    """
    found: list[RunReport] = []
    for path in sorted(folder.glob("*.json")):
        try:
            said: dict[str, Any] = json.loads(path.read_bytes())
            rows = [_row(each) for each in said["rows"]]
            handed = said["handed"]
            found.append(
                RunReport(
                    at=said["at"], mode=said["mode"], set_name=said["set"], rows=rows, reasons=said["reasons"],
                    handed=None if handed is None else Path(handed),
                )
            )  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path.name} is no report of a run: {error}") from error
    return found


def _row(said: dict[str, Any]) -> FixtureRow:
    said["pointers"], said["marks"] = tuple(said["pointers"]), tuple(said["marks"])
    return FixtureRow(**said)
