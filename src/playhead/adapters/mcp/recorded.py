"""Servers that are programs, in a replay: what a recorded handshake and the recorded lists say, and no program.

``mcp.client.stdio`` starts a server with one function of its own, whatever framework is above it. In a replay in which
nothing may go live that function gives a stand-in, which talks the protocol over the same pipes: it answers the
handshake and the lists from the recording, and nothing else.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON, LedgerRow, Node, NodeStatus
from playhead.engine.replaying import ReplayState
from playhead.errors import RecordingError

METHODS = {
    "initialize": "initialize",
    "discover": "server/discover",
    "list_tools": "tools/list",
    "list_resources": "resources/list",
    "list_resource_templates": "resources/templates/list",
    "list_prompts": "prompts/list",
    "complete": "completion/complete",
}
"""What a session asks a server for without a tool being called: the client's method, the protocol's."""

PROGRAM: ContextVar[str | None] = ContextVar("playhead_mcp_program", default=None)
"""The program that was started last here: the session that is made next talks to it."""

_numbers: WeakKeyDictionary[Any, WeakKeyDictionary[Any, int]] = WeakKeyDictionary()


def program_of(command: str, arguments: Sequence[str]) -> str:
    """Which program it is. No text of it is kept: arguments may hold anything."""
    return hashlib.sha256("\0".join([command, *arguments]).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def about(active: Any, session: Any) -> dict[str, JSON]:
    """Attributes of a span: which connection of the recorded session it is, in the order of what they asked first."""
    known = _numbers.setdefault(active, WeakKeyDictionary())
    number = known.setdefault(session, len(known) + 1)
    program = PROGRAM.get()
    return {"connection": number, **({} if program is None else {"program": program})}


class Connection:
    """What was recorded of one connection: results by method of the protocol, in order."""

    def __init__(self) -> None:
        self.program: JSON = None
        self.found: dict[str, list[JSON]] = {}


def connections(listings: Sequence[Node]) -> dict[JSON, Connection]:
    """The connections of a recording by their numbers."""
    made: dict[JSON, Connection] = {}
    for node in listings:
        method = METHODS.get(node.name.removeprefix("mcp "))
        given = node.outcome.value if node.outcome is not None and node.status is NodeStatus.COMPLETED else None
        if method is not None and is_object(given):
            one = made.setdefault(node.attributes.get("connection"), Connection())
            one.program = one.program or node.attributes.get("program")
            one.found.setdefault(method, []).append(given)
    return made


def stand_in(state: ReplayState, command: str, arguments: Sequence[str]) -> "StandIn":
    """The stand-in for the next server that is started: of the same program, else whose program is not known, else any.

    Raises:
        ReplayStop: the recording does not hold the handshake.
    """
    wanted = program_of(command, arguments)
    with state.lock:
        left = {n: c for n, c in connections(state.listings or ()).items() if n not in state.servers}
        order = sorted(left, key=lambda n: (left[n].program != wanted, left[n].program is not None))
        state.servers.update(order[:1])
    if not order:
        problem = RecordingError(
            f"the replay would start the MCP server {command!r}, and the recording holds no handshake with it",
            hint="connect to the server inside the recorded run and record again, or let its tools run live: "
            '{"tools": {"NAME": {"type": "passthrough"}}}',
        )
        raise state.refuse(problem)
    told = f"the MCP server {command!r} was not started: its handshake and lists are the recorded ones"
    state.note(LedgerRow(kind="note", by="note", detail=told))
    return StandIn(left[order[0]].found)


class _Pipe:
    """One end of a pipe to nobody."""

    def __init__(self, stand_in: "StandIn") -> None:
        self._stand_in = stand_in
        self._lines, self._reading = anyio.create_memory_object_stream[bytes](1000)

    async def send(self, data: bytes) -> None:
        for line in data.splitlines():
            reply = self._stand_in.reply(json.loads(line))
            if reply is not None:
                await self._stand_in.stdout.put(json.dumps(reply).encode() + b"\n")

    async def put(self, line: bytes) -> None:
        await self._lines.send(line)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._reading.receive()

    async def aclose(self) -> None:
        self._lines.close()
        self._stand_in.stdout._lines.close()
        self._reading.close()
        self._stand_in.returncode = 0


class StandIn:
    """What stands where a server's process would be."""

    pid = 0

    def __init__(self, found: dict[str, list[JSON]]) -> None:
        self._found = found
        self._asked: Counter[str] = Counter()
        self.returncode: int | None = None
        self.stdout = _Pipe(self)
        self.stdin = _Pipe(self)
        self.stderr = None

    def reply(self, message: Any) -> dict[str, Any] | None:
        """The answer to one message; None for a notification."""
        if "id" not in message or "method" not in message:
            return None
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        method = str(message["method"])
        known = self._found.get(method)
        if method == "ping":
            return {**body, "result": {}}
        if not known:
            told = f"{method} was not recorded, and this is a replay: no server was started"
            return {**body, "error": {"code": -32601, "message": told}}
        number = min(self._asked[method], len(known) - 1)  # asked again, a list is the last one
        self._asked[method] += 1
        return {**body, "result": known[number]}

    async def wait(self) -> int:
        self.returncode = 0
        return 0

    def terminate(self) -> None:
        self.returncode = 0

    kill = terminate

    async def aclose(self) -> None:
        await self.stdin.aclose()
        await self.stdout.aclose()

    async def __aenter__(self) -> "StandIn":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
