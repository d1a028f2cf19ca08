"""zstd: the one codec of what is stored compressed."""

import sys
from collections.abc import Mapping

from playhead.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_Options = Mapping[int, int]

_CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
_QUICK: _Options = {**_CHECKED, zstd.CompressionParameter.compression_level: 1}
_HARD: _Options = {**_CHECKED, zstd.CompressionParameter.compression_level: 9}
_LONG: _Options = {
    **_CHECKED,
    zstd.CompressionParameter.compression_level: 1,  # twice as fast as 3, and a tenth larger
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.window_log: 26,
}
_PATIENCE = 512 * 1024
"""Texts above this size are searched less hard, but for repeats over their whole length."""


def compress(data: bytes, *, hard: bool = False) -> bytes:
    """Compressed with a checksum; ``hard`` for what is written once and kept."""
    options = _QUICK if not hard else _HARD if len(data) <= _PATIENCE else _LONG
    return zstd.compress(data, options=options)


def decompress(data: bytes) -> bytes:
    """Inverse of `compress`.

    Raises:
        FormatError: not what was written.
    """
    try:
        return zstd.decompress(data)
    except zstd.ZstdError as error:
        raise FormatError(f"compressed data is damaged: {error}") from error
