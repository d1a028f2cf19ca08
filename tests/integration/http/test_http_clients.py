"""Every client records its requests, and gets them back without a connection."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from playhead.core.http.request import HttpRules
from playhead.errors import ReplayStop


def replay(fixtures: Any) -> None:
    fixtures.recording = False


def test_a_response_comes_back_equal_and_nothing_is_sent(client: Any, server: Any, fixtures: Any) -> None:
    live = client.ask("GET", f"{server.url}/json", params={"q": "a"})
    replay(fixtures)
    served = client.ask("GET", f"{server.url}/json", params={"q": "a"})
    assert served.body == live.body
    assert served.status == 200
    assert served.headers["etag"] == '"1"'
    assert served.headers["content-type"] == "application/json"
    assert "set-cookie" not in served.headers
    assert "date-of-answer" not in served.headers
    assert len(server.seen) == 1
    assert fixtures.tools == ["GET 127.0.0.1"] * 2
    assert "from-the-server" not in str(fixtures.values)


def test_a_miss_is_a_stop_and_nothing_is_sent_r22(client: Any, server: Any, fixtures: Any) -> None:
    client.ask("GET", f"{server.url}/json")
    replay(fixtures)
    with pytest.raises(ReplayStop, match="no recording answers GET"):
        client.ask("GET", f"{server.url}/json", params={"other": "1"})
    assert len(server.seen) == 1


def test_the_body_is_part_of_a_request_r11(client: Any, server: Any, fixtures: Any) -> None:
    for q in ("a", "b"):
        client.ask("POST", f"{server.url}/count", json={"q": q})
    replay(fixtures)
    assert client.ask("POST", f"{server.url}/count", json={"q": "b"}).body == b"2"
    assert client.ask("POST", f"{server.url}/count", json={"q": "a"}).body == b"1"
    with pytest.raises(ReplayStop):
        client.ask("POST", f"{server.url}/count", json={"q": "c"})
    assert len(server.seen) == 2


def test_equal_requests_are_served_in_their_order(client: Any, server: Any, fixtures: Any) -> None:
    for _ in range(3):
        client.ask("GET", f"{server.url}/count")
    replay(fixtures)
    assert [client.ask("GET", f"{server.url}/count").body for _ in range(3)] == [b"1", b"2", b"3"]
    with pytest.raises(ReplayStop):
        client.ask("GET", f"{server.url}/count")


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_compressed_bodies_are_stored_and_served_plain_r33(
    client: Any, server: Any, fixtures: Any, encoding: str
) -> None:
    headers = {"Accept-Encoding": encoding}
    live = client.ask("GET", f"{server.url}/encoded/{encoding}", headers=headers)
    assert "Zürich".encode() in live.body
    replay(fixtures)
    served = client.ask("GET", f"{server.url}/encoded/{encoding}", headers=headers)
    assert served.body == live.body
    assert "content-encoding" not in served.headers
    assert "Zürich" in str(fixtures.values)


def test_binary_bodies_come_back(client: Any, server: Any, fixtures: Any) -> None:
    live = client.ask("GET", f"{server.url}/binary")
    replay(fixtures)
    assert client.ask("GET", f"{server.url}/binary").body == live.body == bytes(range(256)) * 300
    assert [sorted(value) for value in fixtures.values] == [["b64", "headers", "status"]]


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/json"), ("GET", "/status/204"), ("GET", "/status/304")])
def test_answers_without_a_body_have_none(client: Any, server: Any, fixtures: Any, method: str, path: str) -> None:
    live = client.ask(method, f"{server.url}{path}")
    replay(fixtures)
    served = client.ask(method, f"{server.url}{path}")
    assert (
        (served.status, served.body) == (live.status, live.body) == (int(path[-3:]) if "status" in path else 200, b"")
    )
    assert all(set(value) == {"status", "headers"} for value in fixtures.values)


def test_every_status_is_an_outcome(client: Any, server: Any, fixtures: Any) -> None:
    status = 429
    client.ask("GET", f"{server.url}/status/{status}", **({"retries": False} if client.name == "urllib3" else {}))
    replay(fixtures)
    more = {"retries": False} if client.name == "urllib3" else {}
    served = client.ask("GET", f"{server.url}/status/{status}", **more)
    assert (served.status, served.headers["retry-after"], served.body) == (status, "7", b"")


def test_redirect_hops_are_requests_of_their_own(client: Any, server: Any, fixtures: Any) -> None:
    live = client.ask("GET", f"{server.url}/redirect")
    assert [value["status"] for value in fixtures.values] == [302, 200]
    assert dict(fixtures.values[0]["headers"])["location"] == "/json"
    replay(fixtures)
    assert client.ask("GET", f"{server.url}/redirect").body == live.body
    assert len(server.seen) == 2


def test_a_redirect_that_is_not_followed_is_one_request(client: Any, server: Any, fixtures: Any) -> None:
    client.ask("GET", f"{server.url}/redirect", redirects=False)
    replay(fixtures)
    served = client.ask("GET", f"{server.url}/redirect", redirects=False)
    assert (served.status, served.headers["location"]) == (302, "/json")


def test_forms_and_files_are_known_by_their_fields(client: Any, server: Any, fixtures: Any) -> None:
    form = {"a": "1", "b": "x y&z"}
    files = {"f": ("a.bin", bytes(range(200)), "application/octet-stream")}
    client.ask("POST", f"{server.url}/count", data=form)
    client.ask("POST", f"{server.url}/count", files=files)
    replay(fixtures)
    assert client.ask("POST", f"{server.url}/count", files=files).body == b"2"  # with another boundary
    assert client.ask("POST", f"{server.url}/count", data=form).body == b"1"
    with pytest.raises(ReplayStop):
        client.ask("POST", f"{server.url}/count", data={**form, "b": "other"})


def test_an_iterator_as_body_is_read_once_and_sent_r32(client: Any, server: Any, fixtures: Any) -> None:
    def parts() -> Any:
        yield from (b"first ", b"second")

    async def later() -> Any:
        for part in parts():
            yield part

    def body() -> Any:
        return later() if "async" in client.name or client.name == "aiohttp" else parts()

    client.ask("POST", f"{server.url}/echo", content=body())
    assert server.seen[0].body == b"first second"
    replay(fixtures)
    client.ask("POST", f"{server.url}/echo", content=body())
    assert len(server.seen) == 1


def test_an_iterator_that_is_too_long_is_refused_by_name(client: Any, server: Any, fixtures: Any) -> None:
    def parts() -> Any:
        yield from [bytes(2**20)] * 9

    async def later() -> Any:
        for part in parts():
            yield part

    made = later() if "async" in client.name or client.name == "aiohttp" else parts()
    with pytest.raises(Exception, match=r"of type .*(generator|IteratorByteStream).* 8,388,608"):
        client.ask("POST", f"{server.url}/echo", content=made)
    assert not server.seen


# streams


def test_the_first_event_is_there_before_the_last_is_sent_r32(client: Any, server: Any, fixtures: Any) -> None:
    server.gate.clear()
    came: list[bytes] = []

    def each(data: bytes) -> bool:
        came.append(data)
        server.gate.set()  # the server sends the rest only now
        return True

    client.pieces(f"{server.url}/stream", each)
    assert b"".join(came) == b"".join(b"data: %d\n\n" % n for n in range(4))
    replay(fixtures)
    again: list[bytes] = []
    client.pieces(f"{server.url}/stream", lambda data: not again.append(data))
    assert again[0] == came[0] == b"data: 0\n\n"
    assert again == came
    assert len(server.seen) == 1


def test_a_consumer_that_stops_gets_as_far_again_and_no_further_r32(client: Any, server: Any, fixtures: Any) -> None:
    server.gate.clear()
    came: list[bytes] = []
    client.pieces(f"{server.url}/stream", lambda data: bool(came.append(data)))
    server.gate.set()
    assert came == [b"data: 0\n\n"]
    (stored,) = fixtures.values
    assert stored["complete"] is False
    assert [chunk["text"] for chunk in stored["chunks"]] == ["data: 0\n\n"]
    replay(fixtures)
    again: list[bytes] = []
    client.pieces(f"{server.url}/stream", lambda data: bool(again.append(data)))
    assert again == came
    fixtures.used.clear()
    with pytest.raises(ReplayStop, match="more is asked for"):
        client.pieces(f"{server.url}/stream", lambda data: True)


def test_a_break_comes_at_the_same_place_as_the_clients_own_error_r32(client: Any, server: Any, fixtures: Any) -> None:
    def run() -> tuple[list[bytes], type[BaseException]]:
        came: list[bytes] = []
        with pytest.raises(client.errors) as caught:
            client.pieces(f"{server.url}/stream/break", lambda data: not came.append(data))
        return came, type(caught.value)

    live, error = run()
    assert b"".join(live) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    replay(fixtures)
    assert run() == (live, error)
    assert len(server.seen) == 1


def test_recorded_pauses_come_back_by_a_factor(client: Any, server: Any, fixtures: Any) -> None:
    client.pieces(f"{server.url}/stream", lambda data: True)
    (stored,) = fixtures.values
    stored["chunks"] = [{"t": 0.0, "text": "a"}, {"t": 100.0, "text": "b"}]
    replay(fixtures)
    fixtures.timing = 0.0005
    times: list[float] = []
    from time import perf_counter

    client.pieces(f"{server.url}/stream", lambda data: not times.append(perf_counter()))
    assert len(times) == 2
    assert times[1] - times[0] >= 0.045


# clients that ask again


def test_retries_of_requests_are_occurrences_r20(server: Any, fixtures: Any) -> None:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    def ask() -> Any:
        with requests.Session() as session:
            policy = Retry(total=5, status_forcelist=[503], backoff_factor=0)
            session.mount("http://", HTTPAdapter(max_retries=policy))
            return session.get(f"{server.url}/flaky").json()

    assert ask() == {"status": 200}
    assert [value["status"] for value in fixtures.values] == [503, 503, 200]
    replay(fixtures)
    assert ask() == {"status": 200}
    assert server.count("/flaky") == 3


def test_retries_of_an_httpx_transport_are_occurrences_r20(server: Any, fixtures: Any) -> None:
    import httpx

    class Retrying(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            while (response := super().handle_request(request)).status_code == 503:
                response.read()
            return response

    def ask() -> Any:
        with httpx.Client(transport=Retrying()) as client:
            return client.get(f"{server.url}/flaky").json()

    assert ask() == {"status": 200}
    replay(fixtures)
    assert ask() == {"status": 200}
    assert server.count("/flaky") == 3


def test_no_retry_policy_swallows_a_miss_r23(server: Any, fixtures: Any) -> None:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    replay(fixtures)
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=Retry(total=5, backoff_factor=0)))
        with pytest.raises(ReplayStop), suppress(Exception):
            session.get(f"{server.url}/json")
    assert len(fixtures.tools) == 1
    assert not server.seen


# what is left alone


def test_other_hosts_are_sent_as_ever(client: Any, server: Any, fixtures: Any) -> None:
    fixtures.rules = HttpRules(hosts=("api.example.com",))
    replay(fixtures)
    assert client.ask("GET", f"{server.url}/json").status == 200
    assert len(server.seen) == 1
    assert not fixtures.tools


def test_uploads_of_telemetry_and_of_playhead_are_left_alone_r26(client: Any, server: Any, fixtures: Any) -> None:
    from playhead.engine.egress import own_traffic

    replay(fixtures)
    headers = {"Content-Type": "application/x-protobuf"}
    client.ask("POST", f"{server.url}/echo/v1/traces", content=b"\x0a\x01", headers=headers)
    with own_traffic():
        client.ask("GET", f"{server.url}/json")
    assert len(server.seen) == 2
    assert not fixtures.tools


def test_a_websocket_is_refused_with_its_reason_r35(server: Any, fixtures: Any) -> None:
    import asyncio

    import aiohttp

    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await session.ws_connect(f"{server.url}/json")

    for recording in (True, False):
        fixtures.recording = recording
        with pytest.raises(ReplayStop, match="websocket"):
            asyncio.run(run())
    assert not server.seen
    assert not fixtures.stored


def test_a_network_error_is_no_outcome(client: Any, fixtures: Any) -> None:
    more = {"retries": False} if client.name == "urllib3" else {}
    with pytest.raises(Exception, match=r"."):
        client.ask("GET", "http://127.0.0.1:9/", **more)
    assert not fixtures.stored
    assert len(fixtures.skipped) == 1
    assert "no response came" in fixtures.skipped[0]


def test_the_clients_are_as_before_when_the_fixtures_end(client: Any, server: Any) -> None:
    import aiohttp
    import httpx
    import urllib3

    from playhead.adapters.http import intercepting

    def methods() -> list[Callable[..., Any]]:
        return [
            httpx.Client.send, httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request,
            aiohttp.ClientSession._request, urllib3.connectionpool.HTTPConnectionPool._make_request,
        ]  # fmt: skip

    before = methods()
    with intercepting():
        with intercepting():
            assert methods() != before
        assert methods() != before
    assert methods() == before
    assert client.ask("GET", f"{server.url}/json").status == 200


def test_requests_in_threads_are_recorded_too(server: Any, fixtures: Any) -> None:
    import requests

    threads = [threading.Thread(target=requests.get, args=(f"{server.url}/json",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(fixtures.values) == 8


def test_a_client_imported_later_is_wrapped_and_none_is_imported(tmp_path: Any) -> None:
    import subprocess

    script = """
import sys
from playhead.adapters.http import intercepting
with intercepting():
    assert not {"httpx", "httpx2", "requests", "urllib3", "aiohttp"} & set(sys.modules)
    import requests, httpx, aiohttp
    wrapped = [requests.adapters.HTTPAdapter.send, httpx.HTTPTransport.handle_request, aiohttp.ClientSession._request]
    assert all(hasattr(method, "__wrapped__") for method in wrapped)
    import httpx2
    assert hasattr(httpx2.HTTPTransport.handle_request, "__wrapped__")
assert not hasattr(requests.adapters.HTTPAdapter.send, "__wrapped__")
assert not hasattr(httpx2.HTTPTransport.handle_request, "__wrapped__")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
