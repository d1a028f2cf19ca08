"""What can be wrong with one fixture file that could be read."""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from playhead.core.canonical import NoKeyError, from_stored
from playhead.core.fixture_file import NAMESPACES, Fixture, dump, edited
from playhead.core.json_text import pointer
from playhead.core.keys import KEY_VERSION, call_key
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redact import Redactor
from playhead.core.values import JSON
from playhead.engine.fixture_findings import FixtureCheck, failing, warning
from playhead.engine.op_schema import problems
from playhead.engine.ops import Op

_DAY = 86_400
_TAG = re.compile(r"\[REDACTED:([^\[\]]{1,200})\]")
_AGAIN = "record again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """What the doctor knows beside the files.

    Args:
        now: seconds since the epoch.
        max_age_days: recordings that are older are warned about.
        configured: names and globs of the secrets that keys are free of.
        ops: the declared ops; None where they were not looked at.
    """

    redactor: Redactor
    now: float
    max_age_days: int | None = None
    configured: Sequence[str] = ()
    ops: Mapping[str, Op] | None = None

    def is_configured(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name.partition(".")[0], each) for each in self.configured)


def file_checks(fixture: Fixture, value: JSON, looking: Looking, again: str) -> Iterator[FixtureCheck]:
    """Findings about one file.

    Args:
        value: the value of its outcome, read from its own file where it is large.
        again: the command that records it.
    """
    name = fixture.name
    yield from _secrets(fixture, value, looking)
    if not _fits_key(fixture, looking):
        yield failing(
            "file.key", name, f"{name}: arguments or name do not fit its key",
            f"if the edit is meant: playhead fixtures rekey {name}",
        )  # fmt: skip
    if edited(fixture):
        yield warning("file.edited", name, f"{name}: its outcome was edited by hand; it is served as it is", again)
    age = _age(fixture, looking.now)
    if looking.max_age_days is not None and age is not None and age > looking.max_age_days:
        yield warning("file.age", name, f"{name}: recorded {age} days ago, limit {looking.max_age_days}", again)
    op = looking.ops.get(fixture.tool) if looking.ops is not None and fixture.kind == "op" else None
    if op is not None:
        yield from _declaration(fixture, value, op, looking, again)
    elif fixture.kind == "op" and looking.ops:
        message = f"{name}: no op {fixture.tool} any more"
        yield warning("file.orphan", name, message, "remove: playhead fixtures prune")


def _secrets(fixture: Fixture, value: JSON, looking: Looking) -> Iterator[FixtureCheck]:
    whole: JSON = {"args": fixture.args, "scope": fixture.scope, "outcome": {**fixture.outcome, "value": value},
                   "assertions": fixture.assertions}  # fmt: skip
    for held in looking.redactor.known_in(dump(fixture)) or looking.redactor.known_in(str(value)):
        where = next((place for place, text in _texts(whole) if held in looking.redactor.known_in(text)), "")
        yield failing(
            "file.secret", fixture.name, f"{fixture.name}: value of {held} at {where or 'its text'}",
            "delete the file, rotate the secret, record again",
        )  # fmt: skip


def _texts(value: JSON, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every text and number with its place, names of members too."""
    if is_object(value):
        for member, item in value.items():
            yield pointer(steps), member
            yield from _texts(item, (*steps, member))
    elif is_list(value):
        for place, item in enumerate(value):
            yield from _texts(item, (*steps, place))
    elif value is not None:
        yield pointer(steps), str(value)


def _fits_key(fixture: Fixture, looking: Looking) -> bool:
    """Whether arguments that lost configured secrets only, which keys are free of too, make the file's key."""
    tags = set(_TAG.findall(str(fixture.args) + str(fixture.scope)))
    hidden = any(place.startswith(("/args", "/scope")) for place in fixture.redacted)
    if not hidden or not all(looking.is_configured(tag) for tag in tags):
        return True  # reading has looked at those with nothing taken out
    if not fixture.key.startswith(f"{KEY_VERSION}:"):
        return True
    try:
        key = call_key(fixture.tool, fixture.args, scope=fixture.scope, namespace=NAMESPACES[fixture.kind])
    except NoKeyError:
        return False
    return key == fixture.key


def _age(fixture: Fixture, now: float) -> int | None:
    try:
        return int((now - datetime.fromisoformat(str(fixture.recorded.get("at"))).timestamp()) // _DAY)
    except ValueError:
        return None


def _declaration(fixture: Fixture, value: JSON, op: Op, looking: Looking, again: str) -> Iterator[FixtureCheck]:
    """What of the recording does not fit the op as it is declared today."""
    name = fixture.name
    wrong = problems([error for each in _results(fixture, value) for error in op.output.errors(each)])
    if wrong:
        yield failing("file.output", name, looking.redactor.redact_text(f"{name}: {wrong}"), again)
    before: Any = fixture.assertions.get("defaults") or {}
    given: Any = fixture.args or {}
    today: Any = looking.redactor.redact(op.input.defaults).value
    for each, old in before.items():
        if each in today and each not in given and today[each] != old:
            text = f"{name}: default of {each} was {from_stored(old)!r}, is {from_stored(today[each])!r}"
            yield failing("file.default", name, looking.redactor.redact_text(text), again)
    changed = op.changed_since(fixture.assertions)
    if changed:
        what = "other code" if changed == ["code"] else f"another declaration ({', '.join(changed)})"
        yield warning("file.outdated", name, f"{name}: recorded with {what} of {op.id}; {_AGAIN} to refresh", again)


def _results(fixture: Fixture, value: JSON) -> list[JSON]:
    items = fixture.outcome.get("items")
    if is_list(items):
        return list(items)
    return [value] if fixture.outcome.get("kind") == "value" and "truncated" not in fixture.outcome else []


def credentials_in_keys(fixture: Fixture, looking: Looking) -> list[str]:
    """Arguments of which the key holds more than the file says: they lost what is no configured secret."""
    if fixture.kind != "op":
        return []
    places = {place.removeprefix("/args/") for place in fixture.redacted if place.startswith("/args/")}
    found: set[str] = set()
    for place, text in _texts(fixture.args):
        tags = _TAG.findall(text)
        if place.removeprefix("/") in places and not all(looking.is_configured(tag) for tag in tags):
            found.add(place.split("/")[1])
    return sorted(found)
