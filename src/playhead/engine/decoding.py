"""Undoes content encodings piece by piece, beside the client that does it for itself."""

import importlib
import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol


class Decoder(Protocol):
    """Decodes the pieces of one body in order."""

    def __call__(self, data: bytes, /) -> bytes: ...


def decoder_for(content_encoding: str) -> Decoder | None:
    """The decoder of a ``content-encoding`` header, None when one of the encodings cannot be undone here."""
    names = [n.strip().lower() for n in content_encoding.split(",")]
    steps: list[Decoder] = []
    for name in reversed([n for n in names if n not in ("", "identity")]):
        made = _MAKERS[name]() if name in _MAKERS else None
        if made is None:
            return None
        steps.append(made)
    return _chained(steps)


def _chained(steps: list[Decoder]) -> Decoder:
    def decode(data: bytes, /) -> bytes:
        for step in steps:
            data = step(data)
        return data

    return decode


def _gzip() -> Decoder:
    return zlib.decompressobj(wbits=31).decompress


def _deflate() -> Decoder:
    """Deflate with or without the zlib header: servers disagree on what the name means."""
    state: list[Any] = []

    def decode(data: bytes, /) -> bytes:
        if not state and data:
            state.append(zlib.decompressobj(wbits=15 if data[0] & 0x0F == 8 else -15))
        return state[0].decompress(data) if state else b""

    return decode


def _brotli() -> Decoder | None:
    for name in ("brotli", "brotlicffi"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        decompressor = module.Decompressor()
        return getattr(decompressor, "decompress", None) or decompressor.process
    return None


def _zstd() -> Decoder | None:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        module: Any = importlib.import_module(name)
    except ImportError:
        return None
    return module.ZstdDecompressor().decompress


_MAKERS: dict[str, Callable[[], Decoder | None]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
