"""Suites, injected failures and the gate from Python, with functions for models."""

import json
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.gate.criteria import Criteria

TOOLS = {
    "get_order": {
        "name": "get_order",
        "description": "Gives one order by its number",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    }
}
CASE = {
    "id": "order-1",
    "tools": ["get_order"],
    "history": [
        {"role": "user", "content": "Where is order 9?"},
        {"role": "assistant", "calls": [{"id": "h1", "tool": "get_order", "arguments": {"order_id": "9"}}]},
        {"role": "tool", "call_id": "h1", "outcome": {"kind": "result_error", "value": "not found"}},
        {"role": "user", "content": "Where is order 4821?"},
    ],
    "recorded": [
        {
            "calls": [{"id": "c1", "tool": "get_order", "arguments": {"order_id": "4821"}}],
            "outcomes": {"c1": {"kind": "value", "value": {"place": "Rome"}}},
        }
    ],
    "answer": "It is in Rome.",
    "facts": [{"name": "place", "as": "text", "value": "Rome"}],
    "label": {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "4821"}}]},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_URL", "sqlite:///store.db")
    made = tmp_path / "orders"
    made.mkdir()
    head = {"format": "playhead.suite/1", "name": "orders", "effects": {"get_order": "read"}}
    (made / "suite.json").write_text(json.dumps(head))
    (made / "tools.json").write_text(json.dumps(TOOLS))
    (made / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    return made


def careful(ask: Any) -> dict[str, Any]:
    """Looks the order up, and says so when that failed."""
    last = ask.messages[-1]
    if last["role"] != "tool":
        call = {"type": "tool_call", "id": "x", "name": "get_order", "arguments": {"order_id": "4821"}}
        return {"role": "assistant", "parts": [call]}
    content = last["parts"][0]["content"]
    place = content.get("place") if isinstance(content, dict) else None
    text = f"It is in {place}." if place else "I could not look it up."
    return {"role": "assistant", "parts": [{"type": "text", "text": text}]}


def test_a_suite_is_run_with_a_function_and_judged_against_itself(folder: Path):
    run = playhead.suite(folder).run(model=careful, runs=3)
    assert [(t.selection, t.arguments, t.outcome) for t in run.cases[0].trials] == [(True, True, True)] * 3
    report = playhead.judge_release(run, run, Criteria(recovery_floor=0.5))
    assert report.verdict == "inconclusive"  # one case shows nothing
    assert "recovery" in str(report.reasons)


def test_failures_are_injected_into_a_suite_that_is_named_or_open(folder: Path):
    told = playhead.inject(folder, model=careful)
    assert told.rate == 1.0
    assert {one.kind for one in told.results} == {
        "validation_error", "not_found", "rate_limit", "timeout", "empty", "malformed",
    }  # fmt: skip
    again = playhead.inject(playhead.suite(folder), model=careful, kinds=("timeout",), runs=2, add_exit=True)
    assert len(again.results) == 2
    assert again.summary.run != told.summary.run


def test_the_checklist_tells_what_is_recorded_and_declared(folder: Path):
    told = playhead.inject(folder, model=careful)
    answers = {row["check"]: (row["answer"], row["evidence"]) for row in told.report["checklist"]}
    assert answers["error texts prescriptive"] == ("no", ["opaque: not found"])
    assert answers["bounded steps"] == ("yes", [])
    assert answers["a structured exit exists and is used"] == ("no", ["no tool is declared give_up"])
    assert "an approval gate" not in answers  # it only reads
    head = json.loads((folder / "suite.json").read_text())
    head["effects"] = {"get_order": {"class": "write", "idempotency_key": "/order_id"}, "stop": {"give_up": True}}
    (folder / "suite.json").write_text(json.dumps(head))
    changed = playhead.inject(folder, model=careful, kinds=("timeout",)).report["checklist"]
    answers = {row["check"]: (row["answer"], row["evidence"]) for row in changed}
    assert answers["an idempotency key, or idempotent"] == ("yes", [])
    assert answers["an approval gate"] == ("no", ["declared write"])
    assert answers["a structured exit exists and is used"] == ("untested", ["stop was not called"])


def test_what_cannot_be_injected_is_said(folder: Path):
    with pytest.raises(playhead.PlayheadError, match="declares no guards"):
        playhead.inject(folder, model=careful, guards=True)
    with pytest.raises(playhead.PlayheadError, match="no case 'x'"):
        playhead.inject(folder, model=careful, cases=["x"])
