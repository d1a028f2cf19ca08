"""The recorder under trouble: slow, failing and blocked stores, full queues, size limits, secrets."""

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from playhead.core.redaction.redact import Redactor
from playhead.core.values import NodeStatus, SessionStatus
from playhead.engine import seam
from playhead.engine.recorder import Recorder, close_all
from playhead.engine.seam import ModelRequest, ModelResult
from playhead.errors import StoreFullError
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

begin: Any = seam.session


class Trouble:
    """Stands before the sessions of a store: refuses, or waits, while told to."""

    def __init__(self, sessions: Any) -> None:
        self._sessions = sessions
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sessions, name)

    def _pass(self) -> None:
        self.tries += 1
        assert self.gate.wait(20)
        if self.error is not None:
            raise self.error

    def begin(self, *args: Any) -> None:
        self._pass()
        self._sessions.begin(*args)

    def append(self, *args: Any) -> None:
        self._pass()
        self._sessions.append(*args)

    def finish(self, *args: Any) -> None:
        self._pass()
        self._sessions.finish(*args)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.sessions = Trouble(made.sessions)  # type: ignore[assignment]
    return made


def run(recorder: Recorder, calls: int = 3, value: Any = "x") -> None:
    with begin("desk", recorder=recorder) as active:
        for number in range(calls):
            active.tool_call("search", arguments={"n": number}).returned(value)


def stored(store: MemoryStore) -> list[Any]:
    return [n for s in store.sessions.find(SessionQuery()).items for n in store.sessions.nodes(s.id)]


def test_a_failing_store_gives_one_warning_and_everything_is_stored_later(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    recorder = Recorder(store, spool=tmp_path)
    store.sessions.error = StoreFullError("no space left on the disk")  # type: ignore[attr-defined]
    run(recorder)
    assert not recorder.flush()
    assert stored(store) == []
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == [
        "playhead: cannot write to the store; the run goes on, and what it records goes to the spool file: "
        "no space left on the disk"
    ]
    (spool,) = tmp_path.rglob("*.jsonl")
    assert spool.stat().st_mode & 0o777 == 0o600
    store.sessions.error = None  # type: ignore[attr-defined]
    assert recorder.flush()
    (session,) = store.sessions.find(SessionQuery()).items
    assert session.status is SessionStatus.COMPLETED
    assert [n.outcome.value for n in stored(store)] == ["x"] * 3
    recorder.close()
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_fault_of_the_store_that_is_no_store_error_is_treated_alike(store: MemoryStore, tmp_path: Path):
    recorder = Recorder(store, spool=tmp_path)
    store.sessions.error = RuntimeError("bug")  # type: ignore[attr-defined]
    run(recorder)
    assert not recorder.flush()
    store.sessions.error = None  # type: ignore[attr-defined]
    assert recorder.flush()
    assert len(stored(store)) == 3
    recorder.close()


def test_a_blocked_store_delays_no_call_for_longer_than_allowed_and_loses_nothing(store: MemoryStore, tmp_path: Path):
    recorder = Recorder(store, spool=tmp_path, queue_size=20, wait=0.01)
    store.sessions.gate.clear()  # type: ignore[attr-defined]
    slowest = 0.0
    with begin("desk", recorder=recorder) as active:
        for number in range(300):
            began = time.perf_counter()
            active.tool_call("search", arguments={"n": number}).returned(number)
            slowest = max(slowest, time.perf_counter() - began)
    assert recorder.counters["spilled"] > 0
    assert slowest < 2, "a call waited for the store"
    store.sessions.gate.set()  # type: ignore[attr-defined]
    assert recorder.flush(20)
    assert sorted(n.outcome.value for n in stored(store)) == list(range(300))
    (session,) = store.sessions.find(SessionQuery()).items
    assert session.status is SessionStatus.COMPLETED
    recorder.close()


def test_without_any_place_to_write_the_run_goes_on_and_one_warning_says_so(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    recorder = Recorder(store, spool=blocked)
    store.sessions.error = StoreFullError("full")  # type: ignore[attr-defined]
    run(recorder)
    recorder.flush()
    assert recorder.counters["lost"] > 0
    assert len([r for r in caplog.records if "not recorded" in r.message]) == 1
    recorder.close()


def test_the_spool_of_a_dead_process_is_sent_by_the_next(store: MemoryStore, tmp_path: Path):
    first = Recorder(store, spool=tmp_path)
    store.sessions.error = StoreFullError("full")  # type: ignore[attr-defined]
    run(first)
    first.flush()
    first._delivery._spool._file.close()  # type: ignore[union-attr]  # what a kill leaves behind
    store.sessions.error = None  # type: ignore[attr-defined]
    store.url = "test:store"
    label = next(tmp_path.iterdir())
    second = Recorder(store, spool=tmp_path)
    label.rename(tmp_path / Path(second._delivery._spool._folders[0]).name)
    run(second)
    assert second.flush()
    assert len(stored(store)) == 6
    assert not list(tmp_path.rglob("*.jsonl"))
    second.close()
    first._delivery._spool._file = None
    first.close()


def test_large_values_are_stored_as_a_mark_with_size_and_digest():
    store = MemoryStore()
    recorder = Recorder(store, size_limit=1000)
    with begin("desk", recorder=recorder) as active:
        active.tool_call("big", arguments={}).returned("y" * 5000)
        active.tool_call("small", arguments={}).returned("y" * 900)
        message = {"role": "tool", "parts": [{"type": "tool_result", "id": "1", "name": "big", "content": "y" * 5000}]}
        step = active.model_call("m", request=ModelRequest(messages=[message]))
        step.observe(ModelResult(message=None))
    recorder.close()
    big, small, model = stored(store)
    assert big.outcome.value is None
    assert (big.outcome.truncated.bytes, len(big.outcome.truncated.sha256)) == (5002, 64)
    assert small.outcome.value == "y" * 900
    part = model.inputs["messages"][0]["parts"][0]
    assert (part["content"], part["truncated"]["bytes"] > 5000) == (None, True)


def test_secrets_are_out_of_everything_that_is_written_the_spool_included(store: MemoryStore, tmp_path: Path):
    recorder = Recorder(
        store, spool=tmp_path, redactor=Redactor({"STRIPE_KEY": "sk_live_aaaaaaaa"}), seen={"DB": "hunter2-hunter2"}
    )
    store.sessions.error = StoreFullError("full")  # type: ignore[attr-defined]
    secrets = "sk_live_aaaaaaaa and hunter2-hunter2"
    scope = begin("desk", inputs={"prompt": secrets}, recorder=recorder)
    active = scope.open()
    assert active is not None
    active.tool_call("search", arguments={"q": secrets}).returned({"out": secrets})
    active.tool_call("search", arguments={"q": 1}).fail(ValueError(secrets))
    message = {"role": "user", "parts": [{"type": "text", "text": secrets}]}
    step = active.model_call("m", request=ModelRequest(messages=[message]))
    step.note(header=secrets)
    step.observe(ModelResult(message=message))
    scope.close(RuntimeError(secrets))
    recorder.flush()
    (spool,) = tmp_path.rglob("*.jsonl")
    text = spool.read_text()
    assert "sk_live" not in text
    assert "hunter2" not in text
    assert "[REDACTED:STRIPE_KEY]" in text
    store.sessions.error = None  # type: ignore[attr-defined]
    recorder.close()


def test_a_rotated_configured_secret_leaves_the_key_as_it_was():
    keys: list[str] = []
    for value in ("sk_live_aaaaaaaa", "sk_live_bbbbbbbb"):
        store = MemoryStore()
        recorder = Recorder(store, redactor=Redactor({"STRIPE_KEY": value}))
        with begin("desk", recorder=recorder) as active:
            active.tool_call("search", arguments={"token": value}).returned(1)
        recorder.close()
        keys.append(stored(store)[0].call.key)
    assert keys[0] == keys[1]


def test_close_writes_everything_and_may_be_called_twice():
    store = MemoryStore()
    recorder = Recorder(store)
    run(recorder)
    assert recorder.close()
    assert recorder.close()
    assert len(stored(store)) == 3


def test_at_the_end_of_the_process_open_sessions_are_closed_as_abandoned():
    store = MemoryStore()
    recorder = Recorder(store)
    scope = begin("desk", recorder=recorder)
    active = scope.open()
    assert active is not None
    active.tool_call("search", arguments={})
    close_all()
    (session,) = store.sessions.find(SessionQuery()).items
    assert session.status is SessionStatus.ABANDONED
    assert stored(store)[0].status is NodeStatus.CANCELLED


def test_where_no_thread_can_be_started_the_one_that_closes_writes(monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    store = MemoryStore()
    recorder = Recorder(store)
    monkeypatch.setattr("threading.Thread.start", refuse)
    run(recorder, 1)
    assert recorder.flush()
    assert len(stored(store)) == 1
    run(recorder, 1)
    assert recorder.close()
    assert len(stored(store)) == 2


def test_an_idle_recorder_wakes_up_again(recorder: Recorder, recorded: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("playhead.engine.recorder._LINGER", 1)
    run(recorder, 1)
    assert recorder.flush()
    deadline = time.monotonic() + 5
    while recorder._awake and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not recorder._awake
    run(recorder, 1)
    assert recorder.flush()
    assert len(stored(recorder.store)) == 2  # type: ignore[arg-type]


def test_an_encoding_error_costs_one_node_its_content_and_nothing_else(
    recorder: Recorder, recorded: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    from playhead.engine.encoding import Encoder

    original = Encoder.node

    def node(self: Any, step: Any, *args: Any, **kwargs: Any) -> Any:
        if step.name == "bad":
            raise RuntimeError("bug")
        return original(self, step, *args, **kwargs)

    monkeypatch.setattr(Encoder, "node", node)
    with begin("desk", recorder=recorder) as active:
        active.tool_call("bad", arguments={}).returned(1)
        active.tool_call("good", arguments={}).returned(2)
    bad, good = recorded.nodes()
    assert bad.attributes["not_recorded"] == "RuntimeError: bug"
    assert good.outcome.value == 2
    assert len([r for r in caplog.records if "bug" in r.message]) == 1
