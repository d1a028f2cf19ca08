"""Fuzzing from the command line: sets that stay, models of known behaviour, tools that are called for real."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.testing.servers import ModelServer, Reply

TOOLS = [
    {"name": "get_order", "description": "One order by its number",
     "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}},
    {"name": "refund", "description": "Refund one order",
     "parameters": {"type": "object", "properties": {
         "order_id": {"type": "string"}, "reason": {"type": "string", "enum": ["damaged", "late", "other"]},
         "amount": {"type": "number", "minimum": 0}}, "required": ["order_id", "reason"]}},
    {"name": "ping", "description": "Whether the service answers", "parameters": {"type": "object", "properties": {}}},
]  # fmt: skip
CASE = {
    "id": "refund-1", "tools": ["get_order", "refund", "ping"],
    "history": [{"role": "user", "content": "Refund order W4821, it arrived damaged"}],
    "recorded": [
        {"calls": [{"id": "c1", "tool": "get_order", "arguments": {"order_id": "W4821"}}],
         "outcomes": {"c1": {"kind": "value", "value": {"lines": [{"item": "A1"}, {"item": "B2"}]}}}},
        {"calls": [{"id": "c2", "tool": "refund", "arguments": {"order_id": "W4821", "reason": "damaged"}}],
         "outcomes": {"c2": {"kind": "value", "value": {"refund_id": "R-77"}}}},
    ],
    "answer": "Refund R-77 of $129.00 is on its way.",
    "facts": [{"name": "refund", "as": "id", "value": "R-77"}],
    "label": {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "W4821"}}]},
}  # fmt: skip
TOOLBOX = """
def tools():
    return {"get_order": get_order, "refund": refund, "ping": lambda: "ok"}


def get_order(order_id):
    if not isinstance(order_id, str):
        return {"order_id": order_id}
    if not order_id:
        raise ValueError("order_id must not be empty")
    return {"order_id": order_id}


def refund(order_id, reason, amount=0):
    known = {"damaged": 1, "late": 1, "other": 1}
    return {"refund_id": "R-77", "days": known[reason]}
"""


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
    head = {"format": "playhead.suite/1", "name": "refunds", "effects": effects}
    (folder / "suite.json").write_text(json.dumps(head))
    (folder / "tools.json").write_text(json.dumps({str(tool["name"]): tool for tool in TOOLS}))
    (folder / "cases.jsonl").write_text(json.dumps(CASE) + "\n")
    (tmp_path / "toolbox.py").write_text(TOOLBOX)
    return made


def small(*words: str) -> tuple[str, ...]:
    """Options that keep a run short."""
    return ("--per-tool", "2", "--context-tokens", "2000", *words)


def test_the_plan_lists_every_case_with_what_is_expected_of_it(playhead: Playhead):
    found = playhead("fuzz", "suite", "--plan")["items"]
    assert {one["family"] for one in found} == {"type_confusion", "constraint", "oversized", "interface"}
    enums = [one for one in found if one["mutation"].startswith("enum_")]
    assert {one["pointer"] for one in enums} == {"/reason"}
    assert all(one["expectation"] == "schema" for one in found if one["family"] == "type_confusion")
    assert {one["from"] for one in found} == {"refund-1"}
    again = playhead("fuzz", "suite", "--plan")["items"]
    assert again == found
    one = playhead("fuzz", "suite", "--plan", "--families", "constraint", "--tool", "refund", "--per-tool", "3")[
        "items"
    ]
    assert [(o["tool"], o["family"]) for o in one] == [("refund", "constraint")] * 3


@pytest.mark.parametrize(
    ("agent", "group"), [("recorded", "corrected"), ("scripted:repeat", "loop"), ("scripted:tell", "gave_up"),
                         ("scripted:mumble", "other")],
)  # fmt: skip
def test_models_of_known_behaviour(playhead: Playhead, agent: str, group: str):
    words = ("--families", "type_confusion", "--families", "constraint", "--per-tool", "2")
    told = playhead("fuzz", "suite", "--model", agent, *words)
    assert (playhead.code, told["errors"], told["fed_back"]["trials"]) == (0, 0, 8)
    for one in told["fed_back"]["groups"]:
        assert one[group]["n"] == one["trials"] == 2
        assert one[group]["interval"][0] < 1
    bad = group in ("loop", "other")
    assert bool(told["findings"]) is bad
    assert all(one["confirmed"] and (one["seen"], one["runs"]) == (5, 5) for one in told["findings"])
    assert told["false_discovery_rate"] == (0 if bad else None)
    assert told["fed_back"]["rejected_by"] == {"generated": 8}


def test_a_finding_of_a_model_is_played_again(playhead: Playhead):
    words = ("--families", "type_confusion", "--per-tool", "1", "--tool", "refund")
    found = playhead("fuzz", "suite", "--model", "scripted:repeat", *words)["findings"][0]
    stands = playhead("fuzz", "--replay", found["id"])
    assert (playhead.code, stands["stands"], stands["outcomes"]) == (1, True, ["loop"] * 5)
    gone = playhead("fuzz", "--replay", found["id"], "--model", "scripted:tell")
    assert (playhead.code, gone["stands"], gone["outcomes"]) == (0, False, ["clear_message"] * 5)
    with ModelServer([Reply(status=401, body={"error": {"message": "no such key"}})]) as server:
        unknown = playhead("fuzz", "--replay", found["id"], "--model", "m", "--base-url", server.openai_url)
    assert (playhead.code, unknown["code"]) == (3, "model_access")  # nobody answered: nothing is known


def test_large_results_and_changed_tools(playhead: Playhead):
    words = small("--families", "oversized", "--families", "interface")
    told = playhead("fuzz", "suite", "--model", "recorded", *words)
    assert {one["perturbation"] for one in told["interface"]} >= {
        "opaque_tool_names",
        "shuffled_order",
        "dropped_enums",
    }
    assert all(one["selection"]["difference"] == 0 for one in told["interface"])  # the recording is mapped along
    oversized = {one["tool"]: one["classes"] for one in told["fed_back"]["groups"]}
    assert oversized["refund"]["right_answer"] == 2  # the facts are stated although the result was huge


def test_a_set_stays_as_it_was_stored_and_a_run_goes_on(playhead: Playhead):
    first = playhead("fuzz", "suite", "--model", "scripted:tell", *small("--seed", "3"))
    again = playhead("fuzz", "--set", first["run"]["id"], "--model", "scripted:tell", "--seed", "9", "--per-tool", "1")
    assert (again["set"], again["cases"], again["seed"]) == (first["set"], first["cases"], 3)
    resumed = playhead("fuzz", "--resume", first["run"]["id"])
    assert ", 0 trials to make" in playhead.err
    assert resumed == first


def test_tools_themselves_are_called_and_what_is_wrong_with_them_is_replayed(playhead: Playhead, tmp_path: Path):
    told = playhead("fuzz", "suite", "--direct", "toolbox:tools", "--seconds", "60", "--families", "type_confusion",
                    "--families", "constraint")  # fmt: skip
    found = {(one["tool"], one["pointer"], one["outcome"]): one for one in told["findings"]}
    crash = found["refund", "/reason", "crashed"]
    assert (crash["confirmed"], crash["seen"], told["false_discovery_rate"]) == (True, 2, 0)
    assert crash["text"].startswith("KeyError")
    assert ("get_order", "/order_id", "silently_accepted") in found
    assert found["get_order", "/order_id", "silently_accepted"]["shrunk"]
    assert told["direct"]["classes"]["rejected"] > 0
    assert not any(one["tool"] == "ping" for one in told["findings"])
    texts = {one["text"]: one["level"] for one in told["direct"]["error_texts"] if one["tool"] == "get_order"}
    assert texts == {"order_id must not be empty": "prescriptive"}
    again = playhead("fuzz", "--replay", crash["id"][:8])
    assert (playhead.code, again["stands"], again["outcomes"]) == (1, True, ["crashed"] * 3)
    (tmp_path / "toolbox.py").write_text(TOOLBOX.replace("known[reason]", "known.get(reason, 0)"))
    mended = playhead("fuzz", "--replay", crash["id"])
    assert (playhead.code, mended["stands"]) == (0, False)


def test_what_the_tools_say_is_what_a_model_is_told(playhead: Playhead):
    words = ("--families", "type_confusion", "--families", "constraint", "--per-tool", "5")
    told = playhead("fuzz", "suite", "--direct", "toolbox:tools", "--model", "scripted:tell", "--seconds", "60", *words)
    assert set(told["fed_back"]["rejected_by"]) == {"validator"}
    assert told["accepted"] > 0  # what the tools take is not rejected, so there is nothing to feed back
    assert told["fed_back"]["trials"] + told["accepted"] == told["cases"]
    resumed = playhead("fuzz", "--resume", told["run"]["id"])
    assert resumed == told


def test_tools_of_a_file_need_no_suite_and_reports_are_written(playhead: Playhead, tmp_path: Path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    words = ("--per-tool", "2", "--families", "type_confusion", "--seconds", "60")
    to = ("--to", "r.md", "--to", "r.html", "--to", "r.json")
    told = playhead("fuzz", "--tools", "tools.json", "--direct", "toolbox:tools", *words, *to)
    assert told["direct"]["calls"] == 4
    assert json.loads(Path("r.json").read_text())["findings"] == told["findings"]
    page = Path("r.html").read_text()
    assert "Content-Security-Policy" in page
    assert "silently_accepted" in page
    assert "### Findings" in Path("r.md").read_text()


def test_the_text_form_names_findings_and_rates(playhead: Playhead):
    words = ["fuzz", "suite", "--model", "scripted:repeat", "--families", "constraint", "--per-tool", "1"]
    playhead.capture.readouterr()
    assert run([*words, "--output", "text"]) == 0
    text = playhead.capture.readouterr().out
    assert "2 confirmed of 2" in text
    assert "harness, not a model" in text
    assert "1/1 (21 % to 100 %)" in text


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "no suite"),
        (("suite",), "nothing was named"),
        (("suite", "--model", "scripted:nobody"), "nobody"),
        (("suite", "--model", "a:b", "--model", "c:d"), "one model"),
        (("nothing", "--plan"), "nothing"),
        (("suite", "--plan", "--tool", "missing"), "missing"),
        (("suite", "--plan", "--per-tool", "0"), "at least 1"),
        (("suite", "--plan", "--families", "constraint", "--families", "ambiguity"), "alone"),
        (("suite", "--direct", "toolbox:nothing"), "nothing"),
        (("suite", "--direct", "toolbox:tools", "--seconds", "0"), "0 seconds"),
        (("suite", "--model", "recorded", "--to", "report.pdf"), "report.pdf"),
        (("--replay", "0123"), "0123"),
        (("--resume", "last"), "last"),
    ],
)
def test_bad_input_is_named(playhead: Playhead, words: tuple[str, ...], part: str):
    told = playhead("fuzz", *words)
    assert playhead.code == 2
    assert part in told["message"]


def test_findings_become_cases_with_a_proposed_label(playhead: Playhead):
    told = playhead("fuzz", "suite", "--model", "scripted:mumble", "--families", "constraint", "--per-tool", "1")
    ids = [one["id"] for one in told["findings"]]
    words = [word for id in ids for word in ("--finding", id)]
    made = playhead("suite", "build", "--name", "found", *words)
    assert (made["cases"], made["states"], made["findings"]) == (2, {"proposed": 2}, 0)
    shown = playhead("suite", "show", "found", "--case", f"finding-{ids[0]}")
    assert [message["role"] for message in shown["history"]][-2:] == ["assistant", "tool"]
    right = playhead("suite", "run", "found", "--model", "scripted:mumble", "--runs", "1", "--trust", "proposed")
    assert right["runs"][0]["active_cases"] == 2
    again = playhead("suite", "build", "--name", "found", "--add", *words)
    assert again["cases"] == 2


def test_direct_findings_of_a_file_of_tools_become_cases_too(playhead: Playhead, tmp_path: Path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    told = playhead("fuzz", "--tools", "tools.json", "--direct", "toolbox:tools", "--tool", "refund", "--seconds", "60",
                    "--families", "constraint")  # fmt: skip
    crash = next(one for one in told["findings"] if one["outcome"] == "crashed")
    made = playhead("suite", "build", "--name", "found", "--finding", crash["id"])
    assert (playhead.code, made["cases"], made["tools"]) == (0, 1, 1)
    shown = playhead("suite", "show", "found", "--case", f"finding-{crash['id']}")
    assert "KeyError" in json.dumps(shown["history"])


def test_direct_calls_that_were_stopped_go_on(playhead: Playhead):
    words = ("--families", "type_confusion", "--per-tool", "2", "--seconds", "60")
    first = playhead("fuzz", "suite", "--direct", "toolbox:tools", "--max-minutes", "0", *words)
    assert (first["direct_run"]["status"], first["direct"]["calls"], first["findings"]) == ("stopped", 0, [])
    done = playhead("fuzz", "--resume", first["direct_run"]["id"])
    assert (done["direct_run"]["status"], done["direct"]["calls"], done["set"]) == ("completed", 4, first["set"])
    assert done["findings"]


# --- over the wire --------------------------------------------------------------------------------------------------

FEW = ("--families", "type_confusion", "--families", "constraint", "--per-tool", "2")
TELLING = [Reply("I could not do it, the value is not valid.")]


def at(server: ModelServer, model: str = "gpt-4.1") -> tuple[str, ...]:
    return ("fuzz", "suite", "--model", model, "--base-url", server.openai_url)


def test_what_a_run_will_ask_for_and_cost_is_said_first(playhead: Playhead):
    with ModelServer(TELLING) as server:
        planned = playhead(*at(server), *FEW, "--plan")["items"]
        line = next(line for line in playhead.err.splitlines() if "gpt-4.1:" in line)
        assert server.requests == []
        told = playhead(*at(server), *FEW)
        assert line in playhead.err.splitlines()
        assert len(planned) == told["trials"] == len(server.model_requests) == 8
    assert "8 trials, about " in line
    assert " USD; what goes wrong is tried 5 times" in line
    playhead("fuzz", "suite", "--model", "nobody-knows", *FEW, "--plan")
    assert "cost unknown" in playhead.err


def test_the_estimate_counts_the_bad_call_and_what_it_gets(playhead: Playhead):
    def tokens(*words: str) -> int:
        playhead("fuzz", "suite", "--model", "gpt-4.1", "--families", "oversized", "--tool", "refund", "--plan", *words)
        line = next(line for line in playhead.err.splitlines() if "input tokens" in line)
        return int(line.split(" input tokens")[0].split()[-1].replace(",", ""))

    assert tokens("--context-tokens", "200000") - tokens("--context-tokens", "100000") > 100_000


@pytest.mark.parametrize("first", [(), ("--direct", "toolbox:tools")])
def test_a_budget_that_cannot_hold_is_refused_before_anything_is_called(
    playhead: Playhead, tmp_path: Path, first: tuple[str, ...]
):
    (tmp_path / "toolbox.py").write_text("open('called', 'w')\n" + TOOLBOX)
    with ModelServer(TELLING) as server:
        told = playhead(*at(server, "nobody-knows"), *FEW, *first, "--max-cost", "1")
        assert (playhead.code, server.requests) == (2, [])
    assert "the price of 'nobody-knows' is not known" in told["message"]
    assert not (tmp_path / "called").exists()


def test_a_run_that_ran_out_of_its_budget_goes_on(playhead: Playhead):
    with ModelServer(TELLING) as server:
        words = ("--concurrency", "1", "--max-cost", "0.0001")
        first = playhead(*at(server), *FEW, *words)
        assert (first["run"]["status"], first["run"]["stopped_by"]) == ("stopped", "the budget of 0.0001 USD")
        asked = len(server.model_requests)
        assert 0 < asked < 8
        done = playhead("fuzz", "--resume", "last")
        assert (done["run"]["id"], done["run"]["status"], done["trials"]) == (first["run"]["id"], "completed", 8)
        assert len(server.model_requests) == 8


def test_trials_that_confirm_count_against_the_budget_too(playhead: Playhead):
    with ModelServer([Reply("Okay.")]) as server:
        one = ("--families", "constraint", "--tool", "refund", "--per-tool", "1", "--concurrency", "1")
        cost = "0.0002"  # of three requests
        told = playhead(*at(server), *one, "--max-cost", cost)
        assert (told["run"]["status"], len(server.model_requests)) == ("stopped", 3)
        assert [one["confirmed"] for one in told["findings"]] == [False]


@pytest.mark.parametrize("width", [1, 3])
def test_so_many_trials_go_at_a_time(playhead: Playhead, width: int):
    inside = most = 0
    lock, met = threading.Lock(), threading.Event()

    def plan(step: int, body: dict[str, Any]) -> Reply:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            if inside == width:
                met.set()
        met.wait(60)  # fewer at a time would wait here
        with lock:
            inside -= 1
        return TELLING[0]

    with ModelServer(plan) as server:
        told = playhead(*at(server), *FEW[:2], *FEW[4:], "--concurrency", str(width))
    assert (told["trials"], most) == (4, width)


def test_requests_keep_to_so_many_a_minute(playhead: Playhead):
    with ModelServer(TELLING) as server:
        begun = time.monotonic()
        told = playhead(*at(server), *FEW[:2], *FEW[4:], "--per-minute", "600")
        assert (told["trials"], len(server.model_requests)) == (4, 4)
        assert time.monotonic() - begun >= 0.3
