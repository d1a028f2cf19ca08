"""Fixtures in force: which mode answers a request, what is recorded of it, and what the run comes to in the end."""

import fnmatch
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NoReturn

from playhead.core.canonical import NoKeyError
from playhead.core.fixture_file import Fixture, dump
from playhead.core.fixture_miss import Asked, Recorded, missing, traces_in
from playhead.core.fixture_modes import Mode, may_run
from playhead.core.fixture_notes import Note
from playhead.core.http.request import HttpRules, without
from playhead.core.keys import call_key
from playhead.core.redact import Redactor
from playhead.core.values import JSON
from playhead.engine.clock import Clock, IdSource
from playhead.engine.fixture_calls import FixtureCall, FixtureOptions, FixtureRow
from playhead.engine.fixture_keys import is_older, key_again
from playhead.errors import (
    FixtureFormatError,
    FixtureRunError,
    NoFixturesError,
    OpError,
    PlayheadError,
    RefusedError,
    ReplayStop,
    StoreError,
    UsageError,
)
from playhead.store.fixture_writing import FixtureWriter, recover
from playhead.store.fixtures import FixtureFolder

watchers: list[Callable[["FixtureRun"], None]] = []
"""Told of every run that is over."""


_MOST_TRACES = 10_000


@dataclass(slots=True)
class _Report:
    rows: list[FixtureRow] = field(default_factory=list[FixtureRow])
    problems: list[str] = field(default_factory=list[str])
    hosts: Counter[str] = field(default_factory=Counter[str])


class FixtureRun:
    """One run: a test, a block, a process. Its calls ask it; it is told how the run ended."""

    def __init__(
        self,
        mode: Mode,
        folder: FixtureFolder,
        options: FixtureOptions,
        *,
        redactor: Redactor,
        command: str,
        clock: Clock,
        ids: IdSource,
        configured: Sequence[str] = (),
    ) -> None:
        self.mode: Mode = mode
        self.configured = configured
        self.folder = folder
        self.options = options
        self.redactor = redactor
        self.command = redactor.redact_text(command)
        self.clock = clock
        self.lock = threading.RLock()
        self.latch: ReplayStop | None = None
        self.gentle = False
        """Stops are raised as ordinary errors, where what runs the caller could not take anything else."""
        self.on_let_through: Callable[[str], None] = lambda host: None
        self._report = _Report()
        self._used: Counter[str] = Counter()
        self._started = 0
        self._in_flight: dict[str, list[FixtureCall]] = {}
        folder.place(options.set_name)  # a name that is none is told before anything runs
        self._writer = FixtureWriter(folder, options.set_name, ids(), only_last=options.sequence == "last")
        self._older: dict[tuple[str, str], dict[tuple[str, int], Fixture]] = {}
        self._answered: set[str] = set()
        self._live: dict[str, str] = {}
        self._named: set[str] = set()
        self._notes: dict[str, Note] | None = None
        self.claims: Path | None = None
        """Where the processes of one command keep track of what is used up, so that none is served twice."""
        self.handed: Path | None = None
        """Where a run of a whole process left its files, for the process that it runs for."""
        if mode == "replay" and not options.allow_empty and not folder.has_any(options.set_name):
            raise NoFixturesError(
                f"nothing is recorded in {self.place}",
                hint=f"record it: {command}; allow_empty=True where none is made",
            )
        if mode in ("record", "auto"):
            self._check_name()
            recover(folder)

    def _check_name(self) -> None:
        """A secret in the name of a set would be in the names of folders, and in what is committed.

        Raises:
            UsageError: there is one.
        """
        held = self.redactor.given_away_by(f"{self.options.set_name}\n{self.options.test}")
        if held is not None:
            raise UsageError(
                f"the name of the set of fixtures holds a secret ({held})",
                hint="name the parameters of the test: ids=[...]; or the set: set='...'",
            )

    # what adapters see (`engine.http_exchange.HttpFixtures`)

    @property
    def rules(self) -> HttpRules:
        return self.options.http or HttpRules(hosts=())

    @property
    def timing(self) -> float:
        return self.options.timing

    def http_call(self, tool: str, arguments: JSON, effect: str) -> FixtureCall:
        """A request, as it begins. Raises `ReplayStop` once the run was stopped, or without a key."""
        self.check()
        ignore = (*self.rules.ignore, *self.options.ignore.get(tool, ()))
        keyed = without(arguments, ignore)
        try:
            key = call_key(tool, keyed, namespace="http")
        except NoKeyError as error:
            self.refuse(tool, f"it has no key: {error}")
        ignored = ignore if keyed != arguments else ()
        return FixtureCall(self, "http", tool, key, keyed, effect=effect, ignored=ignored)

    def refuse(self, tool: str, reason: str) -> NoReturn:
        self.row(FixtureRow(tool=tool, key="", kind="http", status="refused", note=reason))
        raise self.stop(RefusedError(f"{tool}: {reason}"))

    def let_through(self, host: str) -> None:
        self.on_let_through(host)

    # what calls see

    @property
    def place(self) -> str:
        return str(self.folder.place(self.options.set_name))

    def check(self) -> None:
        """Raises the stop of this run, once there is one."""
        if self.latch is not None:
            raise self.latch.error if self.gentle else self.latch

    def stop(self, error: PlayheadError) -> ReplayStop | PlayheadError:
        """The stop to raise: every later call raises it again."""
        with self.lock:
            if self.latch is None:
                self.latch = ReplayStop(error)
            return self.latch.error if self.gentle else self.latch

    def row(self, row: FixtureRow) -> None:
        with self.lock:
            self._report.rows.append(row)

    def problem(self, text: str) -> None:
        """Something that lets the run fail at its end."""
        with self.lock:
            self._report.problems.append(self.redactor.redact_text(text))

    def reached(self, host: str) -> None:
        """A connection that no seam knows of."""
        with self.lock:
            self._report.hosts[host] += 1

    def begin(self, call: FixtureCall) -> int:
        """The place of a call in the order of starts; equal ones under way in other threads are marked with it."""
        with self.lock:
            self._started += 1
            equal = self._in_flight.setdefault(call.key, [])
            for other in equal:
                if other.thread != call.thread:
                    other.overlapped = call.overlapped = True
            equal.append(call)
            return self._started

    def end(self, call: FixtureCall) -> None:
        with self.lock, suppress(KeyError, ValueError):
            self._in_flight[call.key].remove(call)

    def claim(self, kind: str, tool: str, key: str) -> Fixture | None:
        """The next unused occurrence of a key, by the run's rule for repeats. None is a miss, and uses up nothing."""
        repeat = "last" if self.options.sequence == "last" else self.options.repeat
        with self.lock:
            while True:
                number = self._used[key] + 1
                found = self.folder.find(self.options.set_name, kind, tool, key, number)
                found = found or self._of_older_keys(kind, tool).get((key, number))
                if found is None and number > 1 and repeat != "error":
                    again = number - 1 if repeat == "last" else 1
                    return self.folder.find(self.options.set_name, kind, tool, key, again)
                if found is None:
                    return None
                self._used[key] = number
                if self.claims is None or _mine(self.claims, key, number):
                    return found

    def _of_older_keys(self, kind: str, tool: str) -> Mapping[tuple[str, int], Fixture]:
        """Fixtures that an older release made other keys for, by today's."""
        if (kind, tool) not in self._older:
            found = self._older[kind, tool] = {}
            for _, fixture in self.folder.of_tool(self.options.set_name, kind, tool, limit=sys.maxsize):
                with suppress(NoKeyError):
                    if is_older(fixture) and (key := key_again(fixture, self.is_configured)) is not None:
                        found.setdefault((key, fixture.occurrence), fixture)
        return self._older[kind, tool]

    def is_configured(self, name: str) -> bool:
        """Whether keys are free of the secret of this name."""
        names = (*self.configured, *self.redactor.configured_names, *self._named)
        return any(fnmatch.fnmatchcase(name, each) for each in names)

    def named(self, name: str, value: str | None) -> None:
        """A secret that the program has asked for by its name, which keys are free of from now on."""
        if value is None:
            self._named.add(name)
        else:
            self.redactor.configure(name, value)

    def unclaim(self, key: str) -> None:
        """Gives back what `claim` found: a miss uses up nothing."""
        with self.lock:
            if self.claims is not None:
                _claim_file(self.claims, key, self._used[key]).unlink(missing_ok=True)
            self._used[key] -= 1

    def op_key(self, tool: str, arguments: JSON, scope: JSON, ignore: Sequence[str]) -> str:
        """Raises `ReplayStop` once the run was stopped, `NoKeyError` without a key."""
        self.check()
        return call_key(tool, arguments, scope=scope, ignore=ignore, secrets=self.redactor)

    def miss(self, call: FixtureCall, reason: str, note: str = "") -> NoReturn:
        """Stops the run, or raises the miss as an error of the call where the run asked for that."""
        name = self.options.set_name
        recorded = [Recorded(file, fixture) for file, fixture in self.folder.of_tool(name, call.kind, call.tool)]
        count = self.folder.count(name, call.kind, call.tool, call.key)
        if reason == "unknown":
            reason = "used_up" if count else "other_args" if recorded else "never_recorded"
            if not count and (found := self._noted(call.key)):
                reason, note = "not_recorded", found.reason
        error = missing(
            Asked(
                tool=call.tool,
                key=call.key,
                arguments=self.redactor.redact(call.arguments).value,
                mode=self.mode,
                folder=self.place,
                total=sum(1 for each in {name, ""} for _ in self.folder.files(each)),
                command=self.command,
                count=count,
                note=self.redactor.redact_text(note),
                live=self._live,
            ),
            reason,
            recorded,
        )
        self.row(FixtureRow(tool=call.tool, key=call.key, kind=call.kind, status="missed", note=error.message))
        if self.options.on_miss == "error_result":
            self.end(call)
            raise OpError(error.message, code="missing_fixture") if call.kind == "op" else error
        raise self.stop(error)

    def _noted(self, key: str) -> Note | None:
        if self._notes is None:
            self._notes = self.folder.notes(self.options.set_name)
        return self._notes.get(key)

    def superseded(self, key: str) -> str | None:
        """Why recording a key again failed, where what answers it is older for that."""
        note = self._noted(key)
        return note.reason if note is not None and note.superseded else None

    def repeats(self, fixture: Fixture) -> bool:
        """Whether a fixture answers once more; from now on it has answered."""
        with self.lock:
            before = fixture.name in self._answered
            self._answered.add(fixture.name)
            return before

    def ran_live(self, tool: str, outcome: JSON) -> None:
        """Notes what a live call gave, to name it where a later call misses for that."""
        if len(self._live) < _MOST_TRACES:
            self._live |= dict.fromkeys(islice(traces_in(outcome), _MOST_TRACES), tool)

    def may_run(self, effect: str) -> bool:
        return may_run(self.mode, effect, self.options.effects)

    def write(self, order: int, fixture: Fixture) -> None:
        """Keeps an outcome until the run has succeeded. Never raises: the call's own outcome stands."""
        held = self.redactor.known_in(dump(fixture))
        if held:
            self.problem(f"{fixture.tool} is not recorded: it holds the value of {', '.join(held)}")
            return
        try:
            with self.lock:
                self._writer.add(order, fixture)
        except StoreError as error:
            self.problem(f"{fixture.tool} is not recorded: {error.message}")

    def now(self) -> str:
        """The time as files hold it."""
        return datetime.fromtimestamp(self.clock.now() / 1e9, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

    # the end

    @property
    def rows(self) -> Sequence[FixtureRow]:
        return tuple(self._report.rows)

    def finish(self, error: BaseException | None, *, hand_over: bool = False) -> None:
        """The run is over: what it recorded is put in use if it succeeded.

        Args:
            hand_over: leave that to the process that this one runs for; see ``handed``.

        Raises:
            PlayheadError: the run failed, also where its code swallowed that.
        """
        if self.mode == "check" and not hand_over:
            self._say_what_is_gone()
        failed = error is not None or self.latch is not None or bool(self.reasons())
        if self.mode in ("record", "auto"):
            self._save(failed, error, hand_over)
        for watcher in watchers:
            watcher(self)
        if self.latch is not None and (error is None or error is self.latch):
            raise self.latch.error from None
        reasons = self.reasons()
        if error is None and reasons:
            raise FixtureRunError("\n".join(["the run with fixtures failed", *reasons]), reasons=reasons)

    def _say_what_is_gone(self) -> None:
        for name in self.leftovers():
            path = self.folder.place(self.options.set_name) / name
            with suppress(FixtureFormatError):
                fixture = self.folder.read(path)
                self.row(FixtureRow(tool=fixture.tool, key=fixture.key, kind=fixture.kind, status="gone",
                                    file=name, occurrence=fixture.occurrence))  # fmt: skip

    def _save(self, failed: bool, error: BaseException | None, hand_over: bool) -> None:
        notes = [self._note(row) for row in self._report.rows if row.status == "not_recorded"]
        report: dict[str, JSON] = {
            "playhead": "recording/1",
            "command": self.command,
            "at": self.now(),
            "not_recorded": [note.document() for note in notes],
            "hosts": sorted(self._report.hosts),
        }
        if self.options.test:
            report["test"] = self.options.test
        self._writer.kept = dict(self._used)
        anything = bool(len(self._writer) or notes)
        try:
            if hand_over:
                self.handed = self._writer.hand_over(report) if anything else None
            elif failed and self.options.save == "success":
                self._writer.abandon(report)
            elif anything:
                why = {"complete": False, "incomplete": self._why_failed(error)} if failed else {}
                self._writer.finish({**report, **why})
        except StoreError as problem:
            self.problem(f"the fixtures could not be saved: {problem.message}")

    def _note(self, row: FixtureRow) -> Note:
        older = bool(row.key) and self.folder.count(self.options.set_name, row.kind, row.tool, row.key) > 0
        again = any(other.status == "recorded" and other.key == row.key for other in self._report.rows)
        return Note(
            tool=row.tool, key=row.key, reason=self.redactor.redact_text(row.note), at=self.now(),
            superseded=older and not again,
        )  # fmt: skip

    def _why_failed(self, error: BaseException | None) -> str:
        """In a few words, for the report of a set that was saved all the same."""
        if error is not None:
            return type(error).__name__
        reasons = self.reasons() or ([] if self.latch is None else [self.latch.error.message])
        return self.redactor.redact_text(reasons[0].splitlines()[0]) if reasons else "it failed"

    def reasons(self) -> list[str]:
        """Why the run fails, beside a stop."""
        rows = self._report.rows
        found = [row.note for row in rows if row.status == "missed"] if self.options.on_miss != "fail" else []
        found += [f"{row.tool} {row.status}: {', '.join(row.pointers) or row.note}" for row in rows
                  if row.status in ("changed", "new")]  # fmt: skip
        found += self._report.problems
        answered = any(row.status in ("served", "missed") for row in rows)
        if self.mode == "replay" and not self.options.allow_empty and not answered:
            found.append(f"nothing was served although {self.place} has recordings")
        if self.options.strict and self.mode in ("replay", "check"):
            found += [f"{name} was recorded and not asked for" for name in self.leftovers()]
        return found + (self.outdated() if self.options.strict else [])

    def outdated(self) -> list[str]:
        """What was served although it was recorded with other code, as texts."""
        return [f"{row.file} is outdated: {row.note or 'recorded with other code'}"
                for row in self._report.rows if "outdated" in row.marks]  # fmt: skip

    def leftovers(self) -> list[str]:
        """Files of the set that answered nothing."""
        used = {row.file for row in self._report.rows if row.status in ("served", "same", "changed")}
        return [path.name for path in self.folder.files(self.options.set_name) if path.name not in used]


def _claim_file(folder: Path, key: str, number: int) -> Path:
    return folder / f"{key.partition(':')[2]}.{number}"


def _mine(folder: Path, key: str, number: int) -> bool:
    """Whether this process is the first to ask for an occurrence."""
    try:
        _claim_file(folder, key, number).open("x").close()
    except FileExistsError:
        return False
    return True
