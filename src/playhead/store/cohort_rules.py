"""What every backend decides about cohorts and experiments."""

import difflib
from collections.abc import Iterable, Sequence

from playhead.core.cohorts import Cohort
from playhead.core.experiments.runs import Experiment
from playhead.errors import ConflictError, NotFoundError


def chosen(name: str, version: int | None, known: Sequence[Cohort], names: Iterable[str]) -> Cohort:
    """The version that was asked for, or the newest.

    Raises:
        NotFoundError: there is none; with near names.
    """
    if not known:
        raise missing("cohort", name, names)
    for cohort in reversed(known):
        if version is None or cohort.version == version:
            return cohort
    numbers = ", ".join(str(cohort.version) for cohort in known)
    raise NotFoundError(f"cohort {name!r} has no version {version}", hint=f"it has {numbers}")


def missing(what: str, name: str, names: Iterable[str]) -> NotFoundError:
    """The error for a name that is not known, with near ones."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"playhead {what} create makes one"
    return NotFoundError(f"no {what} {name!r}", hint=hint)


def needed(session_id: str, holders: Sequence[str]) -> ConflictError:
    """The error for deleting a session that cohort versions need."""
    return ConflictError(
        f"session {session_id!r} is a member of cohort {', '.join(holders)}",
        hint="--erase removes it all the same; the cohort keeps its place, and reports say that it is gone",
    )


def same_or_conflict(known: Experiment, made: Experiment) -> Experiment:
    """The stored experiment where nothing differs.

    Raises:
        ConflictError: another configuration has its name.
    """
    if known.config == made.config:
        return known
    raise ConflictError(
        f"experiment {made.name!r} exists with other arms or evaluators",
        hint="choose another name; an experiment does not change",
    )
