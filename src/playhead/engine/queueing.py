"""From queue items to what the store is asked to do, in order."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playhead.core.values import Node, Session
from playhead.engine.active import ActiveSession
from playhead.engine.delivery import Append, Begin, Delivery, Finish, Numbered
from playhead.engine.encoding import Encoder, SessionTotals
from playhead.engine.model_step import ModelStep
from playhead.engine.steps import Step, ToolStep
from playhead.engine.track import Slot

_POLITE_NS = 100_000
_PAUSE = 0.00005
_BATCH, _BATCH_POLITE = 256, 4  # nodes in one append; a small one holds the interpreter for a shorter time
_OPEN_AFTER_NS = 1_000_000_000


class Flush:
    """A queue item that says when everything before it is stored."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.stored = False


@dataclass(slots=True)
class _Book:
    """What the writer knows of one open session."""

    active: ActiveSession
    opened: Session
    totals: SessionTotals = field(default_factory=SessionTotals)
    open: dict[int, Step] = field(default_factory=dict[int, Step])
    shown: set[int] = field(default_factory=set[int])  # open steps that are stored as open already
    overlaps: dict[tuple[tuple[str, ...], str | None, str], list[ToolStep]] = field(
        default_factory=dict[tuple[tuple[str, ...], str | None, str], list[ToolStep]]
    )
    requests: dict[str, int] = field(default_factory=dict[str, int])


class Pipeline:
    """Encodes queue items. Its caller holds the recorder's lock."""

    def __init__(self, encoder: Encoder, delivery: Delivery, count: Callable[..., None]) -> None:
        self._encoder = encoder
        self._delivery = delivery
        self._count = count
        self._books: dict[str, _Book] = {}
        self._ready: list[Numbered] = []
        self._number = 0
        self._batch = _BATCH

    @property
    def busy(self) -> bool:
        """Whether something has to be looked at again although the queue is empty."""
        return self._delivery.spooled or any(b.open.keys() - b.shown for b in self._books.values())

    def encode(self, items: list[Any], *, polite: bool = False) -> list[Numbered]:
        """The operations for queue items. ``polite``: lets other threads run every now and then."""
        since = time.perf_counter_ns()
        self._batch = _BATCH_POLITE if polite else _BATCH
        for item in items:
            try:
                self._handle(item)
            except Exception as error:  # noqa: BLE001 - one broken item must not keep the others back
                self._count("errors", error)
            if polite and time.perf_counter_ns() - since > _POLITE_NS:
                time.sleep(_PAUSE)
                since = time.perf_counter_ns()
        ready, self._ready = self._ready, []
        return ready

    def tick(self, now: int) -> list[Numbered]:
        """Operations that time brings: steps that have been open for long are shown as open."""
        for book in self._books.values():
            self._encoder.use(book.active)
            late = [s for s in book.open.values() if s.seq not in book.shown and now - s.started_at > _OPEN_AFTER_NS]
            self._show(book, late)
        ready, self._ready = self._ready, []
        return ready

    def _handle(self, item: Any) -> None:
        if isinstance(item, Step):
            self._step(item)
        elif isinstance(item, Slot):
            _ = item.identity  # counts the occurrence, in the order in which models asked
        elif isinstance(item, ActiveSession):
            self._session(item)
        elif isinstance(item, Flush):
            for book in self._books.values():
                self._encoder.use(book.active)
                self._show(book, [s for s in book.open.values() if s.seq not in book.shown])
            self._add(item)

    def _session(self, active: ActiveSession) -> None:
        book = self._books.get(active.session_id)
        self._encoder.use(active)
        if book is None:
            for name, value in active.recorder.seen.items():
                active.redactor.learn(name, value)
            opened = self._encoder.opening(active)
            book = self._books[active.session_id] = _Book(active, opened)
            self._add(Begin(opened, active.version))
            return
        if active.ended_at is None:
            return
        for step in list(book.open.values()):
            self._emit(book, step, closing=active.ended_at)
        self._add(Finish(self._encoder.closing(book.opened, active, book.totals)))
        del self._books[active.session_id]

    def _step(self, step: Step) -> None:
        book = self._books.get(step.active.session_id)
        if book is None:
            self._count("late")
            return
        self._encoder.use(book.active)
        if not step.began:
            step.began = True
            book.open[step.seq] = step
            self._count_step(book, step)
        if step.ended_at is not None and not step.written:
            self._emit(book, step)

    def _count_step(self, book: _Book, step: Step) -> None:
        if isinstance(step, ToolStep):
            _ = step.identity
            if step.slot is None:
                self._find_overlaps(book, step)
        elif isinstance(step, ModelStep) and step.key.key is not None:
            step.occurrence = book.requests[step.key.key] = book.requests.get(step.key.key, 0) + 1

    def _find_overlaps(self, book: _Book, step: ToolStep) -> None:
        """Equal calls that ran at one time in several threads: nothing tells their order. In one thread it is that of
        their starts."""
        own = step.identity
        others = book.overlaps.setdefault((own.path, own.key, step.tool), [])
        others[:] = [o for o in others if o.ended_at is None or o.ended_at > step.started_at]
        for other in others:
            if other.thread != step.thread:
                again = other.written and not other.overlapped
                step.overlapped = other.overlapped = True
                if again:
                    self._append(book, self._encoder.node(other, book.totals))
        others.append(step)

    def _emit(self, book: _Book, step: Step, *, closing: int | None = None) -> None:
        step.written = True
        book.open.pop(step.seq, None)
        book.shown.discard(step.seq)
        try:
            node = self._encoder.node(step, book.totals, closing=closing)
        except Exception as error:  # noqa: BLE001 - what cannot be encoded is recorded as that
            self._count("errors", error)
            node = self._encoder.bare_node(step, error)
        self._count("nodes")
        self._append(book, node)

    def _show(self, book: _Book, steps: list[Step]) -> None:
        for step in steps:
            book.shown.add(step.seq)
            try:
                self._append(book, self._encoder.node(step, book.totals))
            except Exception as error:  # noqa: BLE001 - it is tried again when the step ends
                self._count("errors", error)

    def _append(self, book: _Book, node: Node) -> None:
        last = self._ready[-1].what if self._ready else None
        if isinstance(last, Append) and last.session_id == book.opened.id and len(last.nodes) < self._batch:
            last.nodes.append(node)
        else:
            self._add(Append(book.opened.id, [node]))

    def _add(self, what: Any) -> None:
        self._number += 1
        self._ready.append(Numbered(self._number, what))
