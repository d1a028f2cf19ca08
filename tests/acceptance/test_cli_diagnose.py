"""Proposed changes of tool interfaces: what the proposing model sees, what it may propose, and how a run judges it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.testing.servers import Call, ModelServer, Reply

TOOLS = {
    "find": {
        "name": "find",
        "description": "Finds what a customer ordered",
        "parameters": {
            "type": "object",
            "properties": {"user": {"type": "string", "description": "The user to look for"}},
            "required": ["user"],
        },
    },
    "note": {"name": "note", "description": "Keeps a note about the customer"},
}
BETTER = {
    "type": "object",
    "properties": {"user_id": {"type": "string", "pattern": "^[0-9]+$", "description": "Number of the user, as 17"}},
    "required": ["user_id"],
}
PROPOSAL = {
    "tool": "find", "why": "A user may be a name or a number.", "name": "find_orders", "parameters": BETTER,
    "renamed": {"user": "user_id"},
}  # fmt: skip


def case(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"orders-{number}",
        "tools": ["find", "note"],
        "history": [{"role": "user", "content": f"What did user {number} order?"}],
        "label": {"kind": "call", "calls": [{"tool": "find", "arguments": {"user": str(number)}}]},
        **more,
    }


class Playhead:
    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture, self.code = capture, 0

    def __call__(self, *words: object) -> Any:
        self.capture.readouterr()
        self.code = run([*map(str, words), "--output", "json"])
        out, err = self.capture.readouterr()
        return json.loads(out) if out else json.loads(err.splitlines()[-1])["error"]


@pytest.fixture
def playhead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Playhead:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PLAYHEAD_")]:
        monkeypatch.delenv(name)
    made = Playhead(capsys)
    made("init")
    folder = tmp_path / "suite"
    folder.mkdir()
    head = {"format": "playhead.suite/1", "name": "orders", "effects": {"find": "read", "note": "read"}}
    (folder / "suite.json").write_text(json.dumps(head))
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    (folder / "cases.jsonl").write_text("\n".join(json.dumps(case(n)) for n in (17, 18)) + "\n")
    hidden = case(99, slice="held_back", history=[{"role": "user", "content": "Orders of the secret customer"}])
    (folder / "held_back.jsonl").write_text(json.dumps(hidden) + "\n")
    return made


def naming(step: int, body: dict[str, Any]) -> Reply:
    """Gives a name where the parameter is called user, and the number where its schema asks for one."""
    tool = next(t["function"] for t in body["tools"] if t["function"]["name"].startswith("find"))
    number = body["messages"][-1]["content"].split()[3]
    parameter = next(iter(tool["parameters"]["properties"]))
    return Reply(calls=[Call(tool["name"], {parameter: number if parameter == "user_id" else f"user {number}"})])


def test_proposals_are_diffs_that_a_run_judges_and_nothing_is_applied(playhead: Playhead):
    seen: list[str] = []

    def proposing(step: int, body: dict[str, Any]) -> Reply:
        seen.append(json.dumps(body))
        return Reply(json.dumps({"proposals": [PROPOSAL]}))

    with ModelServer(naming) as server:
        base = ("--base-url", server.openai_url)
        first = playhead("suite", "run", "suite", "--model", "small", *base, "--slice", "all", "--reason", "test")
        assert first["runs"][0]["arguments"] == {"passed": 0, "of": 9}
        before = {path.name: path.read_text() for path in Path("suite").iterdir()}
        with ModelServer(proposing) as writer:
            told = playhead("suite", "diagnose", "suite", "--model", "big", "--base-url", writer.openai_url, "--run",
                            "last", "--into", "better.json")  # fmt: skip
        after = playhead("suite", "run", "suite", "--model", "small", *base, "--interface", "better.json")
    (proposal,) = told["proposals"]
    assert (proposal["tool"], proposal["label_findings"]) == ("find", [])
    assert '+  "user_id": {' in proposal["diff"].replace("   ", "  ")
    assert "expected 17, got user 17" in seen[0]
    assert "vague_name" in seen[0]
    assert "secret customer" not in seen[0]
    assert "99" not in seen[0]
    plain, changed = after["runs"]
    assert (plain["arguments"], changed["arguments"]) == ({"passed": 0, "of": 6}, {"passed": 6, "of": 6})
    assert (changed["selection"], changed["interface"]) == ({"passed": 6, "of": 6}, ["find"])
    worth = after["interface"]["small"]["passed"]
    assert (worth["pairs"], worth["before"], worth["after"]) == (6, 0.0, 1.0)
    again = playhead("suite", "rescore", changed["run"])
    assert (again["arguments"], again["changed"]) == ({"passed": 6, "of": 6}, [])
    assert {path.name: path.read_text() for path in Path("suite").iterdir()} == before


def test_what_cannot_be_used_is_asked_for_again_and_told(playhead: Playhead):
    answers = ["I would rename it.", json.dumps({"proposals": [{**PROPOSAL, "tool": "search"}]})]
    with ModelServer(lambda step, body: Reply(answers[step])) as server:
        told = playhead("suite", "diagnose", "suite", "--model", "big", "--base-url", server.openai_url)
    assert playhead.code == 1
    assert told == {"proposals": [], "refused": ["proposal 1: there is no tool 'search'"], "into": None}


@pytest.mark.parametrize(
    ("held", "part"),
    [
        ("[]", "no proposed interface"),
        (json.dumps({"format": "playhead.interface/1", "tools": {"search": {}}}), "there is no tool 'search'"),
        ("{", "--interface"),
    ],
)
def test_files_that_are_no_proposals_are_refused(playhead: Playhead, held: str, part: str):
    Path("x.json").write_text(held)
    assert part in playhead("suite", "run", "suite", "--model", "recorded", "--interface", "x.json")["message"]
    assert playhead.code == 2
