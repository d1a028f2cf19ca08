"""What a running op gets as ``ctx``: parameters, secrets, variables and an HTTP client, each as far as declared."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from playhead.core.values import JSON
from playhead.engine.ops import Access
from playhead.errors import OpError


class OpContext:
    """Given to an op that has a parameter ``ctx: OpContext``.

    Args:
        learn: told of every secret that is read, by variable.
        asynchronous: whether ``http`` is an async client.
    """

    def __init__(self, op: str, access: Access, learn: Callable[[str, str], None], *, asynchronous: bool) -> None:
        self._op = op
        self._access = access
        self._asynchronous = asynchronous
        self._read: list[str] = []
        self.secrets = Secrets(op, access, learn, self._read)
        self.env = Environment(op, access)

    @cached_property
    def config(self) -> Mapping[str, JSON]:
        """The op's parameters, defaults filled in."""
        return self._access.settings()

    @cached_property
    def http(self) -> Any:
        """An httpx2 client that reaches the declared hosts only; it is closed when the call ends."""
        try:
            import httpx2
        except ImportError as error:
            raise OpError(f"{self._op}: ctx.http needs httpx2 (pip install 'playhead[wire]')", code="config") from error

        def check(request: Any) -> None:
            self._check(request.url.host, request.url.port, request.url.scheme)

        async def check_async(request: Any) -> None:
            check(request)

        if self._asynchronous:
            return httpx2.AsyncClient(event_hooks={"request": [check_async]})
        return httpx2.Client(event_hooks={"request": [check]})

    def _check(self, host: str, port: int | None, scheme: str) -> None:
        """Raises `OpError` for a host that is not declared; asked for every request, those after redirects too."""
        number = port or (443 if scheme == "https" else 80)
        allowed = [self._access.egress]
        allowed += [hosts for slot in self._read if (hosts := self._access.secrets[slot].hosts) is not None]
        if not all(any(reaches(pattern, host, number) for pattern in patterns) for patterns in allowed):
            why = "only the hosts of the secrets that were read" if len(allowed) > 1 else "only the hosts in egress"
            raise OpError(f"{self._op} may not connect to {host}:{number}; it reaches {why}", code="permission")

    def close(self) -> None:
        if "http" in self.__dict__ and not self._asynchronous:
            self.http.close()

    async def aclose(self) -> None:
        if "http" in self.__dict__ and self._asynchronous:
            await self.http.aclose()


class Secrets:
    def __init__(self, op: str, access: Access, learn: Callable[[str, str], None], read: list[str]) -> None:
        self._op = op
        self._access = access
        self._learn = learn
        self._read = read

    def get(self, slot: str) -> str:
        """The value of a declared slot.

        Raises:
            OpError: ``permission`` for a slot that is not declared, ``auth`` for a variable that is not set.
        """
        if slot not in self._access.secrets:
            raise OpError(f"{self._op} may not read the secret {slot!r}: it is not declared", code="permission")
        variable = self._access.variable(slot)
        value = os.environ.get(variable)
        if not value:
            raise OpError(f"{self._op}: {variable} is not set (secret {slot!r})", code="auth")
        self._read.append(slot)
        self._learn(variable, value)
        return value


class Environment:
    def __init__(self, op: str, access: Access) -> None:
        self._op = op
        self._access = access

    def get(self, name: str) -> str:
        """The value of a declared variable.

        Raises:
            OpError: ``permission`` for one that is not declared, ``auth`` for one that is not set.
        """
        if name not in self._access.env:
            raise OpError(f"{self._op} may not read the variable {name!r}: it is not declared", code="permission")
        value = os.environ.get(name)
        if value is None:
            raise OpError(f"{self._op}: {name} is not set (declared in env)", code="auth")
        return value


def reaches(pattern: str, host: str, port: int) -> bool:
    """Whether a declared host is this one: exact, or ``*.suffix``; with a port only where the pattern names one."""
    name, colon, number = pattern.rpartition(":")
    if not colon or not number.isdigit():
        name, number = pattern, str(port)
    if number != str(port):
        return False
    name, host = name.lower(), host.lower().rstrip(".")
    return host.endswith(name[1:]) and len(host) > len(name) - 1 if name.startswith("*.") else host == name
