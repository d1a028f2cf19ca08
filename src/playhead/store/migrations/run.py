"""Brings a store to another version of the schema, after a copy was made of it."""

import os
import sqlite3
from importlib import resources
from pathlib import Path
from typing import Any

import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from playhead.errors import StoreError

_NOTHING = "0000"


def migrate(path: Path, *, to: str, busy_timeout: float = 5.0) -> Path | None:
    """Migrate the store to version ``to`` in one transaction: all of it, or nothing.

    Returns:
        The copy of the store as it was, None where somebody else migrated it first. An interrupted migration leaves
        its copy; a later one keeps that and makes its own.
    """
    engine = sqlalchemy.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(path, timeout=busy_timeout, isolation_level=None),
        poolclass=sqlalchemy.NullPool,
    )
    event.listen(engine, "begin", _take_write_lock)
    try:
        with engine.begin() as connection:
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
            version = found or _NOTHING
            if version == to:
                return None
            copy = None if version == _NOTHING else _copy(path, version)
            _upgrade(connection, version, to)
            return copy
    except DBAPIError as error:
        if error.orig is not None:
            raise error.orig from error
        raise
    finally:
        engine.dispose()


def _take_write_lock(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _upgrade(connection: sqlalchemy.Connection, version: str, to: str) -> None:
    config = Config()
    with resources.as_file(resources.files("playhead.store.migrations")) as scripts:
        config.set_main_option("script_location", str(scripts).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        (command.upgrade if version < to else command.downgrade)(config, to)
    broken: list[Any] = list(connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall())
    if broken:
        raise StoreError(f"migrating to {to} would leave {len(broken)} dangling references; nothing was changed")


def _copy(path: Path, version: str) -> Path:
    """A complete copy beside the store, readable by its owner only."""
    for number in range(1, 1000):
        copy = path.with_name(f"{path.name}.v{version}{'' if number == 1 else f'-{number}'}.bak")
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            continue
        source, target = sqlite3.connect(path), sqlite3.connect(copy)
        try:
            source.backup(target)
        except BaseException:
            copy.unlink()  # half a copy is none
            raise
        finally:
            source.close()
            target.close()
        return copy
    raise StoreError(f"there are too many copies of {path} beside it", hint="remove the oldest ones")
