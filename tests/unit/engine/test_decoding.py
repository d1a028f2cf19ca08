"""Content encodings are undone piece by piece, however the body was cut."""

import gzip
import sys
import zlib
from typing import Any

import pytest

from playhead.engine.decoding import decoder_for

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BODY = ("It rains in Zürich. " * 50).encode()


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("encoding", "encoded"),
    [
        ("", BODY),
        ("identity", BODY),
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("x-gzip", gzip.compress(BODY, mtime=0)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", raw_deflate(BODY)),
        ("zstd", zstd.compress(BODY)),
        ("deflate, GZIP", gzip.compress(zlib.compress(BODY), mtime=0)),
    ],
)
def test_any_cut_gives_the_body(encoding: str, encoded: bytes, size: int) -> None:
    decode = decoder_for(encoding)
    assert decode is not None
    assert b"".join(decode(encoded[i : i + size]) for i in range(0, len(encoded), size)) == BODY


def test_the_brotli_package_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Decompressor:
        def process(self, data: bytes) -> bytes:
            return data[::-1]

    fake: Any = type(sys)("brotli")
    fake.Decompressor = Decompressor
    monkeypatch.setitem(sys.modules, "brotli", fake)
    decode = decoder_for("br")
    assert decode is not None
    assert decode(b"abc") == b"cba"


@pytest.mark.parametrize("encoding", ["unheard-of", "gzip, unheard-of"])
def test_what_cannot_be_undone_is_said_so(encoding: str) -> None:
    assert decoder_for(encoding) is None


def test_without_a_brotli_package_brotli_cannot_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    assert decoder_for("br") is None
