"""Nothing of a secret is in any file, row or text, wherever it travelled."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

import base64
import json
import urllib.parse
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

import playhead
from playhead.errors import FixtureRunError, MissingFixtureError

SECRET = 'canary-7f3a+/="e&f g'
PLAIN = "canary-5d81c0ffee42"
OWN = {
    "query": "q-unconfigured-11", "cookie": "c-unconfigured-22", "header": "h-unconfigured-33",
    "basic": "b-unconfigured-44", "field": "f-unconfigured-55", "userinfo": "u-unconfigured-66",
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["ODD_SECRET", "*_TOKEN"]\n')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ODD_SECRET", SECRET)
    monkeypatch.setenv("PLAIN_TOKEN", PLAIN)
    return folder


def spellings(secret: str) -> list[str]:
    raw = secret.encode()
    return [
        secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret), json.dumps(secret)[1:-1],
        base64.b64encode(raw).decode().rstrip("="), base64.b64encode(b"u:" + raw).decode().rstrip("="), raw.hex(),
    ]  # fmt: skip


def traces(here: Path, *texts: str) -> list[str]:
    """Whatever of the planted secrets is in a file, in the name of one, or in the texts."""
    written = [path for path in (here / ".playhead").rglob("*") if path.is_file()]
    assert written
    data = "\n".join([*(path.read_text("utf-8", "replace") for path in written), *map(str, written), *texts])
    # as text that JSON escaped once, too
    planted = [spelling for secret in (SECRET, PLAIN) for spelling in spellings(secret)] + list(OWN.values())
    planted += [json.dumps(each)[1:-1] for each in planted] + [PLAIN[7:], SECRET[7:13], "of-the-body", "of-the-header"]
    return [each for each in planted if each in data]


def ask_everything(client: Any, url: str) -> None:
    host = url.removeprefix("http://")
    ask = client.ask
    ask("GET", f"{url}/leaky/{PLAIN}?api_key={OWN['query']}&note={urllib.parse.quote(SECRET)}")
    ask("GET", f"http://user:{OWN['userinfo']}@{host}/json?sig={PLAIN}")
    headers = {
        "Authorization": f"Bearer {PLAIN}", "Cookie": f"sid={OWN['cookie']}", "X-Api-Key": OWN["header"],
    }  # fmt: skip
    ask("GET", f"{url}/json?with=headers", headers=headers)
    basic = base64.b64encode(f"user:{OWN['basic']}".encode()).decode()
    ask("GET", f"{url}/json?with=basic", headers={"Authorization": f"Basic {basic}"})
    ask("POST", f"{url}/echo", json={"password": OWN["field"], "note": f"see {SECRET}", "deep": {"token": [PLAIN]}})
    ask("POST", f"{url}/echo", data={"client_secret": OWN["field"], "note": SECRET, "b": PLAIN})
    ask("POST", f"{url}/echo", files={"api_key": ("k.txt", OWN["field"].encode(), "text/plain"),
                                      "note": ("n.txt", SECRET.encode(), "text/plain")})  # fmt: skip
    with suppress(*client.errors):
        client.pieces(f"{url}/split/{PLAIN}", lambda data: True)


def test_no_file_holds_anything_of_a_secret_r28_r29(some_client: Any, here: Path, server: Any) -> None:
    with playhead.fixtures("record", http=True, match_headers=["Authorization", "X-Api-Key"]) as tape:
        ask_everything(some_client, server.url)
    assert traces(here, repr(tape.ledger)) == []
    assert len([row for row in tape.ledger if row.status == "recorded"]) == 8
    with playhead.fixtures("replay", http=True, match_headers=["Authorization", "X-Api-Key"]) as tape:
        ask_everything(some_client, server.url)
    assert (tape.served, tape.leftovers) == (8, [])
    assert len(server.seen) == 8


def test_a_miss_and_an_abandoned_run_hold_nothing_of_a_secret(here: Path, server: Any) -> None:
    with pytest.raises(ZeroDivisionError), playhead.fixtures("record", http=True):
        requests.get(f"{server.url}/leaky/{PLAIN}?note={PLAIN}", timeout=60)
        raise ZeroDivisionError
    with playhead.fixtures("record", http=True):
        requests.get(f"{server.url}/json?note={PLAIN}", timeout=60)
    with pytest.raises(MissingFixtureError) as caught, playhead.fixtures("replay", http=True) as tape:
        requests.get(f"{server.url}/json?other={PLAIN}&token={OWN['query']}", timeout=60)
    assert traces(here, str(caught.value), repr(caught.value.details), repr(tape.ledger)) == []
    assert "[REDACTED:PLAIN_TOKEN]" in str(caught.value)


@pytest.mark.parametrize("form", ["bytes", "wide"])
def test_bytes_with_a_secret_are_not_recorded_and_the_run_says_so(here: Path, server: Any, form: str) -> None:
    with pytest.raises(FixtureRunError, match="not text and holds a secret"):
        with playhead.fixtures("record", http=True):
            live = requests.get(f"{server.url}/{form}/{PLAIN}", timeout=60).content
            assert PLAIN.encode() in live.replace(b"\0", b"")
            requests.get(f"{server.url}/json", timeout=60)
    assert traces(here) == []
    assert not list((here / ".playhead/fixtures").glob("http.*.json"))


def test_a_replay_parses_what_lost_a_secret_r31(some_client: Any, here: Path, server: Any) -> None:
    with playhead.fixtures("record", http=True):
        assert PLAIN.encode() in some_client.ask("GET", f"{server.url}/leaky/{PLAIN}").body  # real while recording
    with playhead.fixtures("replay", http=True):
        served = some_client.ask("GET", f"{server.url}/leaky/{PLAIN}")
    assert json.loads(served.body)["note"] == "for [REDACTED:PLAIN_TOKEN]"
    assert int(served.headers.get("content-length", len(served.body))) == len(served.body)


def test_a_rotated_secret_hits_and_customers_stay_apart_r30(
    here: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(token: str) -> int:
        return requests.get(f"{server.url}/count?key={token}", timeout=60).json()

    monkeypatch.setenv("ACME_TOKEN", "acme-token-001")
    monkeypatch.setenv("BETA_TOKEN", "beta-token-001")
    with playhead.fixtures("record", http=True):
        assert [ask("acme-token-001"), ask("beta-token-001")] == [1, 2]
    monkeypatch.setenv("ACME_TOKEN", "acme-token-002")
    monkeypatch.setenv("BETA_TOKEN", "beta-token-002")
    with playhead.fixtures("replay", http=True):
        assert [ask("beta-token-002"), ask("acme-token-002")] == [2, 1]
    monkeypatch.delenv("ACME_TOKEN")
    monkeypatch.delenv("BETA_TOKEN")
    with playhead.fixtures("replay", http=True):
        assert [ask("[REDACTED:BETA_TOKEN]"), ask("[REDACTED:ACME_TOKEN]")] == [2, 1]


def test_what_a_response_gave_can_be_passed_on_in_replay_r38(here: Path, server: Any) -> None:
    def run() -> int:
        token = requests.get(f"{server.url}/token", timeout=60).json()["access_token"]
        return requests.get(f"{server.url}/count?session={token}", timeout=60).json()

    with playhead.fixtures("record", http=True):
        assert run() == 1
    with playhead.fixtures("replay", http=True):
        assert run() == 1
    assert "unlisted-token-77" not in "".join(p.read_text() for p in (here / ".playhead/fixtures").glob("*.json"))
