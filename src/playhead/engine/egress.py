"""The inner egress guard: no connection leaves this process but those that a replay allows.

It is a Python audit hook, so it sees every connection that goes through the ``socket`` module, asyncio and whatever
is built on them. It does not see native code with sockets of its own, nor other processes; the ledger says which level
was active, so nobody takes it for more.

An audit hook cannot be removed. It is added once per process, when first needed, and asks the active guards; with
none it returns at once.
"""

import ipaddress
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from playhead.errors import EgressBlockedError

_NETWORK_EVENTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKUP_EVENTS = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
PROCESS_EVENTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system", "os.exec"})
_WATCHED = _NETWORK_EVENTS | _LOOKUP_EVENTS | PROCESS_EVENTS
_inside_model_call: ContextVar[bool] = ContextVar("playhead_inside_model_call", default=False)
_model_calls_in_flight = [0]  # name lookups of asyncio run in threads without context, so these are counted
_counting = threading.Lock()
_guards: list["EgressGuard"] = []
_installed = threading.Event()
_own_traffic: ContextVar[bool] = ContextVar("playhead_own_traffic", default=False)


class EgressGuard:
    """Refuses connections while it is active.

    Args:
        allow_models: whether a connection made inside a live model call passes; under model history none does.
        allow_hosts: host names and addresses that pass as well (model endpoints, playhead itself).
        loopback: loopback addresses pass, because the outer guard made them the process tree's own.
        applies: whether the calling context belongs to the replay; None means the whole process does.
        on_block: told of every refused connection, as ``host:port``.
        on_process: told of every process that the agent starts, which this level does not bind.
    """

    def __init__(
        self,
        *,
        allow_models: bool,
        allow_hosts: frozenset[str] = frozenset(),
        loopback: bool = False,
        applies: Callable[[], bool] | None = None,
        on_block: Callable[[str], None] = lambda _: None,
        on_process: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.allow_models = allow_models
        self.allow_hosts = allow_hosts
        self.loopback = loopback
        self.latched = False
        self._applies = applies
        self._on_block = on_block
        self._on_process = on_process

    def check(self, event: str, args: tuple[Any, ...]) -> None:
        """Raises `EgressBlockedError` for a connection that may not leave."""
        if self._applies is not None and not self._applies():
            return
        if event in PROCESS_EVENTS:
            self._on_process(_program(event, args))
            return
        if _own_traffic.get():
            return
        target = _target(event, args)
        if target is None or self._allowed(event, target):
            return
        self._on_block(f"{target[0]}:{target[1]}")
        raise EgressBlockedError(
            f"the replay's egress guard refused a connection to {target[0]}:{target[1]}",
            hint="a replay without passthrough may reach model endpoints only; allow the tool with passthrough, "
            "or name the host under model_endpoints if it is one",
        )

    def _allowed(self, event: str, target: tuple[str, int | str]) -> bool:
        if self.latched:
            return False
        host, port = target
        if host in self.allow_hosts or f"{host}:{port}" in self.allow_hosts:
            return True
        if self.loopback and _is_loopback(host):
            return True
        if event in _LOOKUP_EVENTS:
            return self.allow_models and _model_calls_in_flight[0] > 0
        return self.allow_models and _inside_model_call.get()


def _target(event: str, args: tuple[Any, ...]) -> tuple[str, int | str] | None:
    """Host and port of a connection or lookup; None for what stays in the machine (unix sockets, plain addresses)."""
    if event in _LOOKUP_EVENTS:
        host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
        if host is None or host in ("", "localhost") or _is_address(str(host)):
            return None
        return str(host), (args[1] if len(args) > 1 else None) or "lookup"
    if event not in _NETWORK_EVENTS or len(args) < 2:
        return None
    address = cast("tuple[Any, ...]", args[1] if isinstance(args[1], tuple) else ())
    return (str(address[0]), address[1]) if len(address) > 1 else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _program(event: str, args: tuple[Any, ...]) -> str:
    if event == "subprocess.Popen":
        executable, command = args[0], args[1] if len(args) > 1 else None
        first = cast("Sequence[Any]", command)[0] if isinstance(command, list | tuple) else command
        return str(executable or first)
    return str(args[0]) if args else event


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _guards or event not in _WATCHED:
        return
    for guard in tuple(_guards):
        guard.check(event, args)


@contextmanager
def guarded(guard: EgressGuard) -> Generator[EgressGuard]:
    """Keeps ``guard`` active for the block."""
    if not _installed.is_set():
        _installed.set()
        sys.addaudithook(_hook)
    _guards.append(guard)
    try:
        yield guard
    finally:
        _guards.remove(guard)


@contextmanager
def model_traffic() -> Generator[None]:
    """Marks the calling context as inside a live model call, whose connections pass."""
    token = _inside_model_call.set(True)
    with _counting:
        _model_calls_in_flight[0] += 1
    try:
        yield
    finally:
        with _counting:
            _model_calls_in_flight[0] -= 1
        _inside_model_call.reset(token)


@contextmanager
def own_traffic() -> Generator[None]:
    """Marks connections that playhead itself makes (a model for the llm policy, a remote store)."""
    token = _own_traffic.set(True)
    try:
        yield
    finally:
        _own_traffic.reset(token)


def is_own_traffic() -> bool:
    """Whether the calling context is inside `own_traffic`, which no seam records."""
    return _own_traffic.get()
