"""The tunnel's protocols, without a namespace: requests to the proxy, name lookups, the hosts file."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from playhead.engine.isolation import http as isolation_http
from playhead.engine.isolation.dns import answer, question
from playhead.engine.isolation.http import parse_head, upstream
from playhead.engine.isolation.inside import hosts_file


def query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_connect_is_sent_on_with_what_followed_it() -> None:
    head = parse_head(b"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\nhello")
    assert head is not None
    assert (head.host, head.port, head.onward) == ("api.example", 443, b"hello")
    assert head.reply.startswith(b"HTTP/1.1 200 ")


def test_a_plain_request_is_sent_on_for_its_host_alone_and_without_the_proxys_headers() -> None:
    head = parse_head(
        b"POST http://api.example:8080/v1?x=1 HTTP/1.1\r\nHost: api.example:8080\r\nProxy-Authorization: Basic eA==\r\n"
        b"Connection: keep-alive\r\nContent-Length: 2\r\n\r\nhi"
    )
    assert head is not None
    assert (head.host, head.port, head.reply) == ("api.example", 8080, b"")
    assert head.onward == (
        b"POST /v1?x=1 HTTP/1.1\r\nHost: api.example:8080\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"GET /path HTTP/1.1\r\n\r\n",
        b"GET ftp://host/x HTTP/1.1\r\n\r\n",
        b"CONNECT host HTTP/1.1\r\n\r\n",
        b"CONNECT host:99999999 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
def test_what_is_no_request_to_a_proxy_goes_nowhere(data: bytes) -> None:
    assert parse_head(data) is None


def test_a_lookup_of_an_allowed_host_gives_its_address_inside() -> None:
    asked = question(query("API.Example"))
    assert asked is not None
    name, kind, text = asked
    assert (name, kind) == ("api.example", 1)
    reply = answer(query("API.Example"), text, kind, "127.77.0.1")
    number, flags, questions, answers, _, _ = struct.unpack_from("!6H", reply)
    assert (number, flags & 0xF, questions, answers) == (7, 0, 1, 1)
    assert reply.endswith(socket.inet_aton("127.77.0.1"))


@pytest.mark.parametrize(("kind", "address", "code"), [(28, "127.77.0.1", 0), (1, None, 3), (28, None, 3)])
def test_other_records_are_empty_and_other_hosts_are_unknown(kind: int, address: str | None, code: int) -> None:
    asked = question(query("api.example", kind))
    assert asked is not None
    _, flags, _, answers, _, _ = struct.unpack_from("!6H", answer(query("api.example", kind), asked[2], kind, address))
    assert (flags & 0xF, answers) == (code, 0)


@pytest.mark.parametrize("message", [b"", b"short", query("a.b")[:-4], query("a.b")[:14], b"\xff" * 40])
def test_damaged_lookups_are_not_answered(message: bytes) -> None:
    assert question(message) is None


def test_the_hosts_file_inside_leads_nowhere_else() -> None:
    text = hosts_file("127.0.0.1 own\n10.0.0.5 db.corp # 127.\n::1 six\n# 127.0.0.1 note\n", "box")
    assert text.splitlines() == ["127.0.0.1 localhost", "::1 localhost", "127.0.0.1 box", "127.0.0.1 own", "::1 six"]


@pytest.fixture
def proxy() -> Iterator[tuple[int, list[bytes]]]:
    """A proxy of the user's own: keeps the head of the one request it gets, answers 200, then says hello."""
    heads: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            heads.append(connection.recv(4096))
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], heads
        thread.join()


def test_the_users_own_proxy_is_gone_through(proxy: tuple[int, list[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    port, heads = proxy
    monkeypatch.setenv("https_proxy", f"http://me:pass%40word@127.0.0.1:{port}")
    with upstream("api.example", 443) as connection:
        assert connection.recv(10) == b"hello"
    assert heads[0].startswith(b"CONNECT api.example:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGFzc0B3b3Jk\r\n" in heads[0]


def test_hosts_that_the_users_proxy_is_not_for_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server, upstream("127.0.0.1", server.getsockname()[1]) as connection:
        assert connection.getpeername() == server.getsockname()


def test_refusals_are_whole_responses() -> None:
    assert isolation_http.refusal(403, "no") == (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
        b"Connection: close\r\n\r\nno\n"
    )
