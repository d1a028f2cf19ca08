"""HTTP fixtures in a folder: modes, misses, and what a run comes to in the end."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

import playhead
from playhead.errors import (
    FixtureFormatError,
    FixtureRunError,
    MissingFixtureError,
    NoFixturesError,
    RefusedError,
    UsageError,
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own."""
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("CI", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    return folder


def files(here: Path, pattern: str = "**/*") -> list[str]:
    root = here / ".playhead" / "fixtures"
    return sorted(str(path.relative_to(root)) for path in root.glob(pattern) if path.is_file())


def only_file(here: Path) -> Path:
    (found,) = (here / ".playhead" / "fixtures").glob("http.*.json")
    return found


def record(url: str, *, count: int = 1, **options: Any) -> None:
    with playhead.fixtures("record", http=True, **options):
        for _ in range(count):
            requests.get(url, timeout=60)


def test_record_then_replay(here: Path, server: Any) -> None:
    url = f"{server.url}/json"
    with playhead.fixtures("record", http=True) as tape:
        live = requests.get(url, timeout=60).json()
    assert [row.status for row in tape.ledger] == ["recorded"]
    (name, report) = files(here)
    assert name.startswith("http.GET_127_0_0_1.")
    document = json.loads((here / ".playhead/fixtures" / name).read_text())
    assert (document["kind"], document["tool"], document["effect"]) == ("http", "GET 127.0.0.1", "read")
    assert document["args"] == {"url": url, "body": None}
    assert report == "recording.json"
    assert (here / ".playhead/fixtures" / name).stat().st_mode & 0o777 == 0o600
    with playhead.fixtures("replay", http=True) as tape:
        assert requests.get(url, timeout=60).json() == live
    assert (tape.mode, tape.served, tape.leftovers, tape.misses) == ("replay", 1, [], [])
    assert len(server.seen) == 1


def test_async_blocks_and_sets(here: Path, server: Any) -> None:
    import aiohttp

    async def ask() -> bytes:
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/count") as answer:
            return await answer.read()

    async def run(mode: str, name: str) -> bytes:
        async with playhead.fixtures(mode, set=name, http=True):
            return await ask()

    assert [asyncio.run(run("record", name)) for name in ("one", "deep/two")] == [b"1", b"2"]
    assert [asyncio.run(run("replay", name)) for name in ("deep/two", "one")] == [b"2", b"1"]
    with pytest.raises(UsageError):
        asyncio.run(run("record", "../out"))
    assert server.count("/count") == 2


def test_a_set_falls_back_to_the_shared_set(server: Any) -> None:
    record(f"{server.url}/json")
    with playhead.fixtures("replay", set="mine", http=True) as tape:
        requests.get(f"{server.url}/json", timeout=60)
    assert tape.served == 1


def test_a_miss_names_the_nearest_recording_and_ends_the_run_r08_r23(here: Path, server: Any) -> None:
    record(f"{server.url}/json?ts=1")
    with pytest.raises(MissingFixtureError) as caught, playhead.fixtures("replay", http=True):
        try:
            requests.get(f"{server.url}/json?ts=2", timeout=60)
        except Exception:  # as an application would
            pytest.fail("a miss must not be an ordinary exception")
    text = str(caught.value)
    assert text.startswith("no recording answers GET 127.0.0.1\n")
    assert f'differs  /url  recorded "{server.url}/json?ts=1", asked "{server.url}/json?ts=2"' in text
    assert "closest  http.GET_127_0_0_1." in text
    assert "1 recording of GET 127.0.0.1, 1 in all" in text
    assert "record   PLAYHEAD_MODE=record" in text
    assert "Nothing was run: mode is replay." in text
    assert caught.value.details["reason"] == "other_args"


def test_a_field_that_always_changes_is_ignored_r08(server: Any) -> None:
    rules: Any = {"ignore": ["/url/query/ts", "/body/json/id"]}
    for mode, ts in (("record", 1), ("replay", 2)):
        with playhead.fixtures(mode, http=True, **rules):
            requests.post(f"{server.url}/count?ts={ts}", json={"id": ts, "q": "a"}, timeout=60)
    assert len(server.seen) == 1


def test_a_swallowed_miss_fails_the_run_and_later_requests_stop_too_r23(server: Any) -> None:
    record(f"{server.url}/json")
    with pytest.raises(MissingFixtureError), playhead.fixtures("replay", http=True):
        for path in ("/other", "/json"):
            with suppress(BaseException):  # swallowed as thoroughly as can be
                requests.get(server.url + path, timeout=60)
    assert len(server.seen) == 1


def test_a_miss_can_be_an_ordinary_error_and_still_fails_the_run_r14(server: Any) -> None:
    record(f"{server.url}/count", count=3)
    answers: list[Any] = []
    with pytest.raises(FixtureRunError, match="all 3 recorded answers of GET"):
        with playhead.fixtures("replay", http=True, on_miss="error_result"):
            for _ in range(4):
                try:
                    answers.append(requests.get(f"{server.url}/count", timeout=60).json())
                except MissingFixtureError:
                    answers.append("missed")
    assert answers == [1, 2, 3, "missed"]


@pytest.mark.parametrize(("repeat", "served"), [("last", [1, 2, 3, 3, 3]), ("first", [1, 2, 3, 1, 1])])
def test_repeats_on_purpose_r15(server: Any, repeat: Any, served: list[int]) -> None:
    record(f"{server.url}/count", count=3)
    with playhead.fixtures("replay", http=True, repeat=repeat):
        assert [requests.get(f"{server.url}/count", timeout=60).json() for _ in range(5)] == served


def test_a_folder_where_the_last_recording_wins(here: Path, server: Any) -> None:
    record(f"{server.url}/count", count=3, sequence="last")
    assert len(files(here, "http.*.json")) == 1
    with playhead.fixtures("replay", http=True, sequence="last"):
        assert [requests.get(f"{server.url}/count", timeout=60).json() for _ in range(3)] == [3, 3, 3]


def test_recording_again_replaces_all_occurrences_of_a_key_and_no_other(here: Path, server: Any) -> None:
    record(f"{server.url}/count", count=3)
    record(f"{server.url}/json")
    record(f"{server.url}/count")
    assert len(files(here, "http.*.json")) == 2
    with playhead.fixtures("replay", http=True):
        assert requests.get(f"{server.url}/count", timeout=60).json() == 4
        requests.get(f"{server.url}/json", timeout=60)


def test_a_failed_run_leaves_the_old_fixtures_in_use_r25(here: Path, server: Any) -> None:
    record(f"{server.url}/count")
    with pytest.raises(ZeroDivisionError), playhead.fixtures("record", http=True):
        requests.get(f"{server.url}/count", timeout=60)
        raise ZeroDivisionError
    with playhead.fixtures("replay", http=True):
        assert requests.get(f"{server.url}/count", timeout=60).json() == 1
    assert len([name for name in files(here) if name.startswith(".partial/")]) == 3  # its file, a report, .gitignore


def test_replay_without_recordings_is_an_error_before_anything_runs_r21(here: Path) -> None:
    with pytest.raises(NoFixturesError, match="nothing is recorded") as caught, playhead.fixtures("replay", http=True):
        pytest.fail("nothing may run")
    assert "PLAYHEAD_MODE=record" in str(caught.value.hint)
    assert not (here / ".playhead/fixtures").exists()
    with playhead.fixtures("replay", http=True, allow_empty=True) as tape:
        assert tape.served == 0


def test_nothing_served_is_a_failure(server: Any) -> None:
    record(f"{server.url}/json")
    with pytest.raises(FixtureRunError, match="nothing was served"), playhead.fixtures("replay", http=True):
        pass


def test_leftovers_fail_a_strict_run_r37(server: Any) -> None:
    record(f"{server.url}/count", count=2)
    with pytest.raises(FixtureRunError, match=r"\.2\.json was recorded and not asked for"):
        with playhead.fixtures("replay", http=True, strict=True):
            requests.get(f"{server.url}/count", timeout=60)
    with playhead.fixtures("replay", http=True) as tape:
        requests.get(f"{server.url}/count", timeout=60)
    assert len(tape.leftovers) == 1


# modes


def test_the_mode_comes_from_the_environment_and_is_parsed_once(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_MODE", " Record ")
    with playhead.fixtures(http=True) as tape:
        requests.get(f"{server.url}/json", timeout=60)
    assert tape.mode == "record"
    with playhead.fixtures("replay", http=True) as tape:  # the argument counts first
        requests.get(f"{server.url}/json", timeout=60)
    monkeypatch.setenv("PLAYHEAD_MODE", "rceord")
    with pytest.raises(UsageError) as caught, playhead.fixtures(http=True):
        pytest.fail("nothing may run")
    assert "live, record, replay, auto, check" in str(caught.value.hint)
    monkeypatch.setenv("PLAYHEAD_MODE", "")
    with playhead.fixtures(http=True) as tape:  # which pytest runs
        requests.get(f"{server.url}/json", timeout=60)
    assert tape.mode == "replay"
    with playhead.fixtures("live", http=True) as tape:
        requests.get(f"{server.url}/json", timeout=60)
    assert (tape.mode, tape.ledger) == ("live", ())
    assert len(server.seen) == 2


def test_auto_records_what_only_reads_and_serves_the_rest_r21(
    here: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected in (1, 1):
        with playhead.fixtures("auto", http=True):
            assert requests.get(f"{server.url}/count", timeout=60).json() == expected
    with playhead.fixtures("auto", http=True) as tape:
        requests.get(f"{server.url}/json", timeout=60)
        requests.get(f"{server.url}/json", timeout=60)  # what this run recorded is not served in it
    assert [row.status for row in tape.ledger] == ["recorded", "recorded"]
    with pytest.raises(MissingFixtureError), playhead.fixtures("auto", http=True):
        requests.post(f"{server.url}/json", timeout=60)
    with playhead.fixtures("auto", http=True, effects="write"):
        requests.post(f"{server.url}/json", timeout=60)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(MissingFixtureError, match="mode is replay"), playhead.fixtures("auto", http=True):
        requests.get(f"{server.url}/other", timeout=60)
    assert len(server.seen) == 4


def test_record_can_be_kept_from_writing(server: Any) -> None:
    with pytest.raises(RefusedError, match="it may write"), playhead.fixtures("record", http=True, effects="read"):
        requests.post(f"{server.url}/json", timeout=60)
    assert not server.seen


def test_check_runs_live_compares_and_writes_nothing(here: Path, server: Any) -> None:
    record(f"{server.url}/json")
    record(f"{server.url}/count")
    before = {name: (here / ".playhead/fixtures" / name).read_bytes() for name in files(here)}
    with playhead.fixtures("check", http=True) as tape:
        requests.get(f"{server.url}/json", timeout=60)
    assert [row.status for row in tape.ledger] == ["same", "gone"]
    with pytest.raises(FixtureRunError) as caught, playhead.fixtures("check", http=True) as tape:
        assert requests.get(f"{server.url}/count", timeout=60).json() == 2
        requests.get(f"{server.url}/count?new=1", timeout=60)
    assert [(row.status, row.pointers) for row in tape.ledger] == [("changed", ("/json",)), ("new", ()), ("gone", ())]
    assert "/json" in str(caught.value)
    assert {name: (here / ".playhead/fixtures" / name).read_bytes() for name in files(here)} == before


# what is recorded


def test_a_network_error_is_noted_and_not_an_occurrence_r39(here: Path, server: Any) -> None:
    with playhead.fixtures("record", http=True):
        with pytest.raises(requests.ConnectionError):
            requests.get("http://127.0.0.1:9/", timeout=60)
        requests.get(f"{server.url}/json", timeout=60)
    report = json.loads((here / ".playhead/fixtures/recording.json").read_text())
    assert [each["tool"] for each in report["not_recorded"]] == ["GET 127.0.0.1"]
    assert "no response came" in report["not_recorded"][0]["reason"]
    assert report["files"] == 1
    assert report["complete"] is True


def test_a_connection_past_the_clients_is_listed_and_refused_in_replay(here: Path, server: Any) -> None:
    import http.client

    def raw() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
        try:
            connection.request("GET", "/json")
            return connection.getresponse().status
        finally:
            connection.close()

    with playhead.fixtures("record", http=True):
        requests.get(f"{server.url}/json", timeout=60)
        assert raw() == 200
    assert json.loads((here / ".playhead/fixtures/recording.json").read_text())["hosts"] == ["127.0.0.1"]
    with pytest.raises(FixtureRunError, match=r"a connection to 127\.0\.0\.1:\d+ was refused"):
        with playhead.fixtures("replay", http=True):
            requests.get(f"{server.url}/json", timeout=60)
            with pytest.raises(ConnectionError):
                raw()
    assert server.count("/json") == 2


def test_large_bodies_stand_in_files_of_their_own_and_too_large_ones_are_never_served_r34(
    here: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.store.fixture_writing.LARGE", 1000)
    record(f"{server.url}/binary")
    assert len(files(here, "bodies/*")) == 1
    with playhead.fixtures("replay", http=True):
        assert requests.get(f"{server.url}/binary", timeout=60).content == bytes(range(256)) * 300
    next((here / ".playhead/fixtures/bodies").iterdir()).write_text('"changed"')
    with pytest.raises(FixtureFormatError, match="missing or changed"), playhead.fixtures("replay", http=True):
        requests.get(f"{server.url}/binary", timeout=60)
    monkeypatch.setattr("playhead.store.fixtures.FixtureFolder.__init__.__kwdefaults__", {"max_bytes": 2000})
    record(f"{server.url}/binary")
    with pytest.raises(MissingFixtureError, match="too large"), playhead.fixtures("replay", http=True):
        requests.get(f"{server.url}/binary", timeout=60)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], "truncated or invalid JSON at line"),
        (lambda text: "{}", "no fixture"),
        (lambda text: text.replace("fixture/1", "fixture/2"), "written by a newer playhead"),
        (lambda text: text.replace("/json", "/jsom"), "do not fit /key"),
        (lambda text: text.replace('"occurrence": 1', '"occurrence": 2'), "name does not fit"),
        (lambda text: f"<<<<<<< HEAD\n{text}", "conflict markers of a merge at line 1"),
        (lambda text: text.replace('"status": 200', '"status": "200"'), "/status"),
    ],
)
def test_damaged_files_are_named_with_the_reason_r41(here: Path, server: Any, damage: Any, words: str) -> None:
    record(f"{server.url}/json")
    path = only_file(here)
    path.write_text(damage(path.read_text()))
    with pytest.raises(FixtureFormatError, match=words) as caught, playhead.fixtures("replay", http=True):
        try:
            requests.get(f"{server.url}/json", timeout=60)
        except Exception:
            pytest.fail("a damaged file must not pass for an error of the client")
    assert path.name in str(caught.value)
    assert len(server.seen) == 1


def test_crlf_is_fine_r41(here: Path, server: Any) -> None:
    record(f"{server.url}/json")
    path = only_file(here)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with playhead.fixtures("replay", http=True):
        requests.get(f"{server.url}/json", timeout=60)


def test_a_claim_of_a_dead_process_is_taken_over_and_a_living_one_is_waited_for_r27(here: Path, server: Any) -> None:
    import socket
    import subprocess
    import sys

    from playhead.errors import FixtureBusyError
    from playhead.store.fixtures import FixtureFolder

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    claim = here / ".playhead/fixtures/.claim"
    claim.parent.mkdir()
    claim.write_text(json.dumps({"host": socket.gethostname(), "pid": ended.pid, "at": 1.0}))
    record(f"{server.url}/json")
    assert not claim.exists()
    folder = FixtureFolder(here / ".playhead/fixtures")
    with folder.claim(""), pytest.raises(FixtureBusyError, match=f"process {os.getpid()} on"):
        with folder.claim("", wait=0.2, sleep=lambda seconds: None):
            pytest.fail("two writers at once")


def test_an_interrupted_move_is_finished_by_whoever_comes_next_r27(
    here: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(f"{server.url}/count", count=2)
    real = Path.replace
    moved: list[str] = []

    def dies(self: Path, target: Any) -> Path:
        if str(target).endswith(".json") and ".partial" not in str(target):
            moved.append(str(target))
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            record(f"{server.url}/count")
    assert moved
    record(f"{server.url}/json")
    with playhead.fixtures("replay", http=True):
        assert requests.get(f"{server.url}/count", timeout=60).json() == 3
        requests.get(f"{server.url}/json", timeout=60)
    assert len(files(here, "http.*.json")) == 2
    assert not files(here, ".partial/**/*")


def test_equal_requests_of_threads_with_different_answers_are_ambiguous_r17(server: Any) -> None:
    import threading

    together = threading.Barrier(2)

    def ask() -> None:
        with requests.Session() as session:
            together.wait(60)
            session.get(f"{server.url}/slow", timeout=60)

    with playhead.fixtures("record", http=True):
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    with pytest.raises(MissingFixtureError, match="overlapped"), playhead.fixtures("replay", http=True):
        requests.get(f"{server.url}/slow", timeout=60)
    with playhead.fixtures("replay", http=True, order="recorded") as tape:
        requests.get(f"{server.url}/slow", timeout=60)
        requests.get(f"{server.url}/slow", timeout=60)
    assert tape.served == 2


def test_the_outermost_seam_answers(here: Path, server: Any) -> None:
    @playhead.op("lookup", effect="read")
    def lookup(path: str) -> Any:
        return requests.get(f"{server.url}/{path}", timeout=60).json()

    with playhead.fixtures("record", http=True):
        inside = lookup("json")
        outside = requests.get(f"{server.url}/json", timeout=60).json()
    assert (len(files(here, "op.*.json")), len(files(here, "http.*.json"))) == (1, 1)
    with playhead.fixtures("replay", http=True, strict=True):
        assert lookup("json") == inside
        assert requests.get(f"{server.url}/json", timeout=60).json() == outside
    assert server.count("/json") == 2
    with pytest.raises(MissingFixtureError), playhead.fixtures("replay", http=True):
        lookup("count")
    assert server.count("/count") == 0


def test_a_credential_that_a_response_repeats_may_be_a_dummy_in_the_replay(
    here: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> list[int]:
        token = os.environ["SHOP_API_TOKEN"]
        first = requests.get(f"{server.url}/echo?api_key={token}", timeout=60)
        more = requests.post(f"{server.url}/count", json={"access_token": token, "n": 1}, timeout=60)
        return [first.status_code, more.status_code]

    monkeypatch.setenv("SHOP_API_TOKEN", "tok-aaaabbbbcccc")
    with playhead.fixtures("record", http=True):
        recorded = program()
    assert not any("tok-aaaa" in (here / ".playhead/fixtures" / name).read_text() for name in files(here))
    monkeypatch.setenv("SHOP_API_TOKEN", "dummy")
    with playhead.fixtures("replay", http=True, strict=True):
        assert program() == recorded


def test_a_secret_by_name_keeps_requests_of_two_accounts_apart(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[int]:
        return [
            requests.get(f"{server.url}/count?api_key={playhead.secret(name)}", timeout=60).json() for name in order
        ]

    order = ["ONE_KEY_NAME", "TWO_KEY_NAME"]
    monkeypatch.setenv("ONE_KEY_NAME", "one-aaaabbbb")
    monkeypatch.setenv("TWO_KEY_NAME", "two-aaaabbbb")
    with playhead.fixtures("record", http=True):
        recorded = program()
    monkeypatch.delenv("ONE_KEY_NAME")
    monkeypatch.delenv("TWO_KEY_NAME")
    order.reverse()
    with playhead.fixtures("replay", http=True, strict=True):
        assert (recorded, program()) == ([1, 2], [2, 1])
