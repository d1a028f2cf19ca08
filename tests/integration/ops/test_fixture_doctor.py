"""`playhead fixtures doctor` finds what is wrong with a folder, and changes nothing."""

import json
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import playhead
from playhead.cli.start import main

from .conftest import counted, files

Rows = list[dict[str, str]]


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Rows]]:
    def looked(*options: str) -> tuple[int, Rows]:
        """Exit code and findings."""
        capsys.readouterr()
        code = main(["fixtures", "doctor", "--output", "json", *options])
        out = capsys.readouterr().out
        return code, json.loads(out)["items"] if out else []

    return looked


def levels(rows: Rows) -> dict[str, str]:
    return {row["check"]: row["level"] for row in rows}


def said(rows: Rows, check: str) -> str:
    return next(row["message"] for row in rows if row["check"] == check)


def recorded(*asked: str, **options: Any) -> None:
    poll = counted()
    with playhead.fixtures("record", **options):
        for q in asked:
            poll(q)


def edit(path: Path, **members: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def test_a_good_folder(look: Any) -> None:
    recorded("a", "b")
    code, rows = look("--strict", "--max-age", "90d")
    assert (code, [row["message"] for row in rows]) == (0, ["poll: 2 recordings, all fit"])


def test_nothing_recorded(look: Any, here: Path) -> None:
    code, rows = look()
    assert (code, levels(rows)) == (1, {"set.missing": "fail"})
    assert "playhead fixtures run --mode record" in rows[0]["fix"]
    assert not (here / ".playhead/fixtures").exists()


@pytest.mark.parametrize(
    ("old", "new", "check", "words"),
    [
        ('"q": "a"', '"q": "z"', "file.key", "/args, /scope and /tool do not fit /key"),
        ('"occurrence": 1', '"occurrence": 2', "file.key", "its name does not fit"),
        ('"fixture/1"', '"fixture/2"', "file.version", "written by a newer playhead"),
        ('"kind": "value"', '"kind": "val', "file.damaged", "JSON at line"),
        ('  "kind": "op"', '<<<<<<< ours\n  "kind": "op"', "file.damaged", "conflict markers"),
        ('"n": 1', '"n": "hunter2-hunter2"', "file.secret", "value of STRIPE_SECRET at /outcome/value/n"),
    ],
    ids=["args", "name", "version", "truncated", "conflict", "secret"],
)
def test_r41_damaged_and_unsafe_files(
    here: Path, look: Any, monkeypatch: pytest.MonkeyPatch, old: str, new: str, check: str, words: str
) -> None:
    recorded("a")
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    (path,) = files(here)
    edited = path.read_text().replace(old, new)
    path.write_text(edited)
    code, rows = look()
    assert (code, levels(rows)[check]) == (1, "fail")
    assert words in said(rows, check)
    assert "hunter2" not in json.dumps(rows)
    assert path.read_text() == edited


def test_a_secret_in_the_report_of_a_recording(here: Path, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("a")
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    edit(here / ".playhead/fixtures/recording.json", command="run --key hunter2-hunter2")
    code, rows = look()
    assert (code, "value of STRIPE_SECRET in recording.json" in said(rows, "file.secret")) == (1, True)
    assert "hunter2-hunter2" not in json.dumps(rows)


def test_an_edited_outcome_is_a_warning(here: Path, look: Any) -> None:
    recorded("a")
    (path,) = files(here)
    path.write_text(path.read_text().replace('"n": 1', '"n": 2'))
    code, rows = look()
    assert (code, levels(rows)) == (0, {"file.edited": "warn", "op.recorded": "pass"})


def test_a_missing_occurrence_and_a_wrong_count(here: Path, look: Any) -> None:
    recorded("a", "a", "a")
    next(path for path in files(here) if path.name.endswith(".2.json")).unlink()
    code, rows = look()
    assert (code, levels(rows)["file.gap"], levels(rows)["set.count"]) == (1, "fail", "fail")
    assert "occurrence 3 without occurrence 2" in said(rows, "file.gap")
    assert "counts 3 files, 2 found" in said(rows, "set.count")


def test_r38_old_recordings_warn_and_fail_when_strict(here: Path, look: Any) -> None:
    recorded("a")
    (path,) = files(here)
    document = json.loads(path.read_text())
    document["recorded"]["at"] = "2020-01-01T00:00:00.000Z"
    path.write_text(json.dumps(document))
    code, rows = look("--max-age", "90d")
    assert (code, levels(rows)) == (0, {"file.age": "warn", "op.recorded": "pass"})
    assert "limit 90" in said(rows, "file.age")
    assert look("--max-age", "90d", "--strict")[0] == 1
    assert look("--max-age", "soon")[0] == 2


def test_r39_a_failed_recording_run(look: Any) -> None:
    recorded("a")
    poll = counted(lambda n: ConnectionRefusedError("no"))
    with playhead.fixtures("record"), suppress(ConnectionRefusedError):
        poll("a")
    code, rows = look()
    assert (code, levels(rows)["file.superseded"]) == (0, "warn")
    assert "failed (ConnectionRefusedError); this answer is older" in said(rows, "file.superseded")
    with playhead.fixtures("record", set="other"), suppress(ConnectionRefusedError):
        poll("b")
    code, rows = look("--set", "other")
    assert (code, levels(rows)["op.environment"]) == (1, "fail")
    assert "poll: the recording run failed (ConnectionRefusedError); nothing to replay" in said(rows, "op.environment")


def test_r36_sets_without_a_test_empty_and_unfinished_ones(here: Path, look: Any) -> None:
    (here / "tests").mkdir()
    (here / "tests/test_shop.py").write_text("class TestShop:\n    def test_buy(self): ...\n\ndef test_sell(): ...\n")
    place = here / ".playhead/fixtures"
    for name, node in {
        "there": "tests/test_shop.py::TestShop::test_buy[1-x]",
        "plain": "tests/test_shop.py::test_sell",
        "renamed": "tests/test_shop.py::test_refund",
        "moved": "tests/test_other.py::test_sell",
    }.items():
        recorded("a", set=name)
        edit(place / name / "recording.json", test=node)
    (place / "nothing").mkdir()
    (place / ".partial/run-1").mkdir(parents=True)
    edit(place / "plain/recording.json", complete=False, incomplete="RuntimeError")
    code, rows = look()
    found = sorted((row["check"], row["subject"]) for row in rows if row["level"] == "warn")
    assert (code, found) == (
        0,
        [
            ("set.empty", "nothing"), ("set.incomplete", ".partial/run-1"), ("set.incomplete", "plain"),
            ("set.orphan", "moved"), ("set.orphan", "renamed"),
        ],
    )  # fmt: skip
    assert "no test tests/test_other.py::test_sell any more" in said(rows, "set.orphan")
    assert look("--strict")[0] == 1


def test_names_that_are_one_where_case_does_not_count(look: Any) -> None:
    recorded("a", set="Checkout")
    recorded("a", set="checkout")
    code, rows = look()
    assert (code, levels(rows)["name.fold"]) == (1, "fail")


def test_secrets_that_cannot_be_kept_apart(here: Path, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["DIGIT", "ONE_NAME", "TWO_NAME"]\n')
    monkeypatch.setenv("DIGIT", "1")
    monkeypatch.setenv("ONE_NAME", "same-value-same")
    monkeypatch.setenv("TWO_NAME", "same-value-same")
    recorded("a")
    code, rows = look()
    assert (code, levels(rows)["secret.short"], levels(rows)["secret.equal"]) == (0, "warn", "warn")
    assert "DIGIT is shorter than 4 characters" in said(rows, "secret.short")
    assert "same-value" not in json.dumps(rows)


# what only the ops themselves can tell

OPS = """
import playhead

@playhead.op("shop.total", effect="read", version="1")
def total(basket: str, limit: int = 5, token: str = "") -> dict[str, int]:
    return {"total": len(basket)}
"""


@pytest.fixture
def shop(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Writes, and imports anew, the module of ops that the settings name."""
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    (here / "pyproject.toml").write_text('[tool.playhead.fixtures]\nops = ["shop_ops"]\n')

    def written(text: str) -> Any:
        sys.modules.pop("shop_ops", None)
        (here / "shop_ops.py").write_text(text)
        linecache.clearcache()
        module: Any = ModuleType("shop_ops")
        sys.modules["shop_ops"] = module
        exec(compile(text, str(here / "shop_ops.py"), "exec"), module.__dict__)
        return module

    yield written
    sys.modules.pop("shop_ops", None)


def test_an_op_without_a_recording(look: Any, shop: Any) -> None:
    recorded("a")
    shop(OPS)
    code, rows = look()
    assert (code, levels(rows)["op.none"]) == (1, "fail")
    assert "shop.total: no recorded fixture in" in said(rows, "op.none")
    assert look("--no-import")[0] == 0
    assert look("--set", "")[0] == 0  # one set need not have every op


@pytest.mark.parametrize(
    ("old", "new", "check", "level", "words"),
    [
        ("limit: int = 5", "limit: int = 10", "file.default", "fail", "default of limit was 5, is 10"),
        ("dict[str, int]", "dict[str, str]", "file.output", "fail", "/total"),
        ('{"total": len(basket)}', '{"total": 0}', "file.outdated", "warn", "recorded with other code of shop.total"),
        ('version="1"', 'version="2"', "file.outdated", "warn", "(op_version"),
        ('"shop.total"', '"shop.sum"', "file.orphan", "warn", "no op shop.total any more"),
    ],
)
def test_recordings_that_do_not_fit_their_op(
    look: Any, shop: Any, old: str, new: str, check: str, level: str, words: str
) -> None:
    module = shop(OPS)
    with playhead.fixtures("record"):
        module.total("abc")
    assert look("--strict")[0] == 0
    shop(OPS.replace(old, new))
    _, rows = look()
    assert (levels(rows)[check], words in said(rows, check)) == (level, True)


def test_a_credential_that_only_the_key_holds(look: Any, shop: Any, here: Path) -> None:
    module = shop(OPS)
    with playhead.fixtures("record"):
        module.total("abc", token="tok-1234567890")
    code, rows = look()
    assert (code, levels(rows)["op.credential"]) == (0, "warn")
    assert "argument token is part of the key as a hash" in said(rows, "op.credential")


def test_a_key_that_configured_secrets_are_out_of_is_made_again(
    look: Any, shop: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = shop(OPS)
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["SHOP_TOKEN"]\n')
    monkeypatch.setenv("SHOP_TOKEN", "tok-1234567890")
    with playhead.fixtures("record"):
        module.total("abc", token="tok-1234567890")
    assert look("--strict")[0] == 0
    (path,) = files(here)
    path.write_text(path.read_text().replace('"abc"', '"abz"'))
    assert levels(look()[1])["file.key"] == "fail"


@pytest.mark.parametrize(
    "text", ["raise RuntimeError('no')", "import socket; socket.getaddrinfo('example.com', 80)", "nonsense("]
)
def test_ops_that_cannot_be_imported(look: Any, shop: Any, here: Path, text: str) -> None:
    recorded("a")
    sys.modules.pop("shop_ops", None)
    (here / "shop_ops.py").write_text(text)
    assert look()[0] == 3
    assert look("--no-import")[0] == 0


def test_a_folder_that_is_none(look: Any, here: Path) -> None:
    (here / "fixtures").write_text("")
    assert look("--dir", "fixtures")[0] == 3


def test_the_doctor_of_everything_names_the_one_of_fixtures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from playhead.cli.context import Context
    from playhead.cli.doctor import _fixtures  # pyright: ignore[reportPrivateUsage]

    assert list(_fixtures(Context())) == []
    recorded("a", "a")
    assert [found.state for found in _fixtures(Context())] == ["ok"]
    files(here)[0].unlink()
    (found,) = _fixtures(Context())
    assert (found.state, found.fix) == ("problem", "playhead fixtures doctor")
