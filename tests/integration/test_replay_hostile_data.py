"""Whole runs and replays with values that break things, on disks that take nothing, and with secrets everywhere."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.values import FidelityKind, ReplayStatus
from playhead.engine.project import use_recorder
from playhead.engine.recorder import Recorder
from playhead.errors import RefusedError, StoreReadOnlyError
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore

LIVE: list[str] = []


@playhead.tool
def echo(value: Any) -> Any:
    LIVE.append("echo")
    return value


@playhead.agent("desk")
def desk(value: Any) -> Any:
    return echo(value)


def nested(depth: int) -> Any:
    made: Any = "core"
    for n in range(depth):
        made = [made] if n % 2 else {"k": made}
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: "a\ud800b\udfff",
        lambda: {"\udc00key": ["\ud83d", "\ude00"]},
        lambda: {"nul": "a\x00b", "line": "\u2028", "big": 2**70, "minus": -0.0},
        lambda: "x" * 15_000_000,
        lambda: nested(100),
    ],
    ids=["lone surrogates", "surrogate keys", "odd characters", "15 MB", "100 levels"],
)
def test_a_value_goes_through_a_recording_and_its_replay(project: Path, make: Any):
    value = make()
    desk(value)
    LIVE.clear()
    result = playhead.replay("last", agent=desk)
    assert (result.error, result.fidelity.kind, LIVE) == (None, FidelityKind.FAITHFUL, [])
    assert [row.by for row in result.ledger] == ["served"]


def test_inputs_of_10_000_levels_are_refused_by_name(project: Path):
    value = nested(10_000)
    assert desk(value) is value
    with pytest.raises(RefusedError, match=r"input 'value' cannot be stored.*too_deep"):
        playhead.replay("last", agent=desk)


def test_a_result_of_10_000_levels_is_a_miss_that_says_so(project: Path):
    value = nested(10_000)

    @playhead.tool
    def deep() -> Any:
        LIVE.append("deep")
        return value

    @playhead.agent("deep desk")
    def ask(prompt: str) -> str:
        deep()
        return "done"

    ask("q")
    LIVE.clear()
    result = playhead.replay("last", agent=ask)
    assert result.error is not None
    assert ("too_deep" in result.error.message, result.error.code, LIVE) == (True, "miss", [])
    assert [row.by for row in result.ledger] == ["missed"]


# disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def on_disk(disk: Path) -> Iterator[tuple[Path, SqliteStore, Recorder]]:
    store = SqliteStore(disk / "store.db")
    recorder = Recorder(store, spool=disk / "spool")
    before = use_recorder(recorder)
    yield disk, store, recorder
    recorder.close(5)
    use_recorder(before)
    store.close()


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 4096) == 4096:
            pass


def test_a_disk_that_is_really_full_takes_nothing_from_the_agent_nor_from_what_was_stored(
    on_disk: tuple[Path, SqliteStore, Recorder],
):
    disk, store, recorder = on_disk
    assert desk("kept") == "kept"
    assert recorder.flush()
    kept = store.sessions.find(SessionQuery()).items[0].id
    fill(disk / "filler")
    for _ in range(20):
        value = os.urandom(200_000).hex()
        assert desk(value) == value
    assert not recorder.flush(5)
    assert store.sessions.get(kept).output == "kept"
    assert store.sessions.nodes(kept)[0].outcome.value == "kept"  # pyright: ignore[reportOptionalMemberAccess]
    (disk / "filler").unlink()
    assert desk("kept again") == "kept again"
    assert recorder.flush()
    again = SqliteStore(disk / "store.db")
    assert {s.output for s in again.sessions.find(SessionQuery()).items} >= {"kept", "kept again"}
    again.close()


def test_a_read_only_disk_takes_nothing_from_the_agent_and_refuses_a_replay_clearly(
    disk: Path, monkeypatch: pytest.MonkeyPatch
):
    (disk / ".playhead").mkdir()
    monkeypatch.chdir(disk)
    before = use_recorder(None)
    try:
        desk("kept")
        made = use_recorder(None)
        assert made is not None
        made.close()
        made.store.close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert desk("not stored") == "not stored"
        LIVE.clear()
        with pytest.raises(StoreReadOnlyError) as caught:
            playhead.replay("last", agent=desk)
        assert (caught.value.exit_code, LIVE) == (3, [])
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        result = playhead.replay("last", agent=desk)
        assert (result.baseline.output, result.fidelity.kind) == ("kept", FidelityKind.FAITHFUL)
    finally:
        left = use_recorder(before)
        if left is not None:
            left.close()
            left.store.close()


# secrets

CANARY = "cnry-5f1e7d80b2a94c33-zz"


class ShopError(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = f"code {CANARY}"
        self.__cause__ = ValueError(f"caused by {CANARY}")


@playhead.tool
def fetch(url: str, headers: dict[str, str]) -> Any:
    if "fail" in url:
        raise ShopError(f"401 for {url}?key={CANARY}")
    return {"echo": headers, CANARY: [CANARY.encode(), f"https://u:{CANARY}@shop"]}


def shopping(*urls: str) -> Any:
    @playhead.agent("shop")
    def shop(prompt: str) -> Any:
        found: list[Any] = []
        for url in urls:
            try:
                found.append(fetch(url, {"authorization": f"Bearer {CANARY}"}))
            except Exception as error:
                found.append(str(error))
        logging.getLogger("shop").debug("done")
        if "raise" in prompt:
            raise RuntimeError(f"gave up with {CANARY}")
        return found

    return shop


def test_a_secret_stands_in_no_file_and_no_report_of_a_recording_and_its_replays(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("SHOP_API_KEY", CANARY)
    (project / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["SHOP_API_KEY"]\n')
    caplog.set_level(logging.DEBUG)

    ordinary, failing, missing = shopping("a", "fail"), shopping("a"), shopping("a", f"other {CANARY}")
    ordinary(f"say {CANARY}")
    results = [playhead.replay("last", agent=ordinary)]
    with pytest.raises(RuntimeError):
        failing(f"raise {CANARY}")
    results.insert(0, playhead.replay("last", agent=failing))
    results.append(playhead.replay(results[1].baseline.id, agent=missing))
    assert results[2].status is ReplayStatus.FAILED
    assert [r.session.agent for r in results] == ["shop"] * 3
    said = [repr(results[2].error), repr([r.ledger for r in results]), repr([r.comparison for r in results])]
    said += [repr([r.replay for r in results]), caplog.text]
    for command in (
        ["session", "export", "last", "--format", "jsonl"],
        ["replay", "get", results[2].id, "--output", "text"],
        ["replay", "compare", results[2].id, "--output", "json"],
    ):
        said.append(in_a_terminal(project, command))
    files = [path.read_bytes() for path in (project / ".playhead").rglob("*") if path.is_file()]
    store = SqliteStore(project / ".playhead" / "store.db")
    for item in store.sessions.find(SessionQuery()).items:
        said.append(repr(item) + repr(store.sessions.nodes(item.id)))
    store.close()
    forms = [CANARY, CANARY.encode().hex(), json.dumps(CANARY)[1:-1]]
    assert all("[REDACTED:SHOP_API_KEY]" in text for text in said[-5:])
    for form in forms:
        assert not [text[max(0, text.find(form) - 80) :][:200] for text in said if form in text]
        assert not [len(data) for data in files if form.encode() in data]


def in_a_terminal(folder: Path, words: list[str]) -> str:
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("playhead")), *words], cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "SHOP_API_KEY": CANARY},
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout + ran.stderr
