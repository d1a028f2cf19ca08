"""Stores, files and settings from the command line, good ones and bad ones."""

import json
import sqlite3
from pathlib import Path

import pytest

from playhead.store.open import FILE, FOLDER

from .conftest import Project

STORE = Path(FOLDER, FILE)


def test_a_project_begins_with_init(empty: Project) -> None:
    none = empty("session", "list")
    assert (none.code, none.error["code"]) == (2, "not_found")
    made = empty("init")
    assert made.json["created"] is True
    assert (empty.folder / STORE).is_file()
    assert (empty.folder / STORE).stat().st_mode & 0o077 == 0
    assert "*" in (empty.folder / FOLDER / ".gitignore").read_text().split("\n")
    assert empty("init").json["created"] is False
    assert empty("session", "list").json == {"items": [], "next_cursor": None}


def test_the_project_is_found_upwards(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    below = project.folder / "deep" / "below"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert len(project("session", "list").json["items"]) == 3


def test_another_store_is_chosen_by_option_or_environment(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.db"
    assert project("init", "--url", f"sqlite:///{other}").json["created"] is True
    assert project("session", "list", "--url", str(other)).json["items"] == []
    monkeypatch.setenv("PLAYHEAD_URL", f"sqlite:///{other}")
    assert project("session", "list").json["items"] == []
    assert {row["setting"]: row["source"] for row in project("config").json["items"]}["store"] == "PLAYHEAD_URL"
    assert len(project("session", "list", "--url", str(project.folder / STORE)).json["items"]) == 3


def test_export_and_import_lose_nothing(project: Project, tmp_path: Path) -> None:
    shown = project("session", "show", "last").json
    tree = project("session", "tree", "last").json
    kept = tmp_path / "kept.jsonl"
    done = project("session", "export", "last", "--to", str(kept))
    assert done.json["sessions"] == 1
    assert kept.stat().st_mode & 0o077 == 0
    assert project("session", "delete", "last", "--yes").json == {"deleted": [shown["id"]]}
    assert project("session", "show", shown["id"]).code == 2
    first, again = (project("import", str(kept)).json for _ in range(2))
    assert (first["created"], again["unchanged"], again["created"]) == (1, 1, 0)
    assert project("session", "show", shown["id"]).json == shown
    assert project("session", "tree", shown["id"]).json == tree


def test_export_goes_to_standard_output_when_no_file_is_named(project: Project) -> None:
    process = project.start("session", "export", "--agent", "shop")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    kinds = [json.loads(line)["r"] for line in out.splitlines()]
    assert (kinds[0], kinds[-1]) == ("header", "end")


@pytest.mark.parametrize(
    "words",
    [
        ["session", "export"],
        ["session", "export", "last", "--agent", "shop"],
        ["session", "export", "last", "--format", "bundle"],
        ["session", "export", "--since", "1h", "--format", "bundle", "--to", "x"],
        ["session", "export", "last", "--format", "yaml"],
        ["import"],
        ["import", "nothere.json"],
        ["import", "shop.py"],
        ["session", "delete", "last"],
        ["session", "list", "--since", "yesterday"],
        ["session", "show", "zzzz"],
        ["session", "show", "0"],
    ],
)
def test_what_does_not_fit_is_a_usage_error(project: Project, words: list[str]) -> None:
    done = project(*words)
    assert done.code == 2
    assert len(project("session", "list").json["items"]) == 3


def test_an_ambiguous_id_lists_what_it_fits(project: Project) -> None:
    ids = [session["id"] for session in project("session", "list").json["items"]]
    done = project("session", "show", ids[0][:4])
    assert done.error["code"] == "ambiguous_id"
    assert any(id in done.error["message"] for id in ids)


def test_one_bad_record_is_reported_and_does_not_stop_the_rest(project: Project, tmp_path: Path) -> None:
    good = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(good) + "\n{broken\n")
    done = project("import", str(path), "--format", "openai_chat", "--report", str(tmp_path / "report.json"))
    assert done.code == 1
    assert (done.json["created"], done.json["failed"]) == (1, 1)
    assert done.json["errors"][0]["line"] == 2
    assert json.loads((tmp_path / "report.json").read_text()) == done.json
    text = project("import", str(path), "--format", "openai_chat", "--dry-run", "--output", "text").out
    assert "would import" in text
    assert "chats.jsonl:2" in text


def test_formats_are_listed(project: Project) -> None:
    assert {"playhead", "openai_chat", "otlp"} <= {
        row["format"] for row in project("import", "--list-formats").json["items"]
    }


@pytest.mark.parametrize(
    ("content", "code"), [(b"this is no database" * 100, "store_damaged"), (None, "store_version")]
)
def test_a_store_that_cannot_be_used_is_left_alone(project: Project, content: bytes | None, code: str) -> None:
    path = project.folder / STORE
    if content is None:
        with sqlite3.connect(path) as opened:
            opened.execute("UPDATE alembic_version SET version_num = '9999'")
        opened.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    done = project("session", "list")
    assert (done.code, done.error["code"]) == (3, code)
    assert done.error["hint"]
    assert path.read_bytes() == before
    doctor = project("doctor")
    assert doctor.code == 1
    assert [row["check"] for row in doctor.json["items"] if row["state"] == "problem"]


def test_the_doctor_finds_nothing_in_a_sound_project(project: Project) -> None:
    done = project("doctor")
    assert done.code == 0
    assert {row["state"] for row in done.json["items"]} <= {"ok", "info"}
    assert any(row["check"] == "agent shop@1" for row in done.json["items"])


def test_the_doctor_names_what_is_damaged_inside(project: Project) -> None:
    with sqlite3.connect(project.folder / STORE) as opened:
        opened.execute("DELETE FROM sessions WHERE pk = (SELECT max(pk) FROM sessions)")
    opened.close()
    done = project("doctor", "--output", "text")
    assert done.code == 1
    assert "problem" in done.out


@pytest.mark.parametrize(
    ("text", "part"), [("secrts = []", "secrets"), ("timeout = -1", "timeout"), ("secrets = [", "config.toml")]
)
def test_bad_settings_are_refused_with_what_is_wrong(project: Project, text: str, part: str) -> None:
    (project.folder / FOLDER / "config.toml").write_text(text)
    done = project("session", "list")
    assert (done.code, done.error["code"]) == (2, "config")
    assert part in f"{done.error['message']} {done.error['hint']}"


def test_config_says_where_each_setting_comes_from(project: Project) -> None:
    (project.folder / FOLDER / "config.toml").write_text('llm_model = "openai:gpt-x"\n')
    rows = {row["setting"]: row for row in project("config").json["items"]}
    assert rows["llm_model"]["value"] == "openai:gpt-x"
    assert rows["llm_model"]["source"].endswith("config.toml")
    assert rows["timeout"]["source"] == "default"
    assert "openai:gpt-x" in project("config", "--output", "text").out


def test_hostile_recorded_text_does_nothing_to_a_terminal(project: Project) -> None:
    for words in (["session", "tree", "last"], ["session", "show", "last"], ["session", "list"]):
        shown = project(*words, "--output", "text").out
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "\\u001b[31mred\\u202e" in project("session", "tree", "last", "--width", "200", "--output", "text").out


def test_a_reader_that_leaves_early_is_no_error(project: Project) -> None:
    process = project.start("session", "tree", "last", "--output", "text")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (0, "")


def test_output_is_text_for_people_and_json_for_programs(project: Project) -> None:
    assert project("session", "list").out.startswith("{")
    lines = project("session", "list", "--output", "jsonl").out.splitlines()
    assert [json.loads(line)["agent"] for line in lines] == ["shop", "slow", "quiet"]
    assert project("session", "list", "--output", "text").out.startswith("id ")
