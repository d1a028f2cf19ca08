"""Tools that read alike, from the command line: what is asked, how often, and what is found of their descriptions."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.run import run
from playhead.testing.servers import Call, ModelServer, Reply

ABOUT = "Search the pages of the help centre by words, {} first, with their titles"
TOOLS = {
    name: {
        "name": name,
        "description": about,
        "parameters": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    }
    for name, about in {
        "search_docs": ABOUT.format("newest"),
        "find_docs": ABOUT.format("oldest"),
        "refund": "Give the money back for one order",
    }.items()
}
SAID = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How do I return it?"}]
EITHER = {"kind": "any_of", "options": [{"calls": [{"tool": "search_docs"}]}, {"calls": [{"tool": "find_docs"}]}]}


class Playhead:
    """The command line in a project of its own."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture
        self.code, self.err = 0, ""

    def __call__(self, *words: str, form: str = "json") -> Any:
        self.capture.readouterr()
        self.code = run([*words, "--output", form])
        out, self.err = self.capture.readouterr()
        if form == "text":
            return out
        return json.loads(out) if out else json.loads(self.err.splitlines()[-1])["error"]


@pytest.fixture
def playhead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Playhead:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PLAYHEAD_")]:
        monkeypatch.delenv(name)
    made = Playhead(capsys)
    made("init")
    suite({"id": "either", "tools": list(TOOLS), "history": SAID, "label": EITHER})
    return made


def suite(*cases: Any) -> None:
    folder = Path("suite")
    folder.mkdir(exist_ok=True)
    (folder / "suite.json").write_text(json.dumps({"format": "playhead.suite/1", "name": "help"}))
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)) + "\n")


ASK = ("fuzz", "suite", "--families", "ambiguity")


def test_t20_a_coin_finds_the_descriptions_at_fault(playhead: Playhead):
    Path("queries.txt").write_text("Where is the return policy?\nHow do I send it back?\n")
    told = playhead(*ASK, "--model", "scripted:coin", "--queries-file", "queries.txt")
    assert (playhead.code, told["verdicts"], told["errors"]) == (0, {"ambiguous": 1, "undecided": 0, "clear": 0}, 0)
    (pair,) = told["pairs"]
    assert (pair["left"], pair["right"], pair["similarity"] > 0.8) == ("find_docs", "search_docs", True)
    assert {one["origin"] for one in pair["queries"]} == {"case", "given"}
    assert len(pair["queries"]) == 3
    (finding,) = told["findings"]
    assert (finding["rule"], finding["tool"]) == ("ambiguous", "find_docs")
    again = playhead("fuzz", "--resume", told["run"])
    assert (again["run"], again["pairs"], again["trials"]) == (told["run"], told["pairs"], told["trials"])
    assert "cannot tell find_docs and search_docs apart" in playhead("fuzz", "--resume", told["run"], form="text")


def test_t20_a_chooser_that_rarely_slips_is_clear(playhead: Playhead):
    told = playhead(*ASK, "--model", "scripted:coin:0")
    assert told["verdicts"] == {"ambiguous": 0, "undecided": 0, "clear": 1}
    assert (told["trials"], told["findings"]) == (20, [])


def test_the_plan_asks_nothing(playhead: Playhead):
    Path("queries.jsonl").write_text(
        json.dumps({"tools": ["search_docs", "find_docs"], "query": "Where is it?"})
        + "\n" + json.dumps({"tools": ["search_docs", "refund"], "query": "not of this pair"}) + "\n"
    )  # fmt: skip
    items = playhead(*ASK, "--plan", "--queries-file", "queries.jsonl")["items"]
    assert [(one["origin"], one["query"]) for one in items] == [
        ("case", "case either: How do I return it?"), ("given", "Where is it?"),
    ]  # fmt: skip


def test_a_model_chooses_among_the_tools_of_the_case_and_another_writes_the_requests(playhead: Playhead):
    suite({"id": "one", "tools": list(TOOLS), "history": SAID})

    def reply(step: int, body: dict[str, Any]) -> Reply:
        if not body.get("tools"):
            return Reply('["Where is the policy?"]')
        assert [m["role"] for m in body["messages"]] == ["system", "user"]
        assert [t["function"]["name"] for t in body["tools"]] == list(TOOLS)
        return Reply(calls=[Call("search_docs", {"words": "policy"})])

    with ModelServer(reply) as server:
        told = playhead(*ASK, "--model", "small", "--base-url", server.openai_url, "--queries", "big")
    (pair,) = told["pairs"]
    (query,) = pair["queries"]
    assert (query["origin"], query["query"], query["verdict"]) == ("model", "Where is the policy?", "clear")
    assert query["chosen"] == {"find_docs": 0, "search_docs": 20}


def test_a_pair_can_be_named(playhead: Playhead):
    told = playhead(*ASK, "--model", "scripted:coin:0", "--pair", "refund,search_docs", "--queries-file", "q.txt")
    assert "cannot be read" in told["message"]
    Path("q.txt").write_text("Where is my money?")
    told = playhead(*ASK, "--model", "scripted:coin:0", "--pair", "refund,search_docs", "--queries-file", "q.txt")
    assert [(pair["left"], pair["right"], pair["verdict"]) for pair in told["pairs"]] == [
        ("refund", "search_docs", "clear")
    ]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--pair", "refund"), "does not name two tools"),
        (("--pair", "refund,nothing"), "no case offers a tool 'nothing'"),
        (("--model", "scripted:coin:much"), "is no share"),
        ((), "no model was named"),
    ],
)
def test_mistakes_are_named(playhead: Playhead, words: tuple[str, ...], part: str):
    assert part in playhead(*ASK, *words)["message"]
    assert playhead.code == 2


def test_what_is_missing_is_named(playhead: Playhead):
    suite({"id": "one", "tools": ["search_docs", "refund"], "history": SAID})
    told = playhead(*ASK, "--model", "scripted:coin")
    assert "no two tools that are offered together read alike" in told["message"]
    assert "--pair refund,search_docs" in told["hint"]
    suite({"id": "one", "tools": list(TOOLS), "history": SAID})
    told = playhead(*ASK, "--model", "scripted:coin")
    assert "no request that find_docs and search_docs could both serve" in told["message"]
    assert "--queries MODEL" in told["hint"]
