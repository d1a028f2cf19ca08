"""Errors as fixture files hold them."""

from typing import Any

from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON, ErrorInfo

_MEMBERS = ("args", "code", "status", "retryable", "retry_after", "attributes")
_CAUSE = ("args", "status")


def stored_error(info: ErrorInfo) -> dict[str, JSON]:
    """What is kept of an error: class, text, what it was made of, status and cause."""
    return _stored(info, _MEMBERS)


def _stored(info: ErrorInfo, members: tuple[str, ...]) -> dict[str, JSON]:
    error: dict[str, JSON] = {"class": info.class_name, "module": info.module, "message": info.message}
    error |= {name: value for name in members if (value := getattr(info, name)) is not None}
    if info.cause is not None:
        error["cause"] = _stored(info.cause, _CAUSE)
    if info.members:
        error["members"] = [_stored(each, _MEMBERS) for each in info.members]
    return error


def error_of(stored: JSON) -> ErrorInfo:
    """The error that a file holds; what is not what it should be is left out."""
    found: dict[str, Any] = stored if is_object(stored) else {}
    cause: Any = found.get("cause")
    members: Any = found.get("members")
    attributes: Any = found.get("attributes")
    status, retry_after = found.get("status"), found.get("retry_after")
    return ErrorInfo(
        class_name=str(found.get("class") or "Exception"),
        module=str(found.get("module") or ""),
        message=str(found.get("message") or ""),
        args=found.get("args"),
        status=status if isinstance(status, int) else None,
        code=found.get("code"),
        retryable=found.get("retryable") if isinstance(found.get("retryable"), bool) else None,
        retry_after=retry_after if isinstance(retry_after, int | float) else None,
        attributes=attributes if is_object(attributes) else None,
        cause=error_of(cause) if is_object(cause) else None,
        members=tuple(error_of(each) for each in members) if is_list(members) else (),
    )
