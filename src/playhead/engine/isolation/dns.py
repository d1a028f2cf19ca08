"""As much of the name protocol as one answer needs: a question with one name, an answer with one address or none."""

import socket
import struct

_HEADER = struct.Struct("!6H")
_ADDRESS, _INTERNET = 1, 1
_ANSWER_FLAGS, _NO_SUCH_NAME = 0x8180, 3
_POINTER_TO_QUESTION = 0xC00C
_SECONDS = 5


def question(message: bytes) -> tuple[str, int, bytes] | None:
    """The name in lower case, the record type and the question's own bytes; None for what is not one query."""
    if len(message) < _HEADER.size:
        return None
    _, flags, questions, _, _, _ = _HEADER.unpack_from(message)
    if flags & 0x8000 or questions != 1:
        return None
    labels: list[str] = []
    at = _HEADER.size
    while at < len(message) and 0 < message[at] < 64:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("ascii", "replace"))
        at += 1 + message[at]
    if at + 5 > len(message) or message[at] != 0:
        return None
    kind = struct.unpack_from("!H", message, at + 1)[0]
    return ".".join(labels).lower(), kind, message[_HEADER.size : at + 5]


def answer(query: bytes, asked: bytes, kind: int, address: str | None) -> bytes:
    """The reply to ``query``: the address, no record of this type (IPv6 and others), or no such name."""
    number = struct.unpack_from("!H", query)[0]
    with_address = address is not None and kind == _ADDRESS
    flags = _ANSWER_FLAGS if address is not None else _ANSWER_FLAGS | _NO_SUCH_NAME
    reply = _HEADER.pack(number, flags, 1, int(with_address), 0, 0) + asked
    if address is not None and with_address:
        record = struct.pack("!HHHIH", _POINTER_TO_QUESTION, _ADDRESS, _INTERNET, _SECONDS, 4)
        reply += record + socket.inet_aton(address)
    return reply
