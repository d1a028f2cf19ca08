"""Injected failures from the command line: what is planned, how known models recover, what stays as it is."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.core.suites.summary import from_text
from playhead.engine.project import find_project
from playhead.errors import UsageError
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore

TOOLS = [
    {"name": "get_order", "description": "One order by its number",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}},
    {"name": "refund", "description": "Refund one order",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}, "items": {"type": "array"}},
                    "required": ["order_id", "items"]}},
]  # fmt: skip
CASE = {
    "id": "refund-1", "tools": ["get_order", "refund"],
    "history": [{"role": "user", "content": "Refund A1 and B2 of order 4821"}],
    "recorded": [
        {"calls": [{"id": "c1", "tool": "get_order", "arguments": {"order_id": "4821"}}],
         "outcomes": {"c1": {"kind": "value", "value": {"amount": "129.00"}}}},
        {"calls": [{"id": "c2", "tool": "refund", "arguments": {"order_id": "4821", "items": ["A1", "B2"]}}],
         "outcomes": {"c2": {"kind": "value", "value": {"refund_id": "R-77"}}}},
    ],
    "answer": "Refund R-77 of $129.00 is on its way.",
    "facts": [{"name": "refund", "as": "id", "value": "R-77"}, {"name": "amount", "as": "money", "value": "129.00"}],
}  # fmt: skip


class Playhead:
    """The command line in a project of its own."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture
        self.code, self.err = 0, ""

    def __call__(self, *words: str) -> Any:
        self.capture.readouterr()
        self.code = run([*words, "--output", "json"])
        out, self.err = self.capture.readouterr()
        return json.loads(out) if out else json.loads(self.err.splitlines()[-1])["error"]


@pytest.fixture
def playhead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Playhead:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PLAYHEAD_")]:
        monkeypatch.delenv(name)
    made = Playhead(capsys)
    made("init")
    folder = tmp_path / "suite"
    folder.mkdir()
    effects = {"get_order": {"class": "read"}, "refund": {"class": "write", "financial": True}}
    guards = {"get_order": {"action": "retry"}, "refund": {"action": "retry"}}
    (folder / "suite.json").write_text(
        json.dumps({"format": "playhead.suite/1", "name": "refunds", "effects": effects, "guards": guards})
    )
    (folder / "tools.json").write_text(json.dumps({tool["name"]: tool for tool in TOOLS}))
    (folder / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    return made


def test_the_plan_lists_what_applies_to_each_recorded_call(playhead: Playhead):
    found = playhead("inject", "suite", "--plan")["items"]
    kinds = {(one["tool"], one["kind"]) for one in found}
    everywhere = {"validation_error", "not_found", "rate_limit", "timeout", "empty", "malformed"}
    assert kinds == {(t, k) for t in ("get_order", "refund") for k in everywhere} | {("refund", "partial")}
    pairs = playhead("inject", "suite", "--plan", "--messages", "prescriptive", "--messages", "plain")["items"]
    assert len(pairs) - len(found) == 7  # a timeout, an empty and a malformed result have no text to word otherwise
    one = playhead("inject", "suite", "--plan", "--kind", "timeout", "--per-tool", "1")["items"]
    assert sorted(v["tool"] for v in one) == ["get_order", "refund"]


@pytest.mark.parametrize(
    ("agent", "rate", "flags"),
    [("tell", 1.0, set[str]()), ("pretend", 0.0, set[str]()), ("repeat", None, {"loop", "double_side_effect"})],
)
def test_models_of_known_behaviour(playhead: Playhead, agent: str, rate: float | None, flags: set[str]):
    told = playhead("inject", "suite", "--model", f"scripted:{agent}", "--export", "run.json")
    assert (playhead.code, told["injected"], told["not_reached"], told["errors"]) == (0, 13, 0, 0)
    if rate is not None:
        assert told["rate"] == rate
    summary = from_text(Path("run.json").read_text())
    assert len(summary.recovery) == 13
    assert {flag for one in summary.recovery for flag in one.flags} == flags
    answers = {row["check"]: row["answer"] for row in told["checklist"] if row["tool"] == "refund"}
    assert answers["no repeat of a write whose outcome is unknown"] == ("no" if agent == "repeat" else "yes")


def test_texts_are_compared_in_pairs(playhead: Playhead):
    told = playhead("inject", "suite", "--model", "scripted:fix", "--kind", "validation_error", "--messages",
                    "prescriptive", "--messages", "plain")  # fmt: skip
    assert told["messages"]["pairs"] == 2
    assert told["messages"]["difference"] > 0  # what to use instead stands in the prescriptive text only


def test_a_structured_exit_is_offered_and_scored(playhead: Playhead):
    without = playhead("inject", "suite", "--model", "scripted:quit", "--kind", "timeout")
    offered = playhead("inject", "suite", "--model", "scripted:quit", "--kind", "timeout", "--add-exit")
    assert [group["classes"] for group in offered["groups"]] == [{"give_up_tool": 1}, {"give_up_tool": 1}]
    assert [group["classes"] for group in without["groups"]] != [group["classes"] for group in offered["groups"]]


def test_the_structured_exit_is_an_arm_and_its_worth_is_told(playhead: Playhead):
    told = playhead("inject", "suite", "--model", "scripted:quit", "--kind", "timeout", "--add-exit")
    assert [(arm["arm"], arm["classes"], arm["injected"]) for arm in told["arms"]] == [
        ("as it is", {"clear_message": 2}, 2), ("exit", {"give_up_tool": 2}, 2),
    ]  # fmt: skip
    worth = told["worth"]["exit"]
    assert (worth["recovered"]["pairs"], worth["recovered"]["difference"]) == (2, 0.0)
    assert set(worth) == {"recovered", "loop", "silent_wrong_answer", "double_side_effect"}
    assert (told["arm"], told["run"]) == ("exit", told["arms"][1]["run"])


def test_guards_are_compared_as_arms(playhead: Playhead):
    told = playhead("inject", "suite", "--model", "scripted:pretend", "--kind", "malformed", "--guards", "on,off",
                    "--export", "run.json")  # fmt: skip
    off, on = told["arms"]
    assert (off["arm"], off["recovered"], off["guarded"], off["classes"]) == (
        "as it is", 0, 0, {"silent_wrong_answer": 2},
    )  # fmt: skip
    # the runtime asks again where that is safe: the model never sees the broken order; of the refund it only pretends
    assert (on["arm"], on["recovered"], on["guarded"], on["classes"]) == (
        "guards", 1, 2, {"corrected_retry": 1, "silent_wrong_answer": 1},
    )  # fmt: skip
    assert told["worth"]["guards"]["recovered"]["difference"] == 0.5
    assert from_text(Path("run.json").read_text()).run == on["run"]
    again = playhead("inject", "--resume", on["run"])
    assert (again["recovered"], again["guarded"], again["arm"]) == (1, 2, "guards")


def test_guards_in_a_run_of_the_cases_themselves(playhead: Playhead):
    suite = json.loads(Path("suite/suite.json").read_text())
    suite["guards"] = {"get_order": {"range": {"/amount": [0, 100]}}}
    Path("suite/suite.json").write_text(json.dumps(suite))
    label = {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "4821"}}]}
    Path("suite/cases.jsonl").write_text(json.dumps({**CASE, "label": label}) + "\n")
    told = playhead("suite", "run", "suite", "--model", "recorded", "--runs", "1", "--driver", "loop", "--guards",
                    "off,on")  # fmt: skip
    assert [row["guards"] for row in told["runs"]] == ["off", "on"]
    assert told["guards"]["recorded"]["passed"]["pairs"] == 1
    alone = playhead("suite", "run", "suite", "--model", "recorded", "--runs", "1", "--guards", "on")
    assert "--driver loop" in alone["hint"]


@pytest.mark.parametrize("named", [0, 1])
def test_going_on_with_a_run_goes_on_with_the_runs_beside_it(
    playhead: Playhead, monkeypatch: pytest.MonkeyPatch, named: int
):
    from playhead.engine.suites import inject as suite_inject

    def broken_off(*given: Any, **options: Any) -> Any:
        raise UsageError("broken off before the first trial")

    with monkeypatch.context() as patched:
        patched.setattr(suite_inject, "execute", broken_off)
        playhead("inject", "suite", "--model", "scripted:quit", "--kind", "timeout", "--add-exit")
    store = find_project(Path.cwd()).open_store()
    settings: dict[str, Any] = {run.id: run.config["inject"] for run in store.suites.runs()}
    ids = sorted(settings, key=lambda id: settings[id]["add_exit"])
    assert [store.suites.run(id).status for id in ids] == ["stopped", "stopped"]
    told = playhead("inject", "--resume", ids[named])
    assert [(arm["arm"], arm["run"], arm["injected"]) for arm in told["arms"]] == [
        ("as it is", ids[0], 2), ("exit", ids[1], 2),
    ]  # fmt: skip
    assert told["worth"]["exit"]["recovered"]["pairs"] == 2
    playhead("inject", "--resume", "last")
    assert playhead.err.count(", 0 trials to make") == 2


def test_a_run_goes_on_and_repeats_nothing(playhead: Playhead):
    first = playhead("inject", "suite", "--model", "scripted:tell")
    again = playhead("inject", "--resume", first["run"])
    assert (again["run"], again["trials"], again["recovered"]) == (first["run"], 13, 13)
    assert ", 0 trials to make" in playhead.err
    assert "0 trials, about 0 requests" in playhead.err


def test_a_budget_that_cannot_hold_is_refused(playhead: Playhead):
    words = ("--model", "nobody-knows", "--base-url", "http://127.0.0.1:1", "--max-cost", "1")
    told = playhead("inject", "suite", *words)
    assert playhead.code == 2
    assert "the price of 'nobody-knows' is not known" in told["message"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "no suite"),
        (("suite", "--model", "scripted:fix", "--guards", "yes"), "--guards 'yes'"),
        (("suite",), "no model"),
        (("suite", "--model", "scripted:nobody"), "nobody"),
        (("suite", "--model", "a:b", "--model", "c:d"), "one model"),
        (("nothing", "--plan"), "nothing"),
        (("suite", "--plan", "--case", "missing"), "missing"),
    ],
)
def test_bad_input_is_named(playhead: Playhead, words: tuple[str, ...], part: str):
    told = playhead("inject", *words)
    assert playhead.code == 2
    assert part in told["message"]


def test_t22_no_recording_is_changed_and_two_runs_are_one(playhead: Playhead, shared_data: Path):
    data = shared_data / "tau-bench"
    playhead("import", str(data / "gpt-4o-airline.json"))

    def exported() -> bytes:
        store = SqliteStore(Path(".playhead/store.db"), create=False)
        try:
            ids = [s.id for s in store.sessions.find(SessionQuery(oldest_first=True), limit=10).items]
        finally:
            store.close()
        assert run(["session", "export", *ids, "--to", "sessions.jsonl", "--output", "json"]) == 0
        return Path("sessions.jsonl").read_bytes().partition(b"\n")[2]  # the first line says when it was written

    before = exported()
    playhead("suite", "build", "--name", "air", "--tools", str(data / "tools-airline.json"), "--limit", "10")
    runs = [playhead("inject", "air", "--model", "scripted:repeat", "--per-tool", "1") for _ in range(2)]
    assert runs[0]["injected"] > 30
    assert {k: v for k, v in runs[0].items() if k != "run"} == {k: v for k, v in runs[1].items() if k != "run"}
    assert exported() == before


def test_a_report_says_where_to_look_first_and_what_of_the_checklist_holds(playhead: Playhead):
    tools = json.loads(Path("suite/tools.json").read_text())
    tools["get_order"]["parameters"]["properties"]["id"] = {"type": "string", "description": "Which one of the orders"}
    Path("suite/tools.json").write_text(json.dumps(tools))
    label = {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "4821"}}]}
    failed = {"kind": "result_error", "value": "invalid input"}
    history = [
        *CASE["history"], {"role": "assistant", "calls": [{"id": "h1", "tool": "refund", "arguments": {}}]},
        {"role": "tool", "call_id": "h1", "outcome": failed},
    ]  # fmt: skip
    case = {**CASE, "history": history, "label": label, "source": {"captured_at": "2020-01-01T00:00:00Z"}}
    Path("suite/cases.jsonl").write_text(json.dumps(case) + "\n")
    run_id = playhead("suite", "run", "suite", "--model", "scripted:tell", "--runs", "1")["runs"][0]["run"]
    failing = playhead("inject", "suite", "--model", "scripted:repeat", "--kind", "timeout")
    told = playhead("suite", "report", run_id, "--recovery", failing["run"], "--to", "page.html")
    assert "get_order /id: id: the name does not say what it holds (vague_name)" in told["look_first"]
    assert "refund: the error text 'invalid input' is opaque, 1 times" in told["look_first"]
    assert any("loops or blind repeats" in line for line in told["look_first"])
    answers = {(row["tool"], row["check"]): row["answer"] for row in told["checklist"]}
    assert answers["refund", "an approval gate"] == "no"
    assert answers["refund", "error texts prescriptive"] == "no"
    assert told["freshness"]["older"] == 1.0
    assert "Recovery checklist" in Path("page.html").read_text()
    playhead.capture.readouterr()
    run(["suite", "report", run_id, "--output", "text"])
    text = playhead.capture.readouterr().out
    assert "100.0 % older than 90 days" in text
    assert "where to look first:" in text


def test_models_are_compared_with_the_recovery_of_runs_of_their_own(playhead: Playhead):
    label = {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "4821"}}]}
    Path("suite/cases.jsonl").write_text(json.dumps({**CASE, "label": label}) + "\n")
    told = playhead("suite", "run", "suite", "--model", "scripted:tell", "--model", "scripted:pretend", "--runs", "1")
    runs = [row["run"] for row in told["runs"]]
    failing = playhead("inject", "suite", "--model", "scripted:pretend")
    words = ("suite", "compare", *runs, "--reference", "scripted:tell", "--cheapest-within", "0.05")
    found = playhead(*words, "--recovery", failing["run"])
    assert playhead.code == 1
    assert [row["why"][-1] for row in found["rows"]] == [
        "recovery: no run with injected failures is of this model", "recovery: 80 % is not shown",
    ]  # fmt: skip
    playhead.capture.readouterr()
    run([*words, "--output", "text"])
    assert "recovery was not compared: --recovery names runs of playhead inject" in playhead.capture.readouterr().out
