"""Connections to one SQLite file, for threads and forks, and the one place where its errors become ours.

Every connection runs in WAL mode with ``synchronous=NORMAL``: what a transaction wrote survives the death of the
process at any instant (kill -9), because it has been handed to the operating system when the commit returns. A crash
of the machine may lose the last transactions, never the consistency of the file. Writers take the write lock at the
start (``BEGIN IMMEDIATE``), so a transaction never fails half-way for a lock.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playhead.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from playhead.store.lookup import member_fits, members_equal

CACHE_KIB = 8 * 1024

_left_behind: list[sqlite3.Connection] = []
"""Connections of a parent process. Never used or closed here: both would touch the parent's locks."""


class Connections:
    """A pool: a connection is used by one thread at a time and by the process that opened it."""

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        self.path = path
        self.busy_timeout = busy_timeout
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._idle: list[sqlite3.Connection] = []
        self._writing = threading.RLock()
        self._closed = False

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            _left_behind.extend(self._idle)
            self._start()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """One consistent view of the store."""
        with self._taken() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _end(connection, "ROLLBACK")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A transaction that holds the write lock; committed at the end, rolled back on any exception."""
        with self.exclusive(), self._taken() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _end(connection, "ROLLBACK")
                raise

    def execute_alone(self, statement: str) -> None:
        """Run a statement that must be outside of transactions."""
        with self._taken() as connection:
            connection.execute(statement)

    def forget_history(self) -> None:
        """Empty the write-ahead log, which holds older states of pages. While somebody reads one of them it stays, and
        goes with the next call or the last closing."""
        with self._taken() as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError:
                return  # locked: as while somebody reads
            finally:
                connection.execute(f"PRAGMA busy_timeout = {round(self.busy_timeout * 1000)}")

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keeps the other writers of this process out, so that they wait without polling the file."""
        self._after_fork()
        lock = self._writing
        if not lock.acquire(timeout=max(self.busy_timeout * 2, 1)):
            raise StoreBusyError(f"store {self.path} is busy with another write of this process")
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _taken(self) -> Generator[sqlite3.Connection]:
        self._after_fork()
        if self._closed:
            raise StoreError(f"store {self.path} is closed")
        with translated(self.path):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open()
            try:
                yield connection
            finally:
                if self._closed or connection.in_transaction:
                    connection.close()
                else:
                    self._idle.append(connection)

    def open_apart(self) -> sqlite3.Connection:
        """A connection outside of the pool, which only reads; whoever asked closes it."""
        return self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")  # zeros instead of what was deleted or compacted away
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            connection.create_function("members_equal", 2, members_equal, deterministic=True)
            connection.create_function("member_fits", 2, member_fits, deterministic=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Release the file. Safe to call twice."""
        self._after_fork()
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _end(connection: sqlite3.Connection, how: str) -> None:
    if connection.in_transaction:  # a full disk ends it already
        try:
            connection.execute(how)
        except sqlite3.Error:
            return  # the pool drops a connection that is still in a transaction


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Errors of SQLite and of the file system as errors of the store."""
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(path, error) from error
    except OSError as error:
        raise _file_error(path, error) from error


def _store_error(path: Path, error: sqlite3.Error) -> StoreError:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")):
        return StoreBusyError(f"store {path} is locked by another process", hint="try again, or end the other process")
    if name in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"):
        return StoreFullError(
            f"store {path}: no space left ({error})", hint="free space; what was stored before is intact"
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
        return StoreReadOnlyError(
            f"store {path} cannot be written ({error})", hint="its file and folder must be writable by this user"
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or name == "SQLITE_IOERR_SHORT_READ":
        return StoreDamagedError(
            f"store {path} is damaged or not a database ({error})", hint="restore it from a copy, or move it away"
        )
    return StoreError(f"store {path}: {error}" + (f" ({name})" if name else ""))


def _file_error(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StoreReadOnlyError(f"store {path} cannot be written: {error.strerror}", hint="choose another with --url")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"store {path}: {error.strerror}", hint="free space")
    return StoreError(f"store {path}: {error.strerror or error}")
