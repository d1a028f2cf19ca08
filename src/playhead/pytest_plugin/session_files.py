"""``playhead_replay``: recorded sessions as tests of the agent that they were recorded of."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.inline import replay
from playhead.core.fidelity import explained
from playhead.core.miss import shown
from playhead.core.policy import HistoryModel
from playhead.core.values import FidelityKind, ReplayStatus, RunSpec
from playhead.engine.entry import load
from playhead.engine.replay import ReplayResult
from playhead.errors import EntryPointError, NotFoundError, PlayheadError, UsageError
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery


class SessionReplayer:
    """The fixture's value: call it with a file of one recorded session.

    Args:
        folders: where a relative name is looked up, in order.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def __call__(
        self, file: str | os.PathLike[str], agent: Any = None, *, session: str | None = None, check: bool = True,
        **options: Any,
    ) -> ReplayResult:  # fmt: skip
        """Re-runs the agent on the session's inputs, with tools and model answered by the recording.

        Args:
            file: a session as `playhead session export` writes it (lines or bundle), or a recording of another tool
                that `playhead import` reads; beside the test file, or from the root of the tests.
            agent: the agent under test: a function, an agent object, ``module:name``; left out, the entry point that
                the session names, loaded from the root of the tests.
            session: its id, where the file holds several.
            check: whether the test fails unless the replay is faithful; without, look at the result yourself.
            options: as for `playhead.replay` (``tool_policy``, ``model_policy``, ``override``, ...).

        Raises:
            pytest.fail.Exception: the file cannot be read, the replay was refused or failed, or it differs from the
                recording; the text says where.
        """
        __tracebackhide__ = True
        result: ReplayResult | None = None
        try:
            result = self._replayed(file, agent, session, options)
            problem = problem_of(result) if check else None
        except PlayheadError as error:
            problem = f"{error.message}\n  {error.hint}" if error.hint else error.message
        if problem is not None or result is None:
            pytest.fail(f"{os.fspath(file)}: {problem}")
        return result

    def _replayed(
        self, file: str | os.PathLike[str], agent: Any, session: str | None, options: dict[str, Any]
    ) -> ReplayResult:
        path = self._found(file)
        store = MemoryStore()
        baseline = self._baseline(store, path, session)
        target = agent if agent is not None else self._recorded(store, baseline)
        options.setdefault("model_policy", HistoryModel())
        return replay(baseline, agent=target, store=store, **options)

    def _found(self, file: str | os.PathLike[str]) -> Path:
        tried = [folder / file for folder in self._folders]
        for path in tried:
            if path.exists():
                return path
        raise UsageError(f"there is no {os.fspath(file)!r}", hint=f"looked at {', '.join(map(str, tried))}")

    def _baseline(self, store: MemoryStore, path: Path, session: str | None) -> str:
        report = import_paths(store, [path])
        if report.exit_code:
            why = next(iter(report.errors), None)
            raise UsageError(f"{path.name} cannot be read as a session: {why.message if why else 'nothing is in it'}")
        ids = [found.id for found in store.sessions.find(SessionQuery(), limit=200).items]
        if session is not None:
            return store.sessions.resolve(session)
        if len(ids) != 1:
            raise UsageError(f"{path.name} holds {len(ids)} sessions", hint=f"session= one of {', '.join(ids[:5])}")
        return ids[0]

    def _recorded(self, store: MemoryStore, baseline: str) -> Any:
        """The agent that the session names; the folder that it was recorded in may be another machine's."""
        version = store.sessions.get(baseline).agent_version
        spec: RunSpec | None = None
        with suppress(NotFoundError):  # lines without the agent's version
            spec = store.agents.get(version).run_spec if version is not None else None
        if spec is None or spec.entry_point is None:
            raise EntryPointError(
                "the file names no entry point", hint="pass the agent: playhead_replay(file, agent=my_agent)"
            )
        return load(spec.entry_point, str(self._folders[-1]))


def problem_of(result: ReplayResult) -> str | None:
    """Why a replay is not faithful, in lines; None if it is."""
    kind = result.fidelity.kind
    lines: list[str] = []
    if result.status is ReplayStatus.FAILED and result.error is not None:
        lines.append(f"the replay failed: {result.error.message}")
    elif kind is FidelityKind.FAITHFUL:
        return None
    else:
        lines.append(f"the replay is {kind.value}: {'; '.join(result.fidelity.reasons)}".removesuffix(": "))
    if result.fidelity.divergence is not None:
        lines += ["first difference:", *explained(result.fidelity.divergence, shown)]
    rest = result.comparison.differences[1:]
    lines += [f"then {each.where}: {each.explanation.partition(chr(10))[0] or each.what}" for each in rest[:5]]
    if result.comparison.output_diff and "output" not in "".join(lines[1:3]):
        lines += ["output:", result.comparison.output_diff]
    return "\n".join(lines)
