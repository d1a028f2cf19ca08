"""`playhead fixtures rekey`, `prune` and `diff`: a plan first, and nothing is written or removed without --yes."""
# ruff: noqa: SIM117 - the block is what is tested

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.start import main
from playhead.errors import MissingFixtureError

from .conftest import counted, files


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    def ran(*words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(["fixtures", *words, "--output", "json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    return ran


def recorded(*asked: str, **options: Any) -> Any:
    poll = counted()
    with playhead.fixtures("record", **options):
        for q in asked:
            poll(q)
    return poll


def tree(here: Path) -> dict[str, bytes]:
    place = here / ".playhead/fixtures"
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


# rekey


def test_edited_arguments_get_a_key_of_their_own(here: Path, run: Any) -> None:
    poll = recorded("a", "b")
    path = next(path for path in files(here) if '"q": "a"' in path.read_text())
    path.write_text(path.read_text().replace('"q": "a"', '"q": "z"'))
    before = tree(here)
    code, said = run("rekey")
    assert (code, len(said["changes"]), said["written"], tree(here)) == (0, 1, False, before)
    assert run("rekey", path.name, "--yes")[0] == 0
    with playhead.fixtures("replay", strict=True):
        assert poll("z") == {"n": 1}
        assert poll("b") == {"n": 2}
    assert run("rekey")[1]["changes"] == []
    assert main(["fixtures", "doctor", "--output", "json"]) == 0


def test_edited_arguments_that_are_there_already_become_a_further_occurrence(here: Path, run: Any) -> None:
    poll = recorded("a", "b")
    path = next(path for path in files(here) if '"q": "a"' in path.read_text())
    path.write_text(path.read_text().replace('"q": "a"', '"q": "b"'))
    run("rekey", "--yes")
    with playhead.fixtures("replay", strict=True):
        assert [poll("b")["n"], poll("b")["n"]] == [2, 1]


def test_r10_keys_of_an_older_release_still_answer_and_can_be_made_anew(
    here: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["ONE_NAME"]\n')
    monkeypatch.setenv("ONE_NAME", "tok-1234567890")

    @playhead.op("f", effect="read")
    def f(q: str, token: str = "") -> str:
        return q.upper()

    poll = recorded("a", "a")
    with playhead.fixtures("record"):
        f("x", token="tok-1234567890")
        f("y", token="tok-of-somebody")
    for module in ("keys", "fixtures.file"):
        monkeypatch.setattr(f"playhead.core.{module}.KEY_VERSION", 2)
    monkeypatch.setattr("playhead.engine.fixtures.rekey.KEY_VERSION", 2)
    from playhead.core import keys

    keys._head.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        monkeypatch.delenv("ONE_NAME")
        with playhead.fixtures("replay"):
            assert [poll("a")["n"], poll("a")["n"]] == [1, 2]
            assert f("x", token="[REDACTED:ONE_NAME]") == "X"
        with pytest.raises(MissingFixtureError):
            with playhead.fixtures("replay"):
                f("y", token="tok-of-somebody")
        code, said = run("rekey", "--yes")
        assert (code, len(said["changes"]), len(said["impossible"])) == (1, 3, 1)
        assert said["impossible"][0]["file"].startswith("op.f.")
        assert "record" in said["impossible"][0]["record"]
        assert sorted('"key": "2:' in path.read_text() for path in files(here)) == [False, True, True, True]
        with playhead.fixtures("replay"):
            assert [poll("a")["n"], poll("a")["n"]] == [1, 2]
    finally:
        keys._head.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_a_file_with_a_secret_or_without_sense_gets_no_key(
    here: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("a", "b")
    one, two = files(here)
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    one.write_text(one.read_text().replace('"q": "', '"q": "hunter2-hunter2'))
    two.write_text("{}")
    before = tree(here)
    code, said = run("rekey", "--yes")
    assert (code, said["changes"], len(said["impossible"]), tree(here)) == (1, [], 2, before)
    assert "hunter2" not in json.dumps(said)


def test_what_is_shown_of_an_edited_file_holds_no_secret(here: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("a")
    (path,) = files(here)
    path.write_text(path.read_text().replace('"n": 1', '"n": "hunter2-hunter2"'))
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    recorded("a", set="new")
    for words in (("show", str(path)), ("diff", "", "new")):
        said = run(*words)[1]
        assert "hunter2" not in json.dumps(said)
        assert "[REDACTED:STRIPE_SECRET]" in json.dumps(said)


def test_a_recorded_error_is_shown(here: Path, run: Any) -> None:
    poll = counted(lambda n: playhead.OpError("gone", status=410))
    with playhead.fixtures("record"):
        with pytest.raises(playhead.OpError):
            poll("a")
    code, said = run("show", files(here)[0].name)
    assert (code, said["outcome"]["error"]["status"]) == (0, 410)


# prune


def test_what_nothing_needs_goes_and_the_rest_stays(here: Path, run: Any) -> None:
    place = here / ".playhead/fixtures"
    (here / "tests").mkdir()
    (here / "tests/test_a.py").write_text("def test_there(): ...\n")
    recorded("a")
    for name, node in (("kept", "tests/test_a.py::test_there"), ("lost/one", "tests/test_a.py::test_gone")):
        recorded("a", set=name)
        report = place / name / "recording.json"
        report.write_text(json.dumps(json.loads(report.read_text()) | {"test": node}))
    (place / "empty").mkdir()
    (place / "bodies").mkdir()
    (place / "bodies" / ("0" * 64)).write_text('"nothing has it"')
    for name, age in (("old", 7200), ("running", 0)):
        (place / ".partial" / name).mkdir(parents=True)
        (place / ".partial" / name / "x.json").write_text("{}")
        for path in (place / ".partial" / name / "x.json", place / ".partial" / name):
            os.utime(path, (path.stat().st_mtime - age, path.stat().st_mtime - age))
    before = tree(here)
    code, said = run("prune")
    assert (code, tree(here)) == (0, before)
    assert sorted((each["kind"], each["path"]) for each in said["items"]) == [
        ("body", "bodies/" + "0" * 64), ("empty", "empty"), ("run", ".partial/old"), ("test", "lost/one"),
    ]  # fmt: skip
    run("prune", "--yes")
    left = {name.rpartition("/")[0] for name in tree(here)}
    assert left == {"", "kept", ".partial/running"}
    assert not (place / "lost").exists()
    assert run("prune")[1]["items"] == []


def test_files_of_ops_that_are_gone_go_by_the_settings(here: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    recorded("a")
    (here / "pyproject.toml").write_text('[tool.playhead.fixtures]\nops = ["pruned_ops"]\n')
    (here / "pruned_ops.py").write_text(
        'import playhead\n@playhead.op("g", effect="read")\ndef g() -> int:\n    return 1\n'
    )
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    assert run("prune", "--no-import")[1]["items"] == []
    assert [each["kind"] for each in run("prune", "--yes")[1]["items"]] == ["op"]
    assert files(here) == []
    assert json.loads((here / ".playhead/fixtures/recording.json").read_text())["files"] == 0
    sys.modules.pop("pruned_ops")


# diff


def test_two_sets_two_folders_and_two_files(here: Path, run: Any) -> None:
    recorded("x", "a", "b", set="one")
    recorded("x", "b", "c", set="two")
    code, said = run("diff", "one", "two")
    assert (code, said["counts"]) == (1, {"same": 1, "changed": 1, "new": 1, "gone": 1})
    changed = next(each for each in said["items"] if each["status"] == "changed")
    assert changed["args"] == {"q": "b"}
    assert changed["differences"] == [{"pointer": "/value/n", "before": "3", "after": "2"}]
    assert run("diff", "one", "one")[0] == 0
    place = here / ".playhead/fixtures"
    assert run("diff", str(place / "one"), str(place / "two"))[1]["counts"] == said["counts"]
    a, b = (next(path for path in (place / "one").glob("op*") if f'"q": "{q}"' in path.read_text()) for q in "ab")
    assert run("diff", str(a), str(b))[1]["items"][0]["differences"][0]["pointer"] == "/value/n"
    assert run("diff", "nothing", "two")[0] == 2


def test_the_folder_and_a_revision_of_git(here: Path, run: Any) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        subprocess.run(["git", *who, *words], cwd=here, check=True, capture_output=True)

    recorded("a", "b")
    recorded("s", set="deep/set")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert run("diff")[0] == 0
    for path in files(here):
        path.write_text(path.read_text().replace('"n": 1', '"n": 7'))
    code, said = run("diff", "--git", "HEAD")
    assert (code, said["counts"]) == (1, {"same": 2, "changed": 1, "new": 0, "gone": 0})
    assert run("diff", "--git", "no-such-revision")[0] == 2


def test_findings_name_the_set_of_a_file_and_commands_take_that_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    poll = counted(lambda n: {"n": n, "text": "\x1b[31m" + "y" * 100})
    for name in ("one", "two"):
        with playhead.fixtures("record", set=name):
            poll("a")
    (path,) = (here / ".playhead/fixtures/two").glob("op.*")
    path.write_text(path.read_text().replace('"q": "a"', '"q": "b"'))

    def said(*words: str) -> str:
        main(["fixtures", *words])
        return capsys.readouterr().out

    (found,) = [each for each in json.loads(said("doctor", "--output", "json"))["items"] if each["level"] == "fail"]
    assert (found["check"], found["subject"]) == ("file.key", f"two/{path.name}")
    assert found["fix"] == f"if the edit is meant: playhead fixtures rekey two/{path.name}"
    changes = json.loads(said("rekey", f"two/{path.name}", "--output", "json"))["changes"]
    assert [(each["set"], each["file"]) for each in changes] == [("two", path.name)]
    shown = said("show", f"one/{path.name}", "--output", "text")
    assert "y" * 100 in shown
    assert "\x1b" not in shown
