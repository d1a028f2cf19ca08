"""What every backend decides about versions of evaluators."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from playhead.core.evaluation import Evaluator
from playhead.errors import NotFoundError


def next_version(known: Sequence[Evaluator], evaluator: Evaluator) -> Evaluator:
    """The newest version where nothing changed since, else the one to store."""
    newest = known[-1] if known else None
    if newest is not None and _state(newest) == _state(evaluator):
        return newest
    return replace(evaluator, version=newest.version + 1 if newest else 1)


def _state(evaluator: Evaluator) -> tuple[object, ...]:
    return evaluator.digest, evaluator.env, evaluator.network, evaluator.timeout


def chosen(name: str, version: int | None, known: Sequence[Evaluator], names: Iterable[str]) -> Evaluator:
    """The version that was asked for, or the newest.

    Raises:
        NotFoundError: there is none; with near names.
    """
    if not known:
        near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
        raise NotFoundError(
            f"no evaluator {name!r} is registered", hint=f"did you mean {' or '.join(near)}?" if near else None
        )
    for evaluator in reversed(known):
        if version is None or evaluator.version == version:
            return evaluator
    numbers = ", ".join(str(evaluator.version) for evaluator in known)
    raise NotFoundError(f"evaluator {name!r} has no version {version}", hint=f"it has {numbers}")
