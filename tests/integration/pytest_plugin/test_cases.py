"""Tests that answer cases of a suite: scored as the suite's runs are, and judged by a rate."""

import json
import math
from typing import Any

import pytest

from playhead.core.suites.drive import ModelSaid
from playhead.core.suites.scoring import Answer, Emitted
from playhead.errors import UsageError
from playhead.pytest_plugin.cases import said_of
from playhead.pytest_plugin.rates import Rate
from playhead.testing.marks import case

from .conftest import Suite

CALL = '[{"tool": "issue_refund", "arguments": {"order_id": "4821"}}]'


def tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    }


CASES: list[dict[str, Any]] = [
    {
        "id": "refund-4821", "intent": "refund", "tools": ["get_order", "issue_refund"],
        "history": [{"role": "user", "content": "Order 4821 arrived damaged, refund it please."}],
        "recorded": [{"calls": [{"id": "c2", "tool": "issue_refund", "arguments": {"order_id": "4821"}}],
                      "outcomes": {"c2": {"kind": "value", "value": {"refund_id": "R-77"}}}}],
        "facts": [{"name": "refund", "as": "id", "value": "R-77"}],
        "label": {"kind": "call", "calls": [{"tool": "issue_refund", "arguments": {"order_id": "4821"}}]},
    },
    {"id": "hello", "intent": "chat", "history": [{"role": "user", "content": "Hi!"}], "tools": ["get_order"],
     "label": {"kind": "no_tool"}},
    {"id": "gone", "status": "retired", "history": [{"role": "user", "content": "Hi!"}], "tools": [],
     "label": {"kind": "no_tool"}},
]  # fmt: skip


@pytest.fixture
def desk(suite: Suite) -> Suite:
    folder = suite.path / "desk"
    folder.mkdir()
    head = {"format": "playhead.suite/1", "name": "desk", "effects": {"issue_refund": {"class": "write"}},
            "defaults": {"runs": 2}}  # fmt: skip
    (folder / "suite.json").write_text(json.dumps(head))
    (folder / "tools.json").write_text(json.dumps([tool("get_order"), tool("issue_refund")]))
    (folder / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CASES))
    return suite


def test_a_case_is_answered_as_often_as_the_test_says_and_scored(desk: Suite) -> None:
    desk.write(
        "asked = []\n@playhead.case('refund-4821', runs=3)\ndef test_refund(playhead_case):\n"
        "    last = playhead_case.messages[-1]['role']\n    asked.append((playhead_case.run, last))\n"
        f"    return 'Refund R-77 is on its way.' if last == 'tool' else {CALL}\n"
        "def test_asked():\n    assert asked == [(n, role) for n in range(3) for role in ('user', 'tool')]\n"
    )
    result = desk.run("--playhead-suite=desk", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_refund[[]refund-4821] PASSED*", "3 of 3 trials of 1 case passed: *"])


def test_a_trial_that_fails_says_what_was_wrong(desk: Suite) -> None:
    desk.write(
        "@playhead.case('refund-4821')\ndef test_refund(playhead_case):\n"
        "    calls = [{'tool': 'issue_refund', 'arguments': {'order_id': 'X' if playhead_case.run else '4821'}}]\n"
        "    return {'calls': calls, 'final': 'Refund R-77.' if playhead_case.run else 'Done.'}\n"
    )
    result = desk.run("--playhead-suite=desk", "--playhead-report=r.json")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "case refund-4821: 2 of 2 trials failed",
            "trial 1: outcome: *missing: refund*",
            "trial 2: arguments: issue_refund: /order_id is 'X', expected '4821'",
            "0 of 2 trials of 1 case passed*",
            "case refund-4821: 2 failed",
        ]
    )
    found = json.loads((desk.path / "r.json").read_text())["cases"]
    assert [(trial["case"], trial["n"], trial["passed"]) for trial in found["trials"]] == [
        ("refund-4821", 0, False), ("refund-4821", 1, False),
    ]  # fmt: skip


ALL = """
@playhead.case(runs=RUNS)
async def test_all(playhead_case):
    if playhead_case.id == "hello":
        return "Hello!" if playhead_case.run != FAILS else [{"tool": "get_order", "arguments": {"order_id": "1"}}]
    return {"calls": [{"tool": "issue_refund", "arguments": {"order_id": "4821"}}], "final": "R-77"}
"""


def test_a_rate_is_a_guarantee_unless_it_is_to_be_taken_literally(desk: Suite) -> None:
    desk.write(ALL.replace("RUNS", "20").replace("FAILS", "7"))
    desk.run("--playhead-suite=desk").assert_outcomes(passed=1, failed=1)
    result = desk.run("--playhead-suite=desk", "--playhead-min-rate=0.9")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["39 of 40 trials of 2 cases passed: at least 88.7% *; wanted 90.0%: not reached"])
    assert desk.run("--playhead-suite=desk", "--playhead-min-rate=0.88").ret == pytest.ExitCode.OK
    result = desk.run("--playhead-suite=desk", "--playhead-min-rate=0.97", "--playhead-literal")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["39 of 40 trials of 2 cases passed: 97.5%; wanted 97.0%: reached"])
    literal = ("--playhead-min-rate=0.98", "--playhead-literal")
    assert desk.run("--playhead-suite=desk", *literal).ret == pytest.ExitCode.TESTS_FAILED


def test_too_few_trials_guarantee_nothing_and_how_many_would_is_said(desk: Suite) -> None:
    desk.write(ALL.replace("RUNS", "1").replace("FAILS", "7"))
    result = desk.run("--playhead-suite=desk", "--playhead-min-rate=0.9")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    needed = math.ceil(math.log(0.05) / math.log(0.9))
    result.stdout.fnmatch_lines([f"even without a failure this takes {needed} trials"])
    assert Rate(trials=[{"case": "a", "passed": True}] * needed, wanted=0.9, literal=False).reached
    assert not Rate(trials=[{"case": "a", "passed": True}] * (needed - 1), wanted=0.9, literal=False).reached


def test_a_body_that_raises_is_a_failed_trial_whatever_the_rate(desk: Suite) -> None:
    desk.write("@playhead.case('hello')\ndef test_a(playhead_case):\n    raise ValueError('no model')\n")
    result = desk.run("--playhead-suite=desk", "--playhead-min-rate=0.1", "--playhead-literal")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: no model*", "0 of 1 trials of 1 case passed*"])


def test_trials_of_all_workers_make_one_rate(desk: Suite) -> None:
    desk.write(ALL.replace("RUNS", "2").replace("FAILS", "7"))
    result = desk.run("-p", "xdist.plugin", "-p", "xdist.looponfail", "-n1", "--playhead-suite=desk",
                      "--playhead-min-rate=0.9")  # fmt: skip
    result.stdout.fnmatch_lines(["4 of 4 trials of 2 cases passed: *not reached"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_suite_may_stand_in_the_settings_of_pytest(desk: Suite) -> None:
    desk.pytester.makepyprojecttoml("[tool.pytest.ini_options]\nplayhead_suite = 'desk'\n")
    desk.write("@playhead.case('hello')\ndef test_a(playhead_case):\n    return 'Hello!'\n")
    desk.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("@playhead.case('hello')\ndef test_a(playhead_case): pass", [], "*test_a: no suite is named*"),
        ("@playhead.case('nothere')\ndef test_a(playhead_case): pass", ["desk"], "*the suite has no case 'nothere'*"),
        ("@playhead.case('hello', 'gone')\ndef test_a(playhead_case): pass", ["desk"], "*case 'gone' is retired*"),
        ("@playhead.case('hello')\ndef test_a(): pass", ["desk"], "*has to take the fixture playhead_case*"),
        ("@playhead.case('hello')\ndef test_a(playhead_case): pass", ["none"], "*none*"),
        ("@playhead.case\ndef test_a(playhead_case): pass", ["desk"], "*playhead.case takes the ids of cases*"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_of_collection(desk: Suite, text: str, args: list[str], said: str) -> None:
    desk.write(text + "\n")
    result = desk.run(*(f"--playhead-suite={each}" for each in args))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([said])


@pytest.mark.parametrize("option", ["--playhead-min-rate=2", "--playhead-min-rate=x", "--playhead-min-rate=1"])
def test_a_rate_that_cannot_be_is_refused(desk: Suite, option: str) -> None:
    assert desk.run(option).ret == pytest.ExitCode.USAGE_ERROR


def test_the_fixture_without_a_case_says_what_it_needs(desk: Suite) -> None:
    desk.write("def test_a(playhead_case): pass\n")
    desk.run("--playhead-suite=desk").stdout.fnmatch_lines(["*playhead_case needs @playhead.case(...)*"])


@pytest.mark.parametrize(
    "value",
    [
        [{"tool": "t", "arguments": {"a": 1}}],
        {"calls": [{"tool": "t", "arguments": {"a": 1}}], "text": ""},
        Answer(calls=(Emitted(tool="t", arguments={"a": 1}, id="x"),)),
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "x", "name": "t", "arguments": {"a": 1}}]},
    ],
)
def test_what_a_test_returns_has_several_forms(value: Any) -> None:
    (part,) = said_of(value).message["parts"]
    assert (part["type"], part["name"], part["arguments"]) == ("tool_call", "t", {"a": 1})


@pytest.mark.parametrize("value", [None, 3, {}, {"answer": "x"}, [1]])
def test_what_is_no_answer_is_refused(value: Any) -> None:
    with pytest.raises(UsageError):
        said_of(value)


def test_text_and_a_model_s_answer_are_answers() -> None:
    assert said_of("hi").message["parts"] == [{"type": "text", "text": "hi"}]
    assert said_of(ModelSaid(message=said_of("hi").message)).message["parts"][0]["text"] == "hi"
    assert said_of({"final": "bye"}).final == "bye"


def test_the_mark_is_one_of_pytest() -> None:
    @case("a", runs=2)
    def marked() -> None: ...

    assert [(mark.name, mark.args, mark.kwargs) for mark in marked.pytestmark] == [
        ("playhead_case", ("a",), {"runs": 2})
    ]  # fmt: skip
