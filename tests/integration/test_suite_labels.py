"""Labels of a suite's cases: taken over, mined, proposed by models, decided by people."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.labels import label_json
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.values import Verdict
from playhead.engine.model_access import LayerAccess
from playhead.engine.suites.build import build
from playhead.engine.suites.folder import read_folder, write_folder
from playhead.engine.suites.labels import (
    add_entries,
    decision,
    fact_proposals,
    from_recordings,
    propose,
    read_proposal,
    review_state,
    settle_all,
)
from playhead.engine.suites.location import FolderSuite, StoredSuite
from playhead.errors import UsageError
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.testing.servers import ModelServer, Reply

LOOK = {"kind": "call", "calls": [{"tool": "look", "arguments": {"order_id": "4821"}}]}
OTHER = {"kind": "call", "calls": [{"tool": "refund"}]}
TOOLS = [
    ToolSchema(name="look", parameters={"type": "object", "properties": {"order_id": {"type": "string"}}}),
    ToolSchema(name="refund"),
]


def chat(*, fixed: bool = True) -> list[dict[str, Any]]:
    """A failed look-up, its correction, and the answer."""

    def asks(id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = {"name": "look", "arguments": json.dumps(arguments)}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id, "type": "function", "function": function}],
        }

    found = [
        {"role": "user", "content": "Where is 4821?"},
        asks("a", {"order_id": "#4821"}),
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": "Error: no such order"},
    ]
    if fixed:
        found += [
            asks("b", {"order_id": "4821"}),
            {
                "role": "tool",
                "tool_call_id": "b",
                "name": "look",
                "content": '{"tracking": "T-5512", "cost": "129.00"}',
            },
            {"role": "assistant", "content": "Your parcel T-5512 cost $129.00."},
        ]
    return found


@pytest.fixture
def recorded(tmp_path: Path) -> MemoryStore:
    store = MemoryStore()
    (tmp_path / "chat.jsonl").write_text(json.dumps({"messages": chat()}) + "\n")
    import_paths(store, [tmp_path / "chat.jsonl"])
    return store


def built(store: MemoryStore) -> Contents:
    from playhead.engine.exports import find_ids
    from playhead.store.ports import SessionQuery

    contents, _ = build(store, find_ids(store, SessionQuery()), name="desk", tools=TOOLS)
    store.suites.put(contents)
    return contents


def test_confirmed_sessions_give_labels_later_too(recorded: MemoryStore) -> None:
    contents = built(recorded)
    assert [(e.state, e.case[-2:]) for e in contents.labels] == [("mined", ":2")]
    session = contents.cases[0].source.session
    assert session is not None
    assert from_recordings(recorded, contents, "weak").entries == []
    recorded.sessions.add_verdicts(session, [Verdict(name="happy", passed=True, evaluator="user")])
    found = from_recordings(recorded, contents, "weak")
    assert [(e.case[-2:], e.confirmed_by) for e in found.entries] == [(":2", "user:happy"), (":3", "user:happy")]
    after = add_entries(StoredSuite(recorded, "desk"), contents, found.entries)
    states = {id[-2:]: one.state for id, one in settle_all(after).items()}
    assert states == {":1": None, ":2": "mined", ":3": "weak"}
    assert [case.label.kind for case in after.cases if case.label] == ["call", "no_tool"]
    assert from_recordings(recorded, after, "weak").entries == []
    assert from_recordings(recorded, after, "mined").entries == []
    recorded.sessions.add_verdicts(session, [Verdict(name="refunded", passed=False, evaluator="user")])
    recorded.suites.put(contents)
    assert from_recordings(recorded, contents, "weak").entries == []
    assert len(from_recordings(recorded, contents, "weak", confirming=frozenset({"happy"})).entries) == 2


def test_sessions_that_are_gone_are_named(recorded: MemoryStore) -> None:
    contents = built(recorded)
    found = from_recordings(MemoryStore(), contents, "weak")
    assert (found.entries, found.missing) == ([], [contents.cases[0].source.session])


def test_facts_stand_in_results_and_in_the_answer(recorded: MemoryStore) -> None:
    contents = built(recorded)
    proposed = fact_proposals(contents)
    held_back = contents.cases[0].slice == "held_back"
    if held_back:
        assert proposed == {}
        contents = Contents(
            suite=contents.suite, tools=contents.tools,
            cases=tuple(c.model_copy(update={"slice": "tune"}) for c in contents.cases),
        )  # fmt: skip
        proposed = fact_proposals(contents)
    assert {id[-2:]: [(f.kind, f.value) for f in facts] for id, facts in proposed.items()} == {
        ":1": [("id", "T-5512"), ("money", "129.00")],
        ":2": [("id", "T-5512"), ("money", "129.00")],
    }


def desk(*labels: LabelEntry, count: int = 3) -> Contents:
    cases = [
        Case.model_validate(
            {
                "id": f"c{n}",
                "history": [{"role": "user", "content": f"Where is order {n}?"}],
                "tools": ["look", "refund"],
                "recorded": [{"calls": [{"id": "r1", "tool": "look", "arguments": {"order_id": "4821"}}]}],
            }
        )
        for n in range(count)
    ]
    suite = Suite.model_validate({"name": "desk", "effects": {"look": "read", "refund": "write"}})
    return Contents(suite=suite, cases=tuple(cases), tools={t.name: t for t in TOOLS}, labels=labels)


def test_a_model_proposes_without_seeing_what_was_recorded() -> None:
    def plan(step: int, body: dict[str, Any]) -> Reply:
        shown = json.dumps(body)
        assert "4821" not in shown
        assert "no_tool" in shown
        assert "class" in shown
        if "order 0" in shown:
            return Reply(f"Here it is: ```json\n{json.dumps(LOOK)}\n```")
        if "order 1" in shown:
            return Reply("I would look." if len(body["messages"]) == 2 else json.dumps({"kind": "no_tool"}))
        return Reply(json.dumps({"kind": "call", "calls": [{"tool": "lookup"}]}))

    contents = desk()
    with ModelServer(plan) as server:
        access = LayerAccess(name="strong", base_url=server.openai_url)
        found = propose(contents, contents.cases, access, concurrency=2)
    assert [(e.case, e.state, e.source, e.label) for e in found.entries] == [
        ("c0", "proposed", "strong", LOOK), ("c1", "proposed", "strong", {"kind": "no_tool"}),
    ]  # fmt: skip
    assert list(found.failed) == ["c2"]
    assert "lookup" in found.failed["c2"]
    assert "look" in found.failed["c2"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no json", ""),
        ('{"kind": "call"}', "calls"),
        (json.dumps({"kind": "call", "calls": [{"tool": "x"}]}), "offered"),
    ],
)
def test_what_is_no_label_is_not_stored(text: str, told: str) -> None:
    contents = desk()
    label, why = read_proposal(text, contents.cases[0], contents)
    assert label is None
    assert told in why


def disputed() -> Contents:
    return desk(
        LabelEntry(case="c0", state="weak", label=LOOK),
        LabelEntry(case="c0", state="proposed", label=OTHER, source="m"),
        LabelEntry(case="c1", state="weak", label=LOOK),
        LabelEntry(case="c2", state="mined", label=LOOK),
    )


@pytest.mark.parametrize("place", ["store", "folder"])
def test_a_decision_changes_log_and_case(tmp_path: Path, place: str) -> None:
    home: Any
    if place == "store":
        store = MemoryStore()
        store.suites.put(disputed())
        home = StoredSuite(store, "desk")
    else:
        write_folder(disputed(), tmp_path / "desk", lambda value: value)
        home = FolderSuite(tmp_path / "desk")
    contents = home.contents()
    assert [q.case for q in review_state(contents).queue] == ["c0", "c1", "c2"]
    entries = [
        decision(contents.cases[0], label=OTHER, who="kim"),
        decision(contents.cases[1], label=None, who="kim", reason="wrong user"),
    ]
    after = add_entries(home, contents, entries)
    assert home.contents() == after
    found = settle_all(after)
    assert [(found[c.id].state, c.label and label_json(c.label)) for c in after.cases] == [
        ("reviewed", OTHER), ("rejected", None), ("mined", None),
    ]  # fmt: skip
    assert [q.case for q in review_state(after).queue] == ["c2"]
    assert [(e.who, e.reason) for e in after.labels[-2:]] == [("kim", None), ("kim", "wrong user")]
    with pytest.raises(UsageError, match="no label"):
        decision(contents.cases[0], label={"kind": "call"}, who="kim")


def test_the_label_of_an_author_is_not_lost_when_somebody_proposes_another() -> None:
    store = MemoryStore()
    contents = desk()
    written = contents.cases[0].model_validate({**contents.cases[0].model_dump(by_alias=True), "label": LOOK})
    store.suites.put(Contents(suite=contents.suite, cases=(written,), tools=contents.tools))
    home = StoredSuite(store, "desk")
    after = add_entries(home, home.contents(), [LabelEntry(case="c0", state="proposed", label=OTHER)])
    (one,) = settle_all(after).values()
    assert (one.state, label_json(one.label)) == ("reviewed", LOOK)


# --- at a terminal --------------------------------------------------------------------------------------------------


def at_a_terminal(folder: Path, keys: str, *options: str) -> str:
    """Runs ``suite review`` on a terminal of its own, types the keys, and gives what was shown."""
    parent, child = pty.openpty()
    start = "import sys; from playhead.cli.start import main; sys.exit(main())"
    words = [sys.executable, "-c", start, "suite", "review", str(folder), "--output", "text", *options]
    environment = {**os.environ, "EDITOR": "", "VISUAL": "", "TERM": "dumb"}
    with subprocess.Popen(
        words, stdin=child, stdout=child, stderr=child, env=environment, cwd=folder.parent
    ) as process:
        os.close(child)
        os.write(parent, keys.encode())
        shown = b""
        try:
            while piece := os.read(parent, 65536):
                shown += piece
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0, shown.decode()
    os.close(parent)
    return shown.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(disputed(), tmp_path / "desk", lambda value: value)
    return tmp_path / "desk"


def test_a_review_at_a_terminal_stores_each_decision(folder: Path) -> None:
    shown = at_a_terminal(folder, "x\n1\ns\nr\nnot this user\n", "--who", "kim")
    log = [(e.case, e.state, e.who, e.reason) for e in read_folder(folder).labels[4:]]
    assert log == [("c0", "reviewed", "kim", None), ("c2", "rejected", "kim", "not this user")]
    assert "Where is order 0?" in shown
    assert "recorded: look" in shown
    assert "1 cases wait for a review" in shown


def test_a_blind_review_hides_who_said_what_until_it_is_decided(folder: Path) -> None:
    shown = at_a_terminal(folder, "1\nq\n")
    before, _, after = shown.partition("the labels were of:")
    assert "proposed:m" not in before
    assert "proposed:m" in after
    assert "label 1 (" in at_a_terminal(folder, "q\n", "--blind", "off")


def test_a_label_can_be_written_at_the_terminal(folder: Path) -> None:
    at_a_terminal(folder, "e\n{oops\ne\n" + json.dumps({"kind": "no_tool", "answer": "clarify"}) + "\nq\n")
    (entry,) = read_folder(folder).labels[4:]
    assert (entry.case, entry.label) == ("c0", {"kind": "no_tool", "answer": "clarify"})
