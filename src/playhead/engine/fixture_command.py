"""A command run with fixtures: what its processes are told, what they said in the end, and what becomes of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

from playhead.core.fixture_modes import Mode
from playhead.engine.clock import SYSTEM_IDS
from playhead.engine.fixture_calls import FixtureRow
from playhead.engine.fixture_report import FOLDER, OPTIONS, RunOptions, RunReport, reports_in
from playhead.errors import NoFixturesError, StoreError, UsageError
from playhead.store.fixture_writing import recover, take_over
from playhead.store.fixtures import FixtureFolder

_GRACE = 10.0
_USED = ("served", "same", "changed")


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is run, and how. ``start``: a folder for ``PYTHONPATH`` that makes requests fixtures from the start on."""

    words: Sequence[str]
    mode: Mode
    folder: FixtureFolder
    set_name: str
    options: RunOptions
    allow_empty: bool = False
    start: Path | None = None

    def environment(self, outer: Mapping[str, str], reports: Path) -> dict[str, str]:
        """The environment of the command."""
        inner = {
            **outer,
            "PLAYHEAD_MODE": self.mode,
            "PLAYHEAD_FIXTURES": str(self.folder.root),
            "PLAYHEAD_SET": self.set_name,
            FOLDER: str(reports),
            OPTIONS: json.dumps(asdict(self.options)),
        }
        if self.start is not None and self.options.http is not None:
            paths = [str(self.start), *filter(None, [outer.get("PYTHONPATH")])]
            inner["PYTHONPATH"] = os.pathsep.join(paths)
        return inner


@dataclass(kw_only=True)
class Ended:
    """How a command ended. ``exit_code`` is its own, negative for a signal; ``reasons`` say why the run failed."""

    exit_code: int
    interrupted: bool = False
    reports: Sequence[RunReport] = ()
    reasons: list[str] = field(default_factory=list[str])
    recorded: int = 0
    leftovers: list[str] = field(default_factory=list[str])

    @property
    def rows(self) -> list[FixtureRow]:
        return [row for report in self.reports for row in report.rows]

    @property
    def counts(self) -> dict[str, int]:
        """How many calls came to what."""
        return dict(Counter(row.status for row in self.rows))


def run_command(command: Command, *, output_to_stderr: bool = False) -> Ended:
    """Runs a command to its end and puts what it recorded in use if all of it succeeded.

    Args:
        output_to_stderr: the command's standard output is not ours to give.

    Raises:
        UsageError: the command cannot be started. NoFixturesError: a replay without recordings.
    """
    folder, name = command.folder, command.set_name
    place = folder.place(name)
    if command.mode == "replay" and not command.allow_empty and not folder.has_any(name):
        raise NoFixturesError(f"nothing is recorded in {place}", hint="playhead fixtures run --mode record -- COMMAND")
    if command.mode in ("record", "auto"):
        recover(folder)
    reports = Path(tempfile.mkdtemp(prefix="playhead-fixtures-"))
    try:
        code, interrupted = _wait(_start(command, reports, output_to_stderr))
        ended = Ended(exit_code=code, interrupted=interrupted, reports=reports_in(reports))
        _judge(command, ended)
        _settle(command, ended)
        return ended
    finally:
        shutil.rmtree(reports, ignore_errors=True)


def _start(command: Command, reports: Path, output_to_stderr: bool) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            list(command.words), env=command.environment(os.environ, reports),
            stdout=sys.stderr.fileno() if output_to_stderr else None,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(
            f"{command.words[0]!r} cannot be started: {error.strerror}", hint="playhead fixtures run -- COMMAND"
        ) from error


def _wait(process: "subprocess.Popen[bytes]") -> tuple[int, bool]:
    """The exit code, and whether somebody interrupted; an end asked of us is asked of the command."""
    with _handing_on(process) as asked:
        try:
            return process.wait(), bool(asked)
        except KeyboardInterrupt:  # a terminal sends it to the command too
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_GRACE), True
            process.kill()
            return process.wait(), True


@contextmanager
def _handing_on(process: "subprocess.Popen[bytes]") -> Generator[list[int]]:
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def hand_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, hand_on)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, before)


def _judge(command: Command, ended: Ended) -> None:
    """Why the run failed, beside what could not be saved."""
    if ended.exit_code:
        said = f"exit code {ended.exit_code}" if ended.exit_code > 0 else f"signal {-ended.exit_code}"
        ended.reasons.append(f"the command ended with {said}")
    for report in ended.reports:
        ended.reasons += [reason for reason in report.reasons if reason not in ended.reasons]
    answered = any(row.status in ("served", "missed") for row in ended.rows)
    if command.mode == "replay" and not command.allow_empty and not answered:
        ended.reasons.append(f"nothing was served although {command.folder.place(command.set_name)} has recordings")
    if command.mode in ("replay", "check"):
        used = {row.file for row in ended.rows if row.status in _USED}
        ended.leftovers = [path.name for path in command.folder.files(command.set_name) if path.name not in used]
        if command.options.strict:
            ended.reasons += [f"{name} was recorded and not asked for" for name in ended.leftovers]
    if command.options.strict:
        outdated = sorted({str(row.file) for row in ended.rows if "outdated" in row.marks})
        ended.reasons += [f"{file} is outdated: recorded with other code" for file in outdated]


def _settle(command: Command, ended: Ended) -> None:
    """Puts in use what the processes handed over, or leaves it below ``.partial/``."""
    handed = [report.handed for report in ended.reports if report.handed is not None]
    for report in ended.reports:  # a block or a test that succeeded has saved its own
        if report.handed is None and not report.failed:
            ended.recorded += sum(1 for row in report.rows if row.status == "recorded")
    why = ended.reasons[0].splitlines()[0] if ended.reasons else None
    if why is not None and command.options.save == "success":
        return
    try:
        ended.recorded += take_over(command.folder, handed, SYSTEM_IDS(), incomplete=why)
    except (StoreError, OSError, ValueError) as error:
        ended.reasons.append(f"the fixtures could not be saved: {error}")
