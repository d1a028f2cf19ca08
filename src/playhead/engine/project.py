"""The project: where its store is and what its settings say; and the recorder of this process.

A project is found upwards, like `.git`: the nearest folder with ``.playhead/``. Its settings stand in
``.playhead/config.toml`` or under ``[tool.playhead]`` of ``pyproject.toml`` beside it; ``PLAYHEAD_URL`` names another
store.
"""

import fnmatch
import os
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.core.redaction.names import is_credential_name
from playhead.engine import given_secrets
from playhead.errors import ConfigError, StoreError
from playhead.store.open import FILE, FOLDER, open_store
from playhead.store.ports import Store

if TYPE_CHECKING:  # commands that only look things up start without them
    from playhead.core.redaction.redact import Redactor
    from playhead.engine.recorder import Recorder
    from playhead.engine.settings import Settings

_IGNORE = """\
# recordings stay on this machine; settings and fixtures are meant to be committed
*
!.gitignore
!config.toml
!fixtures/
!fixtures/**
"""
_CREDENTIAL_LENGTH = 8


class Project:
    """A project as it was found.

    Args:
        settings: None for those of a project that says nothing; they are made when something asks for them.
        source: the file of the settings.
        url_source: what names the store.
    """

    def __init__(
        self, *, root: Path, url: str, settings: "Settings | None" = None, source: Path | None = None,
        url_source: str = "project",
    ) -> None:  # fmt: skip
        self.root = root
        self.url = url
        self.source = source
        self.url_source = url_source
        self._settings = settings

    @property
    def settings(self) -> "Settings":
        if self._settings is None:
            from playhead.engine.settings import Settings

            self._settings = Settings()
        return self._settings

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    def open_store(self, *, create: bool = True) -> Store:
        """The project's store.

        Raises:
            StoreError: it cannot be opened.
        """
        if create and self.url_source == "project":
            prepare(self.folder)
        if self._settings is None:
            return open_store(self.url, create=create)
        return open_store(self.url, create=create, busy_timeout=self._settings.busy_timeout)

    def recorder(self, store: Store) -> "Recorder":
        """A recorder into ``store`` with this project's settings and secrets."""
        from playhead.core.redaction.redact import Redactor
        from playhead.engine.recorder import Recorder

        limits = self.settings.recording
        return Recorder(
            store,
            redactor=Redactor(self.configured_secrets()),
            seen=credentials(os.environ),
            size_limit=limits.size_limit,
            queue_size=limits.queue_size,
            wait=limits.queue_wait_ms / 1000,
            spool=self.folder / "spool",
            project=self.settings.project,
        )

    def redactor(self) -> "Redactor":
        """Takes out the configured secrets, and the credentials of this process's environment."""
        from playhead.core.redaction.redact import Redactor

        redactor = Redactor(self.configured_secrets())
        for name, value in credentials(os.environ).items():
            redactor.learn(name, value)
        return redactor

    def configured_secrets(self) -> dict[str, str]:
        """Values of the variables that ``secrets`` names, globs included, and those that `playhead.secrets` has."""
        return {**secret_values(self.settings.secrets, os.environ), **given_secrets.secrets.values()}


def secret_values(names: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that fit one of the names or globs."""
    return {
        name: value for name, value in environment.items() if value and any(fnmatch.fnmatchcase(name, p) for p in names)
    }


def credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables whose name says that their value is a credential."""
    return {n: v for n, v in environment.items() if len(v) >= _CREDENTIAL_LENGTH and is_credential_name(n)}


def find_project(start: Path | None = None, *, url: str | None = None) -> Project:
    """The project that a folder is in; where there is none, the one that recording would make.

    Args:
        url: a store that counts before the environment and the settings.

    Raises:
        ConfigError: settings that cannot be used.
    """
    root = _root((start or Path.cwd()).absolute())
    source, settings = _settings(root)
    named = os.environ.get("PLAYHEAD_URL")
    default = str(root / FOLDER / FILE)
    own = None if settings is None else settings.url
    for found, by in ((url, "argument"), (named, "PLAYHEAD_URL"), (own, str(source))):
        if found:
            return Project(root=root, settings=settings, url=found, source=source, url_source=by)
    return Project(root=root, settings=settings, url=default, source=source)


def _root(start: Path) -> Path:
    folders = (start, *start.parents)
    home = Path.home()
    for marks in ((FOLDER,), ("pyproject.toml", ".git")):
        for folder in folders:
            if any((folder / mark).exists() for mark in marks) and (folder != home or folder == start):
                return folder
    return start


def prepare(folder: Path) -> None:
    """Makes the project's folder, with a `.gitignore` that keeps recordings out of version control.

    Raises:
        StoreError: it cannot be made.
    """
    if folder.is_dir():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text(_IGNORE)
    except OSError as error:
        raise StoreError(f"cannot make {folder}: {error.strerror}", hint="set PLAYHEAD_URL to another place") from error


def settings_files(root: Path) -> tuple[Path, Path]:
    """Where the settings of a project may stand."""
    return root / FOLDER / "config.toml", root / "pyproject.toml"


def _settings(root: Path) -> "tuple[Path | None, Settings | None]":
    """Where settings stand, and what they are; None when nothing is set."""
    own, shared = settings_files(root)
    found: dict[Path, dict[str, Any]] = {}
    if own.is_file():
        found[own] = _read(own)
    if shared.is_file():
        table = _read(shared).get("tool", {}).get("playhead")
        if table is not None:
            found[shared] = table
    if len(found) > 1:
        raise ConfigError(
            f"settings stand in two places: {own} and [tool.playhead] of {shared}", hint="keep one of them"
        )
    for source, table in found.items():
        if not table:
            return source, None
        from playhead.engine.settings import parse_settings

        return source, parse_settings(table, str(source))
    return None, None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


class _Default:
    """The process's own recorder, and the store it opened."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.recorder: Recorder | None = None
        self.kept: list[Any] = []  # of the parent process: never used, never closed

    def forget(self) -> None:
        self.kept.append(self.recorder)
        self.lock, self.recorder = threading.Lock(), None


_default = _Default()
os.register_at_fork(after_in_child=_default.forget)


def default_recorder() -> "Recorder":
    """The recorder of this process into the project's store, opened at the first use; anew in a forked child.

    Raises:
        PlayheadError: the settings or the store cannot be used.
    """
    if _default.recorder is None:
        with _default.lock:
            if _default.recorder is None:
                project = find_project()
                _default.recorder = project.recorder(project.open_store())
    return _default.recorder


def current_recorder() -> "Recorder | None":
    """The recorder of this process, if there is one already."""
    return _default.recorder


def use_recorder(recorder: "Recorder | None") -> "Recorder | None":
    """Makes ``recorder`` the one of this process; gives the one before."""
    with _default.lock:
        before, _default.recorder = _default.recorder, recorder
        return before


def flush(timeout: float | None = 10.0) -> bool:
    """Waits until everything recorded so far is in the store; False when it is not."""
    recorder = _default.recorder
    return recorder is None or recorder.flush(timeout)
