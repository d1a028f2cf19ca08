"""Endpoints that a guard lets through, as people write them: hosts, globs, ports, URLs."""

import ipaddress
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Endpoint(NamedTuple):
    """``host`` may be a glob; ``port`` None stands for every port."""

    host: str
    port: int | None

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def fits(self, host: str, port: int) -> bool:
        return self.port in (None, port) and fnmatchcase(host.lower().rstrip("."), self.host)


def parse(text: str) -> Endpoint:
    """An endpoint from ``host``, ``host:port``, ``*.suffix``, ``[::1]:port`` or a URL.

    Raises:
        ValueError: a port that is none.
    """
    text = text.strip()
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if not scheme and text.count(":") > 1 and not text.startswith("["):
        return Endpoint(text.lower(), None)  # a bare IPv6 address
    parts = urlsplit(text if scheme else f"//{text}")
    host = (parts.hostname or "").rstrip(".")
    if host in ("0.0.0.0", "::"):  # what a server listens on; a client means this machine
        host = "127.0.0.1"
    return Endpoint(host, parts.port or _DEFAULT_PORTS.get(scheme))


def parse_all(texts: Iterable[str]) -> list[Endpoint]:
    """The endpoints of a policy; what is no endpoint is left out, so it stays closed."""
    found: list[Endpoint] = []
    for text in sorted(texts):
        try:
            endpoint = parse(text)
        except ValueError:
            continue
        if endpoint.host:
            found.append(endpoint)
    return found


def ports(endpoints: Iterable[Endpoint]) -> tuple[list[int], list[int]]:
    """Where clients inside expect the endpoints: ports of hosts with names, and of this machine's loopback."""
    known = list(endpoints)
    named = {e.port or 443 for e in known if not e.is_loopback}
    return sorted(named), sorted({e.port for e in known if e.is_loopback and e.port is not None})


def is_loopback(host: str) -> bool:
    """Whether a host or address is this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
