"""Suites from the command line: built, labelled, run against a model server, stopped, resumed, exported."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.core.suites.summary import from_text
from playhead.testing.servers import Call, ModelServer, Reply

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks at an order.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
            },
        },
    }
]


class Shell:
    """A command line in a folder of its own."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *words: object, code: int = 0) -> Any:
        self._capture.readouterr()
        got = run([str(word) for word in words])
        out, err = self._capture.readouterr()
        assert got == code, err
        self.err = err
        return json.loads(out) if out else json.loads(err.splitlines()[-1])["error"]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": f"chat-{n}", "messages": chat(n)}) for n in range(8)]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    made = Shell(capsys)
    made("import", "chats.jsonl", "--agent", "desk", "--output", "json")
    return made


def chat(number: int) -> list[dict[str, Any]]:
    function = {"name": "look", "arguments": json.dumps({"order_id": f"A{number}"})}
    return [
        {"role": "user", "content": f"Where is A{number}?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "name": "look", "content": json.dumps({"tracking": f"T-{number}55"})},
        {"role": "assistant", "content": f"Your parcel is T-{number}55."},
    ]


def good(step: int, body: dict[str, Any]) -> Reply:
    """Looks up the order that the user names, and says what the result holds."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply(f"It is {json.loads(last['content'])['tracking']}.")
    order = body["messages"][0]["content"].split()[-1].rstrip("?")
    return Reply(calls=[Call("look", {"order_id": order})])


def labels(shell: Shell, folder: Path) -> None:
    """A decision on every case that may be seen: its recorded call."""
    shown = shell("suite", "show", "desk", "--limit", 100)
    lines: list[str] = []
    for row in shown["items"]:
        case = shell("suite", "show", "desk", "--case", row["case"])
        calls = [
            {"tool": c["tool"], "arguments": c["arguments"]} for one in case.get("recorded", []) for c in one["calls"]
        ]
        label = {"kind": "call", "calls": calls} if calls else {"kind": "no_tool"}
        lines.append(json.dumps({"case": row["case"], "label": label}))
    (folder / "decisions.jsonl").write_text("\n".join(lines))
    shell("suite", "review", "desk", "--decisions", "decisions.jsonl", "--who", "kim")


def test_a_suite_from_sessions_to_an_exported_run(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    assert (built["cases"], built["states"]) == (16, {"null": 16})
    assert (
        shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json", code=2)["code"]
        == "conflict"
    )
    tune = built["slices"]["tune"]
    labels(shell, tmp_path)
    facts = shell("suite", "label", "desk", "facts")
    assert all(one["facts"][0]["as"] == "id" for one in facts["items"])
    with ModelServer(good) as server:
        options = ("--model", "small", "--base-url", server.openai_url, "--runs", 2)
        told = shell("suite", "run", "desk", *options, "--estimate")["items"]
        assert (told[0]["cases"], told[0]["trials"]) == (tune, 2 * tune)
        assert server.requests == []
        done = shell("suite", "run", "desk", *options, "--export", "run.json")["runs"][0]
    assert (done["status"], done["errors"], done["trials"]) == ("completed", 0, 2 * tune)
    assert done["selection"] == {"passed": 2 * tune, "of": 2 * tune} or done["selection"]["passed"] >= tune
    summary = from_text((tmp_path / "run.json").read_text())
    assert (summary.run, len(summary.cases), summary.model) == (done["run"], tune, "small")
    again = shell("suite", "rescore", "last")
    assert (again["changed"], again["selection"]) == ([], done["selection"])
    assert shell("suite", "list")["items"][0]["runs"] == 1
    monkeypatch.setenv("DESK_API_KEY", summary.cases[0].id)  # now it is a secret, and the file is meant for git
    shell("suite", "rescore", "last", "--export", "clean.json")
    clean = (tmp_path / "clean.json").read_text()
    assert summary.cases[0].id not in clean
    assert "[REDACTED:DESK_API_KEY]" in clean


def test_a_run_that_ran_out_of_its_budget_goes_on(shell: Shell) -> None:
    shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    with ModelServer(good) as server:
        options = ("--model", "gpt-4.1", "--base-url", server.openai_url, "--unlabelled", "--concurrency", 1)
        first = shell("suite", "run", "desk", *options, "--runs", 1, "--max-cost", "0.0001")["runs"][0]
        assert first["status"] == "stopped"
        assert "budget" in first["stopped_by"]
        asked = len(server.model_requests)
        second = shell("suite", "run", "--resume", "last")["runs"][0]
        assert (second["run"], second["status"]) == (first["run"], "completed")
        assert len(server.model_requests) == second["trials"]
        assert 0 < asked < second["trials"]


def test_what_is_held_back_needs_a_reason_and_is_never_shown(shell: Shell, tmp_path: Path) -> None:
    built = shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    held = built["slices"].get("held_back", 0)
    shown = shell("suite", "show", "desk", "--limit", 100)
    assert len(shown["items"]) == 16 - held
    facts = shell("suite", "label", "desk", "facts", "--dry-run")["items"]
    assert {row["case"] for row in facts} <= {row["case"] for row in shown["items"]}
    refused = shell("suite", "run", "desk", "--model", "recorded", "--slice", "all", "--unlabelled", code=2)
    assert "reason" in refused["message"]
    shell("suite", "run", "desk", "--model", "recorded", "--slice", "all", "--unlabelled", "--reason", "release 4")
    exported = shell("suite", "export", "desk", "out")
    assert exported["held_back_left_out"] == held
    shell("suite", "export", "desk", "whole", "--reason", "moving")
    lines = [json.loads(line) for line in (tmp_path / "whole" / "access.jsonl").read_text().splitlines()]
    assert [(line["command"], line["reason"]) for line in lines] == [
        ("suite run", "release 4"), ("suite export", "moving"),
    ]  # fmt: skip
    assert lines[0]["previous"] is None
    assert lines[1]["previous"]
    whole = shell("suite", "build", "--from", "folder", "whole", "--name", "copy")
    assert (whole["cases"], whole["slices"]) == (16, built["slices"])


def test_a_model_that_cannot_be_reached_is_infrastructure(shell: Shell) -> None:
    shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    with ModelServer([Reply(status=401)]) as server:
        options = ("--model", "small", "--base-url", server.openai_url, "--unlabelled")
        failed = shell("suite", "run", "desk", *options, code=3)["runs"][0]
    assert failed["status"] == "stopped"
    assert "401" in failed["first_error"]


def test_a_run_says_for_which_cases_strict_mode_is_off_and_why(shell: Shell, tmp_path: Path) -> None:
    open_tools = json.loads(json.dumps(TOOLS).replace('"required": ["order_id"]', '"required": []'))
    (tmp_path / "open.json").write_text(json.dumps(open_tools))
    shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "open.json")
    with ModelServer(good) as server:
        options = ("--model", "small", "--base-url", server.openai_url, "--unlabelled", "--runs", 1, "--strict", "on")
        shell("suite", "run", "desk", *options)
    assert "strict mode is off for" in shell.err
    assert "'order_id' may be absent" in shell.err


def test_a_budget_that_cannot_hold_is_refused(shell: Shell) -> None:
    shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    options = ("--model", "nobody-knows", "--base-url", "http://127.0.0.1:1", "--unlabelled", "--max-cost", 1)
    assert "price" in shell("suite", "run", "desk", *options, code=2)["message"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("suite", "run", "nothere", "--model", "recorded"), "nothere"),
        (("suite", "run", "desk"), "no model"),
        (("suite", "run", "desk", "--model", "scripted:nothere", "--unlabelled"), "nothere"),
        (("suite", "show", "desk", "--case", "nothere"), "nothere"),
        (("suite", "build", "chats.jsonl"), "chats.jsonl"),
        (("suite", "build", "--from", "bfcl", "."), "BFCL"),
        (("suite", "label", "desk", "propose"), "no model"),
        (("suite", "retire", "desk", "--tool", "nothere"), "nothere"),
    ],
)
def test_mistakes_are_named(shell: Shell, words: tuple[str, ...], told: str) -> None:
    shell("suite", "build", "--name", "desk", "--agent", "desk", "--tools", "tools.json")
    refused = shell(*words, code=2)
    assert told in refused["message"]
    assert refused["hint"] or told in refused["message"]
