"""Operations to the store, or to the spool while the store does not take them.

Once something is spooled everything after it is spooled too, until the spool has been sent: the order of a session's
operations never changes. Sending is tried again after a while, and at every flush.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from playhead.core.codec import dump
from playhead.core.values import JSON, AgentVersion, Node, Session
from playhead.engine.spool import Spool
from playhead.store.ports import Store

log = logging.getLogger("playhead")

_RETRY_FIRST, _RETRY_MOST = 0.5, 30.0


class Register(NamedTuple):
    version: AgentVersion


class Begin(NamedTuple):
    session: Session
    version: Any  # something with `capture(agent) -> AgentVersion`, or None


class Append(NamedTuple):
    session_id: str
    nodes: list[Node]


class Finish(NamedTuple):
    session: Session


Operation: TypeAlias = Register | Begin | Append | Finish


class Numbered(NamedTuple):
    """Something to do, and its place in the order."""

    number: int
    what: Any  # an Operation, or a Flush of the queue


class Delivery:
    """Used by the writer thread; `spill` also by others, under the recorder's lock."""

    def __init__(self, store: Store, folder: Path | None, label: str, name: str, count: Callable[..., None]) -> None:
        self._store = store
        self._spool = Spool(folder, label, name)
        self._count = count
        self._lost = False  # since the last flush something was stored nowhere
        self._retry_at = 0.0
        self._pause = _RETRY_FIRST
        self._recovered = store.url.startswith("memory:")
        self._captured: dict[int, tuple[Any, AgentVersion | None]] = {}  # by the identity of what captures
        self._stored_ids: dict[str, str] = {}  # id of a captured version -> id of the equal stored one
        self._of_session: dict[str, str] = {}

    @property
    def spooled(self) -> bool:
        return self._spool.lines > 0

    def deliver(self, ready: Sequence[Numbered]) -> None:
        """Stores operations in order and answers flushes among them."""
        for number, what in ready:
            if isinstance(what, Operation):
                self._perform(number, what, self._store_or_keep)
            else:
                what.stored = self._send(now=True) and not self._lost
                self._lost = False
                what.done.set()
        if not ready and self.spooled:
            self._send(now=False)

    def spill(self, ready: Sequence[Numbered]) -> None:
        """Spools operations, past the store."""
        for number, what in ready:
            if isinstance(what, Operation):
                self._perform(number, what, self._keep)

    def _perform(self, number: int, operation: Operation, do: Callable[[int, Operation], None]) -> None:
        """Registers what a session needs, once, and puts the version's id into the session."""
        if isinstance(operation, Begin) and operation.version is not None:
            source, agent = operation.version, operation.session.agent
            version = source if isinstance(source, str) else self._capture(agent, source, number, do)
            if version is not None:
                self._of_session[operation.session.id] = version
        if isinstance(operation, Begin | Finish) and operation.session.id in self._of_session:
            captured = self._of_session[operation.session.id]
            version_id = self._stored_ids.get(captured, captured)
            operation = operation._replace(session=replace(operation.session, agent_version=version_id))
            if isinstance(operation, Finish):
                del self._of_session[operation.session.id]
        do(number, operation)

    def _capture(
        self, agent: str, source: Any, number: int, do: Callable[[int, Operation], None]
    ) -> str | None:  # fmt: skip
        known = self._captured.get(id(source))
        if known is None:
            version: AgentVersion | None = None
            try:
                version = source.capture(agent)
                assert version is not None
                do(number, Register(version))
            except Exception as error:  # noqa: BLE001 - a session without a version is better than none
                self._count("version", error)
            known = self._captured[id(source)] = (source, version)
        return known[1].id if known[1] is not None else None

    def _store_or_keep(self, number: int, operation: Operation) -> None:
        if not self._recovered:
            self._recovered = True
            self._spool.recover(self._store)
        if not self._send(now=False):
            self._keep(number, operation)
            return
        try:
            self._store_now(operation)
        except Exception as error:  # noqa: BLE001 - a full disk, a lock, or a fault of the store: the same for the agent
            self._count("store", error)
            self._wait_longer()
            self._keep(number, operation)

    def _store_now(self, operation: Operation) -> None:
        match operation:
            case Register(version):
                self._stored_ids[version.id] = self._store.agents.register(version).id
            case Begin(session):
                self._store.sessions.begin(session)
            case Append(session_id, nodes):
                self._store.sessions.append(session_id, nodes)
            case Finish(session):
                self._store.sessions.finish(session)

    def _keep(self, number: int, operation: Operation) -> None:
        record: dict[str, JSON]
        match operation:
            case Register(version):
                record = {"op": "register", "version": dump(version)}
            case Begin(session):
                record = {"op": "begin", "session": dump(session)}
            case Append(session_id, nodes):
                record = {"op": "append", "session_id": session_id, "nodes": [dump(node) for node in nodes]}
            case Finish(session):
                record = {"op": "finish", "session": dump(session)}
        try:
            self._spool.keep(number, record)
        except OSError as error:
            self._lost = True
            self._count("lost", error)

    def _send(self, *, now: bool) -> bool:
        """Whether nothing is left in the spool; tries to send it when it is time to."""
        if not self.spooled:
            return True
        if not now and time.monotonic() < self._retry_at:
            return False
        if self._spool.send(self._store):
            self._pause = _RETRY_FIRST
            return True
        self._wait_longer()
        return False

    def _wait_longer(self) -> None:
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _RETRY_MOST)

    def close(self) -> None:
        self._spool.close()

    def forget(self) -> None:
        self._spool.forget()
