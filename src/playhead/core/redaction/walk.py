"""One pass over a stored form that replaces text in member names, strings, numbers and typed values."""

import binascii
import math
import re
from base64 import b64decode, b64encode
from typing import Any, NamedTuple, Protocol, cast

from playhead.core.jcs import TAGS, int_text
from playhead.core.json_text import NoKeyError, number_text, pointer
from playhead.core.redaction.names import SECRET_MARK, SchemaView, is_credential_name, is_schema_map
from playhead.core.stored import sort_text
from playhead.core.values import JSON

_TAG = re.compile(rb"\[REDACTED:[^\[\]]*\]")
_TEXTS = frozenset({"$path", "$invalid", "$deep"})
_CREDENTIALS = frozenset({"$int", "$decimal", "$uuid"})  # typed values that can be one; a point in time cannot
_EXAMPLES = frozenset({"default", "const", "example", "examples"})


class Replacer(Protocol):
    """What a pass puts in the place of secrets. Every method returns the given object where there is none."""

    names_matter: bool
    """Whether a credential-like member name makes its value a secret."""

    def data(self, raw: bytes) -> bytes:
        """Replaces inside UTF-8 text."""
        ...

    def under_name(self, text: str, name: str) -> str:
        """Replaces a whole value that stands under a credential-like name."""
        ...


class _Member(NamedTuple):
    old_name: str
    name: str
    old: JSON
    new: JSON
    hits: slice


class Walk:
    """One pass. Values without secrets are returned as they are, not copied."""

    def __init__(self, replacer: Replacer) -> None:
        self._replacer = replacer
        self._hits: list[list[str | int]] = []  # steps from the inside out
        self._refused: list[list[str | int]] = []

    def pointers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pointer(reversed(steps)) for steps in self._hits))

    def refused(self) -> tuple[str, ...]:
        return tuple(pointer(reversed(steps)) for steps in self._refused)

    def whole(self, value: JSON, schema: SchemaView | None) -> JSON:
        """The value without secrets.

        Raises:
            NoKeyError: not stored JSON, or nested too deeply.
        """
        try:
            return self._value(value, None, schema)
        except RecursionError:
            raise NoKeyError("too_deep") from None

    def _value(self, value: Any, name: str | None, schema: SchemaView | None) -> JSON:
        """`name` is the credential-like name that the value stands under."""
        if isinstance(value, str):
            return self._noted(value, self._text(value, name))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, name)
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), name, schema)
        if isinstance(value, list | tuple):
            return self._array(cast("list[Any]", value), name, schema)
        raise NoKeyError("unsupported_type", type(value).__name__)

    def _text(self, text: str, name: str | None) -> str:
        if name is not None:
            return self._replacer.under_name(text, name)
        raw = text.encode("utf-8", "surrogatepass")
        replaced = self._replacer.data(raw)
        return text if replaced is raw else replaced.decode("utf-8", "surrogatepass")

    def _noted(self, old: JSON, new: JSON) -> JSON:
        """`new`, and a note of this place if it is another value."""
        if new is not old:
            self._hits.append([])
        return new

    def _below(self, since: int, refused: int, step: str | int) -> None:
        for steps in self._hits[since:]:
            steps.append(step)
        for steps in self._refused[refused:]:
            steps.append(step)

    def _number(self, value: int | float, name: str | None) -> JSON:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        text = number_text(value) if isinstance(value, float) else int_text(value)
        new = self._text(text, name)
        return value if new is text else self._noted(value, new)

    def _array(self, items: list[Any], name: str | None, schema: SchemaView | None, *, entries: bool = False) -> JSON:
        """`entries` says that these are entries of a map; other lists of pairs are told by their looks."""
        element = None if schema is None else schema.element()
        pairs = entries or (self._replacer.names_matter and _are_pairs(items))
        new: list[Any] = []
        for place, item in enumerate(items):
            since, refused = len(self._hits), len(self._refused)
            new.append(self._pair(item, name) if pairs and _is_pair(item) else self._value(item, name, element))
            self._below(since, refused, place)
        return new if any(a is not b for a, b in zip(new, items, strict=True)) else items

    def _pair(self, pair: list[Any], name: str | None) -> JSON:
        """A named value in a list of such: headers, form fields, entries of a map."""
        since, refused = len(self._hits), len(self._refused)
        label = self._noted(pair[0], self._text(pair[0], None))
        self._below(since, refused, 0)
        since = len(self._hits)
        below = pair[0] if self._replacer.names_matter and is_credential_name(pair[0]) else name
        value = self._value(pair[1], below, None)
        self._below(since, refused, 1)
        return pair if label is pair[0] and value is pair[1] else [label, value]

    def _object(
        self, value: dict[str, Any], name: str | None, schema: SchemaView | None, declared: str | None = None
    ) -> JSON:
        if len(value) != 1 or not next(iter(value)).startswith("$"):
            return self._members(value, name, schema, declared)
        ((member, inner),) = value.items()
        if member.startswith("$$"):
            plain = {member[1:]: inner}
            new = self._members(plain, name, schema, declared)
            return value if new is plain else new
        return self._tagged(member, inner, value, name)

    def _members(
        self, members: dict[str, Any], name: str | None, schema: SchemaView | None, declared: str | None = None
    ) -> dict[str, JSON]:
        beside = _name_beside(members) if self._replacer.names_matter else None
        found: list[_Member] = []
        refusals: list[slice] = []
        for member, item in members.items():
            since, refused = len(self._hits), len(self._refused)
            below = beside if beside is not None and member == "value" else name
            if declared is not None and member in _EXAMPLES:
                below = declared
            new = self._member(member, item, below, schema)
            renamed = self._text(member, None)
            if renamed is not member:
                self._hits.append([])
            found.append(_Member(member, renamed, item, new, slice(since, len(self._hits))))
            refusals.append(slice(refused, len(self._refused)))
        names = _apart(found)
        single = len(found) == 1
        for each, final, refusal in zip(found, names, refusals, strict=True):
            step = f"${final}" if single and final.startswith("$") else final
            for steps in (*self._hits[each.hits], *self._refused[refusal]):
                steps.append(step)
        if all(each.new is each.old and each.name is each.old_name for each in found):
            return members
        return _escaped(dict(zip(names, [each.new for each in found], strict=True)))

    def _member(self, member: str, item: JSON, name: str | None, schema: SchemaView | None) -> JSON:
        declared = None if schema is None else schema.member(member)
        decided = None if declared is None else declared.mark
        if decided is not None:
            name = member if decided else None
        elif self._replacer.names_matter:
            if is_schema_map(member, item):
                return self._declarations(item)
            if is_credential_name(member):
                name = member
        return self._value(item, name, declared)

    def _declarations(self, members: dict[str, Any]) -> dict[str, JSON]:
        """Fields declared by a JSON Schema: their names hold no values, only examples of them."""
        new: dict[str, Any] = {}
        for member, declaration in members.items():
            since, refused = len(self._hits), len(self._refused)
            new[member] = declaration
            if isinstance(declaration, dict):
                fields = cast("dict[str, Any]", declaration)
                secret = fields.get(SECRET_MARK, is_credential_name(member))
                new[member] = self._object(fields, None, None, member if secret else None)
            self._below(since, refused, member)
        return members if all(new[member] is members[member] for member in members) else new

    def _tagged(self, tag: str, inner: Any, whole: dict[str, Any], name: str | None) -> JSON:
        if tag in ("$set", "$map") and isinstance(inner, list):
            return self._unordered(tag, cast("list[Any]", inner), whole, name)
        if tag == "$bytes" and isinstance(inner, str):
            return self._bytes(inner, whole, name)
        if not isinstance(inner, str) or tag in _TEXTS or tag not in TAGS:
            since, refused = len(self._hits), len(self._refused)
            new = self._value(inner, name, None) if tag not in ("$object", "$enum") else self._named(inner, name)
            self._below(since, refused, tag)
            return whole if new is inner else {tag: new}
        new = self._text(inner, name if tag in _CREDENTIALS else None)
        return whole if new is inner else self._noted(whole, new)

    def _named(self, named: Any, name: str | None) -> JSON:
        """Class name and form of an object or an enum member."""
        if not isinstance(named, list) or len(cast("list[Any]", named)) != 2:
            return self._value(named, name, None)
        label, form = cast("list[Any]", named)
        since, refused = len(self._hits), len(self._refused)
        new = self._value(form, name, None)
        self._below(since, refused, 1)
        return cast("JSON", named) if new is form else [label, new]

    def _unordered(self, tag: str, inner: list[Any], whole: dict[str, Any], name: str | None) -> JSON:
        """A set or map: sorted anew, since its order came from what was replaced. Noted as one place."""
        since, refused = len(self._hits), len(self._refused)
        new = self._array(inner, name, None, entries=tag == "$map")
        if new is inner:
            return whole
        self._hits[since:] = [[tag]]
        self._refused[refused:] = [[tag] for _ in self._refused[refused:]]
        unique = _entries_apart(new) if tag == "$map" else {sort_text(item): item for item in new}
        return {tag: [unique[text] for text in sorted(unique)]}

    def _bytes(self, encoded: str, whole: dict[str, Any], name: str | None) -> JSON:
        if name is not None:
            return self._noted(whole, self._text(encoded, name))
        try:
            raw = b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            text = self._text(encoded, None)  # not what it says it is
            return whole if text is encoded else self._noted(whole, {"$bytes": text})
        replaced = self._replacer.data(raw)
        narrow = replaced.replace(b"\0", b"")  # text in UTF-16 or UTF-32 has them between its characters
        if len(narrow) < len(replaced) and (found := self._replacer.data(narrow)) is not narrow:
            self._refused.append([])
            return self._noted(whole, _TAG.findall(found)[0].decode())
        if replaced is raw:
            return whole
        try:
            raw.decode()
        except UnicodeDecodeError:
            self._refused.append([])
            return self._noted(whole, _TAG.findall(replaced)[0].decode())
        return self._noted(whole, {"$bytes": b64encode(replaced).decode()})


def _entries_apart(entries: list[Any]) -> dict[bytes, Any]:
    """Entries of a map by the sort text of their keys; keys that became equal are numbered."""
    apart: dict[bytes, Any] = {}
    for entry in entries:
        parts: list[Any] = cast("list[Any]", entry) if isinstance(entry, list) and entry else [entry]
        key: Any = parts[0]
        name = key
        number = 2
        while sort_text(name) in apart:
            name, number = f"{key} ({number})", number + 1
        apart[sort_text(name)] = entry if name is key else [name, *parts[1:]]
    return apart


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(cast("list[Any]", item)) == 2 and isinstance(item[0], str)


def _are_pairs(items: list[Any]) -> bool:
    return bool(items) and all(map(_is_pair, items))


def _name_beside(members: dict[str, Any]) -> str | None:
    """The credential-like name in objects such as ``{"name": "Authorization", "value": ...}``."""
    if "value" in members:
        for key in ("name", "key"):
            name = members.get(key)
            if isinstance(name, str) and is_credential_name(name):
                return name
    return None


def _apart(found: list[_Member]) -> list[str]:
    """Final member names: those that became equal are numbered, in an order that no secret has a say in."""
    if all(each.name is each.old_name for each in found):
        return [each.name for each in found]
    used = {each.name for each in found if each.name is each.old_name}
    names = [each.name for each in found]
    changed = [place for place, each in enumerate(found) if each.name is not each.old_name]
    for place in sorted(changed, key=lambda place: sort_text(found[place].new)) if len(changed) > 1 else changed:
        number, name = 2, names[place]
        while name in used:
            name, number = f"{names[place]} ({number})", number + 1
        used.add(name)
        names[place] = name
    return names


def _escaped(new: dict[str, Any]) -> dict[str, Any]:
    """`new` with the escape of a single member whose name starts with ``$``; tags were dealt with before."""
    if len(new) == 1:
        ((name, item),) = new.items()
        if name.startswith("$"):
            return {f"${name}": item}
    return new
