"""Cases over all stored runs of one configuration: three runs show a flaky case too rarely, many runs together do.

Two runs are of one configuration when model, parameters, system prompt, tools and agent version are the same. Their
trials of a case pool as long as the case itself (its digest) is the same. What was before is the pool without the
newest run; for the first run of a configuration, that of the configuration before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from playhead.core.canonical import canonical_stored
from playhead.core.suites.case_runs import CaseClass, class_of, counted, tally
from playhead.core.suites.summary import CaseResult, RunSummary

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHistory:
    """A case in the pool. ``flipped_since``: the run from which on it is what it is now, where it was otherwise."""

    id: str
    passes: int
    runs: int
    kind: CaseClass
    before: CaseClass | None = None
    first_seen: str | None = None
    flipped_since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The pool of a run. ``pooled``: ids of the runs in it, oldest first; ``earlier``: runs before it in all."""

    pooled: tuple[str, ...]
    earlier: int
    cases: tuple[CaseHistory, ...]
    flaky: tuple[str, ...]
    newly_flaky: tuple[str, ...]
    no_longer_flaky: tuple[str, ...]
    flipped: tuple[str, ...]

    @property
    def line(self) -> str:
        """For a reader of a report or a gate."""
        runs = f"{len(self.pooled)} run{'s' if len(self.pooled) > 1 else ''} of this configuration"
        told = f"over {runs} {len(self.flaky)} of {len(self.cases)} cases are flaky"
        groups = (
            ("newly", self.newly_flaky), ("no longer", self.no_longer_flaky), ("flipped", self.flipped),
        )  # fmt: skip
        return "; ".join([told, *(f"{name}: {_named(ids)}" for name, ids in groups if ids)])


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more


def configuration(run: RunSummary) -> bytes:
    """Equal for runs that pool."""
    told = [run.model, run.driver, run.strict, run.system_prompt_digest, run.tools_digest, run.agent_version]
    return canonical_stored([*told, dict(run.params)])


_Index: TypeAlias = Mapping[tuple[str, str | None], CaseResult]
"""The cases of a run by id and digest: one whose content changed since is another."""


def history(runs: Sequence[RunSummary]) -> History:
    """The history of the newest of these runs.

    Args:
        runs: of one suite, oldest first, scored with the same labels; the last one is the run that is asked about.
    """
    newest = runs[-1]
    indexed = {run.run: {(case.id, case.digest): case for case in run.cases} for run in runs}
    same = [run for run in runs if configuration(run) == configuration(newest)]
    before = same[:-1] or _last_other(runs, newest)
    pool, old = [indexed[run.run] for run in same], [indexed[run.run] for run in before]
    cases: list[CaseHistory] = []
    for case in counted(newest.cases, "tune"):
        passes, valid = _pool(case, pool)
        kind = class_of(passes, valid)
        if kind is not None:
            seen = (run.created_at for run in runs if (case.id, case.digest) in indexed[run.run])
            cases.append(
                CaseHistory(
                    id=case.id, passes=passes, runs=valid, kind=kind, before=class_of(*_pool(case, old)),
                    first_seen=next(seen, None), flipped_since=_flipped(case, indexed),
                )
            )  # fmt: skip
    return History(
        pooled=tuple(run.run for run in same), earlier=len(runs) - 1, cases=tuple(cases),
        flaky=tuple(c.id for c in cases if c.kind == "flaky"),
        newly_flaky=tuple(c.id for c in cases if c.kind == "flaky" and c.before in ("pass", "fail")),
        no_longer_flaky=tuple(c.id for c in cases if c.kind != "flaky" and c.before == "flaky"),
        flipped=tuple(c.id for c in cases if c.flipped_since == newest.run),
    )  # fmt: skip


def _last_other(runs: Sequence[RunSummary], newest: RunSummary) -> list[RunSummary]:
    """The runs of the configuration before this one."""
    others = [run for run in runs if configuration(run) != configuration(newest)]
    return [run for run in others if configuration(run) == configuration(others[-1])]


def _pool(case: CaseResult, runs: Sequence[_Index]) -> tuple[int, int]:
    found = [tally(run[case.id, case.digest], "whole") for run in runs if (case.id, case.digest) in run]
    return sum(passes for passes, _ in found), sum(valid for _, valid in found)


def _flipped(case: CaseResult, runs: Mapping[str, _Index]) -> str | None:
    """The run since which a case passes (or fails) in every trial, where the run before it was the other way round.

    A mixed run is no flip: it says that the case is flaky.
    """
    held = [(name, run[case.id, case.digest]) for name, run in runs.items() if (case.id, case.digest) in run]
    told = [(name, kind) for name, one in held if (kind := class_of(*tally(one, "whole"))) is not None]
    for (_, earlier), (since, kind) in zip(reversed(told[:-1]), reversed(told[1:]), strict=True):
        if earlier != kind:
            return since if "flaky" not in (earlier, kind) else None
    return None
