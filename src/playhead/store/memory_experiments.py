"""Cohorts, experiments and their runs in memory."""

import threading

from playhead.core.codec import decode, dump, encode, load
from playhead.core.cohorts import Cohort, next_version
from playhead.core.experiments.runs import Experiment, ExperimentRun
from playhead.errors import NotFoundError
from playhead.store import cohort_rules, lookup


class MemoryCohorts:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, list[bytes]] = {}

    def create(self, cohort: Cohort) -> Cohort:
        with self._lock:
            known = self.versions(cohort.name)
            stored = next_version(known, cohort)
            if stored.version > len(known):
                self._held.setdefault(cohort.name, []).append(encode(dump(stored)))
            return stored

    def find(self, name: str, version: int | None = None) -> Cohort:
        with self._lock:
            return cohort_rules.chosen(name, version, self.versions(name), self.names())

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._held)

    def versions(self, name: str) -> list[Cohort]:
        with self._lock:
            return [load(Cohort, decode(text), trusted=True) for text in self._held.get(name, ())]

    def holding(self, session_id: str) -> list[str]:
        with self._lock:
            every = [cohort for name in self.names() for cohort in self.versions(name)]
            return [cohort.ref for cohort in every if session_id in cohort.members]


class MemoryExperiments:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, bytes] = {}
        self._runs: dict[str, bytes] = {}

    def create(self, experiment: Experiment) -> Experiment:
        with self._lock:
            if experiment.name in self._held:
                return cohort_rules.same_or_conflict(self.get(experiment.name), experiment)
            self._held[experiment.name] = encode(dump(experiment))
            return experiment

    def get(self, name: str) -> Experiment:
        with self._lock:
            if name not in self._held:
                raise cohort_rules.missing("experiment", name, self._held)
            return load(Experiment, decode(self._held[name]), trusted=True)

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._held)

    def save_run(self, run: ExperimentRun) -> None:
        with self._lock:
            self._runs[run.id] = encode(dump(run))

    def run(self, run_id: str) -> ExperimentRun:
        with self._lock:
            if run_id not in self._runs:
                raise NotFoundError(f"no experiment run {run_id!r}")
            return load(ExperimentRun, decode(self._runs[run_id]), trusted=True)

    def resolve_run(self, text: str) -> str:
        ids = [run.id for run in self.runs()]
        return lookup.resolve(
            text,
            "experiment run",
            nth_newest=lambda n: ids[n] if n < len(ids) else None,
            fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
        )

    def runs(self, experiment: str | None = None) -> list[ExperimentRun]:
        with self._lock:
            every = [load(ExperimentRun, decode(text), trusted=True) for text in self._runs.values()]
            found = [run for run in every if experiment is None or run.experiment == experiment]
            return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)
