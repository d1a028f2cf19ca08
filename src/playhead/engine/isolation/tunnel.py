"""The parent's side of the outer guard: the only way out, to allowed hosts and ports, one thread per connection.

The child hands over listeners that it made inside its network (see `isolation_inside`): an HTTP proxy, ports at which
allowed hosts are expected, and a name server that gives allowed hosts a loopback address and knows no others. What is
refused is reported to the child, for the ledger, before the client hears of it.
"""

import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

from playhead.engine.egress import own_traffic
from playhead.engine.isolation.dns import answer, question
from playhead.engine.isolation.hosts import Endpoint, is_loopback, parse_all
from playhead.engine.isolation.http import RequestHead, read_head, refusal, upstream

_MESSAGE = 64 * 1024
_CHUNK = 64 * 1024
_MOST_LISTENERS = 64
_HEAD_TIMEOUT = 30.0
_FIRST_ADDRESS = 0x7F4D0001  # 127.77.0.1


class Tunnel:
    """Serves one process tree until it is closed.

    ``refused`` holds ``host:port`` of every refused connection, ``reached`` of every one that was let through.
    """

    def __init__(self, allow: Iterable[str]) -> None:
        self.refused: list[str] = []
        self.reached: list[str] = []
        self._endpoints = parse_all(allow)
        self._names: dict[str, str] = {}  # loopback address -> host
        self._unknown: set[str] = set()
        self._ours, self._child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wake, self._waker = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="playhead-tunnel", daemon=True)

    @property
    def fd(self) -> int:
        """The descriptor that the child has to inherit."""
        return self._child.fileno()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waker.close()
        self._thread.join()
        with self._lock:
            remaining = list(self._open)
        for connection in remaining:  # the process tree is gone, or is not to talk any more
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._ours.close()
        self._child.close()

    # --- listeners ---

    def _serve(self) -> None:
        self._selector.register(self._wake, selectors.EVENT_READ, ("stop", 0))
        self._selector.register(self._ours, selectors.EVENT_READ, ("control", 0))
        running = True
        while running:
            for key, _ in self._selector.select():
                kind, port = key.data
                if kind == "stop":
                    running = False
                elif kind == "control":
                    self._take_listeners()
                else:
                    self._incoming(kind, port, key.fileobj)  # pyright: ignore[reportArgumentType]
        self._close_listeners()

    def _take_listeners(self) -> None:
        try:
            message, numbers, _, _ = socket.recv_fds(self._ours, _MESSAGE, _MOST_LISTENERS)
        except OSError:
            message, numbers = b"", []
        if not message:
            self._selector.unregister(self._ours)
            return
        for role, number in zip(message.decode().split(), numbers, strict=False):
            kind, _, port = role.partition(":")
            listener = socket.socket(fileno=number)
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, (kind, int(port)))

    def _close_listeners(self) -> None:
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not self._ours:
                key.fileobj.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._selector.close()

    def _incoming(self, kind: str, port: int, listener: socket.socket) -> None:
        with suppress(OSError):
            if kind == "names":
                self._look_up(listener)
                return
            connection, _ = listener.accept()
            connection.setblocking(True)
            with self._lock:
                self._open.add(connection)
            run = self._proxy if kind == "proxy" else self._port
            threading.Thread(target=self._handle, args=(run, connection, port), daemon=True).start()

    def _handle(self, run: Callable[[socket.socket, int], None], connection: socket.socket, port: int) -> None:
        try:
            with suppress(OSError), own_traffic():
                run(connection, port)
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    # --- what may pass ---

    def _allows(self, host: str, port: int) -> bool:
        return any(e.fits(host, port) and not (e.is_loopback and e.port is None) for e in self._endpoints)

    def _report(self, target: str) -> None:
        self.refused.append(target)
        with suppress(OSError):  # the child is gone, or reads no reports and its buffer is full
            self._ours.send(target.encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _proxy(self, connection: socket.socket, _: int) -> None:
        connection.settimeout(_HEAD_TIMEOUT)
        head = read_head(connection)
        if head is None:
            return
        if not self._allows(head.host, head.port):
            self._report(f"{head.host}:{head.port}")
            connection.sendall(refusal(403, f"playhead's egress guard refused {head.host}:{head.port}"))
            return
        self._forward(connection, head.host, head.port, head)

    def _port(self, connection: socket.socket, port: int) -> None:
        address = str(connection.getsockname()[0])
        host = self._names.get(address) or self._local(port)
        if host is None or not self._allows(host, port):
            self._report(f"{host or address}:{port}")
            return
        self._forward(connection, host, port, None)

    def _local(self, port: int) -> str | None:
        return next((e.host for e in self._endpoints if e.is_loopback and e.port == port), None)

    def _forward(self, connection: socket.socket, host: str, port: int, head: RequestHead | None) -> None:
        self.reached.append(f"{host}:{port}")
        try:
            remote = upstream(host, port)
        except OSError as error:
            if head is not None:
                connection.sendall(refusal(502, f"{host}:{port} cannot be reached: {error}"))
            return
        with remote:
            if head is not None:
                connection.settimeout(None)
                if head.reply:
                    connection.sendall(head.reply)
                remote.sendall(head.onward)
            _pump(connection, remote)

    # --- names ---

    def _look_up(self, listener: socket.socket) -> None:
        query, client = listener.recvfrom(_MESSAGE)
        asked = question(query)
        if asked is None:
            return
        name, kind, text = asked
        address = self._address(name)
        if address is None and name not in self._unknown:
            self._unknown.add(name)
            self._report(f"{name}:lookup")
        listener.sendto(answer(query, text, kind, address), client)

    def _address(self, name: str) -> str | None:
        """A loopback address for an allowed host, the same one each time."""
        if is_loopback(name) or not any(_may_name(e, name) for e in self._endpoints):
            return None
        for address, known in self._names.items():
            if known == name:
                return address
        address = socket.inet_ntoa((_FIRST_ADDRESS + len(self._names)).to_bytes(4, "big"))
        self._names[address] = name
        return address


def _may_name(endpoint: Endpoint, name: str) -> bool:
    return not endpoint.is_loopback and endpoint.fits(name, endpoint.port or 443)


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Carries bytes both ways until both sides have said their last."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, (one, other))
        selector.register(other, selectors.EVENT_READ, (other, one))
        while selector.get_map():
            for key, _ in selector.select():
                source, target = key.data
                data = source.recv(_CHUNK)
                if data:
                    target.sendall(data)
                else:
                    selector.unregister(source)
                    target.shutdown(socket.SHUT_WR)
