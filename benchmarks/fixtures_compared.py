"""HTTP fixtures beside vcrpy and pytest-recording: the same requests to a loopback server through all three.

Prints the table of `docs/fixtures-compared.md`: what each records, matches, leaks and loses in streams, with the
settings that each has when nothing is configured; then what recording and replaying cost, as a ratio to the plain
client.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import requests
import vcr

import playhead

SECRETS = ("sec-query-1111", "sec-header-2222", "sec-cookie-3333", "sec-form-4444", "sec-token-5555", "sec-setcookie-6")
REQUESTS = 100


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = 0
    hold = 1.0
    """Seconds between the first event of a stream and the second."""

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        Server.seen += 1
        self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path.startswith("/stream"):
            self._stream(broken=path.endswith("broken"))
        elif path == "/login":
            self._send(b'{"access_token": "sec-token-5555"}', **{"Set-Cookie": "sid=sec-setcookie-6"})
        else:
            self._send(b"%d" % Server.seen)

    do_POST = do_GET  # noqa: N815

    def _send(self, body: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, *, broken: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(4):
            if number == 1:
                time.sleep(Server.hold)
            if broken and number == 3:
                self.close_connection = True
                return
            try:
                self.wfile.write(b"9\r\ndata: %d\n\n\r\n" % number)
                self.wfile.flush()
            except OSError:
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")


# what is asked: each is run while recording and again while replaying, and gives what it saw


def bodies(url: str, again: bool) -> Any:
    """In replay another body is asked for."""
    return requests.post(f"{url}/x", json={"q": "other" if again else "one"}, timeout=60).json()


def poll(url: str, again: bool) -> Any:
    first = requests.get(f"{url}/poll", timeout=60).json()
    return [requests.get(f"{url}/poll", timeout=60).json() - first for _ in range(2)]


def swallowed(url: str, again: bool) -> Any:
    """In replay something else is asked for, and the program hides every error."""
    try:
        requests.get(f"{url}/{'new' if again else 'known'}", timeout=60)
    except Exception:  # noqa: BLE001 - as such programs do
        return "went on"
    return "answered"


def unused(url: str, again: bool) -> Any:
    """In replay only the first of two requests is made."""
    for path in ("one",) if again else ("one", "two"):
        requests.get(f"{url}/{path}", timeout=60)
    return "passed"


def secrets(url: str, again: bool) -> Any:
    headers = {"Authorization": "Bearer sec-header-2222", "Cookie": "sid=sec-cookie-3333"}
    data = {"password": "sec-form-4444"}
    return requests.post(f"{url}/login?api_key=sec-query-1111", headers=headers, data=data, timeout=60).json()


def json_of_aiohttp(url: str, again: bool) -> Any:
    async def ask() -> Any:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/x", json={"q": "find me"}) as answer:
            return await answer.json()

    return asyncio.run(ask())


def stream(pieces: Callable[[str], Iterator[bytes]], path: str = "/stream", stop: int = 9) -> Any:
    def run(url: str, again: bool) -> Any:
        """Whether the first piece came before the last was sent, how many came, and what ended them."""
        came: list[bytes] = []
        early, ended = False, "end"
        begun = time.perf_counter()
        try:
            for data in pieces(url + path):
                came.append(data)
                early = early or time.perf_counter() - begun < Server.hold / 2
                if len(came) == stop:
                    ended = "left"
                    break
        except Exception as error:  # noqa: BLE001 - whatever the client says
            ended = type(error).__name__
        return {"early": early, "pieces": len(came), "end": ended}

    return run


def by_requests(url: str) -> Iterator[bytes]:
    with requests.get(url, stream=True, timeout=60) as answer:
        yield from answer.iter_content(1000)


def by_httpx(url: str) -> Iterator[bytes]:
    with httpx.Client(verify=False) as client, client.stream("GET", url, timeout=60) as answer:
        yield from answer.iter_bytes()


def by_aiohttp(url: str) -> Iterator[bytes]:
    """Bridged to a blocking iterator piece by piece."""
    loop = asyncio.new_event_loop()

    async def pieces() -> Any:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            async for data, _ in answer.content.iter_chunks():
                if data:
                    yield data

    source = pieces()
    try:
        while True:
            yield loop.run_until_complete(anext(source))
    except StopAsyncIteration:
        return
    finally:
        loop.run_until_complete(source.aclose())
        loop.close()


SCENARIOS: dict[str, Callable[[str, bool], Any]] = {
    "bodies": bodies,
    "poll": poll,
    "swallowed": swallowed,
    "unused": unused,
    "secrets": secrets,
    "json_of_aiohttp": json_of_aiohttp,
    **{f"stream_{name}": stream(pieces) for name, pieces in
       (("requests", by_requests), ("httpx", by_httpx), ("aiohttp", by_aiohttp))},
    "left": stream(by_requests, stop=2),
    "broken": stream(by_requests, "/stream/broken"),
    "damaged": lambda url, again: requests.get(f"{url}/known", timeout=60).json(),
}  # fmt: skip


# the three tools


def with_playhead(name: str, url: str, folder: Path, again: bool) -> Any:
    strict = name == "unused"
    with playhead.fixtures("replay" if again else "record", dir=folder, http=True, strict=strict):
        return SCENARIOS[name](url, again)


def with_vcrpy(name: str, url: str, folder: Path, again: bool) -> Any:
    with vcr.use_cassette(str(folder / "cassette.yaml"), record_mode="none" if again else "once"):
        return SCENARIOS[name](url, again)


_TEST = """
import json, os, pathlib, pytest
from benchmarks.fixtures_compared import SCENARIOS

@pytest.mark.vcr
def test_it():
    given = json.loads(os.environ["COMPARED"])
    result = SCENARIOS[given["name"]](given["url"], given["again"])
    pathlib.Path(given["result"]).write_text(json.dumps(result))
"""


def with_pytest_recording(name: str, url: str, folder: Path, again: bool) -> Any:
    (folder / "test_it.py").write_text(_TEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    given = {"name": name, "url": url, "again": again, "result": str(result)}
    mode = "none" if again else "once"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pytest_recording.plugin", f"--record-mode={mode}", "test_it.py"],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
        env={**os.environ, "COMPARED": json.dumps(given), "PYTHONPATH": str(Path(__file__).parents[1]),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    if done.returncode or not result.exists():
        raise RuntimeError(done.stdout)
    return json.loads(result.read_text())


TOOLS = {"playhead": with_playhead, "vcrpy": with_vcrpy, "pytest-recording": with_pytest_recording}


@cache
def outcome(tool: str, name: str, url: str, damage: bool = False) -> dict[str, Any]:
    """What a scenario gave while recording and while replaying, how many requests the replay sent, what was written."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        found: dict[str, Any] = {}
        for again in (False, True):
            before = Server.seen
            if again and damage:
                for path in [each for each in folder.rglob("*") if each.suffix in (".json", ".yaml")]:
                    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
            try:
                found["replay" if again else "record"] = TOOLS[tool](name, url, folder, again)
            except Exception as error:  # noqa: BLE001 - whatever the tool says
                found["replay" if again else "record"] = f"{type(error).__name__}: {error}"
            found["sent"] = Server.seen - before
        written = [path for path in folder.rglob("*") if path.suffix in (".json", ".yaml", "") and path.is_file()]
        kept = [path.read_text("utf-8", "replace") for path in written if path.name != "result.json"]
        found["written"] = "\n".join(kept)
        return found


def is_error(value: Any) -> bool:
    return isinstance(value, str) and ": " in value


def rows(url: str) -> Iterator[tuple[str, list[str]]]:
    def row(label: str, name: str, read: Callable[[dict[str, Any]], str], **more: Any) -> tuple[str, list[str]]:
        return label, [read(outcome(tool, name, url, **more)) for tool in TOOLS]

    yield row("a POST with another body, in replay", "bodies",
              lambda o: "a miss" if is_error(o["replay"]) else f"the old answer ({o['replay']})")  # fmt: skip
    yield row("three equal polls come back in order", "poll", lambda o: "yes" if o["record"] == o["replay"] else "no")
    yield row("an unknown request whose error the program hides", "swallowed",
              lambda o: "the run fails" if is_error(o["replay"]) else "the run passes")  # fmt: skip
    yield row("a recording that nothing asked for", "unused",
              lambda o: "fails (strict)" if is_error(o["replay"]) else "passes in silence")  # fmt: skip
    yield row(f"of {len(SECRETS)} planted secrets, in the files", "secrets",
              lambda o: f"{sum(secret in o['written'] for secret in SECRETS)}")  # fmt: skip
    yield row("the body of aiohttp's `json=` is recorded", "json_of_aiohttp",
              lambda o: "yes" if "find me" in o["written"] else "no")  # fmt: skip
    for client in ("requests", "httpx", "aiohttp"):
        yield row(f"stream of 4 events, {client}: the first is there before the last is sent", f"stream_{client}",
                  lambda o: _early(o["record"]))  # fmt: skip
        yield row(f"stream of 4 events, {client}: pieces in replay", f"stream_{client}", lambda o: _count(o["replay"]))
    yield row("a consumer that leaves after 2 events: the first came at once", "left", lambda o: _early(o["record"]))
    yield row("a stream that breaks after 3 events, recording", "broken", lambda o: _ending(o["record"]))
    yield row("the same in replay", "broken", lambda o: _ending(o["replay"]))
    yield row("a truncated recording, in replay", "damaged", _error_of_file, damage=True)
    yield row("requests sent by that replay", "damaged", lambda o: str(o["sent"]), damage=True)


def _error_of_file(found: dict[str, Any]) -> str:
    text = str(found["replay"])
    if not is_error(found["replay"]):
        return f"passes ({text})"
    known = ("is not readable as a fixture", "cassette.yaml", "test_it.yaml")
    return "an error that names the file" if any(part in text for part in known) else "an error without the file's name"


def _early(value: Any) -> str:
    return "yes" if isinstance(value, dict) and value["early"] else "no"


def _count(value: Any) -> str:
    return str(value["pieces"]) if isinstance(value, dict) else str(value)[:60]


def _ending(value: Any) -> str:
    return f"{value['pieces']} pieces, {value['end']}" if isinstance(value, dict) else str(value).splitlines()[0][:60]


# speed


def many(url: str) -> None:
    with requests.Session() as session:
        for number in range(REQUESTS):
            session.get(f"{url}/n?number={number}", timeout=60).json()


def seconds(run: Callable[[], None]) -> float:
    """Processor time, which other work on the machine touches least."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def speed(url: str) -> Iterator[tuple[str, list[str]]]:
    plain = min(seconds(lambda: many(url)) for _ in range(3))
    ratios: dict[str, list[float]] = {}
    for mode in ("record", "replay"):
        for tool in ("playhead", "vcrpy"):
            best = 1e9
            for _ in range(3):
                with tempfile.TemporaryDirectory() as text:
                    folder = Path(text)

                    def run(again: bool, tool: str = tool, folder: Path = folder) -> None:
                        if tool == "playhead":
                            with playhead.fixtures("replay" if again else "record", dir=folder, http=True):
                                many(url)
                        else:
                            with vcr.use_cassette(str(folder / "c.yaml"), record_mode="none" if again else "once"):
                                many(url)

                    recording = seconds(lambda run=run: run(False))
                    best = min(best, seconds(lambda run=run: run(True)) if mode == "replay" else recording)
            ratios.setdefault(mode, []).append(best / plain)
    for mode, found in ratios.items():
        yield f"processor time of {REQUESTS} requests, {mode}", [f"{ratio:.1f}x" for ratio in found] + ["as vcrpy"]


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    print(f"| | {' | '.join(TOOLS)} |\n|---|{'---|' * len(TOOLS)}")
    for label, found in [*rows(url), *speed(url)]:
        print(f"| {label} | {' | '.join(each.replace('|', '/') for each in found)} |", flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
