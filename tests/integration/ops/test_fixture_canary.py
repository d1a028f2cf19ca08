"""No byte that playhead writes holds a secret: sessions and fixtures of one program, and every command over them."""
# ruff: noqa: SIM117 - the block is what is tested

import base64
import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

import playhead
from playhead.cli.start import main

SECRETS = {
    "SHOP_API_KEY": "cnry-conf-5f1e/7d80+b2a9",  # named in the settings
    "ORDERS_DB": 'cnry-slot-91c4"d7\\e2f&x',  # read through a slot
    "SHOP_REGION": "cnry-envr-0a3bde77",  # a declared variable
    "given": "cnry-givn-66a1e0",  # told by the program
    "bearer": "cnry-bear-3d55aa01",  # given away by a header's name or shape
    "query": "cnry-qury-8e0c12",  # by a parameter's name
    "cookie": "cnry-cook-447711",  # by a header of the response
    "token": "cnry-tokn-b00f42",  # by a member's name in the response
    "argument": "cnry-argu-c0ffee",  # by an argument's name
}


class Shop(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        said = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.dumps({"access_token": SECRETS["token"], "echo": said.decode(), "key": SECRETS["SHOP_API_KEY"]})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("set-cookie", f"id={SECRETS['cookie']}")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def url(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (here / "pyproject.toml").write_text('[tool.playhead]\nsecrets = ["SHOP_API_KEY"]\nfixtures.ops = ["canary_ops"]\n')
    for name in ("SHOP_API_KEY", "ORDERS_DB", "SHOP_REGION"):
        monkeypatch.setenv(name, SECRETS[name])
    playhead.secrets.add("GIVEN", SECRETS["given"])
    (here / "canary_ops.py").write_text(OPS)
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    server = HTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/orders?api_key={SECRETS['query']}"
    server.shutdown()
    server.server_close()
    playhead.secrets.remove("GIVEN")
    sys.modules.pop("canary_ops", None)


OPS = """
import playhead
from playhead import OpContext, OpError, Slot

@playhead.op("orders", effect="read", secrets={"db": Slot(env="ORDERS_DB")}, env=["SHOP_REGION"])
def orders(q: str, token: str = "", *, ctx: OpContext):
    secret, region = ctx.secrets.get("db"), ctx.env.get("SHOP_REGION")
    if q.startswith("fail"):
        error = OpError(f"401 for {secret}", status=401)
        error.__cause__ = ValueError(f"inner {secret} {region}")
        raise error
    if q.startswith("down"):
        raise ConnectionRefusedError(f"no way to {secret}")
    return {"echo": q, secret: [f"x={secret}&y", secret.encode()], "region": region}
"""


def run(url: str, agent: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Everything that a user would do with these recordings; what was printed and raised."""
    said: list[str] = []

    def command(*words: str) -> None:
        main(list(words))
        out, err = capsys.readouterr()
        said.append(out + err)

    import importlib

    ops = importlib.import_module("canary_ops")

    def program(q: str) -> None:
        for each in (q, f"fail {q}", f"down {q}"):
            with suppress(Exception):
                ops.orders(each, token=SECRETS["argument"])
        headers = {"authorization": f"Bearer {SECRETS['bearer']}"}
        answer = requests.post(url, json={"q": q, "password": SECRETS["argument"]}, headers=headers, timeout=60)
        logging.getLogger("shop").debug("%s", answer.status_code)

    given = f"{SECRETS['SHOP_API_KEY']} {SECRETS['given']}"
    with playhead.fixtures("record", http=True, set="good"):
        program(given)
    with suppress(RuntimeError):
        with playhead.fixtures("record", http=True, set="good"):
            program(f"again {given}")
            raise RuntimeError(f"late {SECRETS['SHOP_API_KEY']}")
    for asked in (given, f"other {given}"):
        try:
            with playhead.fixtures("replay", http=True, set="good"):
                program(asked)
        except playhead.PlayheadError as error:
            said.append(f"{error} {error.hint} {error.details}")
    with suppress(Exception):
        with playhead.fixtures("check", http=True, set="good"):
            program(given)
    agent(given)
    agent(f"fail {given}")
    playhead.flush()
    command("session", "export", "last")
    command("session", "tree", "last")
    command("fixtures", "export", "last", "--set", "exported", "--yes")
    command("fixtures", "export", "last~1", "--set", "exported", "--yes")
    command("session", "delete", "last", "--yes")
    for words in ("list", "doctor", "diff good exported --all", "rekey", "prune", "doctor --output text"):
        command("fixtures", *words.split())
    for path in Path(".playhead/fixtures/good").glob("*.*.json"):
        command("fixtures", "show", str(path), "--output", "text")
    command("doctor")
    return said


def forms(secret: str) -> set[bytes]:
    raw = secret.encode()
    found = {raw, raw.hex().encode(), quote(secret).encode(), quote(secret).lower().encode()}
    found |= {quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(), base64.b64encode(raw)[4:-4]}
    return found | {base64.b64encode(b"x" * pad + raw)[8:-4] for pad in (1, 2)}


def test_r28_r29_nothing_that_is_written_holds_anything_of_a_secret(
    here: Path, url: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "playhead")

    @playhead.agent("shop")
    def shop(prompt: str) -> Any:
        import canary_ops  # pyright: ignore[reportMissingImports]

        answer = requests.post(url, json={"q": prompt}, timeout=60).json()
        return [answer, canary_ops.orders(prompt), canary_ops.orders(prompt, token=SECRETS["argument"])]

    def agent(prompt: str) -> None:
        with suppress(Exception):
            shop(prompt)

    said = run(url, agent, capsys)
    assert sum("[REDACTED:SHOP_API_KEY]" in text for text in said) > 3
    written = {str(path): path.read_bytes() for path in (here / ".playhead").rglob("*") if path.is_file()}
    assert any(name.endswith("store.db") for name in written)
    assert any("/.partial/" in name for name in written)
    assert any("/exported/op.orders." in name for name in written)
    said += [record.getMessage() for record in caplog.records if record.name.startswith("playhead")]
    written |= {f"said {place}: {text[:60]}": text.encode("utf-8", "replace") for place, text in enumerate(said)}
    leaks = [
        (name, place[:80], data[max(0, data.find(form) - 60) :][:160])
        for place, data in written.items() for name, secret in SECRETS.items() for form in forms(secret) if form in data
    ]  # fmt: skip
    assert leaks == []
    assert not [name for name in written if any(secret[:9] in name for secret in SECRETS.values())]
