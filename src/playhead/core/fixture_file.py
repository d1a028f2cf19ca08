"""A fixture file: one recorded outcome of an op or an HTTP request, as text that is fit for version control."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import orjson

from playhead.core.canonical import NoKeyError, digest, parse_json
from playhead.core.keys import KEY_VERSION, call_key
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON
from playhead.errors import FixtureFormatError

FORMAT = "fixture/1"
NAMESPACES = {"op": "call", "http": "http"}

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)
_KEY = re.compile(r"([0-9]{1,9}):([0-9a-f]{64})")
_LONGEST_NAME = 60
_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """One recorded outcome. ``args`` are as they were keyed; ``redacted`` are pointers into the whole file."""

    kind: str
    tool: str
    key: str
    args: JSON
    outcome: dict[str, JSON]
    occurrence: int = 1
    effect: str | None = None
    scope: JSON = None
    ignored: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    overlapped: bool = False
    assertions: dict[str, JSON] = field(default_factory=dict[str, JSON])
    recorded: dict[str, JSON] = field(default_factory=dict[str, JSON])

    @property
    def name(self) -> str:
        return file_name(self.kind, self.tool, self.key, self.occurrence)


def safe(text: str) -> str:
    """Text as a part of a file name."""
    return _UNSAFE.sub("_", text)[:_LONGEST_NAME] or "tool"


def file_name(kind: str, tool: str, key: str, occurrence: int = 1) -> str:
    """The name of a fixture's file; a hint only, since it is identified by what is inside."""
    digest = key.partition(":")[2][:16]
    number = "" if occurrence == 1 else f".{occurrence}"
    return f"{kind}.{safe(tool)}.{digest}{number}.json"


def dump(fixture: Fixture) -> bytes:
    """The text of a fixture: members sorted, two spaces, a final newline."""
    document: dict[str, JSON] = {
        "playhead": FORMAT,
        "kind": fixture.kind,
        "tool": fixture.tool,
        "key": fixture.key,
        "args": fixture.args,
        "ignored": list(fixture.ignored),
        "occurrence": fixture.occurrence,
        "overlapped": fixture.overlapped,
        "outcome": fixture.outcome,
        "redacted": list(fixture.redacted),
        "assertions": fixture.assertions,
        "recorded": fixture.recorded,
    }
    if fixture.effect is not None:
        document["effect"] = fixture.effect
    if fixture.scope is not None:
        document["scope"] = fixture.scope
    return document_text(document)


def outcome_digest(outcome: JSON) -> str:
    """What tells an outcome from an edited one; it stands in ``recorded``."""
    return f"sha256:{digest(outcome).hex()}"


def edited(fixture: Fixture) -> bool:
    """Whether the outcome is another than the one that was recorded. Files without a digest are taken as they are."""
    said = fixture.recorded.get("outcome")
    if said is None or {"body", "truncated"} & set(fixture.outcome):  # these are digests themselves
        return False
    return said != outcome_digest(fixture.outcome)


def document_text(document: JSON) -> bytes:
    """Sorted and indented JSON with a final newline."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
    except TypeError:  # lone surrogates, which only an escape can hold
        return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def load(data: bytes, name: str, *, any_key: bool = False) -> Fixture:
    """The fixture that a file of this name holds.

    Args:
        any_key: whether name, key and arguments fit each other does not matter: they are about to be made to.

    Raises:
        FixtureFormatError: it holds none; the text names file, line and reason.
    """
    document = _document(data, name)
    version = document.get("playhead")
    if version != FORMAT:
        newer = isinstance(version, str) and re.fullmatch(r"fixture/\d+", version)
        why = f"written by a newer playhead ({version}); this one reads {FORMAT}" if newer else "no fixture"
        raise _damaged(name, why, check="file.version" if newer else "file.damaged")
    kinds: dict[str, type | tuple[type, ...]] = {
        "kind": str, "tool": str, "key": str, "outcome": dict, "occurrence": int, "ignored": list, "redacted": list,
    }  # fmt: skip
    for member, kind in kinds.items():
        if member not in document or not isinstance(document[member], kind):
            raise _damaged(name, f"/{member} is missing or of another type")
    fixture = _fixture(document)
    _check(fixture, name, any_key=any_key)
    return fixture


def _document(data: bytes, name: str) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _damaged(name, "not UTF-8 text") from None
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        raise _damaged(name, "conflict markers of a merge", text.count("\n", 0, conflict.start()) + 1)
    try:
        document = parse_json(text)
    except NoKeyError:
        raise _damaged(name, "nested too deeply") from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise _damaged(name, "truncated or invalid JSON", line) from None
    if not is_object(document):
        raise _damaged(name, "no JSON object")
    return document


def _fixture(document: dict[str, Any]) -> Fixture:
    def texts(member: str) -> tuple[str, ...]:
        return tuple(str(each) for each in document[member])

    def members(member: str) -> dict[str, JSON]:
        found = document.get(member)
        return found if is_object(found) else {}

    return Fixture(
        kind=document["kind"],
        tool=document["tool"],
        key=document["key"],
        args=document.get("args"),
        outcome=document["outcome"],
        occurrence=document["occurrence"],
        effect=document.get("effect"),
        scope=document.get("scope"),
        ignored=texts("ignored"),
        redacted=texts("redacted"),
        overlapped=document.get("overlapped") is True,
        assertions=members("assertions"),
        recorded=members("recorded"),
    )


def _check(fixture: Fixture, name: str, *, any_key: bool) -> None:
    """A file that was renamed or edited belongs to another call than it says.

    Raises:
        FixtureFormatError: name, key and arguments do not fit each other.
    """
    if fixture.kind not in NAMESPACES:
        raise _damaged(name, f"/kind is {fixture.kind!r}")
    known = _KEY.fullmatch(fixture.key)
    if known is None:
        raise _damaged(name, "/key is no key")
    if type(fixture.occurrence) is not int or not 0 < fixture.occurrence < _MOST:
        raise _damaged(name, "/occurrence is no number of a call")
    if not any_key:
        _check_key(fixture, name, int(known[1]))
    wrong = _wrong_outcome(fixture.outcome)
    if wrong:
        raise _damaged(name, wrong)
    if not is_object(fixture.assertions.get("defaults", {})):
        raise _damaged(name, "/assertions/defaults is of another type")


def _wrong_outcome(outcome: dict[str, JSON]) -> str:
    """What an outcome is not, though it would have to be."""
    kind = outcome.get("kind")
    members = {"value", "items", "body", "truncated"} if kind == "value" else {"error"}
    if kind not in ("value", "error") or not members & set(outcome):
        return "/outcome is neither a value nor an error"
    for member, is_right in (("error", is_object), ("items", is_list), ("body", is_object), ("truncated", is_object)):
        if member in outcome and not is_right(outcome[member]):
            return f"/outcome/{member} is of another type"
    return ""


def _check_key(fixture: Fixture, name: str, version: int) -> None:
    if fixture.name != name.rpartition("/")[2]:
        raise _damaged(name, f"its name does not fit what is inside; {fixture.name} would", check="file.key")
    if version == KEY_VERSION and not _arguments_redacted(fixture):
        try:
            key = call_key(fixture.tool, fixture.args, scope=fixture.scope, namespace=NAMESPACES[fixture.kind])
        except NoKeyError as error:
            raise _damaged(name, f"/args have no key ({error})", check="file.key") from None
        if key != fixture.key:
            raise _damaged(name, "/args, /scope and /tool do not fit /key", check="file.key")


def _arguments_redacted(fixture: Fixture) -> bool:
    """Whether the file holds less of the arguments than the key was made of."""
    return any(pointer.startswith(("/args", "/scope")) for pointer in fixture.redacted)


def _damaged(name: str, why: str, line: int | None = None, check: str = "file.damaged") -> FixtureFormatError:
    """``check`` is the doctor's name of it."""
    where = "" if line is None else f" at line {line}"
    return FixtureFormatError(
        f"{name} is not readable as a fixture: {why}{where}",
        hint="delete the file and record again, or take it from version control",
        file=name,
        line=line,
        check=check,
    )
