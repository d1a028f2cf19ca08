"""Servers in a replay: what a recorded handshake and the recorded lists say, and no program and no connection.

``mcp.client.stdio`` starts a server with one function of its own, whatever framework is above it. In a replay in which
nothing may go live that function gives a stand-in, which talks the protocol over the same pipes: it answers the
handshake and the lists from the recording, and nothing else. The transport over HTTP sends every message with one
method of its own, which asks the stand-in likewise.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from itertools import count
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

_HANDSHAKES = frozenset({"initialize", "server/discover"})

PROGRAM: ContextVar[str | None] = ContextVar("playhead_mcp_program", default=None)
"""The server that was started, or is to be reached, last here: the session that is made next talks to it."""

_before: WeakKeyDictionary[Any, WeakKeyDictionary[Any, "Answers | None"]] = WeakKeyDictionary()
"""By session in which it is asked: what stands in for a connection that is older, None for one that is not."""

_numbers: WeakKeyDictionary[Any, tuple[Iterator[int], WeakKeyDictionary[Any, int]]] = WeakKeyDictionary()
"""By recorded session: the next number, and those of the connections. One that is gone leaves its number to nobody."""


def program_of(command: str, arguments: Sequence[str] = ()) -> str:
    """Which program it is, or which address. No text of it is kept: either may hold anything."""
    return hashlib.sha256("\0".join([command, *arguments]).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def about(active: Any, session: Any) -> dict[str, JSON]:
    """Attributes of a span: which connection of the recorded session it is, in the order of what they asked first."""
    left, known = _numbers.setdefault(active, (count(1), WeakKeyDictionary()))
    number = known.get(session)
    if number is None:
        number = known[session] = next(left)
    program = PROGRAM.get()
    return {"connection": number, **({} if program is None else {"program": program})}


class Connection:
    """What was recorded of one connection: results by method of the protocol, in order."""

    def __init__(self) -> None:
        self.program: JSON = None
        self.found: dict[str, list[JSON]] = {}

    @property
    def was_made(self) -> bool:
        """Whether the recording holds the handshake; one that was made before the session began has lists alone."""
        return not _HANDSHAKES.isdisjoint(self.found)


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


def stand_in(state: ReplayState, program: str, *, told: str, verb: str) -> "Answers":
    """What answers for the next server: of the same program, else whose program is not known, else any.

    Args:
        program: which server it is, as `program_of` says.
        told: what people know it by, without secrets.
        verb: what is not done to it: start, contact.

    Raises:
        ReplayStop: the recording does not hold the handshake.
    """
    with state.lock:
        left = _left(state)
        known = [n for n, c in left.items() if c.was_made]
        order = sorted(known, key=lambda n: (left[n].program != program, left[n].program is not None))
        state.servers.update(order[:1])
    if not order:
        problem = RecordingError(
            f"the replay would {verb} the MCP server {told!r}, and the recording holds no handshake with it",
            hint="connect to the server inside the recorded run and record again, or let its tools run live: "
            '{"tools": {"NAME": {"type": "passthrough"}}}',
        )
        raise state.refuse(problem)
    note = f"the MCP server {told!r} was not {verb}ed: its handshake and lists are the recorded ones"
    state.note(LedgerRow(kind="note", by="note", detail=note))
    return Answers(left[order[0]].found)


def _left(state: ReplayState) -> dict[JSON, Connection]:
    return {n: c for n, c in connections(state.listings or ()).items() if n not in state.servers}


def before(active: Any, session: Any, method: str) -> "Answers | None":
    """What answers a connection that was made before the session began, where nothing may go live.

    None for a connection whose handshake was seen in this session, and where the recording has nothing left to say.
    """
    state: ReplayState | None = active.replay
    if state is None or state.listings is None:
        return None
    known = _before.setdefault(active, WeakKeyDictionary())
    if method in _HANDSHAKES:
        known[session] = None
    elif session not in known:
        with state.lock:
            left = _left(state)
            order = sorted((n for n, c in left.items() if method in c.found), key=lambda n: left[n].was_made)
            state.servers.update(order[:1])
        known[session] = Answers(left[order[0]].found) if order else None
    return known[session]


class Answers:
    """What stands in for a server: the recorded results of one connection, each list as often as it is asked for."""

    def __init__(self, found: dict[str, list[JSON]]) -> None:
        self._found = found
        self._asked: Counter[str] = Counter()

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
            told = f"{method} was not recorded, and this is a replay: there is no server"
            return {**body, "error": {"code": -32601, "message": told}}
        number = min(self._asked[method], len(known) - 1)  # asked again, a list is the last one
        self._asked[method] += 1
        return {**body, "result": known[number]}


class _Pipe:
    """One end of a pipe to nobody."""

    def __init__(self, program: "Program") -> None:
        self._program = program
        self._lines, self._reading = anyio.create_memory_object_stream[bytes](1000)

    async def send(self, data: bytes) -> None:
        for line in data.splitlines():
            reply = self._program.answers.reply(json.loads(line))
            if reply is not None:
                await self._program.stdout.put(json.dumps(reply).encode() + b"\n")

    async def put(self, line: bytes) -> None:
        await self._lines.send(line)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._reading.receive()

    async def aclose(self) -> None:
        self._lines.close()
        self._program.stdout._lines.close()
        self._reading.close()
        self._program.returncode = 0


class Program:
    """What stands where a server's process would be."""

    pid = 0

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.returncode: int | None = None
        self.stdout = _Pipe(self)
        self.stdin = _Pipe(self)
        self.stderr = None

    async def wait(self) -> int:
        self.returncode = 0
        return 0

    def terminate(self) -> None:
        self.returncode = 0

    kill = terminate

    async def aclose(self) -> None:
        await self.stdin.aclose()
        await self.stdout.aclose()

    async def __aenter__(self) -> "Program":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
