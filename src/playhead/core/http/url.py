"""URLs and form text as keys see them. Nothing is normalised but what says nothing: case of the host, default port."""

import re
from typing import NamedTuple

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_TAG_ENCODED = re.compile(r"(?:%5B|\[)REDACTED(?:%3A|:)((?:(?!%5B|%5D)[^\[\]&#?/]){1,200})(?:%5D|\])", re.IGNORECASE)


class Url(NamedTuple):
    """The parts of a URL that count: userinfo and fragment are gone. ``port`` is empty where it is the default."""

    scheme: str
    host: str
    port: str
    path: str
    query: str | None

    def text(self) -> str:
        port = f":{self.port}" if self.port else ""
        query = "" if self.query is None else f"?{self.query}"
        return f"{self.scheme}://{self.host}{port}{self.path}{query}"


def parse_url(text: str) -> Url:
    """Scheme and host in lower case, no userinfo, fragment or default port; the path is at least ``/``."""
    found = _PARTS.fullmatch(text)
    scheme, authority, path, query = found.groups() if found else ("", "", text, None)
    scheme = (scheme or "").lower()
    host, port = _host_and_port((authority or "").rpartition("@")[2])
    port = "" if port == _DEFAULT_PORTS.get(scheme) else port
    return Url(scheme, host.lower(), port, path or "/", query)


def _host_and_port(place: str) -> tuple[str, str]:
    if place.startswith("["):
        host, _, rest = place.partition("]")
        return f"{host}]", rest.removeprefix(":")
    host, _, port = place.partition(":")
    return host, port


def tags_plain(text: str) -> str:
    """The text with percent-encoded redaction tags in plain: a replay passes tags on, and clients encode them."""
    if "REDACTED" not in text:
        return text
    return _TAG_ENCODED.sub(lambda found: f"[REDACTED:{percent_decoded(found[1])}]", text)


def percent_decoded(text: str) -> str:
    """The text that percent-encoding stands for; as it is where that is not UTF-8."""
    if "%" not in text:
        return text
    raw = _PERCENT.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogatepass"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return text


def pairs_of(query: str) -> list[list[str]]:
    """Names and values of a query or form, decoded, in order; a name alone has the empty value."""
    pairs: list[list[str]] = []
    for item in query.split("&"):
        if item:
            name, _, value = item.replace("+", " ").partition("=")
            pairs.append([percent_decoded(name), percent_decoded(value)])
    return pairs


def is_form(text: str) -> bool:
    """Whether every percent sign in form text begins an encoded byte, and the bytes are UTF-8."""
    if not text.isascii() or text.count("%") != len(_PERCENT.findall(text.encode())):
        return False
    raw = _PERCENT.sub(lambda found: bytes([int(found[1], 16)]), text.encode())
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def form_text(pairs: list[list[str]]) -> str:
    """Names and values as form text; the inverse of `pairs_of`. Tags stay readable."""
    return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in pairs)


def _encoded(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if chr(byte) in _PLAIN else "+" if byte == 32 else f"%{byte:02X}" for byte in raw)


_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~[]:*'()!,/")
