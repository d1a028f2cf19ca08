"""The proxy's part of HTTP: the head of a request to a proxy, and connections onward, through the user's own proxy."""

import base64
import socket
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import (
    getproxies_environment,
    proxy_bypass_environment,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

_END = b"\r\n\r\n"
_LONGEST_HEAD = 64 * 1024
_CONNECT_TIMEOUT = 30.0
_HOP_HEADERS = (b"proxy-connection", b"proxy-authorization", b"connection")


class RequestHead(NamedTuple):
    """Where a request to the proxy wants to go, what to reply once there, and what to send on."""

    host: str
    port: int
    reply: bytes
    onward: bytes


def read_head(connection: socket.socket) -> RequestHead | None:
    """The head of a client's request; None, after a reply that says so, when it is not one that a proxy gets."""
    data = b""
    while _END not in data and len(data) < _LONGEST_HEAD:
        more = connection.recv(4096)
        if not more:
            return None
        data += more
    head = parse_head(data)
    if head is None:
        connection.sendall(
            refusal(400, "this is playhead's proxy: CONNECT host:port, or a request with a full http URL")
        )
    return head


def parse_head(data: bytes) -> RequestHead | None:
    head, _, rest = data.partition(_END)
    first, *headers = head.split(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3:
        return None
    method, target, _ = words
    try:
        if method == "CONNECT":
            parts = urlsplit(f"//{target}")
            if not parts.hostname or parts.port is None:
                return None
            return RequestHead(parts.hostname, parts.port, b"HTTP/1.1 200 Connection established\r\n\r\n", rest)
        return _plain(method, target, headers, rest)
    except ValueError:  # a port that is none
        return None


def _plain(method: str, target: str, headers: list[bytes], rest: bytes) -> RequestHead | None:
    """A request with a full URL. The connection is closed after it: the next one may want to go elsewhere."""
    parts = urlsplit(target)
    if parts.scheme.lower() != "http" or not parts.hostname:
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [h for h in headers if h.split(b":")[0].strip().lower() not in _HOP_HEADERS]
    lines = [f"{method} {path} HTTP/1.1".encode("latin-1"), *kept, b"Connection: close"]
    return RequestHead(parts.hostname, parts.port or 80, b"", b"\r\n".join(lines) + _END + rest)


def refusal(status: int, text: str) -> bytes:
    """A whole response with a reason that people can read."""
    reason = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[status]
    body = f"{text}\n".encode("utf-8", "replace")
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def upstream(host: str, port: int) -> socket.socket:
    """A connection to a host, through the proxy of this process's own environment where it names one.

    Raises:
        OSError: it cannot be reached.
    """
    proxy = _own_proxy(host, port)
    if proxy is None:
        made = socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT)
    else:
        made = _through(proxy, host, port)
    made.settimeout(None)
    return made


def _own_proxy(host: str, port: int) -> str | None:
    proxies = getproxies_environment()
    if proxy_bypass_environment(f"{host}:{port}", proxies):
        return None
    url = proxies.get("https" if port == 443 else "http") or proxies.get("all")
    return url if url and urlsplit(url).scheme in ("http", "") else None


def _through(proxy: str, host: str, port: int) -> socket.socket:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    made = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_CONNECT_TIMEOUT)
    try:
        lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
        made.sendall("\r\n".join([*lines, "", ""]).encode())
        reply = b""
        while _END not in reply and len(reply) < _LONGEST_HEAD:
            more = made.recv(1)  # what follows the head belongs to the tunnel
            if not more:
                break
            reply += more
        status = reply.split(b" ", 2)[1:2]
        if status != [b"200"]:
            raise ConnectionError(
                f"the proxy {parts.hostname} answered {b''.join(status).decode('latin-1') or 'nothing'}"
            )
    except BaseException:
        made.close()
        raise
    return made
