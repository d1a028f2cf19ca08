"""Call keys: what makes two calls the same call."""

import inspect
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Protocol, cast

from playhead.core.canonical import NoKeyError, canonical, canonical_stored, digest
from playhead.core.jcs import TAGS
from playhead.core.values import JSON

__all__ = ["KEY_VERSION", "KeyView", "bind", "call_key", "digest", "preimage", "strip"]

KEY_VERSION: Final = 1


class KeyView(Protocol):
    """What takes secrets out of the parts of a key: a `core.redaction.redact.Redactor`."""

    def key_view(self, stored: JSON) -> JSON:
        """The value with its secrets replaced."""
        ...

    def may_change_key(self, text: bytes) -> bool:
        """Whether the value with this canonical text can hold a secret."""
        ...


def call_key(
    tool: str,
    arguments: JSON,
    *,
    scope: JSON = None,
    ignore: Iterable[str] = (),
    secrets: KeyView | None = None,
    namespace: str = "call",
) -> str:
    """The key of a call: key version, colon, sha256 of its `preimage` in hex.

    Raises:
        NoKeyError: the arguments or the scope have no canonical text.
    """
    parts = preimage(tool, arguments, scope=scope, ignore=ignore, secrets=secrets, namespace=namespace)
    return f"{KEY_VERSION}:{sha256(parts).hexdigest()}"


def preimage(
    tool: str,
    arguments: JSON,
    *,
    scope: JSON = None,
    ignore: Iterable[str] = (),
    secrets: KeyView | None = None,
    namespace: str = "call",
) -> bytes:
    """The five length-delimited parts that a key is the digest of. `arguments` and `scope` are in stored form.

    Raises:
        NoKeyError: the arguments or the scope have no canonical text.
    """
    if ignore:
        arguments = strip(arguments, ignore)
    scope_text = b"null" if scope is None else _part(scope, secrets)
    text = _part(arguments, secrets)
    return b"%b%d:%b,%d:%b," % (_head(namespace, tool), len(scope_text), scope_text, len(text), text)


def _part(stored: JSON, secrets: KeyView | None) -> bytes:
    text = canonical_stored(stored)
    if secrets is None or not secrets.may_change_key(text):
        return text
    return canonical_stored(secrets.key_view(stored))


@lru_cache(maxsize=1024)
def _head(namespace: str, tool: str) -> bytes:
    parts = (b"%d" % KEY_VERSION, canonical_stored(namespace), canonical_stored(tool))
    return b"".join([b"%d:%b," % (len(part), part) for part in parts])


def strip(arguments: JSON, pointers: Iterable[str]) -> JSON:
    """A copy of `arguments` without the values at the JSON pointers; ``*`` is any one segment.

    A dropped array element becomes null, so that places stay; a pointer to nothing is fine. Pointers go through the
    tag of a record (``/order/total``).
    """
    for text in pointers:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]
        arguments = _without(arguments, steps) if steps else None
    return arguments


def _without(value: JSON, steps: list[str]) -> JSON:
    if isinstance(value, list):
        return [_dropped(item, steps, str(place)) for place, item in enumerate(cast("list[Any]", value))]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    name = next(iter(members)) if len(members) == 1 else ""
    if name == "$object" and isinstance(members[name], list):
        return {name: [*members[name][:1], *[_without(form, steps) for form in members[name][1:]]]}
    if name in TAGS:
        return members
    kept: dict[str, JSON] = {}
    for member, item in ({name[1:]: members[name]} if name.startswith("$$") else members).items():
        if steps[0] not in ("*", member):
            kept[member] = item
        elif len(steps) > 1:
            kept[member] = _without(item, steps[1:])
    only = next(iter(kept)) if len(kept) == 1 else ""
    return {f"${only}": kept[only]} if only.startswith("$") else kept


def _dropped(item: JSON, steps: list[str], place: str) -> JSON:
    if steps[0] not in ("*", place):
        return item
    return _without(item, steps[1:]) if len(steps) > 1 else None


def bind(
    signature: inspect.Signature,
    args: Iterable[Any],
    kwargs: Mapping[str, Any],
    *,
    exclude: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The arguments of a call made by code, by parameter name, as passed; what equals its default is left out.

    ``*args`` is a list under its name, members of ``**kwargs`` join the others. `exclude` names parameters that are
    never arguments (``self``, an injected context); `defaults` adds defaults that only a schema declares.

    Raises:
        TypeError: the arguments do not fit the signature.
    """
    bound: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        parameter = signature.parameters[name]
        if name in exclude:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            bound[name] = list(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            _join(bound, name, value, exclude, defaults or {})
        elif not _is_default(value, (defaults or {}).get(name, parameter.default)):
            bound[name] = value
    return bound


def _join(
    bound: dict[str, Any], name: str, extra: dict[str, Any], exclude: Collection[str], defaults: Mapping[str, Any]
) -> None:
    """Adds the members of ``**kwargs``; one named like a positional-only argument stays apart."""
    clashing = {member: value for member, value in extra.items() if member in bound}
    for member, value in extra.items():
        if member in exclude or member in clashing:
            continue
        if not _is_default(value, defaults.get(member, inspect.Parameter.empty)):
            bound[member] = value
    if clashing:
        bound[f"**{name}"] = clashing


def _is_default(value: Any, default: Any) -> bool:
    if default is inspect.Parameter.empty:
        return False
    if value is default:
        return True
    try:
        return canonical(value) == canonical(default)
    except NoKeyError:
        return False
