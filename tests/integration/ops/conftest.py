"""A project of its own, and an op that counts its live calls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own."""
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("CI", "PYTEST_CURRENT_TEST", "PLAYHEAD_MODE"):
        monkeypatch.delenv(name, raising=False)
    return folder


def files(here: Path) -> list[Path]:
    return sorted((here / ".playhead/fixtures").glob("op.*.json"))


def document(here: Path) -> dict[str, Any]:
    (path,) = files(here)
    return json.loads(path.read_text())


def counted(answers: Callable[[int], Any] = lambda n: {"n": n}, **options: Any) -> Any:
    """An op ``poll`` that answers by the number of its live calls."""
    seen: list[str] = []

    @playhead.op("poll", effect="read", **options)
    def poll(q: str) -> Any:
        seen.append(q)
        answer = answers(len(seen))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    found: Any = poll
    found.seen = seen
    return found
