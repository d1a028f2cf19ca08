"""``playhead session ...`` on a small store."""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from playhead.cli.sessions import branches
from playhead.core.values import Mark, Node, NodeKind, Outcome, OutcomeKind, ToolCall
from playhead.errors import NotFoundError, UsageError
from playhead.store.memory import MemoryStore

from .conftest import Shown, make_nodes, make_session, session_id

Run = Callable[..., Shown]


def test_list_is_newest_first(command: Run) -> None:
    assert [item["id"] for item in command("session list").json["items"]] == [session_id(n) for n in (3, 2, 1)]


def test_list_carries_every_member_but_no_payload(command: Run) -> None:
    item = command("session list").json["items"][0]
    assert item["error"] is None
    assert item["tags"] == ["nightly"]
    assert "inputs" not in item


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--agent", "desk"], [2, 1]),
        (["--agent", "desk", "--agent", "other"], [3, 2, 1]),
        (["--origin", "import"], [3]),
        (["--status", "failed"], [3]),
        (["--tag", "nightly"], [3]),
        (["--since", "2025-10-09T08:53:22+00:00"], [3, 2]),
        (["--until", "2025-10-09T08:53:22+00:00"], [1]),
        (["--oldest-first", "--limit", "1"], [1]),
    ],
)
def test_list_filters(command: Run, words: list[str], found: list[int]) -> None:
    assert [item["id"] for item in command("session list", *words).json["items"]] == [session_id(n) for n in found]


def test_list_goes_on_at_its_cursor(command: Run) -> None:
    first = command("session list", "--limit", "2").json
    rest = command("session list", "--limit", "2", "--cursor", first["next_cursor"]).json
    assert [item["id"] for item in rest["items"]] == [session_id(1)]
    assert rest["next_cursor"] is None


def test_list_of_an_empty_store_says_how_to_begin(command: Run) -> None:
    assert "playhead demo" in command("session list", "--agent", "nobody").text


@pytest.mark.parametrize("name", ["last~1", session_id(2), "000002", session_id(2)[-8:]])
def test_show_takes_short_names(command: Run, name: str) -> None:
    assert command("session show", name).json["id"] == session_id(2)


def test_show_tells_what_was_asked_used_and_recorded(command: Run) -> None:
    shown = command("session show", "000001")
    for part in (
        '{"prompt": "refund order 1"}',
        "done",
        "120 in (20 cached), 7 out",
        "0.0031 USD",
        "1 native, 1 missing",
    ):
        assert part in shown.text
    assert shown.json["marks"] == {"native": 1, "missing": 1}
    assert shown.json["not_replayable"] == []


def test_show_says_why_a_session_cannot_be_replayed(command: Run, store: MemoryStore) -> None:
    store.sessions.put(make_session(9, not_replayable=("/callback: a function",)), [])
    assert "/callback: a function" in command("session show").text


def test_show_marks_a_cut_and_full_shows_all(command: Run, store: MemoryStore) -> None:
    store.sessions.put(make_session(9, output="y" * 5000), [])
    assert "4400 more characters" in command("session show").text
    assert "y" * 5000 in command("session show", "--full").text


def test_tree_draws_calls_below_their_caller(command: Run) -> None:
    lines = command("session tree", "000001").text.splitlines()
    assert lines[1].startswith("├─ model call  chat  gpt-x")
    assert lines[2].startswith('└─ tool call  refund  {"order_id": "4821"}  -> refund issued')
    assert lines[3].startswith("   └─ tool call  ledger")


def test_a_tree_says_what_was_not_stored_and_does_not_call_it_null(command: Run, store: MemoryStore) -> None:
    asked, called, _ = make_nodes(5)
    lost = ToolCall(tool="refund", arguments=None, mark=Mark.MISSING)
    store.sessions.put(
        make_session(5), [asked, replace(called, call=lost, outcome=Outcome(kind=OutcomeKind.VALUE, value=None))]
    )
    text = command("session tree", "000005").text
    assert "refund  (arguments not stored)  -> (result not stored)" in text


def test_a_tree_of_any_depth_is_drawn() -> None:
    nodes = [
        Node(id=str(n), session_id="s", seq=n, kind=NodeKind.SPAN, name="x", started_at=n,
             parent_id=str(n - 1) if n else None)
        for n in range(5000)
    ]  # fmt: skip
    assert sum(1 for _ in branches(nodes)) == 5000


def test_a_node_whose_parent_is_missing_is_a_root() -> None:
    node = Node(id="a", session_id="s", seq=1, kind=NodeKind.SPAN, name="x", started_at=1, parent_id="gone")
    assert [rail for rail, _ in branches([node])] == ["└─ "]


def test_delete_removes_what_it_names(command: Run, store: MemoryStore) -> None:
    assert command("session delete", "000001", "000002", "--yes").json == {"deleted": [session_id(1), session_id(2)]}
    with pytest.raises(NotFoundError):
        store.sessions.get(session_id(1))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "kept"), [("y\n", False), ("\n", True), ("no\n", True)])
def test_delete_asks_a_person(
    command: Run, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, answer: str, kept: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if kept:
        with pytest.raises(UsageError):
            command("session delete", "000001")
        assert store.sessions.get(session_id(1))
    else:
        command("session delete", "000001")
        with pytest.raises(NotFoundError):
            store.sessions.get(session_id(1))


def test_delete_refuses_where_nobody_can_be_asked(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UsageError) as caught:
        command("session delete", "000001")
    assert "--yes" in str(caught.value.hint)


@pytest.mark.parametrize("words", [["session delete"], ["session tag", "last"]])
def test_naming_nothing_is_refused(command: Run, words: list[str]) -> None:
    with pytest.raises(UsageError):
        command(*words)


def test_tags_are_added_and_removed(command: Run, store: MemoryStore) -> None:
    assert command("session tag", "000003", "good", "--remove", "nightly").json["tags"] == ["good"]
    assert store.sessions.get(session_id(3)).tags == ("good",)


def test_an_unknown_id_is_not_found(command: Run) -> None:
    with pytest.raises(NotFoundError):
        command("session show", "ffffff")
