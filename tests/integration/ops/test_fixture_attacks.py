"""Fixtures that something else than playhead wrote, names that lead elsewhere, values that have no form."""
# ruff: noqa: SIM117 - the block is what is tested

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.errors import FixtureFormatError, FixtureRunError, OpError, UsageError
from playhead.store.fixture_writing import discard, recover
from playhead.store.fixtures import FixtureFolder, set_part

from .conftest import counted, document, files


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def edit(here: Path, **members: Any) -> None:
    changed = {**document(here), **members}
    files(here)[0].write_text(json.dumps(changed))


NO_NAMES = ["../x", "a/../b", ".hidden", "a\0b", "a\x1b[31mb", "a\\b", "c:", "a?", "bodies", "a/bodies/b",
            "recording.json", "x" * 201, "ends ", "ends.", "ü" * 101]  # fmt: skip


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_set_has_a_name_that_every_system_takes_and_that_means_nothing_else(here: Path, name: str) -> None:
    poll = counted()
    with pytest.raises(UsageError, match="is no name of a set"), playhead.fixtures("record", set=name):
        poll("a")
    assert poll.seen == []
    assert not (here / ".playhead/fixtures").exists()
    FixtureFolder(here).place(set_part(name.replace("/", "_")))


@pytest.mark.parametrize("name", ["checkout", "tests.test_a/test_b-1a2b3c", "a b", "ü", "x" * 200])
def test_other_names_of_sets_work(name: str) -> None:
    poll = counted()
    for mode in ("record", "replay"):
        with playhead.fixtures(mode, set=name):
            assert poll("a") == {"n": 1}
    assert set_part(name.replace("/", "_")) == name.replace("/", "_")


OUTCOMES = [
    {"kind": "error", "error": 5}, {"kind": "error", "value": 1}, {"kind": "value", "items": 5},
    {"kind": "value", "truncated": 1}, {"kind": "value", "body": []}, {"kind": "value", "error": {}},
]  # fmt: skip


@pytest.mark.parametrize("outcome", OUTCOMES, ids=json.dumps)
def test_an_outcome_of_another_type_is_a_damaged_file(here: Path, outcome: Any) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("a")
    edit(here, outcome=outcome)
    with pytest.raises(FixtureFormatError, match="/outcome") as caught, playhead.fixtures("replay"):
        poll("a")
    assert files(here)[0].name in str(caught.value)
    assert poll.seen == ["a"]


def test_defaults_of_another_type_are_a_damaged_file(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("a")
    edit(here, assertions={"defaults": 5})
    with pytest.raises(FixtureFormatError, match="/assertions/defaults"), playhead.fixtures("replay"):
        poll("a")


def test_a_stream_does_not_answer_for_a_value_nor_a_value_for_a_stream(here: Path) -> None:
    plain = counted()

    @playhead.op("poll", effect="read", stream=True)
    def stream(q: str) -> Any:
        yield from q

    with playhead.fixtures("record"):
        plain("ab")
    with pytest.raises(FixtureRunError, match="not recorded as a stream"), playhead.fixtures("replay"):
        with pytest.raises(OpError, match="not recorded as a stream"):
            list(stream("ab"))
    with playhead.fixtures("record"):
        assert list(stream("ab")) == ["a", "b"]
    with pytest.raises(FixtureRunError, match="recorded as a stream"), playhead.fixtures("replay"):
        with pytest.raises(OpError, match="recorded as a stream"):
            plain("ab")
    assert plain.seen == ["ab"]


def test_a_damaged_file_is_named_with_its_set(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record", set="one/two"):
        poll("a")
    (path,) = (here / ".playhead/fixtures/one/two").glob("op.*")
    path.write_text("{")
    with pytest.raises(FixtureFormatError, match=f"^one/two/{path.name} is not"):
        with playhead.fixtures("replay", set="one/two"):
            poll("a")


@pytest.mark.parametrize("escape", ["moves", "bodies", "keys", "set"])
def test_a_plan_of_moves_that_leads_out_of_the_folder_is_not_carried_out(here: Path, escape: str) -> None:
    partial = here / ".playhead/fixtures/.partial/evil"
    (partial / "bodies").mkdir(parents=True)
    (partial / "x.json").write_text("x")
    (partial / "bodies/b").write_text("b")
    (here / "op.x.aa.json").write_text("mine")
    plan: dict[str, Any] = {
        "set": "s", "moves": [["x.json", "../../../out"]] if escape == "moves" else [],
        "bodies": ["../../../../../op.x.aa.json"] if escape == "bodies" else [],
        "keys": [["../../../op", "x", "1:aa", 0]] if escape == "keys" else [], "report": {},
    }  # fmt: skip
    if escape == "set":
        plan |= {"set": "../../..", "moves": [["x.json", "out"]]}
    (partial / "moves.json").write_text(json.dumps(plan))
    poll = counted()
    with playhead.fixtures("record", set="s"):
        poll("a")
    assert names(here) == [".playhead", "op.x.aa.json"]
    assert (here / "op.x.aa.json").read_text() == "mine"
    assert (partial / "moves.json").exists()


def test_a_move_that_ended_while_it_was_waited_for_is_not_carried_out_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = counted()
    with playhead.fixtures("record", set="s"):
        poll("a")
        poll("a")
    partial = here / ".playhead/fixtures/.partial/other"
    partial.mkdir(parents=True)
    key = json.loads(next((here / ".playhead/fixtures/s").glob("op.*")).read_text())["key"]
    plan: dict[str, Any] = {"set": "s", "moves": [], "bodies": [], "keys": [["op", "poll", key, 1]], "report": {}}
    (partial / "moves.json").write_text(json.dumps(plan))

    @contextmanager
    def claim(folder: FixtureFolder, set_name: str) -> Iterator[None]:
        discard(partial)  # as the other process does at its end
        yield

    monkeypatch.setattr(FixtureFolder, "claim", claim)
    recover(FixtureFolder(here / ".playhead/fixtures"))
    assert len(list((here / ".playhead/fixtures/s").glob("op.*"))) == 2


def test_what_a_killed_run_left_stays_out_of_version_control_when_the_next_one_ends(tmp_path: Path) -> None:
    for name in ("killed", "next"):
        (tmp_path / ".partial" / name).mkdir(parents=True)
    (tmp_path / ".partial/.gitignore").write_text("*\n")
    discard(tmp_path / ".partial/next")
    assert names(tmp_path / ".partial") == [".gitignore", "killed"]
    discard(tmp_path / ".partial/killed")
    assert not (tmp_path / ".partial").exists()


def test_a_result_without_a_stored_form_is_told_in_one_way() -> None:
    poll = counted(lambda n: {"n": float("nan")})
    with pytest.raises(FixtureRunError, match=r"poll is not recorded: it has no stored form: .*/n: non_finite"):
        with playhead.fixtures("record"):
            poll("a")


def test_the_items_of_a_stream_do_not_cut_a_secret_in_two(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_TOKEN", "tok-aaaabbbbcccc")

    @playhead.op("said", effect="read", stream=True)
    def said() -> Any:
        yield from ("it is tok-", "aaaa", "bbbbcccc", " now")

    with playhead.fixtures("record"):
        assert "".join(said()) == "it is tok-aaaabbbbcccc now"
    assert document(here)["outcome"]["items"] == ["it is [REDACTED:SHOP_API_TOKEN]", "", "", " now"]
    with playhead.fixtures("replay"):
        assert "".join(said()) == "it is [REDACTED:SHOP_API_TOKEN] now"
