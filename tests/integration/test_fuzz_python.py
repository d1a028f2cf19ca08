"""`playhead.fuzz` with functions for models: requests of users, findings that come and go, runs that are stopped."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.protocol import parts
from playhead.core.suites.drive import ModelAsk
from playhead.engine.fuzz import session as fuzz_session
from playhead.engine.fuzz.runs import set_of
from playhead.engine.suites.client import FunctionAccess, SuiteClient
from playhead.engine.suites.run import Limits
from playhead.errors import UsageError

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "reason": {"type": "string", "enum": ["damaged", "late"]}},
    "required": ["order_id", "reason"],
}
CASE = {
    "id": "c", "tools": ["refund"],
    "history": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refund W4821, damaged"}],
    "recorded": [{"calls": [{"id": "a", "tool": "refund", "arguments": {"order_id": "W4821", "reason": "damaged"}}],
                  "outcomes": {"a": {"kind": "value", "value": {"refund_id": "R-77"}}}}],
    "answer": "Done.",
}  # fmt: skip


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteClient:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".playhead").mkdir()
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "suite.json").write_text(json.dumps({"format": "playhead.suite/1", "name": "desk"}))
    (folder / "tools.json").write_text(json.dumps({"refund": {"name": "refund", "parameters": SCHEMA}}))
    (folder / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    (tmp_path / "staging.py").write_text(
        "def tools():\n    return {'refund': refund}\n\n\ndef refund(order_id, reason):\n"
        "    if order_id != 'W4821':\n        raise ValueError('no such order')\n    return 1\n"
    )
    return playhead.suite(folder)


def said(text: str = "", **arguments: Any) -> Any:
    made = parts.texts([text]) if text else [parts.call("refund", arguments, "x")]
    return parts.message("assistant", made)


def test_requests_that_a_model_writes_are_tried_from_the_user_on(suite: SuiteClient):
    def writer(ask: ModelAsk) -> Any:
        assert not ask.tools
        return said('"My parcel came broken, money back please"')

    def follower(ask: ModelAsk) -> Any:
        """Takes the user's own word where there is one."""
        words = ask.messages[-1]["parts"][0].get("text", "")
        if ask.step == 0 and "broken" in words:
            return said(order_id="W4821", reason="broken")
        return said("What is your order number?")

    families: Any = ("constraint",)
    found = playhead.fuzz(suite, model=follower, queries=writer, random=True, families=families, per_tool=2)
    rows = {row["writer"]: row for row in found.report["queries"]}
    assert (rows["writer"]["n"], rows["writer"]["of"], rows["writer"]["outcomes"]) == (2, 2, {"invalid": 2})
    assert (rows["random"]["n"], rows["random"]["of"]) == (0, 2)
    queries = [case for case in found.set.cases if case.writer == "writer"]
    assert {case.query for case in queries} == {"My parcel came broken, money back please"}
    invalid = [one for one in found.findings if one.outcome == "invalid"]
    assert invalid
    assert all(one.confirmed for one in invalid)


def test_valid_calls_that_a_request_leads_to_are_tried_on_the_tool(suite: SuiteClient):
    def writer(ask: ModelAsk) -> Any:
        return said("Refund my order W9999, it came late")

    def follower(ask: ModelAsk) -> Any:
        return said(order_id="W9999", reason="late") if ask.step == 0 else said("Done.")

    families: Any = ("type_confusion",)
    found = playhead.fuzz(
        suite, model=follower, queries=writer, families=families, per_tool=1, direct="staging:tools", seconds=60
    )
    (row,) = found.report["queries"]
    assert (row["n"], row["outcomes"]) == (1, {"failed": 1})


@pytest.mark.parametrize(("bad", "confirmed"), [(3, True), (2, False)])
def test_a_finding_of_a_model_is_confirmed_by_three_of_five_trials(suite: SuiteClient, bad: int, confirmed: bool):
    trials = itertools.count()

    def wavering(ask: ModelAsk) -> Any:
        return said("Okay." if next(trials) < bad else "I cannot refund it, that reason is not valid.")

    families: Any = ("constraint",)
    found = playhead.fuzz(
        suite, model=wavering, families=families, per_tool=1, limits=Limits(concurrency=1), cases=["c"]
    )
    (finding,) = found.findings
    assert (finding.outcome, finding.seen, finding.runs, finding.confirmed) == ("unclear_end", bad, 5, confirmed)
    assert found.report["false_discovery_rate"] == (0 if confirmed else 1)
    assert found.report["fed_back"]["trials"] == 1  # the further trials confirm, and count in no rate


def test_a_run_that_was_stopped_goes_on_with_its_stored_set(suite: SuiteClient):
    def tell(ask: ModelAsk) -> Any:
        return said("I cannot do it.")

    families: Any = ("type_confusion",)
    first = playhead.fuzz(suite, model=tell, families=families, limits=Limits(max_minutes=0))
    assert (first.report["run"]["status"], first.report["trials"]) == ("stopped", 0)
    run = fuzz_session.going_on(suite.store, first.runs[0])
    assert set_of(suite.store, run) == first.set
    contents = suite.contents
    done = fuzz_session.fuzz_with_model(
        suite.store, contents, contents.cases, run, lambda staged: FunctionAccess("tell", tell)
    )
    report = fuzz_session.report(suite.store, contents, contents.cases, run=done)
    assert (report["run"]["status"], report["trials"]) == ("completed", len(first.set.cases))


def test_what_cannot_be_tried_is_named(suite: SuiteClient):
    with pytest.raises(UsageError, match="nothing was named"):
        playhead.fuzz(suite)
    with pytest.raises(UsageError, match="no suite"):
        playhead.fuzz(direct="staging:tools")
    with pytest.raises(UsageError, match="has none of the tools"):
        playhead.fuzz(tools=[{"name": "other", "parameters": SCHEMA}], direct="staging:tools")
    with pytest.raises(UsageError, match="nothing can be fed back"):
        playhead.fuzz(tools=[{"name": "refund", "parameters": SCHEMA}], model=lambda ask: said("no"))
