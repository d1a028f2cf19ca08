"""Recordings of other tools as HTTP fixtures: planned first, then written."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import NamedTuple

from playhead.core.canonical import NoKeyError
from playhead.core.fixture_file import Fixture, dump, outcome_digest
from playhead.core.http.request import HttpRequest, HttpRules, arguments_of, effect_of, header, tool_of, without
from playhead.core.http.response import HttpAnswer, kept, store
from playhead.core.http.secrets import without_secrets
from playhead.core.keys import call_key
from playhead.core.redact import Redactor
from playhead.core.values import JSON
from playhead.engine.fixture_calls import tags_in
from playhead.store.fixture_writing import FixtureWriter
from playhead.store.fixtures import FixtureFolder


class Interaction(NamedTuple):
    """A request and its response as another tool recorded them, with all headers; ``at`` is when, if it says so."""

    request: HttpRequest
    answer: HttpAnswer
    at: str | None = None


@dataclass(slots=True, kw_only=True)
class ImportPlan:
    """What one cassette becomes. Nothing is written before `write`."""

    cassette: str
    set_name: str
    fixtures: list[Fixture] = field(default_factory=list[Fixture])
    skipped: list[dict[str, JSON]] = field(default_factory=list[dict[str, JSON]])

    def write(self, folder: FixtureFolder, run: str) -> None:
        """Puts the fixtures into the set; they replace what it has of the same requests.

        Raises:
            StoreError: they cannot be written.
        """
        writer = FixtureWriter(folder, self.set_name, run)
        for order, fixture in enumerate(self.fixtures):
            writer.add(order, fixture)
        writer.finish({"playhead": "recording/1", "command": f"import of {self.cassette}", "hosts": [],
                       "not_recorded": self.skipped})  # fmt: skip


def plan_import(
    cassette: str, set_name: str, found: Iterable[Interaction], rules: HttpRules, redactor: Redactor, *, now: int
) -> ImportPlan:
    """The fixtures of a cassette's interactions. Equal requests become occurrences, in the cassette's order."""
    plan = ImportPlan(cassette=redactor.redact_text(cassette), set_name=set_name)
    numbers: dict[str, int] = {}
    for place, interaction in enumerate(found):
        if not rules.concern(interaction.request.url):
            continue
        fixture = _fixture(interaction, rules, redactor, now)
        if isinstance(fixture, str):
            plan.skipped.append({"tool": tool_of(interaction.request), "key": str(place + 1), "reason": fixture})
        else:
            numbers[fixture.key] = numbers.get(fixture.key, 0) + 1
            plan.fixtures.append(replace(fixture, occurrence=numbers[fixture.key]))
    return plan


def _fixture(interaction: Interaction, rules: HttpRules, redactor: Redactor, now: int) -> Fixture | str:
    """The fixture, or why there is none."""
    request = interaction.request
    whole = arguments_of(request, rules, redactor, is_configured=redactor.configured_names.__contains__)
    keyed = without(whole, rules.ignore)
    try:
        key = call_key(tool_of(request), keyed, namespace="http")
    except NoKeyError as error:
        return f"it has no key: {error}"
    answer = interaction.answer
    cleaned = without_secrets(replace(answer, headers=kept(answer.headers, rules.keep_headers)), redactor)
    if cleaned.refused is not None:
        return cleaned.refused
    outcome: dict[str, JSON] = {
        "kind": "value",
        "value": redactor.redact(store(cleaned.answer), outcome=True).value,
    }
    arguments = redactor.redact(keyed)
    fixture = Fixture(
        kind="http",
        tool=tool_of(request),
        key=key,
        args=arguments.value,
        outcome=outcome,
        effect=effect_of(request.method),
        ignored=rules.ignore if keyed != whole else (),
        redacted=(*[f"/args{each}" for each in arguments.pointers], *[f"/outcome{each}" for each in tags_in(outcome)]),
        recorded={
            "at": _when(interaction, now),
            "ms": 0,
            "playhead": version("playhead"),
            "language": "python",
            "imported": "vcr",
            "outcome": outcome_digest(outcome),
        },
    )
    held = redactor.known_in(dump(fixture))
    return f"it holds the value of {', '.join(held)}" if held else fixture


def _when(interaction: Interaction, now: int) -> str:
    """When it was recorded: as the cassette or the server's own clock says, else now."""
    said = header(interaction.answer.headers, "date")
    for text, read in ((interaction.at, datetime.fromisoformat), (said, parsedate_to_datetime)):
        try:
            at = read(text) if text else None
        except (ValueError, TypeError):
            continue
        if at is not None:
            at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
            return at.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    return datetime.fromtimestamp(now / 1e9, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
