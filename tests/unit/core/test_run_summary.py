"""The committed form of a run: what goes in comes out, and what is wrong is named with its place."""

import json

import pytest

from playhead.core.suites.summary import (
    FORMAT,
    CaseResult,
    IntentInfo,
    LabelQuality,
    RecoveryResult,
    RunSummary,
    SchemaMismatch,
    TrialResult,
    ValueMismatch,
    from_text,
    to_text,
)
from playhead.errors import FormatError

TRIAL = TrialResult(
    run=0,
    selection=True,
    schema=False,
    arguments=False,
    schema_errors=(SchemaMismatch(bin="type", tool="refund", pointer="/amount", coercible=True),),
    value_errors=(ValueMismatch(reason="wrong_value", tool="refund", pointer="/id", expected=1, seen=2),),
    response={"text": "\u202e<script>", "calls": []},
)
SUMMARY = RunSummary(
    run="0197",
    suite="shop",
    suite_digest="abc",
    model="m",
    cases=(CaseResult(id="a", intent="refund", trials=(TRIAL,)), CaseResult(id="b", intent="lookup")),
    recovery=(RecoveryResult(case="a", kind="timeout", outcome="loop"),),
    intents=(IntentInfo(name="refund", traffic=0.31),),
    labels=LabelQuality(residual_upper=0.09),
)


def test_a_summary_comes_back_as_it_was_written() -> None:
    assert from_text(to_text(SUMMARY, responses=True)) == SUMMARY


def test_what_the_model_said_stays_out_unless_asked_for() -> None:
    text = to_text(SUMMARY)
    assert "script" not in text
    assert from_text(text).cases[0].trials[0].response is None


def test_each_case_is_one_line_so_that_a_difference_reads_as_one() -> None:
    lines = to_text(SUMMARY).splitlines()
    assert [json.loads(line.strip(" ,]"))["id"] for line in lines if '"id"' in line] == ["a", "b"]


def test_a_run_without_cases_is_json_too() -> None:
    bare = RunSummary(run="r", suite="s", suite_digest="d", model="m")
    assert from_text(to_text(bare)) == bare


@pytest.mark.parametrize(
    ("old", "new", "message", "at"),
    [
        ('"kind": "timeout"', '"sort": "timeout"', "unknown member", "/recovery/0/sort"),
        ('"run": 0', '"run": "x"', "valid integer", "/cases/0/trials/0/run"),
        ('"id": "b"', '"id": "a"', "two cases have the id 'a'", "/cases/1/id"),
        (FORMAT, "playhead.run_summary/2", "its format is 'playhead.run_summary/2'", "/format"),
        ('"cases"', '"cases', "base.json is not JSON", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old: str, new: str, message: str, at: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        from_text(to_text(SUMMARY).replace(old, new), name="base.json")
    assert "base.json" in caught.value.message
    assert caught.value.details["at"] == at


@pytest.mark.parametrize(
    ("parts", "passed"),
    [
        ({"selection": True, "arguments": True}, True),
        ({"selection": True, "arguments": None, "outcome": False}, False),
        ({}, None),
        ({"status": "error", "selection": True}, None),
    ],
)
def test_a_trial_passes_when_all_that_applies_is_true(parts: dict[str, object], passed: bool | None) -> None:
    assert TrialResult(run=0, **parts).passed is passed  # type: ignore[arg-type]


def test_errors_are_counted_over_trials_and_injections() -> None:
    broken = CaseResult(id="a", intent="i", trials=(TrialResult(run=0, status="error"), TrialResult(run=1)))
    summary = RunSummary(
        run="r", suite="s", suite_digest="d", model="m", cases=(broken,),
        recovery=(RecoveryResult(case="a", kind="empty", status="error"),),
    )  # fmt: skip
    assert (summary.trials, summary.errors) == (3, 2)
