"""Finding a project, its settings and its store."""

from pathlib import Path

import pytest

from playhead.core.policy import PassthroughConfig
from playhead.engine import project
from playhead.engine.project import credentials, find_project, prepare, secret_values
from playhead.errors import ConfigError, StoreError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_project_is_found_upwards(tmp_path: Path):
    (tmp_path / ".playhead").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    found = find_project(tmp_path / "a" / "b")
    assert found.root == tmp_path
    assert found.url == str(tmp_path / ".playhead" / "store.db")


def test_without_a_project_the_root_of_the_code_is_taken(tmp_path: Path):
    write(tmp_path / "pyproject.toml", "[project]\nname = 'x'\n")
    (tmp_path / "src").mkdir()
    assert find_project(tmp_path / "src").root == tmp_path


def test_the_home_folder_is_no_project_of_everything_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    assert find_project(tmp_path / "work").root == tmp_path / "work"


def test_the_url_comes_from_the_argument_then_the_environment_then_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path / ".playhead" / "config.toml", 'url = "settings.db"\n')
    assert find_project(tmp_path).url == "settings.db"
    monkeypatch.setenv("PLAYHEAD_URL", "environment.db")
    assert (find_project(tmp_path).url, find_project(tmp_path).url_source) == ("environment.db", "PLAYHEAD_URL")
    assert find_project(tmp_path, url="argument.db").url == "argument.db"


@pytest.mark.parametrize("file", [".playhead/config.toml", "pyproject.toml"])
def test_settings_are_read_from_either_file(tmp_path: Path, file: str):
    table = "" if file.startswith(".") else "[tool.playhead]\n"
    rest = 'secrets = ["STRIPE_*"]\n'
    nested = "recording" if file.startswith(".") else "tool.playhead.recording"
    policy = nested.replace("recording", "tool_policy.default")
    write(tmp_path / file, f'{table}{rest}[{nested}]\nsize_limit = 1000\n[{policy}]\ntype = "passthrough"\n')
    (tmp_path / ".playhead").mkdir(exist_ok=True)
    found = find_project(tmp_path)
    assert found.source == tmp_path / file
    assert (found.settings.secrets, found.settings.recording.size_limit) == (("STRIPE_*",), 1000)
    assert found.settings.tool_policy is not None
    assert found.settings.tool_policy.default == PassthroughConfig()


def test_settings_in_two_files_are_refused(tmp_path: Path):
    write(tmp_path / ".playhead" / "config.toml", "")
    write(tmp_path / "pyproject.toml", "[tool.playhead]\n")
    with pytest.raises(ConfigError, match="two places"):
        find_project(tmp_path)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('secret = ["X"]\n', "unknown setting 'secret'", "secrets"),
        ("[recording]\nsize_limits = 3\n", "unknown setting 'recording.size_limits'", "size_limit"),
        ("wholly_unknown = 3\n", "wholly_unknown", "known are"),
        ("[recording]\nqueue_size = 0\n", "recording.queue_size", None),
        ("[[[\n", "cannot be read", None),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(tmp_path: Path, text: str, message: str, hint: str | None):
    write(tmp_path / ".playhead" / "config.toml", text)
    with pytest.raises(ConfigError, match=message) as caught:
        find_project(tmp_path)
    assert hint is None or (caught.value.hint and hint in caught.value.hint)


def test_secrets_are_named_or_globbed_and_credentials_are_known_by_their_names():
    environment = {"STRIPE_KEY": "sk_live_1", "MY_TOKEN": "12345678", "EMPTY_TOKEN": "", "PATH": "/usr/bin:/bin"}
    assert secret_values(("STRIPE_KEY", "*_TOKEN"), environment) == {"STRIPE_KEY": "sk_live_1", "MY_TOKEN": "12345678"}
    assert credentials({**environment, "DB_PASSWORD": "short"}) == {"MY_TOKEN": "12345678"}


def test_a_new_project_folder_keeps_recordings_out_of_version_control(tmp_path: Path):
    prepare(tmp_path / ".playhead")
    assert "*" in (tmp_path / ".playhead" / ".gitignore").read_text().splitlines()


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make"):
        prepare(tmp_path / "file" / ".playhead")


def test_the_recorder_of_the_process_is_opened_once_into_the_projects_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".playhead").mkdir()
    monkeypatch.chdir(tmp_path)
    before = project.use_recorder(None)
    try:
        made = project.default_recorder()
        assert project.default_recorder() is made
        assert (tmp_path / ".playhead" / "store.db").exists()
        made.close()
        made.store.close()
    finally:
        project.use_recorder(before)
