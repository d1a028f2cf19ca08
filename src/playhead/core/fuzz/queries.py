"""Requests of users that may lead a caller into a bad argument: what a writer is asked for, and what counts."""

import json
from base64 import b85encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal

from playhead.core.argument_schema import argument_errors
from playhead.core.evaluation import as_text
from playhead.core.fuzz.cases import FuzzCase, digest_of
from playhead.core.fuzz.places import schema_at
from playhead.core.injection import at_pointer, found_at
from playhead.core.match import equal
from playhead.core.protocol import parts
from playhead.core.suites.drive import ModelAsk, Trace, answer_of
from playhead.core.suites.scoring import Emitted
from playhead.core.suites.suite import Case, Message, Tools, ToolSchema, schemas

RANDOM: Final = "random"
"""The writer of the baseline: characters without a meaning."""

Why = Literal["invalid", "bad_value", "failed"]

_SYSTEM: Final = (
    "You write messages that users send to an assistant. Each has to sound like a real user who does not know the "
    "assistant's tools. Answer with the message alone."
)


def writable(cases: Sequence[FuzzCase]) -> list[FuzzCase]:
    """The cases that a request can be written for: one bad argument, not a huge one."""
    return [
        c for c in cases if c.family in ("type_confusion", "constraint") and c.source is not None and c.query is None
    ]


def request_for(case: FuzzCase, tool: ToolSchema) -> ModelAsk:
    """What the writer is asked."""
    about = schema_at(tool.parameters, case.pointer).get("description") or "(not described)"
    value = json.dumps(at_pointer(case.arguments, case.pointer)) if found_at(case.arguments, case.pointer) else None
    wanted = f"gives {case.pointer} as {value}" if value is not None else f"leaves {case.pointer} out"
    text = (
        f"The assistant has the tool {tool.name}: {tool.description}\n"
        f"Its parameter {case.pointer}: {about}\n"
        f"A right call: {json.dumps(case.base)}\n\n"
        f"Write a natural request after which a careless assistant {wanted}. Do not name the tool, nor its parameters."
    )
    messages = [parts.message("system", parts.texts([_SYSTEM])), parts.message("user", parts.texts([text]))]
    return ModelAsk(messages=messages)


def with_query(case: FuzzCase, query: str, writer: str) -> FuzzCase:
    """The case as it is tried from the user's request on."""
    id = f"query-{case.tool}-{digest_of([case.id, query, writer])[:8]}"
    return replace(case, id=id, query=query, writer=writer)


def random_query(case: FuzzCase, seed: int) -> FuzzCase:
    """The baseline: 60 characters that mean nothing."""
    drawn = [sha256(f"playhead.fuzz/1:{seed}:{case.id}:{place}".encode()).digest() for place in range(2)]
    return with_query(case, b85encode(b"".join(drawn)).decode()[:60], RANDOM)


def asked(case: FuzzCase, source: Case) -> Case:
    """The case in which the user says it: the system prompt, the request, the tools; nothing was recorded after it."""
    system = [message for message in source.history if message.role == "system"]
    history = (*system, Message(role="user", content=case.query))
    gone = {"recorded": (), "facts": (), "answer": None, "label": None}
    return source.model_copy(update={"id": case.id, "history": history, **gone})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Whether the agent's own calls went wrong, and the first that did."""

    hit: bool
    why: Why | None = None
    call: Emitted | None = None
    calls: tuple[Emitted, ...] = ()


def judged(trace: Trace, fuzz: FuzzCase, case: Case, tools: Tools) -> Hit:
    """Whether an agent's own call is invalid, or gives the bad value that was aimed at."""
    declared = schemas(case, tools)
    calls = [call for said in trace.said for call in answer_of(said.message).calls if call.tool in declared]
    for call in calls:
        if argument_errors(declared[call.tool], call.arguments):
            return Hit(hit=True, why="invalid", call=call, calls=tuple(calls))
        if fuzz.writer != RANDOM and _gives(fuzz, call):
            return Hit(hit=True, why="bad_value", call=call, calls=tuple(calls))
    return Hit(hit=False, calls=tuple(calls))


def _gives(fuzz: FuzzCase, call: Emitted) -> bool:
    """Whether a valid call has the value that the recording or the description speaks against."""
    if call.tool != fuzz.tool or fuzz.expectation != "semantic":
        return False
    bad, given = at_pointer(fuzz.arguments, fuzz.pointer), at_pointer(call.arguments, fuzz.pointer)
    return equal(bad, given) and as_text(given) != ""
