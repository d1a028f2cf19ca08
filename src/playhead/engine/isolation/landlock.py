"""Landlock and a seccomp filter: what holds a process tree where namespaces are not to be had.

Landlock allows TCP connections by port, whatever the host; it knows no UDP. The filter takes away what it does not
see: UDP and raw sockets, other protocols than TCP, io_uring, and data sent along with opening a connection.
"""

import ctypes
import os
import struct

from playhead.engine.isolation.kernel import no_new_privileges, prctl, syscall

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _RULE_NET_PORT, _CONNECT_TCP, _SCOPE_ABSTRACT = 1, 2, 2, 1
_ABI_OF_TCP, _ABI_OF_SCOPES = 4, 6

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _EACCES, _EOPNOTSUPP = 1, 13, 95
_LD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16
_MSG_FASTOPEN = 0x20000000
_UNIX, _INET, _INET6, _NETLINK, _ALG, _STREAM, _TCP = 1, 2, 10, 16, 38, 1, 6
_IO_URING_SETUP = 425

_MACHINES: dict[str, tuple[int, int, dict[int, int]]] = {
    # audit arch, socket(), {call that sends: index of its flags}
    "x86_64": (0xC000003E, 41, {44: 3, 46: 2, 307: 3}),
    "aarch64": (0xC00000B7, 198, {206: 3, 211: 2, 269: 3}),
}
Instruction = tuple[int, int, int, int]


def missing() -> str | None:
    """Why Landlock cannot hold TCP here; None when it can."""
    try:
        version = abi()
    except OSError as error:
        return error.strerror or str(error)
    return None if version >= _ABI_OF_TCP else f"Landlock ABI {version} has no rules for TCP (4 or newer has)"


def abi() -> int:
    return syscall(_CREATE, None, 0, _VERSION_FLAG)


def restrict(ports: set[int]) -> str:
    """Holds this process and its children to TCP connections to ``ports``; gives what stays open, "" for nothing.

    Raises:
        OSError: the kernel refused, and nothing is held.
    """
    no_new_privileges()
    scoped = abi() >= _ABI_OF_SCOPES
    attributes = struct.pack("QQQ", 0, _CONNECT_TCP, _SCOPE_ABSTRACT)[: 24 if scoped else 16]
    ruleset = syscall(_CREATE, attributes, len(attributes), 0)
    try:
        for port in ports:
            syscall(_ADD_RULE, ruleset, _RULE_NET_PORT, struct.pack("QQ", _CONNECT_TCP, port), 0)
        syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)
    return _filter_sockets()


def _filter_sockets() -> str:
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return f"UDP is not covered on {os.uname().machine}"
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _program(*machine))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    try:
        prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_char_p(program))
    except OSError as error:
        return f"UDP is not covered: {error.strerror}"
    return ""


def _program(arch: int, socket_call: int, sending: dict[int, int]) -> list[Instruction]:
    """The filter: for `socket` an allow-list, for what sends no fast open, everything else passes."""
    code: list[Instruction] = [
        (_LD, 0, 0, _ARCH),
        (_JEQ, 1, 0, arch),
        _refuse(_EPERM),  # 32-bit programs have other call numbers
        (_LD, 0, 0, _NR),
        (_JGE, 0, 1, 0x40000000),
        _refuse(_EPERM),
        *_when(_IO_URING_SETUP, _refuse(_EPERM)),
    ]
    for number, index in sending.items():
        code += [
            (_JEQ, 0, 4, number),
            (_LD, 0, 0, _argument(index)),
            (_JSET, 0, 1, _MSG_FASTOPEN),
            _refuse(_EOPNOTSUPP),
            (_RET, 0, 0, _ALLOW),
        ]
    return [*code, (_JEQ, 1, 0, socket_call), (_RET, 0, 0, _ALLOW), *_sockets()]


def _sockets() -> list[Instruction]:
    passes: Instruction = (_RET, 0, 0, _ALLOW)
    return [
        (_LD, 0, 0, _argument(0)),
        *(i for family in (_UNIX, _NETLINK, _ALG) for i in _when(family, passes)),
        (_JEQ, 2, 0, _INET),
        (_JEQ, 1, 0, _INET6),
        _refuse(_EACCES),
        (_LD, 0, 0, _argument(1)),
        (_AND, 0, 0, 0xF),
        (_JEQ, 1, 0, _STREAM),
        _refuse(_EACCES),
        (_LD, 0, 0, _argument(2)),
        *_when(0, passes),
        *_when(_TCP, passes),
        _refuse(_EACCES),
    ]


def _argument(index: int) -> int:
    """Offset of the low half of an argument, on little-endian machines."""
    return _ARGS + 8 * index


def _when(value: int, then: Instruction) -> list[Instruction]:
    return [(_JEQ, 0, 1, value), then]


def _refuse(error: int) -> Instruction:
    return (_RET, 0, 0, _ERRNO | error)
