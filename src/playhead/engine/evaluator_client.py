"""Evaluators as `Client.evaluators` has them: listed, looked at, registered."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playhead.core.evaluation import Evaluator
from playhead.core.evaluators.builtin import VERSION, names
from playhead.core.evaluators.catalog import BUILTINS
from playhead.core.requests import EvaluatorConfig
from playhead.engine.evaluator_process import order, run
from playhead.engine.evaluators import choose, is_as_registered, read
from playhead.errors import EntryPointError
from playhead.store.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorInfo:
    """An evaluator as it is listed. ``current``: the file still holds the code of this version."""

    name: str
    version: int
    kind: Literal["built-in", "registered"]
    description: str | None = None
    params: tuple[str, ...] = ()
    entry_point: str | None = None
    path: str | None = None
    digest: str | None = None
    created_at: int | None = None
    env: tuple[str, ...] = ()
    network: bool = False
    timeout: float | None = None
    current: bool = True


class EvaluatorClient:
    """The evaluators of a store: those that are built in, and those that were registered."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self) -> list[EvaluatorInfo]:
        """Every evaluator in its newest version, built-in ones first."""
        store = self._store.evaluators
        return [*(self.get(name) for name in BUILTINS), *(_registered(store.find(name)) for name in store.names())]

    def get(self, name: str) -> EvaluatorInfo:
        """An evaluator by ``name`` (its newest version) or ``name@version``.

        Raises:
            NotFoundError: there is none; with near names.
        """
        builtin = BUILTINS.get(name.removesuffix(f"@{VERSION}"))
        if builtin is not None:
            return EvaluatorInfo(
                name=builtin.name,
                version=VERSION,
                kind="built-in",
                description=builtin.summary,
                params=tuple(names(builtin)),
            )
        found = choose(self._store, EvaluatorConfig(evaluator=name)).registered
        assert found is not None
        return _registered(found)

    def versions(self, name: str) -> "Sequence[EvaluatorInfo]":
        """Every version of a registered evaluator, oldest first."""
        return [_registered(version) for version in self._store.evaluators.versions(name)]

    def register(
        self, entry_point: str, *, name: str | None = None, description: str | None = None, env: Sequence[str] = (),
        network: bool = False, timeout: float | None = None, working_dir: Path | str | None = None,
    ) -> EvaluatorInfo:  # fmt: skip
        """Stores a function as an evaluator; code and settings that are the newest version's make no new one.

        Args:
            entry_point: ``module:function``, or ``path/to/file.py:function``.
            name: the function's own with hyphens when left out.
            env: environment variables that it gets. Nothing else of the environment reaches it.
            network: whether it may open connections.
            timeout: seconds that it may take, a minute when left out.

        Raises:
            EntryPointError: there is no such function, or its file does not import. UsageError: a name that cannot be
                used.
        """
        found = read(
            entry_point,
            working_dir=Path(working_dir or Path.cwd()),
            name=name,
            env=env,
            network=network,
            timeout=timeout,
            description=description,
        )
        check(found)
        return _registered(self._store.evaluators.register(found))


def check(evaluator: Evaluator) -> None:
    """Imports an evaluator's code in a process of its own.

    Raises:
        EntryPointError: it does not import, or is nothing that can be called.
    """
    tried = run(evaluator, order(evaluator, None), environment=os.environ)
    if tried.failure is not None:
        raise EntryPointError(f"{evaluator.entry_point} cannot be used: {tried.failure}")


def _registered(found: Evaluator) -> EvaluatorInfo:
    return EvaluatorInfo(
        name=found.name,
        version=found.version,
        kind="registered",
        description=found.description,
        entry_point=found.entry_point,
        path=found.path,
        digest=found.digest,
        created_at=found.created_at,
        env=found.env,
        network=found.network,
        timeout=found.timeout,
        current=is_as_registered(found),
    )
