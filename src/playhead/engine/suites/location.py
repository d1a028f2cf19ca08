"""Where a suite lives, a store or a folder, and what may be done with it in either."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from playhead.core.access_log import broken, chained
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.suites.folder import is_suite_folder, read_folder, write_folder
from playhead.errors import NotFoundError, UsageError
from playhead.store.ports import Store

Redact = Callable[[JSON], JSON]


class SuiteHome(Protocol):
    """A suite where it lives. ``where`` says that to people."""

    where: str

    def contents(self) -> Contents: ...

    def change(
        self,
        *,
        suite: Suite | None = None,
        cases: Sequence[Case] = (),
        tools: Mapping[str, ToolSchema] | None = None,
        labels: Sequence[LabelEntry] = (),
    ) -> None: ...

    def add_access(self, entry: Mapping[str, JSON]) -> None: ...


class StoredSuite:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self.name = store, name
        self.where = f"suite {name}"

    def contents(self) -> Contents:
        return self._store.suites.get(self.name)

    def change(
        self,
        *,
        suite: Suite | None = None,
        cases: Sequence[Case] = (),
        tools: Mapping[str, ToolSchema] | None = None,
        labels: Sequence[LabelEntry] = (),
    ) -> None:
        self._store.suites.change(self.name, suite=suite, cases=cases, tools=tools, labels=labels)

    def add_access(self, entry: Mapping[str, JSON]) -> None:
        self._store.suites.add_access(self.name, entry)


class FolderSuite:
    def __init__(self, folder: Path, redact: Redact | None = None) -> None:
        self.folder = folder
        self.where = str(folder)
        self._redact: Redact = redact or _as_it_is

    def contents(self) -> Contents:
        return read_folder(self.folder)

    def change(
        self,
        *,
        suite: Suite | None = None,
        cases: Sequence[Case] = (),
        tools: Mapping[str, ToolSchema] | None = None,
        labels: Sequence[LabelEntry] = (),
    ) -> None:
        known = self.contents()
        held = {case.id: case for case in known.cases} | {case.id: case for case in cases}
        changed = replace(
            known,
            suite=suite or known.suite,
            cases=tuple(held.values()),
            tools={**known.tools, **(tools or {})},
            labels=(*known.labels, *labels),
        )
        write_folder(changed, self.folder, self._redact)

    def add_access(self, entry: Mapping[str, JSON]) -> None:
        known = self.contents()
        line = chained(known.accesses, entry)
        write_folder(replace(known, accesses=(*known.accesses, line)), self.folder, self._redact)


def _as_it_is(value: JSON) -> JSON:
    return value


def find_suite(open_store: Callable[[], Store], text: str, *, redact: Redact | None = None) -> SuiteHome:
    """The suite of a folder, or of the store.

    Args:
        open_store: called only when ``text`` is no folder of a suite.

    Raises:
        NotFoundError: neither.
    """
    folder = Path(text)
    if folder.is_dir() and is_suite_folder(folder):
        return FolderSuite(folder, redact)
    if folder.is_dir() and ("/" in text or text in (".", "..")):
        raise UsageError(f"{text} holds no suite.json", hint="name a suite of the store, or a folder of a suite")
    try:
        store = open_store()
    except NotFoundError as error:
        raise NotFoundError(f"there is no suite {text!r}: no such folder, and {error.message}") from None
    if text not in store.suites.names():
        store.suites.get(text)  # says what is near
    return StoredSuite(store, text)


def iso(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def note_access(
    home: SuiteHome, contents: Contents, *, who: str, command: str, reason: str, run: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:  # fmt: skip
    """Writes down that somebody reads what is held back.

    Raises:
        UsageError: no reason is given, or lines of the log were taken out or changed.
    """
    if not reason.strip():
        raise UsageError("reading the held-back slice needs a reason", hint="--reason TEXT; it goes to the access log")
    gap = broken(contents.accesses)
    if gap is not None:
        raise UsageError(f"the access log of {home.where} was changed: line {gap} does not follow from the one before")
    home.add_access(
        {
            "who": who, "at": iso(clock.now()), "command": command, "reason": reason, "run": run,
            "digest": contents.digest,
        }
    )  # fmt: skip
