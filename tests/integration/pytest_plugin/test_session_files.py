"""Recorded sessions as tests: a file, the agent of today, and a difference that can be read."""

import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.core.redaction.redact import Redactor
from playhead.engine.exports import export_bundle, export_jsonl
from playhead.engine.project import use_recorder
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

from .conftest import Suite

AGENTS = """
import os
import playhead

@playhead.tool
def find(order_id):
    assert "RECORDING" in os.environ
    return {"id": order_id, "total": 12}

@playhead.agent("refunder")
def refund(order_id):
    found = find(order_id + os.environ.get("SUFFIX", ""))
    return f"{os.environ.get('GREETING', 'hello')} {found['total']}"
"""


@pytest.fixture
def sessions(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite with a file of lines, a bundle, and a file of two sessions."""
    (suite.path / "refunds.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(suite.path)
    monkeypatch.setenv("RECORDING", "1")
    store = MemoryStore()
    recorder = Recorder(store, redactor=Redactor({}))
    before = use_recorder(recorder)
    try:
        import refunds  # type: ignore[import-not-found]

        agents: Any = refunds
        agents.refund("4821")
        agents.refund("4822")
        recorder.close()
    finally:
        use_recorder(before)
        sys.modules.pop("refunds")
    ids = [found.id for found in store.sessions.find(SessionQuery(oldest_first=True), limit=10).items]
    export_jsonl(store, ids[:1], suite.path / "one.jsonl")
    export_jsonl(store, ids, suite.path / "two.jsonl")
    export_bundle(store, ids[0], suite.path / "one.playhead")
    (suite.path / "second").write_text(ids[1])
    monkeypatch.delenv("RECORDING")
    return suite


def write(suite: Suite, body: str) -> None:
    suite.write(f"import refunds\ndef test_a(playhead_replay):\n    {body}\n")


def test_an_agent_that_does_as_recorded_passes_and_no_tool_runs(sessions: Suite) -> None:
    write(sessions, "assert playhead_replay('one.jsonl', refunds.refund).output == 'hello 12'")
    sessions.run().assert_outcomes(passed=1)
    write(sessions, "playhead_replay('one.jsonl', 'refunds:refund')")
    sessions.run().assert_outcomes(passed=1)


def test_a_bundle_names_the_agent(sessions: Suite) -> None:
    write(sessions, "playhead_replay('one.playhead')")
    sessions.run().assert_outcomes(passed=1)


def test_a_difference_is_shown_as_one(sessions: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    write(sessions, "playhead_replay('one.jsonl', refunds.refund)")
    monkeypatch.setenv("GREETING", "bye")
    result = sessions.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Failed: one.jsonl: the replay is diverged*", "*output: the final output differs*", "*-hello 12", "*+bye 12"]
    )
    result.stdout.no_fnmatch_line("*session_files.py*")


def test_a_call_that_the_recording_lacks_is_told_with_the_nearest(
    sessions: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sessions, "playhead_replay('one.jsonl', refunds.refund)")
    monkeypatch.setenv("SUFFIX", "-0")
    result = sessions.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*one.jsonl: the replay failed: *find*", "*4821-0*"])


def test_a_change_is_judged_by_the_test_itself(sessions: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    write(sessions, "assert playhead_replay('one.jsonl', refunds.refund, check=False).output == 'bye 12'")
    monkeypatch.setenv("GREETING", "bye")
    sessions.run().assert_outcomes(passed=1)


def test_of_several_sessions_one_is_named(sessions: Suite) -> None:
    second = (sessions.path / "second").read_text()
    write(sessions, f"playhead_replay('two.jsonl', refunds.refund, session='{second}')")
    sessions.run().assert_outcomes(passed=1)
    write(sessions, "playhead_replay('two.jsonl', refunds.refund)")
    sessions.run().stdout.fnmatch_lines(["*two.jsonl holds 2 sessions*"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("playhead_replay('none.jsonl', refunds.refund)", "*there is no 'none.jsonl'*"),
        ("playhead_replay('one.jsonl')", "*the file names no entry point*"),
        ("playhead_replay('refunds.py', refunds.refund)", "*refunds.py cannot be read as a session*"),
        ("playhead_replay('one.jsonl', refunds.refund, tool_policy={'default': {'type': 'x'}})", "*one.jsonl: *type*"),
    ],
)
def test_what_cannot_be_replayed_says_why(sessions: Suite, call: str, said: str) -> None:
    write(sessions, call)
    result = sessions.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


def test_a_session_in_an_asynchronous_test(sessions: Suite) -> None:
    sessions.write(
        "import refunds\n@pytest.mark.anyio\nasync def test_a(playhead_replay):\n"
        "    playhead_replay('one.jsonl', refunds.refund)\n"
        "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    sessions.run("-p", "anyio").assert_outcomes(passed=1)


def test_nothing_is_written(sessions: Suite) -> None:
    before = sorted(path.name for path in Path(sessions.path).iterdir())
    write(sessions, "playhead_replay('one.jsonl', refunds.refund)")
    sessions.run().assert_outcomes(passed=1)
    after = sorted(path.name for path in Path(sessions.path).iterdir())
    assert [name for name in after if name not in before] in (["test_orders.py"], ["__pycache__", "test_orders.py"])
