"""URLs, paths and places to stores."""

from pathlib import Path

import pytest

from playhead.errors import NotFoundError, UsageError
from playhead.store.memory import MemoryStore
from playhead.store.open import find_store, open_store
from playhead.store.sqlite import SqliteStore


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
def test_a_path_is_a_sqlite_store(tmp_path: Path, form: str) -> None:
    path = tmp_path / "with space" / "store.db"
    store = open_store(form.format(path))
    assert isinstance(store, SqliteStore)
    assert store.path == path
    assert store.url == f"sqlite:///{path}"
    store.close()
    again = open_store(store.url, create=False)
    again.close()


def test_a_percent_in_a_url_is_decoded(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a%20b.db")
    assert (tmp_path / "a b.db").exists()
    store.close()


def test_a_relative_url_is_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    assert (tmp_path / "here.db").exists()


def test_a_folder_means_its_store(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    assert (tmp_path / "store.db").exists()


def test_memory_is_a_new_store_each_time() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    assert open_store("memory:") is not open_store("memory:")


def test_a_missing_store_is_not_made_unless_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no\.db"):
        open_store(tmp_path / "no.db", create=False)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:hunter2@db/x", "not in this version"),
        ("https://play.example.com", "not in this version"),
        ("redis://h", "not the URL"),
        ("sqlite://file.db", "not the URL"),
        ("sqlite:///", "not the URL"),
        ("", "empty"),
    ],
)
def test_other_urls_are_refused_without_telling_secrets(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


def test_the_nearest_project_upwards_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "b" / ".playhead").mkdir()  # without a store in it: not a project's
    assert find_store(inner) is None
    for folder in (tmp_path, tmp_path / "a"):
        (folder / ".playhead").mkdir()
        (folder / ".playhead" / "store.db").touch()
    assert find_store(inner) == tmp_path / "a" / ".playhead" / "store.db"
    assert find_store(tmp_path) == tmp_path / ".playhead" / "store.db"


def test_a_relative_start_is_searched_upwards_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".playhead").mkdir()
    (tmp_path / ".playhead" / "store.db").touch()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert find_store(Path()) == tmp_path / ".playhead" / "store.db"
