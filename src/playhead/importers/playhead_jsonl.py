"""playhead's own export format: sessions come back with their ids, keys, marks and verdicts, checked by digests."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from playhead.core.assemble.records import Note, RecordError
from playhead.core.assemble.shapes import is_object
from playhead.core.canonical import NoKeyError, digest
from playhead.core.codec import load
from playhead.core.values import JSON, AgentVersion, Node, Replay, Session, Verdict
from playhead.engine.documents import Document
from playhead.engine.exports import FORMAT, VERSION
from playhead.engine.imports import NativePlan, PlainReader, Planned
from playhead.errors import FormatError

NAME = "playhead"
_FAILED = "the session is left out"


@dataclass(slots=True)
class _Open:
    """The session that is being read. ``problem`` says why it will be left out."""

    hashed: Any = field(default_factory=hashlib.sha256)
    payloads: dict[str, JSON] = field(default_factory=dict[str, JSON])
    session: Session | None = None
    nodes: list[Node] = field(default_factory=list[Node])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    version: AgentVersion | None = None
    replays: list[Replay] = field(default_factory=list[Replay])
    problem: Note | None = None
    position: str = ""


@dataclass(slots=True)
class _File:
    expected: int | None = None
    seen: int = 0
    codec: int | None = None  # until the header tells
    refused: bool = False
    open: _Open | None = None


class PlayheadReader(PlainReader):
    """Holds one session of a file at a time."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def add(self, document: Document) -> Iterator[Planned]:
        file = self._files.setdefault(document.file, _File())
        line = document.value
        if line["r"] == "header":
            self._header(file, line)
        elif file.codec is None:
            file.codec, file.refused = 0, True
            raise RecordError("undecodable", "sessions before a header: nothing says how to read them")
        elif not file.refused:
            yield from self._line(file, line, document)

    def damaged(self, note: Note) -> Note | None:
        """A line of the file that cannot be read: the open session fails, with this as its one error."""
        file = self._files.get(note.file or "")
        if file is None:
            return note
        if file.open is None:  # the first line of a session, most likely
            file.open = _Open(problem=note)
            return note
        if file.open.problem is not None:
            return None
        session = file.open.session
        file.open.problem = note
        return Note(
            code=note.code, message=f"{note.message}; {_FAILED}", external_id=session.id if session else "",
            file=note.file, position=note.position,
        )  # fmt: skip

    def end_of_file(self, file: str) -> Iterator[Planned]:
        held = self._files.pop(file, None)
        if held is None:
            return
        if held.open is not None:
            if held.open.problem is None:
                yield self._cut(file, held.open)
        elif held.expected is not None and held.seen < held.expected:
            message = f"the file is cut off: {held.seen} of {held.expected} sessions"
            yield Note(code="undecodable", message=message, file=file)

    def _cut(self, file: str, open: _Open) -> Note:
        session = open.session
        return Note(
            code="undecodable", message=f"the file is cut off inside a session; {_FAILED}",
            external_id=session.id if session else "", file=file, position=open.position,
        )  # fmt: skip

    def _header(self, file: _File, line: Mapping[str, Any]) -> None:
        file.codec = line["codec"] if isinstance(line.get("codec"), int) else 1
        if line.get("format") != FORMAT or not isinstance(line.get("version"), int):
            file.refused = True
            raise RecordError("unknown_format", f"not a {FORMAT} file: {line.get('format')!r:.60}")
        if line["version"] > VERSION:
            file.refused = True
            raise RecordError(
                "unknown_format", f"version {line['version']} is newer than this playhead reads ({VERSION})"
            )
        expected = line.get("sessions")
        file.expected = expected if isinstance(expected, int) else None

    def _line(self, file: _File, line: Mapping[str, Any], document: Document) -> Iterator[Planned]:
        kind = line["r"]
        if file.open is None or (kind == "session" and file.open.session is not None):
            if file.open is not None:
                file.seen += 1
                if file.open.problem is None:
                    yield self._cut(document.file, file.open)
            file.open = _Open(position=document.position)
        open = file.open
        if kind == "end":
            file.open = None
            file.seen += 1
            if open.problem is None:
                yield self._finished(open, line, document)
            return
        open.hashed.update((document.text or b"").rstrip(b"\r\n") + b"\n")
        if open.problem is not None:
            return
        try:
            self._take(open, kind, line, file.codec or 1)
        except (RecordError, FormatError, NoKeyError, KeyError, TypeError, AttributeError, RecursionError) as error:
            open.problem = self._problem(open, error, document)
            yield open.problem

    def _problem(self, open: _Open, error: Exception, document: Document) -> Note:
        code = error.code if isinstance(error, RecordError) else "undecodable"
        text = str(error) or type(error).__name__
        return Note(
            code=code, message=f"{text}; {_FAILED}", external_id=open.session.id if open.session else "",
            file=document.file, position=document.position,
        )  # fmt: skip

    def _take(self, open: _Open, kind: str, line: Mapping[str, Any], codec: int) -> None:
        value = line.get("value")
        if kind == "payload":
            if digest(value).hex() != line["digest"]:
                raise RecordError("digest", f"payload {line['digest']!r:.80} does not fit its digest")
            open.payloads[line["digest"]] = value
        elif kind == "session":
            open.session = load(Session, value, format=codec)
        elif kind == "node":
            open.nodes.append(load(Node, _resolved(value, open.payloads), format=codec))
        elif kind == "verdict":
            open.verdicts.append(load(Verdict, value, format=codec))
        elif kind == "agent_version":
            open.version = load(AgentVersion, value, format=codec)
        elif kind == "replay":
            open.replays.append(load(Replay, value, format=codec))

    def _finished(self, open: _Open, line: Mapping[str, Any], document: Document) -> Planned:
        session = open.session
        found = None
        if session is None:
            found = "an end without a session"
        elif line.get("nodes") != len(open.nodes):
            found = f"{len(open.nodes)} nodes, {line.get('nodes')!r:.20} were written"
        elif any(n.session_id != session.id for n in open.nodes):
            found = "a node of another session"
        elif line.get("digest") != open.hashed.hexdigest():
            found = "the content does not fit the digest"
        if session is None or found is not None:
            about = session.id if session else str(line.get("session") or "")
            return Note(
                code="digest", message=f"{found}; {_FAILED}", external_id=about, file=document.file,
                position=document.position,
            )  # fmt: skip
        return NativePlan(
            session=session, nodes=open.nodes, verdicts=open.verdicts, version=open.version, replays=open.replays,
            format=NAME, file=document.file, position=open.position,
        )  # fmt: skip


def _resolved(node: JSON, payloads: Mapping[str, JSON]) -> JSON:
    """A node with its payloads in the places that `engine.exports` takes them from."""
    inputs, outcome = node.get("inputs"), node.get("outcome")
    changes: dict[str, JSON] = {}
    if is_object(inputs):
        made = dict(inputs)
        if is_object(listed := made.get("messages")) and set(listed) == {"$list"}:
            made["messages"] = [_payload(d, payloads) for d in listed["$list"]]
        if is_object(tools := made.get("tools")) and set(tools) == {"$d"}:
            made["tools"] = _payload(tools["$d"], payloads)
        changes["inputs"] = made
    if is_object(outcome) and is_object(value := outcome.get("value")) and set(value) == {"$d"}:
        changes["outcome"] = {**outcome, "value": _payload(value["$d"], payloads)}
    return {**node, **changes}


def _payload(name: str, payloads: Mapping[str, JSON]) -> JSON:
    if name not in payloads:
        raise RecordError("digest", f"payload {name!r:.80} is not there before its use")
    return payloads[name]
