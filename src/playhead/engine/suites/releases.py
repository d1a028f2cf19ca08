"""Runs by name or file, the release that was accepted last, and the verdicts that were given on a pair of runs."""

import json
import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from playhead.core.gate.criteria import Criteria, criteria_of
from playhead.core.gate.judge import GateReport, Look
from playhead.core.suites.summary import RunSummary, from_text, to_text
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.errors import ConfigError, NotFoundError, PlayheadError

if TYPE_CHECKING:
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.history import History
    from playhead.store.ports import Store

LAST_RELEASE = "last-release"


def read_run(name: str, store: "Callable[[], Store]", *, releases: Path, suite: str | None = None) -> RunSummary:
    """A run: a file of one, ``last-release``, or a run of the store, scored with today's labels.

    Args:
        name: path, ``last-release``, or id, part of one, ``last``, ``last~N``.
        store: opened only where a run of it is named.
        releases: folder of accepted releases.
        suite: whose last release.

    Raises:
        NotFoundError: no such file, release or run.
        FormatError: a file that is no run.
    """
    if name == LAST_RELEASE:
        return _last_release(releases, suite)
    path = Path(name)
    if _is_file(name):
        try:
            return from_text(path.read_bytes(), name=name)
        except OSError as error:
            raise NotFoundError(
                f"cannot read {name}: {error.strerror}", hint="name a file, a run id, or last"
            ) from error
    return _stored(store(), name)


def _is_file(name: str) -> bool:
    return Path(name).suffix == ".json" or os.sep in name


def history_of(name: str, run: RunSummary, store: "Callable[[], Store]") -> "History | None":
    """The history of a run that `read_run` gave; None for one that stands in a file."""
    if name == LAST_RELEASE or _is_file(name):
        return None
    from playhead.engine.suites.history import stored_history

    return stored_history(store(), run.run)


def contents_of(name: str, store: "Callable[[], Store]") -> "Contents | None":
    """The suite of a run that `read_run` gave; None for a run in a file, and where the suite is not at hand."""
    from playhead.engine.suites.location import find_suite

    if name == LAST_RELEASE or _is_file(name):
        return None
    run = store().suites.run(store().suites.resolve_run(name))
    try:
        return find_suite(store, str(run.config.get("suite") or run.suite)).contents()
    except PlayheadError:
        return None


def _stored(store: "Store", name: str) -> RunSummary:
    from playhead.engine.suites.location import find_suite
    from playhead.engine.suites.summary import run_summary

    run = store.suites.run(store.suites.resolve_run(name))
    where = run.config.get("suite")
    if isinstance(where, str) and Path(where).is_dir():
        return run_summary(store, run.id, contents=find_suite(lambda: store, where).contents())
    return run_summary(store, run.id)


def _last_release(folder: Path, suite: str | None) -> RunSummary:
    path = _release_file(folder, suite or "")
    if suite is None or not path.exists():
        raise NotFoundError(
            f"no release of suite {suite!r} was accepted here",
            hint="playhead gate RUN --against FILE --accept keeps one",
        )
    return from_text(path.read_bytes(), name=str(path))


def accept(summary: RunSummary, folder: Path) -> Path:
    """Keeps a run as the last release of its suite, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _release_file(folder, summary.suite)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.touch(mode=0o600)
    draft.write_text(to_text(summary, responses=True), encoding="utf-8")
    draft.replace(path)
    return path


def _release_file(folder: Path, suite: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in suite)[:80]
    return folder / f"{safe}-{sha256(suite.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.json"


def read_criteria(path: str | None) -> Criteria:
    """Criteria from a TOML or JSON file; the defaults without one.

    Raises:
        ConfigError: not such a file, or not criteria.
    """
    if path is None:
        return Criteria()
    try:
        text = Path(path).read_text(encoding="utf-8")
        data: object = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # of either format
        raise ConfigError(f"{path}: {error}", hint="criteria are TOML (*.toml) or JSON") from error
    return criteria_of(data, name=path)


def look_digest(*summaries: RunSummary | None, criteria: Criteria) -> str:
    """What a look saw: the same digest again is the same look."""
    told = [to_text(replace(summary, held_back_accesses=None)) if summary else "" for summary in summaries]
    return seen_digest(told, criteria)


def seen_digest(texts: Sequence[str], criteria: Criteria) -> str:
    """`look_digest` of what is not a suite's run."""
    told = "\n".join([*texts, criteria.model_dump_json()])
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def earlier_looks(log: Path, baseline: str, candidate: str, digest: str) -> list[Look]:
    """Verdicts on this pair, oldest first, but for those that saw exactly what is seen now."""
    if not log.exists():
        return []
    found: list[Look] = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            row = cast("dict[str, Any]", json.loads(line))
            if (row["baseline"], row["candidate"]) == (baseline, candidate) and row["digest"] != digest:
                found.append(Look(at=str(row["at"]), verdict=str(row["verdict"]), digest=str(row["digest"])))
        except (ValueError, TypeError, KeyError):
            continue  # a line that a kill cut short
    return list({look.digest: look for look in found}.values())


def note_look(log: Path, report: GateReport, digest: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Writes a verdict down, so that a later look at the same pair knows of it."""
    from playhead.engine.suites.location import iso

    row: dict[str, JSON] = {
        "at": iso(clock.now()), "suite": report.suite, "baseline": report.baseline, "candidate": report.candidate,
        "verdict": report.verdict, "digest": digest,
    }  # fmt: skip
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, f"{json.dumps(row)}\n".encode())
    finally:
        os.close(descriptor)
