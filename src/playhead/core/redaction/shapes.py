"""Credentials that can be told by their looks inside text: token shapes, and values under credential-like names."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import NamedTuple

from playhead.core.byte_patterns import byte_set
from playhead.core.redaction.names import is_credential_name


class Found(NamedTuple):
    """A credential in UTF-8 text: where it is and what it is called."""

    start: int
    end: int
    name: str


_gate = byte_set(
    rb"sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|xox[a-z]-|A[KS]IA[0-9A-Z]{16}|eyJ[A-Za-z0-9_-]{5}"
    rb"|PRIVATE KEY|(?i:bearer|basic)[ +%\\\t]|://[^/\s\"@]{1,256}@"
    rb"|(?i)(?:passw(?:or)?d|passphrase|secret|credential|authorization|cookie|(?:api|access|private)[-_. ]?key)"
    rb"[A-Za-z0-9_.\- \[\]()/#@$\x80-\xff]*(?:\\*[\"']|[=:])"
    rb"|(?i)(?:token|jwt)[\]\[)(}{ _.\-]*(?:\\*[\"']|[=:])"
)


def may_hold_credentials(data: bytes) -> bool:
    """Quick look at text or rendered JSON; False means that neither names nor shapes can be found in it."""
    return _gate.Match(data) is not None


def credentials_in(data: bytes) -> list[Found]:
    """Every credential that its shape or its name gives away."""
    found: list[Found] = []
    for name, pattern, group, accept in _SHAPES:
        for match in pattern.finditer(data):
            if accept(match[group]):
                found.append(Found(match.start(group), match.end(group), name))
    found.extend(_under_names(data))
    found.extend(_userinfo(data))
    return found


def _always(_: bytes) -> bool:
    return True


def _mixed(text: bytes) -> bool:
    """Letters and digits together: words of prose have none."""
    return any(48 <= byte <= 57 for byte in text) and any(byte > 64 for byte in text)


def _not_prose(text: bytes) -> bool:
    return len(text) >= 20 or not text.isalpha() or not (text.islower() or text[1:].islower())


def _is_basic(text: bytes) -> bool:
    """Base64 of a user, a colon and a password."""
    try:
        plain = b64decode(text.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(text) % 4), validate=True)
        return ":" in plain.decode()
    except (binascii.Error, ValueError):
        return False


_SPACE = rb"(?:[ \t]|%20|\+)+"
_Shape = tuple[str, "re.Pattern[bytes]", int, Callable[[bytes], bool]]
_SHAPES: tuple[_Shape, ...] = (
    (
        "pem",
        re.compile(
            rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?"
            rb"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        0,
        _always,
    ),
    ("jwt", re.compile(rb"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"), 0, _always),
    ("sk", re.compile(rb"\bsk-[A-Za-z0-9_-]{16,}"), 0, _mixed),
    ("sk", re.compile(rb"\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}"), 0, _always),
    ("ghp", re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})"), 0, _always),
    ("xox", re.compile(rb"\bxox[a-z]-[A-Za-z0-9-]{8,}"), 0, _always),
    ("akia", re.compile(rb"\bA[KS]IA[0-9A-Z]{16}\b"), 0, _always),
    ("bearer", re.compile(rb"(?i)\bbearer" + _SPACE + rb"([A-Za-z0-9\-._~+/]{7,}[A-Za-z0-9\-_~+/]=*)"), 1, _not_prose),
    ("basic", re.compile(rb"(?i)\bbasic" + _SPACE + rb"([A-Za-z0-9+/_-]{6,}={0,2})"), 1, _is_basic),
    ("cookie", re.compile(rb"(?im)\b(?:set-)?cookie:[ \t]*([^\s\"'][^\r\n\"']*)"), 1, _always),
)

_NAME = rb"([A-Za-z0-9_.\- ]{1,64})"
_NAMED = (
    re.compile(rb"[?&]([A-Za-z0-9_.\-%\[\]]{1,64})=([^&#\s\"'<>\\]+)"),
    re.compile(rb'"' + _NAME + rb'"\s*:\s*"((?:[^"\\]|\\.)+)"', re.DOTALL),
    re.compile(rb'\\{1,9}"' + _NAME + rb'\\{1,9}"\s*:\s*\\{1,9}"((?:[^"\\]|\\{1,9}[^"\\])+)\\{1,9}"', re.DOTALL),
    re.compile(rb"'" + _NAME + rb"'\s*:\s*'((?:[^'\\]|\\.)+)'", re.DOTALL),
    re.compile(
        rb"(?i)\b(authorization|proxy-authorization|x-[a-z0-9-]*(?:key|token|secret)|api-key)[ \t]*:[ \t]*"
        rb"(?:(?:bearer|basic|token|digest|apikey)[ \t]+)?([^\s\"'\\,;]{8,})"
    ),
)


def _under_names(data: bytes) -> Iterator[Found]:
    """Values under credential-like names in text: URL queries, forms, JSON, reprs, header lines."""
    for pattern in _NAMED:
        for match in pattern.finditer(data):
            name = match[1].decode()
            if is_credential_name(name) and not match[2].startswith(b"[REDACTED:"):
                yield Found(match.start(2), match.end(2), name)


_USERINFO = re.compile(rb"://([^/\s\"'@:\\<>]{1,256})?(?::([^/\s\"'@\\<>]{1,256}))?@")


def _userinfo(data: bytes) -> Iterator[Found]:
    """The password of a URL, and its user where that is a token."""
    for match in _USERINFO.finditer(data):
        if match[2]:
            yield Found(match.start(2), match.end(2), "userinfo")
        if match[1] and len(match[1]) >= 16 and _mixed(match[1]):
            yield Found(match.start(1), match.end(1), "userinfo")
