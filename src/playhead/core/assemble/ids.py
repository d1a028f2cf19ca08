"""Ids of imported sessions and nodes: the same import gives the same ids, anywhere and always."""

import hashlib


def session_id(format: str, instance: str, external_id: str, started_at: int) -> str:
    """A UUIDv7 whose time is when the session started and whose other bits come from its identity."""
    return _uuid7(started_at // 1_000_000, _entropy(format, instance, external_id))


def node_id(session: str, external_id: str) -> str:
    """A UUIDv7 with the time of the session's id; unique inside the session as far as ``external_id`` is."""
    return _uuid7(int(session[:8] + session[9:13], 16), _entropy(session, external_id))


def _entropy(*parts: str) -> int:
    sized = [part.encode("utf-8", "surrogatepass") for part in parts]
    return int.from_bytes(hashlib.sha256(b"".join(b"%d:%b," % (len(p), p) for p in sized)).digest()[:10], "big")


def _uuid7(milliseconds: int, entropy: int) -> str:
    value = (milliseconds & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | (entropy >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | entropy & 0x3FFFFFFFFFFFFFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
