"""Suites, runs and trials in memory."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from playhead.core.access_log import chained
from playhead.core.codec import decode, dump, encode, load
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON
from playhead.errors import NotFoundError
from playhead.store import lookup, suite_rows


@dataclass(slots=True)
class _Held:
    head: bytes
    cases: dict[str, bytes] = field(default_factory=dict[str, bytes])
    labels: list[bytes] = field(default_factory=list[bytes])
    accesses: list[bytes] = field(default_factory=list[bytes])


class MemorySuites:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, _Held] = {}
        self._runs: dict[str, bytes] = {}
        self._trials: dict[str, dict[tuple[str, int], bytes]] = {}
        self._requests: dict[str, bytes] = {}

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._held)

    def put(self, contents: Contents) -> None:
        with self._lock:
            held = _Held(encode(suite_rows.head_row(contents.suite, contents.tools)))
            held.cases.update((id, encode(row)) for id, row in suite_rows.case_rows(contents.cases))
            held.labels += map(encode, suite_rows.label_rows(contents.labels))
            held.accesses += map(encode, contents.accesses)
            self._held[contents.suite.name] = held

    def get(self, name: str) -> Contents:
        with self._lock:
            held = self._get(name)
            return suite_rows.contents_of(
                decode(held.head), map(decode, held.cases.values()), map(decode, held.labels),
                map(decode, held.accesses),
            )  # fmt: skip

    def change(
        self, name: str, *, suite: Suite | None = None, cases: Sequence[Case] = (),
        tools: Mapping[str, ToolSchema] | None = None, labels: Sequence[LabelEntry] = (),
    ) -> None:  # fmt: skip
        with self._lock:
            held = self._get(name)
            held.head = encode(suite_rows.merged_head(decode(held.head), suite, tools or {}))
            held.cases.update((id, encode(row)) for id, row in suite_rows.case_rows(cases))
            held.labels += map(encode, suite_rows.label_rows(labels))

    def add_access(self, name: str, entry: Mapping[str, JSON]) -> JSON:
        with self._lock:
            held = self._get(name)
            line = chained([decode(text) for text in held.accesses[-1:]], entry)
            held.accesses.append(encode(line))
            return line

    def remove(self, name: str) -> None:
        with self._lock:
            self._get(name)
            del self._held[name]

    def save_run(self, run: SuiteRun) -> None:
        with self._lock:
            self._runs[run.id] = encode(dump(run))

    def run(self, run_id: str) -> SuiteRun:
        with self._lock:
            found = self._runs.get(run_id)
            if found is None:
                raise NotFoundError(f"no suite run {run_id!r}")
            return load(SuiteRun, decode(found), trusted=True)

    def resolve_run(self, text: str) -> str:
        with self._lock:
            ids = [run.id for run in self.runs()]
            return lookup.resolve(
                text,
                "suite run",
                nth_newest=lambda n: ids[n] if n < len(ids) else None,
                fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
            )

    def runs(self, suite: str | None = None) -> list[SuiteRun]:
        with self._lock:
            every = [load(SuiteRun, decode(text), trusted=True) for text in self._runs.values()]
            found = [run for run in every if suite is None or run.suite == suite]
            return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)

    def add_trial(self, trial: Trial, requests: Mapping[str, JSON] | None = None) -> None:
        with self._lock:
            self._trials.setdefault(trial.run, {})[trial.case, trial.n] = encode(dump(trial))
            self._requests.update((digest, encode(body)) for digest, body in (requests or {}).items())

    def trials(self, run_id: str) -> list[Trial]:
        with self._lock:
            held = self._trials.get(run_id, {})
            return [load(Trial, decode(held[place]), trusted=True) for place in sorted(held)]

    def add_request(self, digest: str, body: JSON) -> None:
        with self._lock:
            self._requests.setdefault(digest, encode(body))

    def request(self, digest: str) -> JSON:
        with self._lock:
            found = self._requests.get(digest)
            if found is None:
                raise NotFoundError(f"no request {digest!r} is stored")
            return decode(found)

    def _get(self, name: str) -> _Held:
        found = self._held.get(name)
        if found is None:
            raise suite_rows.missing(name, sorted(self._held))
        return found
