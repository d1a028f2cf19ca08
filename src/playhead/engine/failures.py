"""Exceptions to what is recorded of them, and back.

Rebuilt are builtin exception classes, classes from a fixed table of well-known libraries, and registered ones; always
without running their ``__init__``. What does not come back with the same class and text becomes a `ReplayedToolError`.
Nothing is ever imported because a recording names it.
"""

import builtins
import sys
from collections.abc import Callable
from typing import Any, cast

from playhead.core.canonical import from_stored, to_stored
from playhead.core.values import JSON, ErrorInfo
from playhead.errors import ReplayedToolError

_MAX_TEXT = 20_000
_MAX_CAUSES = 8
_STATUS_NAMES = ("status_code", "status", "http_status")

KNOWN_CLASSES: dict[str, tuple[str, ...]] = {
    "playhead.errors": ("OpError",),
    "json.decoder": ("JSONDecodeError",),
    "subprocess": ("CalledProcessError", "TimeoutExpired"),
    "asyncio.exceptions": ("InvalidStateError", "IncompleteReadError"),
    "concurrent.futures._base": ("InvalidStateError",),
    "decimal": ("InvalidOperation", "DivisionByZero"),
    "socket": ("gaierror", "herror"),
    "ssl": ("SSLError", "SSLCertVerificationError"),
    "sqlite3": ("Error", "OperationalError", "IntegrityError", "ProgrammingError", "DatabaseError"),
    "urllib.error": ("HTTPError", "URLError"),
    "http.client": ("HTTPException", "RemoteDisconnected", "IncompleteRead"),
    "httpx": (
        "HTTPStatusError", "ConnectError", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout",
        "ReadError", "WriteError", "RemoteProtocolError", "RequestError", "TimeoutException", "InvalidURL",
    ),
    "httpx2": (
        "HTTPStatusError", "ConnectError", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout",
        "ReadError", "WriteError", "RemoteProtocolError", "RequestError", "TimeoutException", "InvalidURL",
    ),
    "requests.exceptions": (
        "HTTPError", "ConnectionError", "Timeout", "ConnectTimeout", "ReadTimeout", "RequestException",
        "TooManyRedirects", "SSLError",
    ),
}  # fmt: skip
"""Classes that are rebuilt when the replaying process has imported their module, or it is in the standard library."""

_ToJson = Callable[[Any], JSON]
_FromJson = Callable[[JSON], BaseException]
_outcomes: set[str] = set()  # what `register_error` was told of: outcomes of every op
_registered: dict[str, tuple[type[Exception], _ToJson | None, _FromJson | None]] = {}


def register_error(
    cls: type[Exception], to_json: _ToJson | None = None, from_json: _FromJson | None = None
) -> type[Exception]:
    """Lets a recorded ``cls`` be raised again as itself. Usable as a decorator.

    Without functions the exception comes back with its ``args`` and the attributes that have a stored form.
    """
    given: Any = cls
    if not (isinstance(given, type) and issubclass(given, Exception)):
        raise TypeError(f"register_error takes an Exception class, not {cls!r}")
    _registered[_name(cls)] = (cls, to_json, from_json)
    _outcomes.add(_name(cls))
    return cls


def make_known(cls: type[Exception]) -> None:
    """Lets a recorded ``cls`` be raised again as itself, as one op lists it; for others it says no more than before."""
    if _name(cls) not in _outcomes:
        _registered[_name(cls)] = (cls, None, None)


def is_registered(cls: type) -> bool:
    """Whether `register_error` was told of this class."""
    return _name(cls) in _outcomes


def is_registered_name(module: str, name: str) -> bool:
    """`is_registered`, for a class that is known by its name only."""
    return f"{module}.{name}" in _outcomes


def capture(error: BaseException, *, _depth: int = 0) -> ErrorInfo:
    """What is recorded of an exception. Never raises, whatever the exception's own methods do."""
    cls = type(error)
    registered = _registered.get(_name(cls))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ()) if _is_group(error) else ()
    deeper = _depth < _MAX_CAUSES
    return ErrorInfo(
        class_name=cls.__qualname__,
        module=cls.__module__,
        message=_text(error, str),
        repr=_text(error, repr),
        args=_args(error, registered),
        status=_status(error),
        code=_code(error),
        retryable=_typed(error, "retryable", bool),
        retry_after=_retry_after(error),
        attributes=_attributes(error),
        cause=capture(cause, _depth=_depth + 1) if cause is not None and cause is not error and deeper else None,
        members=tuple(capture(member, _depth=_depth + 1) for member in members) if deeper else (),
    )


def rebuild(info: ErrorInfo) -> Exception:
    """The exception that a recorded failure raises again. Always a fresh `Exception`."""
    error = _same_class(info)
    if error is None:
        error = ReplayedToolError(
            info.message,
            original_class=info.class_name,
            status=info.status,
            error_code=info.code if isinstance(info.code, str | int) else None,
            retryable=info.retryable,
            retry_after=info.retry_after,
        )
    if info.status is not None and _status(error) is None:
        _set(error, "status", info.status)
    if info.cause is not None:
        error.__cause__ = rebuild(info.cause)
    return error


# capture


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_group(error: BaseException) -> bool:
    return isinstance(error, BaseExceptionGroup)


def _text(error: BaseException, how: Callable[[Any], str]) -> str:
    try:
        return how(error)[:_MAX_TEXT]
    except Exception as problem:  # noqa: BLE001 - the exception's own methods
        return f"<{type(error).__name__} without text: {type(problem).__name__}>"


def _args(error: BaseException, registered: Any) -> JSON:
    try:
        if registered is not None and registered[1] is not None:
            return {"$object": [registered[0].__qualname__, to_stored(registered[1](error))]}
        if _is_group(error):
            return [_member(error, "message")]
        if isinstance(error, OSError) and error.filename is not None and len(error.args) == 2:
            return to_stored([*error.args, error.filename])  # `args` leaves it out, the constructor takes it
        return to_stored(list(error.args))
    except Exception:  # noqa: BLE001 - args without stored form, or a user's to_json
        return None


def _member(error: BaseException, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of the exception
        return None


def _typed(error: BaseException, name: str, kind: type) -> Any:
    value = _member(error, name)
    return value if isinstance(value, kind) else None


def _status(error: BaseException) -> int | None:
    for holder in (error, _member(error, "response")):
        for name in _STATUS_NAMES:
            value = _member(holder, name) if holder is not None else None
            if isinstance(value, int) and not isinstance(value, bool):
                return int(value)
    code = _member(error, "code")
    return code if type(code) is int and 100 <= code <= 599 else None


def _code(error: BaseException) -> JSON:
    for name in ("code", "error_code", "errno"):
        value = _member(error, name)
        if type(value) is str or type(value) is int:
            return value
    return None


def _retry_after(error: BaseException) -> float | None:
    value = _member(error, "retry_after")
    if value is None:
        headers = _member(_member(error, "response"), "headers") or _member(error, "headers")
        value = headers.get("retry-after") if hasattr(headers, "get") else None
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:
        return None


def _attributes(error: BaseException) -> dict[str, JSON] | None:
    """Instance attributes with a stored form: what an exception keeps beside its ``args``."""
    kept: dict[str, JSON] = {}
    for name, value in list(getattr(error, "__dict__", {}).items()):
        if name.startswith("__"):
            continue
        try:
            kept[name] = to_stored(value)
        except Exception:  # noqa: BLE001 - attributes without stored form are left out
            continue
    for name in _KEYWORDS.get(type(error), ()):
        value = _member(error, name)
        if type(value) is str:
            kept[name] = value
    return kept or None


_HTTP_CLIENTS = ("httpx", "httpx2", "requests")
_KEYWORDS: dict[type, tuple[str, ...]] = {
    NameError: ("name",),
    AttributeError: ("name",),
    ImportError: ("name", "path"),
    ModuleNotFoundError: ("name", "path"),
}
"""Attributes of builtin exceptions that stand neither in ``args`` nor in ``__dict__``."""


# rebuild


def _same_class(info: ErrorInfo) -> Exception | None:
    registered = _registered.get(f"{info.module}.{info.class_name}")
    try:
        if registered is not None and registered[2] is not None and info.args is not None:
            form: Any = info.args["$object"][1]
            return _checked(registered[2](from_stored(form)), registered[0], info)
        cls = registered[0] if registered is not None else _find(info)
        if cls is None:
            return None
        if info.members:
            return _checked(ExceptionGroup(from_stored(info.args)[0], [rebuild(m) for m in info.members]), cls, info)
        return _checked(_made(cls, info), cls, info)
    except Exception:  # noqa: BLE001 - anything that does not rebuild is a ReplayedToolError
        return None


def _find(info: ErrorInfo) -> type[Exception] | None:
    if info.module == "builtins":
        cls: Any = getattr(builtins, info.class_name, None)
    elif info.class_name in KNOWN_CLASSES.get(info.module or "", ()) or _public_httpx(info):
        cls = getattr(sys.modules.get(str(info.module)), info.class_name, None)
    else:
        return None
    return cls if isinstance(cls, type) and issubclass(cls, Exception) else None


def _public_httpx(info: ErrorInfo) -> bool:
    return info.module in ("httpx._exceptions", "httpx2._exceptions") and not info.class_name.startswith("_")


def _made(cls: type[Exception], info: ErrorInfo) -> Exception:
    args: Any = from_stored(info.args)
    if not isinstance(args, list):
        raise TypeError("no args")
    args = cast("list[Any]", args)
    if cls.__module__ == "builtins":  # their constructors run no foreign code, and set what `str` reads
        error = cls(*args)
    else:
        error = cls.__new__(cls, *args) if issubclass(cls, OSError) else cls.__new__(cls)
        error.args = tuple(args)
    for name, value in (info.attributes or {}).items():
        _set(error, name, from_stored(value))
    if info.status is not None and not hasattr(error, "response") and cls.__module__.split(".")[0] in _HTTP_CLIENTS:
        _set(error, "response", _response(str(info.module).partition(".")[0], info))
    return error


def _response(library: str, info: ErrorInfo) -> Any:
    """A response with the recorded status, for errors of HTTP clients whose callers look at it."""
    client: Any = sys.modules.get(library)
    headers = {} if info.retry_after is None else {"retry-after": f"{info.retry_after:g}"}
    if library in ("httpx", "httpx2"):
        return client.Response(info.status, headers=headers)
    response = client.Response()
    response.status_code = info.status
    response.headers.update(headers)
    return response


def _set(error: Exception, name: str, value: Any) -> None:
    try:
        setattr(error, name, value)
    except Exception:  # noqa: BLE001 - read-only attributes stay as the class made them
        return


def _checked(error: BaseException, cls: type[Exception], info: ErrorInfo) -> Exception:
    """Raises unless the exception is what was recorded: same class, same text."""
    if type(error) is not cls:
        raise TypeError("another class")
    as_shown = info.members or info.repr is None or repr(error)[:_MAX_TEXT] == info.repr
    if str(error)[:_MAX_TEXT] != info.message or not as_shown:
        raise ValueError("another text")
    return error
