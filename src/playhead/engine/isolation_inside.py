"""The child's side of the outer guard: takes this process into its level and gives the tunnel its ends inside.

A socket belongs to the network that it was made in, wherever its descriptor goes. So listeners are made here, inside,
and handed to the parent, which accepts on them from outside: no process of ours runs inside, and none can be killed
or talked to but through these listeners.

Standard library only and light: a fresh process loads it before a program starts.
"""

import errno
import json
import os
import socket
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from playhead.engine import isolation_kernel as kernel
from playhead.engine import isolation_landlock as landlock
from playhead.engine.isolation_hosts import Endpoint, parse_all

_SERVICES = (
    "/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/run/avahi-daemon/socket",
    "/run/dbus/system_bus_socket", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
    "/run/user/{uid}/bus", "/run/user/{uid}/docker.sock", "/run/user/{uid}/podman/podman.sock",
    "/tmp/.s.PGSQL.5432", "/tmp/mysql.sock", "/tmp/mongodb-27017.sock",
)  # fmt: skip
"""Sockets of this machine's services that a network namespace does not close: resolvers, containers, databases."""
_SERVICE_FOLDERS = ("/run/postgresql", "/run/mysqld", "/run/redis", "/run/valkey")
"""Folders whose sockets are all of that kind."""
_NO_PROXY = "localhost,127.0.0.1,::1"
_BACKLOG = 128


class Reached(NamedTuple):
    """What `reach` came to.

    ``detail`` says what is less than whole, ``open`` what this level leaves open, ``environment`` are the variables by
    which clients find the tunnel.
    """

    name: str
    detail: str = ""
    open: str = ""
    hosts: tuple[str, ...] = ()
    severed: tuple[str, ...] = ()
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed


class Listener(NamedTuple):
    """A socket inside, and what the tunnel does with it: ``proxy``, ``port`` or ``names``."""

    kind: str
    port: int
    socket: socket.socket


def reach(level: str, allow: Iterable[str], tunnel: int | None) -> Reached:
    """Takes this process to ``level``: ``namespace``, ``landlock``, or ``bwrap`` for one that is already inside it.

    Raises:
        OSError: the level cannot be had.
    """
    endpoints = parse_all(allow) if tunnel is not None else []
    if level == "landlock":
        return _reach_landlock(endpoints, tunnel)
    details: list[str] = []
    if level == "namespace":
        kernel.unshare_network()
    listeners = _listeners(endpoints, details, with_names=level == "namespace")
    if level == "namespace":
        details += _cover(with_names=any(x.kind == "names" for x in listeners))
    severed = _sever(keep={tunnel, *(x.socket.fileno() for x in listeners)})
    environment = _hand_over(listeners, tunnel)
    kernel.drop_capabilities()
    return Reached(level, "; ".join(details), severed=severed, environment=environment)


def first_of(levels: Iterable[str], allow: Sequence[str], tunnel: int | None) -> tuple[Reached | None, list[str]]:
    """The first of the levels that can be had, and why those before it cannot."""
    reasons: list[str] = []
    for level in levels:
        try:
            return reach(level, allow, tunnel), reasons
        except OSError as error:
            reasons.append(f"{level}: {error.args[1] if len(error.args) > 1 else error}")
    return None, reasons


def _reach_landlock(endpoints: Sequence[Endpoint], tunnel: int | None) -> Reached:
    proxies = [] if tunnel is None else [_listen("proxy", "127.0.0.1", 0)]
    relayed = [e for e in endpoints if e.is_loopback and e.port is not None]
    severed = _sever(keep={tunnel, *(x.socket.fileno() for x in proxies)})
    left = landlock.restrict({*(x.port for x in proxies), *(e.port for e in relayed if e.port is not None)})
    detail = "; ".join(["TCP by port, no loopback servers", *([left] if left else [])])
    hosts = (*(f"127.0.0.1:{x.port}" for x in proxies), *(f"{e.host}:{e.port}" for e in relayed))
    return Reached("landlock", detail, left, hosts, severed, _hand_over(proxies, tunnel))


def _listeners(endpoints: Sequence[Endpoint], details: list[str], *, with_names: bool) -> list[Listener]:
    """A proxy for clients that can use one, and for the others the ports that allowed hosts are expected at."""
    if not endpoints:
        return []
    found = [_listen("proxy", "127.0.0.1", 0)]
    named = {e.port or 443 for e in endpoints if with_names and not e.is_loopback}
    local = {e.port for e in endpoints if e.is_loopback and e.port is not None}
    details += [f"{e.host} needs a port to be reached" for e in endpoints if e.is_loopback and e.port is None]
    try:
        for port in sorted(named | local):
            found.append(_listen("port", "0.0.0.0" if port in named else "127.0.0.1", port))
        if named:
            found.append(Listener("names", 53, _datagrams(53)))
    except PermissionError:
        details.append("models through the proxy only")
    for port in sorted(local):
        with suppress(OSError):  # a machine without IPv6
            found.append(_listen("port", "::1", port))
    return found


def _listen(kind: str, host: str, port: int) -> Listener:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return Listener(kind, int(made.getsockname()[1]), made)


def _datagrams(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


def _hand_over(listeners: Sequence[Listener], tunnel: int | None) -> dict[str, str]:
    """Gives the listeners to the parent, and the variables that name the proxy."""
    if tunnel is None or not listeners:
        return {}
    roles = json.dumps([[x.kind, x.port] for x in listeners]).encode()
    with socket.socket(fileno=os.dup(tunnel)) as control:
        socket.send_fds(control, [roles], [x.socket.fileno() for x in listeners])
    for listener in listeners:
        listener.socket.close()
    url = f"http://127.0.0.1:{listeners[0].port}"
    proxies = {name: url for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
    variables = {**proxies, "NO_PROXY": _NO_PROXY}
    return {**variables, **{name.lower(): value for name, value in variables.items()}}


def _cover(*, with_names: bool) -> list[str]:
    """Hides the sockets of services, and with ``with_names`` sends name lookups to the tunnel."""
    try:
        kernel.detach_mounts()
    except OSError as error:
        return [f"sockets of services stay visible: {error.strerror}"]
    for path in service_sockets():
        with suppress(OSError):
            kernel.bind("/dev/null", path)
    if not with_names:
        return []
    try:
        _replace("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
        _replace("/etc/hosts", hosts_file(Path("/etc/hosts").read_text("utf-8", "replace"), socket.gethostname()))
    except OSError as error:
        return [f"models through the proxy only: {error.strerror}"]
    return []


def service_sockets() -> list[str]:
    """The sockets of services that are there now."""
    found = [path.format(uid=os.getuid()) for path in _SERVICES]
    for folder in _SERVICE_FOLDERS:
        with suppress(OSError):
            found += [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208 - on every start
    return [path for path in found if _is_socket(path)]


def hosts_file(current: str, hostname: str) -> str:
    """A hosts file that keeps the loopback names of the current one, and nothing that leads elsewhere."""
    kept = [line for line in current.splitlines() if line.split("#")[0].strip().startswith(("127.", "::1"))]
    return "\n".join(["127.0.0.1 localhost", "::1 localhost", f"127.0.0.1 {hostname}", *kept, ""])


def _replace(path: str, text: str) -> None:
    """Shows ``text`` in the place of a file, to this process tree only."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    name = str(Path(folder) / f"playhead-{os.getpid()}-{os.urandom(8).hex()}")
    made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        os.write(made, text.encode())
        kernel.bind(name, os.path.realpath(path))
    finally:
        os.close(made)
        Path(name).unlink()


def _sever(keep: set[int | None]) -> tuple[str, ...]:
    """Puts an unconnected socket in the place of every network socket that was inherited; names the peers.

    The connection itself stays open where it came from: it is not ours to close.
    """
    peers: list[str] = []
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        number = int(entry)
        if number in keep or not _is_socket(number):
            continue
        with socket.socket(fileno=os.dup(number)) as old:
            if old.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            with suppress(OSError):
                host, port = old.getpeername()[:2]
                peers.append(f"{host}:{port}")
            _swap(number, old)
    return tuple(sorted(peers))


def _is_socket(which: int | str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(which).st_mode)  # noqa: PTH116 - a descriptor, or on every start
    except OSError:
        return False  # not there, or the descriptor of a listing


def _swap(number: int, old: socket.socket) -> None:
    try:
        fresh = socket.socket(old.family, old.type)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT):
            raise
        fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with fresh:
        os.dup2(fresh.fileno(), number, inheritable=os.get_inheritable(number))
