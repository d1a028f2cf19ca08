"""Sessions out of a store: playhead's own lines, a bundle for one session, and chat transcripts.

A playhead file is lines ``{"r": kind, ...}``: a header, then for each session its payloads (before their first use),
the session, its nodes and verdicts, and an end with the digest of these lines. Message lists and tool lists point to
payloads, so a long dialogue is written once. Only one page of nodes is in memory at a time.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from playhead.core import codec
from playhead.core.assemble.shapes import is_list, is_object
from playhead.core.canonical import NoKeyError, digest
from playhead.core.protocol.parts import as_arguments, as_text
from playhead.core.values import JSON, Node, NodeKind, Session, Verdict
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.documents import zstd
from playhead.errors import NotFoundError
from playhead.store.ports import SessionQuery, Store

FORMAT = "playhead.sessions"
VERSION = 1
_PAGE = 500

Redact = Callable[[JSON], JSON]
"""Secrets out of stored JSON: each exported value passes through it once."""


@dataclass(slots=True, kw_only=True)
class Exported:
    """What was written, and what an export could not hold."""

    sessions: int = 0
    nodes: int = 0
    left_out: list[str] = field(default_factory=list[str])


def find_ids(store: Store, query: SessionQuery) -> list[str]:
    """The ids of all sessions of a query, oldest first, so that exports of equal stores are equal."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = store.sessions.find(replace(query, oldest_first=True), limit=200, cursor=cursor)
        ids += [s.id for s in page.items]
        if page.next_cursor is None:
            return ids
        cursor = page.next_cursor


@contextmanager
def written_whole(path: str | Path) -> Generator[IO[bytes]]:
    """A file that appears under its name, readable by its owner alone, once everything is in it; else not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # made with mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def export_jsonl(
    store: Store, ids: Sequence[str], path: str | Path, *, redact: Redact | None = None, clock: Clock = SYSTEM_CLOCK
) -> Exported:
    """Writes sessions so that an import gives them back as they are."""
    with written_whole(path) as file:
        return write_jsonl(store, ids, file, redact=redact, clock=clock)


def export_bundle(
    store: Store, session_id: str, path: str | Path, *, redact: Redact | None = None, clock: Clock = SYSTEM_CLOCK
) -> Exported:
    """Writes one session with its agent version, the replay that made it (with ledger), and its verdicts."""
    with written_whole(path) as file, zstd.ZstdFile(file, "wb") as packed:
        return write_jsonl(store, [session_id], packed, redact=redact, clock=clock, with_origin=True)  # type: ignore[arg-type]


def write_jsonl(
    store: Store,
    ids: Sequence[str],
    file: IO[bytes],
    *,
    redact: Redact | None = None,
    clock: Clock = SYSTEM_CLOCK,
    with_origin: bool = False,
) -> Exported:
    """Writes the lines of sessions to an open file."""
    header: JSON = {
        "r": "header", "format": FORMAT, "version": VERSION, "codec": codec.FORMAT, "exported_at": clock.now(),
        "sessions": len(ids),
    }  # fmt: skip
    file.write(codec.encode(header) + b"\n")
    done = Exported()
    for session_id in ids:
        done.nodes += _Block(store, file, redact).write(session_id, with_origin)
        done.sessions += 1
    return done


class _Block:
    """The lines of one session."""

    def __init__(self, store: Store, file: IO[bytes], redact: Redact | None) -> None:
        self._store, self._file, self._redact = store, file, redact
        self._hashed = hashlib.sha256()
        self._written: set[str] = set()
        self._last: tuple[list[JSON], list[str]] = ([], [])  # messages of the request before, and their digests

    def write(self, session_id: str, with_origin: bool) -> int:
        session = self._store.sessions.get(session_id)
        self._line("session", codec.dump(replace(session, owner=None)))
        if with_origin:
            self._origin(session)
        count = 0
        for node in _nodes(self._store, session_id):
            self._node(node)
            count += 1
        for verdict in sorted(self._store.sessions.verdicts(session_id), key=_verdict_order):
            self._line("verdict", codec.dump(verdict))
        end: JSON = {"r": "end", "session": session_id, "nodes": count, "digest": self._hashed.hexdigest()}
        self._file.write(codec.encode(end) + b"\n")
        return count

    def _origin(self, session: Session) -> None:
        try:
            if session.agent_version is not None:
                self._line("agent_version", codec.dump(self._store.agents.get(session.agent_version)))
            if session.replay_id is not None:
                self._line("replay", codec.dump(self._store.replays.get(session.replay_id)))
        except NotFoundError:
            return

    def _line(self, kind: str, value: JSON, **more: JSON) -> None:
        shown = self._redact(value) if self._redact is not None and kind != "payload" else value
        line = codec.encode({"r": kind, **more, "value": shown}) + b"\n"
        self._hashed.update(line)
        self._file.write(line)

    def _node(self, node: Node) -> None:
        value = codec.dump(node)
        if self._redact is not None:
            value = self._redact(value)
        if node.kind is NodeKind.MODEL_CALL and is_object(inputs := value.get("inputs")):
            value["inputs"] = self._pointed(inputs)
            outcome = value.get("outcome")
            if outcome is not None and is_object(outcome.get("value")):
                name = self._payload(outcome["value"])
                if name is not None:
                    value["outcome"] = {**outcome, "value": {"$d": name}}
        line = codec.encode({"r": "node", "value": value}) + b"\n"
        self._hashed.update(line)
        self._file.write(line)

    def _pointed(self, inputs: dict[str, JSON]) -> dict[str, JSON]:
        made = dict(inputs)
        messages, tools = made.get("messages"), made.get("tools")
        if is_list(messages) and messages and (names := self._messages(messages)) is not None:
            made["messages"] = {"$list": names}
        if is_list(tools) and tools and (name := self._payload(tools)) is not None:
            made["tools"] = {"$d": name}
        return made

    def _messages(self, messages: list[JSON]) -> list[str] | None:
        """The digests of messages; those that the request before held too are not hashed again."""
        before, known = self._last
        names: list[str] = []
        for place, message in enumerate(messages):
            same = place < len(before) and len(names) == place and _equal(before[place], message)
            name = known[place] if same else self._payload(message)
            if name is None:
                return None
            names.append(name)
        self._last = (messages, names)
        return names

    def _payload(self, value: JSON) -> str | None:
        """The digest under which a payload is written; None when it has none and stays where it is."""
        try:
            name = digest(value).hex()
        except NoKeyError:
            return None
        if name not in self._written:
            self._written.add(name)
            self._line("payload", value, digest=name)
        return name


def _equal(one: JSON, other: JSON) -> bool:
    return one is other or codec.encode(one) == codec.encode(other)


def _verdict_order(verdict: Verdict) -> tuple[str, str]:
    return verdict.evaluator or "", verdict.name


def _nodes(store: Store, session_id: str) -> Iterator[Node]:
    after: int | None = None
    while page := store.sessions.nodes(session_id, after_seq=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


# --- chat transcripts -----------------------------------------------------------------------------------------------


def export_openai_chat(store: Store, ids: Iterable[str], path: str | Path, *, redact: Redact | None = None) -> Exported:
    """Writes each session as the message list of its last model call, its answer, and results after it, a line each."""
    done = Exported()
    with written_whole(path) as file:
        for session_id in ids:
            chat = _chat(store.sessions.get(session_id), store.sessions.nodes(session_id), done.left_out)
            if chat is not None:
                file.write(codec.encode(redact(chat) if redact is not None else chat) + b"\n")
                done.sessions += 1
                done.nodes += 1
    return done


def _chat(session: Session, nodes: Sequence[Node], left_out: list[str]) -> JSON:
    models = [n for n in nodes if n.kind is NodeKind.MODEL_CALL and n.model is not None]
    if not models or not models[-1].inputs.get("messages"):
        left_out.append(f"session {session.id}: no model call with its messages")
        return None
    agents = {n.parent_id for n in models}
    if len(agents) > 1:
        left_out.append(f"session {session.id}: model calls of agents other than that of the last call")
    last = models[-1]
    messages = list(last.inputs["messages"])
    if last.outcome is not None and is_object(last.outcome.value):
        messages.append(last.outcome.value)
    messages += [
        _result(n) for n in nodes if n.call is not None and n.call.model_call == last.id and n.outcome is not None
    ]
    chat: dict[str, JSON] = {"id": session.id, "messages": [_to_chat(m, session.id, left_out) for m in messages]}
    if last.model is not None and last.model.requested:
        chat["model"] = last.model.requested
    if last.inputs.get("tools"):
        chat["tools"] = [{"type": "function", "function": t} for t in last.inputs["tools"]]
    return chat


def _result(node: Node) -> JSON:
    call, outcome = node.call, node.outcome
    assert call is not None
    assert outcome is not None
    content = node.attributes.get("model_view", outcome.value)
    if content is None and outcome.error is not None:
        content = outcome.error.message
    return {
        "role": "tool",
        "parts": [{"type": "tool_result", "id": call.call_id, "name": call.tool, "content": content}],
    }


def _to_chat(message: dict[str, Any], session_id: str, left_out: list[str]) -> JSON:
    parts: list[dict[str, Any]] = message["parts"]
    if message["role"] == "tool":
        part = next(p for p in parts if p["type"] == "tool_result")
        return {
            "role": "tool",
            "tool_call_id": part.get("id"),
            "name": part.get("name"),
            "content": as_text(part.get("content")),
        }
    strange = sorted({p["type"] for p in parts} - {"text", "tool_call"})
    if strange:
        left_out.append(f"session {session_id}: {', '.join(strange)} parts of a message")
    texts = [p["text"] for p in parts if p["type"] == "text"]
    chat: dict[str, JSON] = {"role": message["role"], "content": "".join(texts) if texts else None}
    calls = [p for p in parts if p["type"] == "tool_call"]
    if calls:
        chat["tool_calls"] = [
            {
                "id": p["id"],
                "type": "function",
                "function": {"name": p["name"], "arguments": as_arguments(p)},
            }
            for p in calls
        ]
    elif not texts and message["role"] != "assistant":
        chat["content"] = ""
    return chat
