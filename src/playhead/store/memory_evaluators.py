"""Registered evaluators in memory."""

import threading

from playhead.core.codec import decode, dump, encode, load
from playhead.core.evaluation import Evaluator
from playhead.store.evaluator_versions import chosen, next_version


class MemoryEvaluators:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, list[bytes]] = {}

    def register(self, evaluator: Evaluator) -> Evaluator:
        with self._lock:
            known = self.versions(evaluator.name)
            stored = next_version(known, evaluator)
            if not known or stored.version > known[-1].version:
                self._held.setdefault(evaluator.name, []).append(encode(dump(stored)))
            return stored

    def find(self, name: str, version: int | None = None) -> Evaluator:
        with self._lock:
            return chosen(name, version, self.versions(name), self.names())

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._held)

    def versions(self, name: str) -> list[Evaluator]:
        with self._lock:
            return [load(Evaluator, decode(text), trusted=True) for text in self._held.get(name, ())]
