"""The stored runs before a run, for its history."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playhead.core.suites.history import History, history
from playhead.engine.suites.location import find_suite
from playhead.engine.suites.summary import summary_of
from playhead.errors import NotFoundError

if TYPE_CHECKING:
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.trials import SuiteRun, Trial
    from playhead.store.ports import Store

_MOST: Final = 12
"""Runs that are read: each is scored again with today's labels."""


_OTHER: Final = frozenset({"inject", "fuzz"})
"""Runs whose trials are no plain attempts at the cases."""


def stored_history(store: "Store", run_id: str) -> History | None:
    """The history of a stored run; None where it is the first of its suite or stands in no store.

    Runs with injected failures are none of a suite's cases, and are left out.
    """
    try:
        run = store.suites.run(store.suites.resolve_run(run_id))
        contents = _contents(store, run)
    except NotFoundError:
        return None
    runs = [one for one in store.suites.runs(run.suite) if not _OTHER.intersection(one.config)]
    before = [one for one in runs if (one.created_at, one.id) <= (run.created_at, run.id)][:_MOST]
    if len(before) < 2 or before[0].id != run.id:
        return None
    return history([summary_of(one, contents, _trials(store, one.id)) for one in reversed(before)])


def _contents(store: "Store", run: "SuiteRun") -> "Contents":
    where = run.config.get("suite")
    if isinstance(where, str) and Path(where).is_dir():
        return find_suite(lambda: store, where).contents()
    return store.suites.get(run.suite)


def _trials(store: "Store", run_id: str) -> "Mapping[str, Sequence[Trial]]":
    found: dict[str, list[Trial]] = {}
    for trial in store.suites.trials(run_id):
        found.setdefault(trial.case, []).append(trial)
    return found
