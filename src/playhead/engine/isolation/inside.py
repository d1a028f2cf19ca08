"""The child's side of the outer guard: takes this process into its level and gives the tunnel its ends inside.

A socket belongs to the network that it was made in, wherever its descriptor goes. So listeners are made here, inside,
and handed to the parent, which accepts on them from outside: no process of ours runs inside, and none can be killed
or talked to but through these listeners.

Light like `isolation_kernel`: a fresh interpreter loads it before each program that `isolation.launch` starts.
"""

import _socket
import errno
import os
import stat
import struct

from playhead.engine.isolation import kernel, landlock

Ports = tuple[list[int], list[int]]
"""Ports at which hosts with names are expected, and ports of this machine's loopback."""
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
_NOT_HERE = (errno.EACCES, errno.EPERM, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT)


class Reached:
    """What `reach` came to.

    ``detail`` says what is less than whole, ``open`` what this level leaves open, ``severed`` which connections were
    cut, ``proxy`` is the tunnel's port and ``environment`` the variables by which clients find it.
    """

    __slots__ = ("detail", "environment", "name", "open", "proxy", "severed")

    def __init__(
        self,
        name: str,
        detail: str = "",
        open: str = "",
        severed: tuple[str, ...] = (),
        proxy: int | None = None,
    ) -> None:
        self.name, self.detail, self.open, self.severed, self.proxy = name, detail, open, severed, proxy
        self.environment = {} if proxy is None else _variables(f"http://127.0.0.1:{proxy}")

    def members(self) -> tuple[str, str, str, tuple[str, ...], int | None]:
        """What another process makes the same value from."""
        return self.name, self.detail, self.open, self.severed, self.proxy


class Listener:
    """A socket inside, and what the tunnel does with it: ``proxy``, ``port`` or ``names``."""

    __slots__ = ("kind", "port", "socket")

    def __init__(self, kind: str, socket: _socket.socket) -> None:
        self.kind, self.port, self.socket = kind, int(socket.getsockname()[1]), socket


def first_of(levels: list[str], ports: Ports, tunnel: int | None) -> tuple[Reached | None, list[str]]:
    """The first of the levels that can be had, and why those before it cannot."""
    reasons: list[str] = []
    for level in levels:
        try:
            return reach(level, ports, tunnel), reasons
        except OSError as error:
            reasons.append(f"{level}: {error.args[1] if len(error.args) > 1 else error}")
    return None, reasons


def reach(level: str, ports: Ports, tunnel: int | None) -> Reached:
    """Takes this process to ``level``: ``namespace``, ``landlock``, or ``bwrap`` for one that is already inside it.

    Raises:
        OSError: the level cannot be had.
    """
    if level == "landlock":
        return _reach_landlock(ports[1], tunnel)
    if level == "namespace":
        kernel.unshare_network()
    details: list[str] = []
    listeners = [] if tunnel is None else _listeners(ports, details, with_names=level == "namespace")
    if level == "namespace":
        details += _cover(with_names=any(x.kind == "names" for x in listeners))
    severed = _sever(keep={x.socket.fileno() for x in listeners})
    proxy = _hand_over(listeners, tunnel)
    kernel.drop_capabilities()
    return Reached(level, "; ".join(details), severed=severed, proxy=proxy)


def _reach_landlock(local: list[int], tunnel: int | None) -> Reached:
    proxies = [] if tunnel is None else [_listen("proxy", "127.0.0.1", 0)]
    severed = _sever(keep={x.socket.fileno() for x in proxies})
    left = landlock.restrict({*(x.port for x in proxies), *local})
    detail = "; ".join(["TCP by port, no loopback servers", *([left] if left else [])])
    return Reached("landlock", detail, left, severed, _hand_over(proxies, tunnel))


def _listeners(ports: Ports, details: list[str], *, with_names: bool) -> list[Listener]:
    """A proxy for clients that can use one, and for the others the ports that allowed hosts are expected at."""
    found = [_listen("proxy", "127.0.0.1", 0)]
    named, local = set(ports[0] if with_names else ()), set(ports[1])
    try:
        for port in sorted(named | local):
            found.append(_listen("port", "0.0.0.0" if port in named else "127.0.0.1", port))
        if named:
            found.append(_listen("names", "127.0.0.1", 53))
    except OSError as error:  # who is not root inside may not have low ports
        details.append(f"models through the proxy only: {error.strerror}")
    for port in sorted(local):
        try:
            found.append(_listen("port", "::1", port))
        except OSError:  # a machine without IPv6
            break
    return found


def _listen(kind: str, host: str, port: int) -> Listener:
    family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
    made = _socket.socket(family, _socket.SOCK_DGRAM if kind == "names" else _socket.SOCK_STREAM)
    try:
        made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        if kind != "names":
            made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return Listener(kind, made)


def _hand_over(listeners: list[Listener], tunnel: int | None) -> int | None:
    """Gives the listeners to the parent; the port of the proxy among them."""
    if tunnel is None or not listeners:
        return None
    roles = " ".join(f"{x.kind}:{x.port}" for x in listeners).encode()
    numbers = struct.pack(f"{len(listeners)}i", *(x.socket.fileno() for x in listeners))
    control = _socket.socket(fileno=os.dup(tunnel))
    try:
        control.sendmsg([roles], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    finally:
        control.close()
    for listener in listeners:
        listener.socket.close()
    return listeners[0].port


def _variables(url: str) -> dict[str, str]:
    upper = {"HTTP_PROXY": url, "HTTPS_PROXY": url, "ALL_PROXY": url, "NO_PROXY": _NO_PROXY}
    return {**upper, **{name.lower(): value for name, value in upper.items()}}


def _cover(*, with_names: bool) -> list[str]:
    """Hides the sockets of services, and with ``with_names`` sends name lookups to the tunnel."""
    try:
        kernel.detach_mounts()
    except OSError as error:
        return [f"sockets of services stay visible: {error.strerror}"]
    for path in service_sockets():
        try:
            kernel.bind("/dev/null", path)
        except OSError as error:
            return [f"{path} stays visible: {error.strerror}"]
    if not with_names:
        return []
    try:
        _replace("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
        _replace("/etc/hosts", hosts_file(kernel.read("/etc/hosts"), _socket.gethostname()))
    except OSError as error:
        return [f"models through the proxy only: {error.strerror}"]
    return []


def service_sockets() -> list[str]:
    """The sockets of services that are there now."""
    found = [path.format(uid=os.getuid()) for path in _SERVICES]
    for folder in _SERVICE_FOLDERS:
        try:
            found += [f"{folder}/{name}" for name in os.listdir(folder)]
        except OSError:
            continue  # not a service of this machine
    return [path for path in found if _is_socket(path)]


def hosts_file(current: str, hostname: str) -> str:
    """A hosts file that keeps the loopback names of the current one, and nothing that leads elsewhere."""
    kept = [line for line in current.splitlines() if line.split("#")[0].strip().startswith(("127.", "::1"))]
    return "\n".join(["127.0.0.1 localhost", "::1 localhost", f"127.0.0.1 {hostname}", *kept, ""])


def _replace(path: str, text: str) -> None:
    """Shows ``text`` in the place of a file, to this process tree only."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    name = f"{folder}/playhead-{os.getpid()}-{os.urandom(8).hex()}"
    made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        os.write(made, text.encode())
        kernel.bind(name, os.path.realpath(path))
    finally:
        os.close(made)
        os.unlink(name)


def _sever(keep: set[int]) -> tuple[str, ...]:
    """Puts an unconnected socket in the place of every network socket that was inherited; names the peers.

    The connection itself stays open where it came from: it is not ours to close.
    """
    peers: list[str] = []
    for number in map(int, os.listdir("/proc/self/fd")):
        if number in keep or not _is_socket(number):
            continue
        old = _socket.socket(fileno=os.dup(number))
        try:
            if old.family in (_socket.AF_INET, _socket.AF_INET6):
                peers += _peer(old)
                _swap(number, old)
        finally:
            old.close()
    return tuple(sorted(peers))


def _is_socket(which: int | str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(which).st_mode)
    except OSError:
        return False  # not there, or the descriptor of a listing


def _peer(old: _socket.socket) -> list[str]:
    try:
        host, port = old.getpeername()[:2]
    except OSError:
        return []  # not connected
    return [f"{host}:{port}"]


def _swap(number: int, old: _socket.socket) -> None:
    try:
        fresh = _socket.socket(old.family, old.type)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        fresh = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        os.dup2(fresh.fileno(), number, inheritable=os.get_inheritable(number))
    finally:
        fresh.close()
