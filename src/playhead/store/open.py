"""From a URL, a path or a place in the file tree to a store."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from playhead.errors import UsageError
from playhead.store.ports import Store

FOLDER = ".playhead"
FILE = "store.db"

_LATER = {
    "postgresql": "PostgreSQL stores",
    "postgres": "PostgreSQL stores",
    "http": "playhead servers",
    "https": "playhead servers",
}


def open_store(url: str | Path, *, create: bool = True, busy_timeout: float = 5.0) -> Store:
    """The store at ``sqlite:///path``, a plain path, or ``memory:`` (a new one each time).

    A folder means its ``store.db``. With ``create`` a store that is not there is made. ``busy_timeout``: seconds that
    one call waits for somebody who holds the store locked.

    Raises:
        UsageError: a URL of another kind.
        NotFoundError: no store there, without ``create``.
    """
    text = str(url)
    if text in ("memory:", "memory://"):
        from playhead.store.memory import MemoryStore

        return MemoryStore()
    from playhead.store.sqlite import SqliteStore

    path = _path(text)
    return SqliteStore(path / FILE if path.is_dir() else path, create=create, busy_timeout=busy_timeout)


def find_store(start: Path) -> Path | None:
    """The store file of the project that ``start`` is in: the nearest ``.playhead/store.db`` upwards."""
    for folder in (start, *start.absolute().parents):
        found = folder / FOLDER / FILE
        if found.is_file():
            return found
    return None


def _path(text: str) -> Path:
    scheme, colon, rest = text.partition("://")
    if not colon:
        if not text:
            raise UsageError("the URL of a store is empty", hint="for example sqlite:///.playhead/store.db")
        return Path(text)
    if scheme in _LATER:
        raise UsageError(
            f"{_LATER[scheme]} are not in this version: {_without_secrets(text)}", hint="use sqlite:///path"
        )
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) < 2:
        raise UsageError(
            f"not the URL of a store: {_without_secrets(text)!r}", hint="sqlite:///path, a plain path, or memory:"
        )
    return Path(unquote(rest[1:]))


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
