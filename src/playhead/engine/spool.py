"""The spool: a local file for what the store does not take now, sent later.

One file per process, one numbered JSON object per line, mode 0600, held under a file lock while its owner lives, so
that a later process can tell a file that was left behind. Sending is idempotent: a line may arrive at the store twice.
"""

import fcntl
import logging
import os
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import IO

from playhead.core.codec import FORMAT, decode, encode, load
from playhead.core.values import JSON, AgentVersion, Node, Session
from playhead.errors import PlayheadError, StoreError
from playhead.store.ports import Store

log = logging.getLogger("playhead")


class Spool:
    """The spool of this process. Safe to use from several threads; nothing waits for the store but `send`.

    Every record has a number, and records are sent in the order of their numbers, whatever order they came in.

    Args:
        folder: where spool files live; when it cannot be written, a folder of the user under the system's temporary
            one is used.
        label: names the store, so that no file ever goes to another one.
        name: unique name for the file of this process.
    """

    def __init__(self, folder: Path | None, label: str, name: str) -> None:
        temporary = Path(tempfile.gettempdir()) / f"playhead-spool-{os.getuid()}"
        self._folders = [base / label for base in (folder, temporary) if base is not None]
        self._name = f"{name}.jsonl"
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._sent = 0  # bytes at the beginning that the store has
        self.path: Path | None = None
        self.lines = 0

    def keep(self, number: int, record: dict[str, JSON]) -> None:
        """Appends one record.

        Raises:
            OSError: there is no place to write to.
        """
        line = b"%016d %s\n" % (number, encode({"format": FORMAT, **record}))
        with self._lock:
            file = self._file or self._create()
            place = file.seek(0, os.SEEK_END)
            try:
                file.write(line)
            except OSError:
                file.truncate(place)  # never half a line
                raise
            self.lines += 1

    def _create(self) -> IO[bytes]:
        problem: OSError | None = None
        for folder in self._folders:
            try:
                path = _private(folder) / self._name
                file = open(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b", buffering=0)  # noqa: PTH123, SIM115
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                problem = error
                continue
            self._file, self.path = file, path
            return file
        assert problem is not None
        raise problem

    def send(self, store: Store) -> bool:
        """Gives everything to the store, in order; True when nothing is left."""
        while True:
            with self._lock:
                if self._file is None or not self.lines:
                    return True
                self._file.seek(self._sent)
                text = self._file.read()
                if not text:
                    self._file.truncate(0)
                    self._sent = self.lines = 0
                    return True
            if not _send(text, store, self.path):
                return False
            self._sent += len(text)

    def close(self) -> None:
        """Closes the file, and removes it when everything in it was sent."""
        with self._lock:
            if self._file is None:
                return
            if not self.lines and self.path is not None:
                self.path.unlink(missing_ok=True)
            self._file.close()
            self._file = None

    def forget(self) -> None:
        """In a forked child: the file is the parent's."""
        self._file, self.lines, self._lock = None, 0, threading.Lock()

    def recover(self, store: Store) -> int:
        """Sends the files that dead processes left behind; gives how many were sent and removed."""
        sent = 0
        for folder in self._folders:
            for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
                if path.name != self._name:
                    sent += _recover(path, store)
        return sent


def _private(folder: Path) -> Path:
    """A folder that only this user can write to, made when it is missing.

    Raises:
        OSError: it belongs to somebody else.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def _recover(path: Path, store: Store) -> bool:
    try:
        with path.open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # its owner lives
                return False
            if not _send(file.read(), store, path):
                return False
            path.unlink()
            return True
    except OSError as error:
        log.warning("playhead cannot read the spool file %s: %s", path, error)
        return False


def _send(text: bytes, store: Store, path: Path | None) -> bool:
    lines = text.split(b"\n")[:-1]  # a line without end was cut by a kill and never acknowledged
    renamed: dict[str, str] = {}
    try:
        for line in sorted(lines):  # by number: it comes first and has a fixed width
            _apply(line, store, path, renamed)
    except StoreError:
        return False
    except Exception as error:  # noqa: BLE001 - a store's own fault: what it does not take stays here
        log.warning("playhead cannot send the spool file %s: %s", path, error)
        return False
    return True


def _apply(line: bytes, store: Store, path: Path | None, renamed: dict[str, str]) -> None:
    try:
        _do(decode(line[17:]), store, renamed)
    except StoreError:
        raise
    except (PlayheadError, ValueError, KeyError, TypeError) as error:
        # one line that the store refuses for good must not keep the others back; it stays where people find it
        rejected = path.with_suffix(".rejected") if path is not None else None
        log.warning("playhead cannot store one spooled record: %s; it is kept in %s", error, rejected)
        if rejected is not None:
            with open(os.open(rejected, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "ab") as file:  # noqa: PTH123
                file.write(line + b"\n")


def _do(record: JSON, store: Store, renamed: dict[str, str]) -> None:
    match record["op"]:
        case "register":
            version = load(AgentVersion, record["version"], trusted=True)
            renamed[version.id] = store.agents.register(version).id
        case "append":
            nodes = [load(Node, node, trusted=True) for node in record["nodes"]]
            store.sessions.append(record["session_id"], nodes)
        case "begin" | "finish" as op:
            session = load(Session, record["session"], trusted=True)
            if session.agent_version is not None:
                session = replace(session, agent_version=renamed.get(session.agent_version, session.agent_version))
            (store.sessions.begin if op == "begin" else store.sessions.finish)(session)
        case op:
            raise ValueError(f"unknown operation {op!r}")
