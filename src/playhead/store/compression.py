"""zstd: the one codec of what is stored compressed."""

import sys
from collections.abc import Mapping

from playhead.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_QUICK = 1
_HARD = 9
_WINDOW = 1 << 22
"""Texts above this size are searched for repeats over their whole length."""

_LONG: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 6,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.window_log: 26,
    zstd.CompressionParameter.checksum_flag: 1,
}
_SHORT: Mapping[bool, Mapping[int, int]] = {
    hard: {
        zstd.CompressionParameter.compression_level: _HARD if hard else _QUICK,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    for hard in (False, True)
}


def compress(data: bytes, *, hard: bool = False) -> bytes:
    """Compressed with a checksum; ``hard`` for what is written once and kept."""
    return zstd.compress(data, options=_LONG if hard and len(data) > _WINDOW else _SHORT[hard])


def decompress(data: bytes) -> bytes:
    """Inverse of `compress`.

    Raises:
        FormatError: not what was written.
    """
    try:
        return zstd.decompress(data)
    except zstd.ZstdError as error:
        raise FormatError(f"compressed data is damaged: {error}") from error
