"""Labels for a suite's cases: taken over from confirmed sessions, mined, proposed by models, decided by people."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from playhead.core.capture import Captured, CaptureOptions, capture
from playhead.core.codec import dump
from playhead.core.evaluation import as_text
from playhead.core.protocol import parts
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk
from playhead.core.suites.fact_proposals import propose_facts
from playhead.core.suites.label_log import (
    Audit,
    LabelEntry,
    PairAgreement,
    Queued,
    Settled,
    agreements,
    audits,
    by_case,
    review_queue,
    settle,
)
from playhead.core.suites.labels import check_label, label_json, read_label
from playhead.core.suites.messages import history
from playhead.core.suites.suite import Case, offered, schemas, to_json
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.model_access import Access, Place, TrialFailedError, TryAgainError
from playhead.engine.suites.location import SuiteHome, iso
from playhead.engine.suites.run import in_a_loop
from playhead.errors import NotFoundError, PlayheadError, UsageError
from playhead.store.ports import Store

TRIES: Final = 2


def settle_all(contents: Contents) -> dict[str, Settled]:
    """What holds for every case."""
    own = by_case(contents.labels)
    return {case.id: settle(case, own.get(case.id, ())) for case in contents.cases}


def add_entries(home: SuiteHome, contents: Contents, entries: Sequence[LabelEntry]) -> Contents:
    """Appends to the log of labels, and gives each case the label that now counts; the suite as it is then."""
    own = by_case([*_given(contents, entries), *contents.labels, *entries])
    touched = {entry.case for entry in entries}
    changed: list[Case] = []
    for case in contents.cases:
        if case.id in touched:
            label = settle(case, own[case.id]).label
            if label != case.label:
                changed.append(case.model_copy(update={"label": label}))
    home.change(cases=changed, labels=[*_given(contents, entries), *entries])
    return home.contents()


def _given(contents: Contents, entries: Sequence[LabelEntry]) -> list[LabelEntry]:
    """The first entry of cases whose label nobody logged: their author decided it, and it must not be lost."""
    logged = {entry.case for entry in contents.labels}
    touched = {entry.case for entry in entries} - logged
    return [
        LabelEntry(case=c.id, state="reviewed", label=label_json(c.label), who="author")
        for c in contents.cases
        if c.id in touched and c.label is not None
    ]


def new_only(contents: Contents, entries: Iterable[LabelEntry]) -> list[LabelEntry]:
    """Those entries that say something that their source did not say before."""
    held: dict[tuple[str, str], JSON] = {(e.case, e.key): e.label for e in contents.labels}
    return [e for e in entries if held.get((e.case, e.key)) != e.label]


# --- from recordings ------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Relabelled:
    """Entries to add, and sessions that are no longer in the store."""

    entries: list[LabelEntry] = field(default_factory=list[LabelEntry])
    missing: list[str] = field(default_factory=list[str])


def from_recordings(
    store: Store, contents: Contents, state: str, *, confirming: frozenset[str] | None = None
) -> Relabelled:
    """Weak or mined labels of the sessions that the cases come from."""
    found = Relabelled()
    ids: dict[tuple[str | None, str | None], str] = {
        (case.source.session, case.source.node): case.id for case in contents.cases
    }
    for session_id in dict.fromkeys(case.source.session for case in contents.cases if case.source.session):
        try:
            session = store.sessions.get(session_id)
        except NotFoundError:
            found.missing.append(session_id)
            continue
        captured = Captured()
        options = CaptureOptions(
            tools=list(contents.tools.values()), effects=contents.suite.effects, confirming=confirming
        )
        verdicts = store.sessions.verdicts(session_id)
        capture(captured, session, store.sessions.nodes(session_id), verdicts, options)
        named = {case.id: ids.get((case.source.session, case.source.node)) for case in captured.cases}
        for entry in captured.labels:
            target = named.get(entry.case)
            if entry.state == state and target is not None:
                found.entries.append(replace(entry, case=target))
    found.entries = new_only(contents, found.entries)
    return found


def fact_proposals(contents: Contents) -> dict[str, list[Any]]:
    """Facts for cases that have none, by case; what is held back is left out."""
    cases = [c for c in contents.cases if c.slice == "tune" and c.status == "active" and not c.facts]
    found = {case.id: propose_facts(case) for case in cases}
    return {id: facts for id, facts in found.items() if facts}


# --- proposals of models --------------------------------------------------------------------------------------------

_SYSTEM: Final = """\
You label one turn of a conversation between a user and an assistant that can call tools: what should the assistant do
next? Answer with one JSON object and nothing else, of one of these kinds:
{"kind": "call", "calls": [{"tool": NAME, "arguments": {...}}]}: these calls, all of them. Name only arguments that
matter; a value may be {"$any_of": [...]}, {"$pattern": REGEX}, {"$any": true}, or {"$optional": true}.
{"kind": "any_of", "options": [{"calls": [...]}, ...]}: several sets of calls are equally right.
{"kind": "no_tool", "answer": "any" | "clarify" | "direct"}: no call; a question to the user, or an answer.
{"kind": "fail_safely", "how": ["refuse", "escalate", "report"]}: the request must be refused or handed to a person.
"""


@dataclass(slots=True, kw_only=True)
class Proposed:
    """Proposals to add, and for which cases a model gave nothing that is a label, with the reason."""

    entries: list[LabelEntry] = field(default_factory=list[LabelEntry])
    failed: dict[str, str] = field(default_factory=dict[str, str])


def propose(
    contents: Contents,
    cases: Sequence[Case],
    access: Access,
    *,
    concurrency: int = 8,
    clock: Clock = SYSTEM_CLOCK,
    tell: Callable[[int], None] = lambda done: None,
) -> Proposed:
    """Asks a model for the label of each case. It is not shown what was recorded next."""
    found = Proposed()
    waiting = list(reversed(cases))

    async def work() -> None:
        while waiting:
            case = waiting.pop()
            answer = await _proposal(contents, case, access)
            if isinstance(answer, str):
                found.failed[case.id] = answer
            else:
                at = iso(clock.now())
                entry = LabelEntry(case=case.id, state="proposed", label=answer, source=access.name, at=at, who="model")
                found.entries.append(entry)
            tell(len(found.entries) + len(found.failed))

    async def every() -> None:
        try:
            await asyncio.gather(*(work() for _ in range(max(1, concurrency))))
        finally:
            await access.close()

    in_a_loop(every())
    order = {case.id: place for place, case in enumerate(cases)}
    found.entries.sort(key=lambda entry: order[entry.case])
    return found


async def _proposal(contents: Contents, case: Case, access: Access) -> Any:
    """The label that a model proposes, or why there is none."""
    asked = [parts.message("system", [parts.text(_SYSTEM)]), parts.message("user", [parts.text(_turn(contents, case))])]
    problem = ""
    for _ in range(TRIES):
        try:
            said = await access.ask(ModelAsk(messages=asked), Place(case.id, 0))
        except (TryAgainError, TrialFailedError, PlayheadError) as error:
            return str(error)
        label, problem = read_proposal(parts.text_of(said.message), case, contents)
        if label is not None:
            return label
        told = f"That is no usable label: {problem}. Write it again, as one JSON object."
        asked = [*asked, said.message, parts.message("user", [parts.text(told)])]
    return problem


def read_proposal(text: str, case: Case, contents: Contents) -> tuple[dict[str, JSON] | None, str]:
    """The label in a model's text, None with the reason when it is none or does not fit the tools."""
    found = text[text.find("{") : text.rfind("}") + 1]
    try:
        label = read_label(json.loads(found))
    except ValueError as error:
        return None, str(error)
    findings = check_label(label, schemas(case, contents.tools))
    return (None, str(findings[0])) if findings else (label_json(label), "")


def _turn(contents: Contents, case: Case) -> str:
    tools = [to_json(tool) for tool in offered(case, contents.tools).values()]
    effects = {n: to_json(e) for n, e in contents.suite.effects.items() if n in {t["name"] for t in tools}}
    lines = [f"Tools: {json.dumps(tools, ensure_ascii=False)}"]
    if effects:
        lines.append(f"What the tools do: {json.dumps(effects, ensure_ascii=False)}")
    lines.append("The conversation so far:")
    lines += [line for message in history(case) for line in told(message)]
    return "\n".join([*lines, "What should the assistant do next?"])


def told(message: parts.Message) -> list[str]:
    """A message as lines of text."""
    lines: list[str] = []
    for part in message["parts"]:
        if part["type"] == "text":
            lines.append(f"{message['role']}: {part['text']}")
        elif part["type"] == "tool_call":
            lines.append(f"{message['role']} calls {part['name']} {as_text(part['arguments'])}")
        elif part["type"] == "tool_result":
            failed = " (failed)" if part.get("is_error") else ""
            lines.append(f"result of {part['name']}{failed}: {as_text(part['content'])}")
    return lines


# --- review ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """What is to be reviewed, and what is known of the labels so far."""

    queue: tuple[Queued, ...]
    settled: Mapping[str, Settled]
    agreements: tuple[PairAgreement, ...]
    audits: tuple[Audit, ...]

    def data(self) -> dict[str, JSON]:
        return {
            "queue": [dump(one) for one in self.queue],
            "agreement": [{**dump(pair), "kappa": pair.kappa, "calls": pair.calls} for pair in self.agreements],
            "residual": [{**dump(audit), "active": audit.trusted} for audit in self.audits],
        }


def review_state(contents: Contents, *, slice: str = "tune") -> ReviewState:
    """The review queue of a slice, and the agreement of all labels."""
    found = settle_all(contents)
    cases = [case for case in contents.cases if slice in ("all", case.slice)]
    warned = [id for id, findings in contents.findings().items() if findings]
    queue = review_queue(contents.suite.name, cases, found, findings=warned, intents=contents.suite.intents)
    return ReviewState(
        queue=tuple(queue),
        settled=found,
        agreements=tuple(agreements(found.values())),
        audits=tuple(audits(found.values())),
    )


def decision(
    case: Case, *, label: JSON, who: str, reason: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> LabelEntry:
    """What a person decided; ``label`` None rejects what the sources hold.

    Raises:
        UsageError: it is no label.
    """
    if label is None:
        return LabelEntry(case=case.id, state="rejected", who=who, at=iso(clock.now()), reason=reason)
    try:
        read = label_json(read_label(label))
    except ValueError as error:
        raise UsageError(f"that is no label: {error}") from None
    return LabelEntry(case=case.id, state="reviewed", label=read, who=who, at=iso(clock.now()), reason=reason)
