"""A suite as a folder: readable, whole, and the same suite again when it is read."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from playhead.core.access_log import broken
from playhead.core.redaction.redact import Redactor
from playhead.engine.suites.folder import read_folder, write_folder
from playhead.engine.suites.location import FolderSuite, StoredSuite, find_suite, note_access
from playhead.errors import FormatError, NotFoundError, UsageError
from playhead.store.memory import MemoryStore
from playhead.testing.conformance.suites import a_suite


def as_it_is(value: Any) -> Any:
    return value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(a_suite(), tmp_path / "desk", as_it_is)
    return tmp_path / "desk"


def test_a_suite_comes_back_from_its_folder(folder: Path) -> None:
    found, known = read_folder(folder), a_suite()
    assert (found.suite, found.tools, found.labels, found.accesses) == (
        known.suite, known.tools, known.labels, known.accesses,
    )  # fmt: skip
    assert {case.id: case for case in found.cases} == {case.id: case for case in known.cases}
    assert found.digest == known.digest


def test_folder_to_store_to_folder_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    store.suites.put(read_folder(folder))
    write_folder(store.suites.get("desk"), tmp_path / "again", as_it_is)
    for file in folder.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_what_is_held_back_is_in_a_private_file_of_its_own(folder: Path) -> None:
    assert "held_back" not in (folder / "cases.jsonl").read_text("utf-8", "surrogatepass")
    assert [json.loads(line)["id"] for line in (folder / "held_back.jsonl").read_bytes().splitlines()] == ["a"]
    assert stat.S_IMODE((folder / "held_back.jsonl").stat().st_mode) == 0o600


def test_secrets_do_not_leave(tmp_path: Path) -> None:
    redactor = Redactor({"TOKEN": "hunter2-hunter2"})
    known = a_suite()
    history = ({"role": "user", "content": "my token is hunter2-hunter2"},)
    case = known.cases[0].model_validate({**known.cases[0].model_dump(by_alias=True), "history": history})
    write_folder(
        type(known)(suite=known.suite, cases=(case,), tools=known.tools), tmp_path, lambda v: redactor.redact(v)[0]
    )
    text = (tmp_path / "cases.jsonl").read_text("utf-8")
    assert "hunter2" not in text
    assert "TOKEN" in text


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("cases.jsonl", '{"id": "x", "label": {"kind": "call", "calls": []}}', "cases.jsonl, line 3"),
        ("cases.jsonl", '{"id": "b"}', "two cases have the id 'b'"),
        ("cases.jsonl", '{"id": "x", "tools": ["nothere"]}', "'nothere', which tools.json does not have"),
        ("cases.jsonl", '{"id": "x", "colour": 1}', "/colour"),
        ("labels.jsonl", '{"case": "b"}', "labels.jsonl, line 2"),
        ("labels.jsonl", "{", "labels.jsonl, line 2 is not JSON"),
        ("access.jsonl", "[]", "access.jsonl, line 2 is no JSON object"),
    ],
)
def test_a_wrong_line_is_named(folder: Path, file: str, line: str, told: str) -> None:
    with (folder / file).open("a") as opened:
        opened.write(line + "\n")
    with pytest.raises(FormatError, match=r".") as refused:
        read_folder(folder)
    assert told in refused.value.message


def test_a_suite_of_a_newer_format_is_refused(folder: Path) -> None:
    (folder / "suite.json").write_text('{"format": "playhead.suite/2", "name": "desk"}')
    with pytest.raises(FormatError, match=r"playhead\.suite/1"):
        read_folder(folder)


def test_a_name_means_a_folder_or_a_suite_of_the_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    store.suites.put(a_suite("support"))
    assert isinstance(find_suite(lambda: store, str(folder)), FolderSuite)
    assert isinstance(find_suite(lambda: store, "support"), StoredSuite)
    with pytest.raises(NotFoundError) as refused:
        find_suite(lambda: store, "suport")
    assert "support" in (refused.value.hint or "")
    with pytest.raises(UsageError, match=r"suite\.json"):
        find_suite(lambda: store, str(folder.parent))


def test_t25_reading_what_is_held_back_needs_a_reason_and_leaves_a_chained_line(folder: Path) -> None:
    home = FolderSuite(folder)
    (folder / "access.jsonl").unlink()
    with pytest.raises(UsageError, match="reason"):
        note_access(home, home.contents(), who="kim", command="suite run", reason=" ")
    for number in range(2):
        note_access(home, home.contents(), who="kim", command="suite run", reason=f"release {number}")
    lines = home.contents().accesses
    assert (len(lines), broken(lines)) == (2, None)
    assert lines[1]["previous"] is not None
    (folder / "access.jsonl").write_bytes((folder / "access.jsonl").read_bytes().replace(b"release 0", b"release 9"))
    with pytest.raises(UsageError, match="line 2 does not follow"):
        note_access(home, home.contents(), who="kim", command="suite run", reason="again")
