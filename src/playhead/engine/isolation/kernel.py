"""The calls of the Linux kernel that put a process tree into a network of its own.

Every failure is an `OSError` that names its call. It imports what costs nothing (no pathlib, socket or typing), since a
fresh interpreter loads it before each program that `isolation.launch` starts.
"""

import _socket
import ctypes
import errno
import fcntl
import os
import struct

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_MS_BIND, _MS_REC, _MS_SLAVE = 4096, 16384, 1 << 19
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAP_VERSION = 0x20080522
_SETGID, _SETUID, _NET_ADMIN, _SYS_ADMIN = 6, 7, 12, 21
_DROPPED = (_NET_ADMIN, 16, 17, 19, _SYS_ADMIN, 22, 38, 39)  # + module, raw I/O, ptrace, boot, perfmon, bpf


_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> int:
    """Calls a function of the C library; a negative result is an `OSError`."""
    result = int(getattr(_libc, name)(*args))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object) -> int:
    """Calls the kernel where the C library has no function for it."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return call("syscall", ctypes.c_long(number), *longs)


def prctl(option: int, *args: object) -> int:
    values = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in args]
    return call("prctl", option, *values, *([ctypes.c_ulong(0)] * (4 - len(values))))


def no_new_privileges() -> None:
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def read(path: str) -> str:
    """A small file as text, whatever bytes it holds."""
    with open(path, "rb") as stream:
        return stream.read().decode("utf-8", "replace")


def _write(path: str, text: str) -> None:
    with open(path, "wb", buffering=0) as stream:
        stream.write(text.encode())


def is_single_threaded() -> bool:
    """Only a process with one thread can be moved as a whole."""
    return len(os.listdir("/proc/self/task")) == 1


def has_privileges() -> bool:
    """Whether namespaces can be made without a user namespace, and no step after the first can be refused."""
    return _holds(_SYS_ADMIN, _NET_ADMIN)


def _holds(*capabilities: int) -> bool:
    for line in read("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return all(held >> c & 1 for c in capabilities)
    return False


def unshare_network() -> None:
    """Gives this process a network and mounts of its own, with loopback up and nothing else in it.

    A user namespace is made only where it is needed: inside one, root loses its rights over other users' files.
    """
    if has_privileges():
        try:
            call("unshare", _NEWNET | _NEWNS)
        except PermissionError:
            _unshare_as_user()
    else:
        _unshare_as_user()
    _loopback_up()


def _unshare_as_user() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and _holds(_SETUID, _SETGID) and _unshare_with_helper():
        return
    _unshare_user()
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            _write(f"/proc/self/{name}", text)
        except OSError as error:
            raise OSError(error.errno, f"{name} of a user namespace: {error.strerror}") from error


def _unshare_user() -> None:
    try:
        call("unshare", _NEWUSER | _NEWNET | _NEWNS)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(error.errno, "no more namespaces are allowed: see user.max_user_namespaces") from error


def _unshare_with_helper() -> bool:
    """For root without the right to make namespaces: keeps every user's number, which only a process outside can map.

    Gives False where nothing was changed.
    """
    maps = {name: _identity(read(f"/proc/self/{name}")) for name in ("uid_map", "gid_map")}
    target, (reader, writer) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        code = 1
        try:
            os.close(writer)
            if os.read(reader, 1):
                for name, text in maps.items():
                    _write(f"/proc/{target}/{name}", text)
                code = 0
        finally:
            os._exit(code)
    os.close(reader)
    try:
        _unshare_user()
        os.write(writer, b"1")
    except PermissionError:
        return False
    finally:
        os.close(writer)
        status = os.waitpid(helper, 0)[1]
    if status != 0:
        raise PermissionError(1, "uid_map: the users of this container cannot be mapped")
    return True


def _identity(current: str) -> str:
    """A map that keeps every number of the current one."""
    rows = [line.split() for line in current.splitlines()]
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in rows)


def _loopback_up() -> None:
    link = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    try:
        request = fcntl.ioctl(link.fileno(), _SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(link.fileno(), _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    finally:
        link.close()


def unroutable() -> int:
    """How often something in this network wanted to send to an address that no route leads to."""
    try:
        names, values = (line.split() for line in read("/proc/self/net/snmp").splitlines()[:2])
        count = int(values[names.index("OutNoRoutes")])
        for line in read("/proc/self/net/snmp6").splitlines():
            if line.startswith("Ip6OutNoRoutes"):
                count += int(line.split()[1])
    except (OSError, ValueError):
        return 0  # a kernel that does not count
    return count


def detach_mounts() -> None:
    """From here on mounts made here stay here; those made outside still arrive."""
    call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None)


def bind(source: str, target: str) -> None:
    """Shows ``source`` in the place of ``target``."""
    call("mount", os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(_MS_BIND), None)


def drop_capabilities() -> None:
    """Gives up what would lead out of the namespace; who was not root before holds nothing afterwards."""
    for capability in _DROPPED:
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            continue  # a kernel that does not know it, or a bounding set that this process may not change
    header = struct.pack("Ii", _CAP_VERSION, 0)
    data = ctypes.create_string_buffer(24)
    call("capget", header, data)
    keep = ~_mask(_DROPPED) if os.geteuid() == 0 else 0
    words = [
        word & (keep >> (32 * (index // 3))) & 0xFFFFFFFF for index, word in enumerate(struct.unpack("6I", data.raw))
    ]
    call("capset", header, struct.pack("6I", *words))


def _mask(capabilities: tuple[int, ...]) -> int:
    return sum(1 << capability for capability in capabilities)
