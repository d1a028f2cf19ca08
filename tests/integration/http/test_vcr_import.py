"""Cassettes that vcrpy records become fixtures that answer the same requests."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
import vcr

import playhead
from playhead.cli.start import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Any:
    def ran(*words: str) -> Any:
        capsys.readouterr()
        code = main([*words, "--output", "json"])
        out, err = capsys.readouterr()
        assert not err, err
        return code, json.loads(out)

    return ran


@pytest.mark.parametrize("serializer", ["yaml", "json"])
def test_cassettes_of_each_client_answer_what_was_recorded(
    some_client: Any, here: Path, server: Any, serializer: str, cli: Any
) -> None:
    def ask() -> list[Any]:
        return [
            some_client.ask("GET", f"{server.url}/json", params={"q": "a"}).body,
            *[some_client.ask("GET", f"{server.url}/count").body for _ in range(3)],
            some_client.ask("POST", f"{server.url}/echo", json={"a": [1, "é"]}).body,
            some_client.ask("GET", f"{server.url}/encoded/gzip", headers={"Accept-Encoding": "gzip"}).body,
            some_client.ask("GET", f"{server.url}/redirect").body,
            some_client.ask("HEAD", f"{server.url}/json").status,
            some_client.ask("GET", f"{server.url}/status/204").status,
        ]

    recorder = vcr.VCR(cassette_library_dir=str(here / "cassettes"), serializer=serializer, decode_compressed_response=
                       serializer == "json")  # fmt: skip
    with recorder.use_cassette(f"test_all.{serializer}", record_mode="all"):
        live = ask()
    sent = len(server.seen)
    code, result = cli("fixtures", "import", "cassettes")
    assert (code, result["written"]) == (0, False)
    assert not (here / ".playhead/fixtures").exists()
    code, result = cli("fixtures", "import", "cassettes", "--yes")
    assert (code, result["written"], result["cassettes"][0]["set"]) == (0, True, "test_all")
    assert result["cassettes"][0]["fixtures"] == sent
    with playhead.fixtures("replay", set="test_all", http=True) as tape:
        assert ask() == live
    assert (tape.served, tape.leftovers) == (sent, [])
    assert len(server.seen) == sent


def test_secrets_of_a_cassette_stay_behind(here: Path, server: Any, cli: Any) -> None:
    with vcr.use_cassette(str(here / "c.yaml")):
        requests.get(f"{server.url}/token?api_key=key-of-a-cassette", headers={"Authorization": "Bearer of-old-999"},
                     timeout=60)  # fmt: skip
    text = (here / "c.yaml").read_text()
    assert "key-of-a-cassette" in text
    assert "unlisted-token-77" in text
    assert cli("fixtures", "import", "c.yaml", "--set", "", "--yes")[0] == 0
    written = "".join(path.read_text() for path in (here / ".playhead/fixtures").rglob("*.json"))
    for secret in ("key-of-a-cassette", "of-old-999", "unlisted-token-77", "from-the-server"):
        assert secret not in written
    with playhead.fixtures("replay", http=True):
        requests.get(f"{server.url}/token?api_key=another", timeout=60)


def test_list_and_show_read_the_folder(here: Path, server: Any, cli: Any) -> None:
    with playhead.fixtures("record", http=True, set="one"):
        requests.get(f"{server.url}/json", timeout=60)
    code, result = cli("fixtures", "list")
    (row,) = result["items"]
    assert (code, row["set"], row["tool"], row["status"], row["problem"]) == (0, "one", "GET 127.0.0.1", 200, None)
    code, result = cli("fixtures", "show", row["file"])
    assert result["args"]["url"] == f"{server.url}/json"
    assert result["outcome"]["value"]["status"] == 200
    path = here / ".playhead/fixtures/one" / row["file"]
    path.write_text("{")
    code, result = cli("fixtures", "list")
    assert code == 1
    assert "not readable as a fixture" in result["items"][0]["problem"]


def test_a_file_that_is_no_cassette_is_refused_and_nothing_is_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.yaml").write_text("a: [")
    assert main(["fixtures", "import", "bad.yaml", "--yes"]) == 3
    assert "bad.yaml is not a cassette" in capsys.readouterr().err
    assert not (here / ".playhead/fixtures").exists()
