"""The one decision function: what answers a tool call of a replay.

`decide` is pure and total. It reads the claim that the tape made when the call was announced (or started) and changes
nothing; asked twice it says the same. The policy is the one that the tape was made with.
"""

import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from playhead.core import miss
from playhead.core.claim import Claim
from playhead.core.injection import build
from playhead.core.keys import strip
from playhead.core.match import matches
from playhead.core.policy import (
    CallView,
    Decision,
    ErrorCase,
    ErrorResult,
    Generate,
    HistoryConfig,
    Inject,
    InjectConfig,
    LLMConfig,
    OnMiss,
    PassthroughConfig,
    RunLive,
    ScriptedOutcome,
    Serve,
    StaticCase,
    StaticConfig,
    Stop,
    ToolPolicy,
)
from playhead.core.protocol.shape import is_object, obj
from playhead.core.recording import Recording, unservable
from playhead.core.schema import SchemaError, first_error, schema_errors
from playhead.core.static import first_case, is_loose
from playhead.core.tape import Tape, base_config
from playhead.core.values import JSON, ErrorInfo, Mark, Outcome, OutcomeKind, Provenance

_CONSEQUENCE: dict[OnMiss, str] = {
    "fail": miss.NOTHING_RAN,
    "error_result": f'{miss.NOTHING_RAN} The agent gets a tool error ("on_miss": "error_result").',
    "passthrough": 'The live tool runs ("on_miss": "passthrough").',
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call with what the tape has for it."""

    call: CallView
    claim: Claim
    tape: Tape


def decide(policy: ToolPolicy, call: CallView, tape: Tape) -> Decision:
    """What answers ``call``.

    Under history and injection the call needs a claim (`Tape.announce`, `Tape.claim`); one without is stopped, because
    nobody can say which recording is its own.
    """
    config = policy.config_for(call.tool)
    claim = tape.claim_of(call.ref)
    if claim is None and not isinstance(config, PassthroughConfig | LLMConfig):
        return Stop(reason="unclaimed", message=f"the call of {call.tool} was decided before the tape knew of it")
    depth = 0
    while isinstance(config, InjectConfig):
        assert claim is not None
        if claim.injection is not None and claim.injection.depth == depth:
            return _injected(config, _Asked(call, claim, tape))
        config = config.then or HistoryConfig()
        depth += 1
    if isinstance(config, PassthroughConfig):
        return RunLive()
    if isinstance(config, LLMConfig):
        return Generate(config=config)
    assert claim is not None
    asked = _Asked(call, claim, tape)
    return _static(config, asked) if isinstance(config, StaticConfig) else _history(config, asked)


def _missed(missed: miss.Miss, call: CallView, on_miss: OnMiss) -> Decision:
    if on_miss == "passthrough":
        return RunLive(missed=missed.message)
    if on_miss == "error_result":
        text = f"{call.tool} failed: no result is available for this call"
        return ErrorResult(reason=missed.reason, message=text, missed=missed.message)
    return Stop(reason=missed.reason, message=missed.message, closest=missed.closest)


# --- history --------------------------------------------------------------------------------------------------------


def _history(config: HistoryConfig, asked: _Asked) -> Decision:
    call, claim, tape = asked.call, asked.claim, asked.tape
    consequence = _CONSEQUENCE[config.on_miss]
    if config.scope != "baseline":
        found = tape.wide_answer(call)
        if found is None:
            missed = miss.nothing_wide(call, tape.wide(call.tool), config.scope, tape.redact, consequence)
            return _missed(missed, call, config.on_miss)
        return _serve(found, asked, loose=config.ignore if found.key != call.key else ())
    if claim.reason is not None or claim.recording is None:
        missed = miss.no_recording(call, claim, tape.recorded(call.tool), tape.redact, consequence)
        return _missed(missed, call, config.on_miss)
    if claim.ambiguous:
        missed = miss.ambiguous(call, claim, tape.redact)
        return Stop(reason=missed.reason, message=missed.message, closest=missed.closest)
    return _recorded(claim.recording, asked, config.on_miss, claim.loose)


def _recorded(recording: Recording, asked: _Asked, on_miss: OnMiss, loose: tuple[str, ...]) -> Decision:
    why = unservable(recording)
    if why is not None:
        missed = miss.not_served(asked.call, recording, why, asked.tape.redact, _CONSEQUENCE[on_miss])
        return _missed(missed, asked.call, on_miss)
    return _serve(recording, asked, loose=loose)


def _serve(recording: Recording, asked: _Asked, *, loose: tuple[str, ...], marks: tuple[str, ...] = ()) -> Decision:
    assert recording.outcome is not None
    outcome = recording.outcome
    if outcome.kind is OutcomeKind.VALUE and asked.call.output_schema is not None:
        errors = schema_errors(asked.call.output_schema, outcome.value)
        if errors:
            return Stop(reason="stale", message=_stale(asked.call, errors))
    text = ("text",) if recording.mark is Mark.TEXT else ()
    return Serve(
        outcome=outcome,
        provenance=Provenance(
            by="served", session_id=recording.session_id, node_id=recording.node_id, loose=loose, detail=None
        ),
        marks=(*loose, *text, *marks),
    )


def _stale(call: CallView, errors: Sequence[SchemaError]) -> str:
    lines = [f"the recorded result of {call.tool} no longer fits the declared output schema"]
    lines += [f"  {e.pointer or '(the whole value)'}  {miss.cut(e.message)}" for e in errors]
    lines.append("  record again, or answer the tool another way")
    return "\n".join(lines)


# --- static ---------------------------------------------------------------------------------------------------------


def _static(config: StaticConfig, asked: _Asked) -> Decision:
    call = asked.call
    index = first_case(config, call.arguments, dict(asked.claim.cases))
    if index is None:
        patterns = [strip(c.match, config.ignore) if config.ignore else c.match for c in config.cases]
        arguments = strip(call.arguments, config.ignore) if config.ignore else call.arguments
        consequence = _CONSEQUENCE[config.on_miss]
        missed = miss.no_case(call, config, arguments, patterns, asked.tape.redact, consequence)
        return _missed(missed, call, config.on_miss)
    case = config.cases[index]
    loose = config.ignore if is_loose(config, case, call.arguments) else ()
    outcome = (
        Outcome(kind=OutcomeKind.VALUE, value=case.result)
        if case.error is None
        else Outcome(kind=OutcomeKind.ERROR, error=error_info(case.error))
    )
    return Serve(
        outcome=outcome,
        provenance=Provenance(by="static", detail=f"case {index + 1}", loose=loose),
        marks=loose,
        delay_ms=case.delay_ms,
    )


def error_info(case: ErrorCase) -> ErrorInfo:
    """The error of a static case, as if it had been recorded."""
    name = case.error_class or "ToolError"
    builtin = getattr(builtins, name, None)
    known = isinstance(builtin, type) and issubclass(builtin, Exception)
    return ErrorInfo(
        class_name=name,
        module="builtins" if known else None,
        message=case.message,
        args=[case.message],
        status=case.status,
        code=case.code,
        retry_after=case.retry_after,
    )


# --- injection ------------------------------------------------------------------------------------------------------


def _injected(config: InjectConfig, asked: _Asked) -> Decision:
    call, claim = asked.call, asked.claim
    assert claim.injection is not None
    hidden = claim.recording
    if claim.injection.step.what == "inject":
        outcome = build(
            config, call, hidden.outcome if hidden else None, recorded=_production(config, asked.tape, call.tool)
        )
        hides = Provenance(by="injected", session_id=hidden.session_id, node_id=hidden.node_id) if hidden else None
        return Inject(outcome=outcome, kind=config.kind, hides=hides)
    if isinstance(config.corrected, ScriptedOutcome):
        return Serve(
            outcome=_scripted(config.corrected),
            provenance=Provenance(by="static", detail="corrected"),
            marks=("corrected",),
        )
    assert hidden is not None
    why = unservable(hidden)
    if why is not None:
        missed = miss.not_served(call, hidden, why, asked.tape.redact, miss.NOTHING_RAN)
        return _missed(missed, call, "error_result")
    return _serve(hidden, asked, loose=(), marks=("corrected",))


def _scripted(outcome: ScriptedOutcome) -> Outcome:
    return Outcome(
        kind=OutcomeKind(outcome.kind),
        value=outcome.value,
        error=error_info(outcome.error) if outcome.error is not None else None,
    )


_STATUSES = {"not_found": range(404, 405), "rate_limit": range(429, 430), "error": range(500, 600)}


def _production(config: InjectConfig, tape: Tape, tool: str) -> str | None:
    """The text of the first recorded failure of the kind, where the config wants one."""
    if config.message != "production":
        return None
    for occurrence in tape.recorded(tool):
        outcome = occurrence.first.outcome
        if outcome is None:
            continue
        if config.kind == "validation_error" and outcome.kind is OutcomeKind.INVALID_ARGS:
            return outcome.value if isinstance(outcome.value, str) else miss.shown(outcome.value, limit=None)
        error = outcome.error
        if error is not None and error.status in _STATUSES.get(config.kind, ()):
            return error.message
    return None


# --- what a policy says in vain -------------------------------------------------------------------------------------


def policy_warnings(
    policy: ToolPolicy, known_tools: Collection[str], schemas: Mapping[str, JSON] | None = None
) -> list[str]:
    """What in a policy can never take effect: tools the agent does not have, cases that no call reaches.

    Args:
        known_tools: the names of the agent's tools.
        schemas: the JSON Schema of a tool's parameters, where known.
    """
    found: list[str] = []
    for tool, config in policy.tools.items():
        if tool not in known_tools:
            found.append(f"/tools/{tool}: the agent has no tool {tool!r}{near_names(tool, known_tools)}")
            continue
        base = base_config(config)
        if isinstance(base, StaticConfig):
            schema = (schemas or {}).get(tool)
            if not base.cases:
                found.append(f"/tools/{tool}/cases: there are none, so every call is a miss ({base.on_miss})")
            found += [f"/tools/{tool}/cases/{i}: {why}" for i, why in _vain_cases(base, schema)]
        if isinstance(base, StaticConfig | HistoryConfig):
            found += _vain_pointers(tool, base.ignore, obj((schemas or {}).get(tool)))
    return found


def near_names(name: str, names: Collection[str]) -> str:
    """A question naming those of ``names`` that ``name`` may be a misspelling of; empty when none is near."""
    near = get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def _vain_cases(config: StaticConfig, schema: JSON) -> Iterator[tuple[int, str]]:
    for index, case in enumerate(config.cases):
        earlier = next((i for i in range(index) if _takes_all(config.cases[i], case)), None)
        if earlier is not None:
            yield index, f"no call reaches this case: case {earlier + 1} answers every call that fits it"
        elif case.match is not None and (why := _contradiction(case, case.match, schema)) is not None:
            yield index, f"no valid call fits this case: {why}"


def _takes_all(earlier: StaticCase, later: StaticCase) -> bool:
    if earlier.occurrence is not None and earlier.occurrence != later.occurrence:
        return False
    if earlier.occurrence is not None and (earlier.match_mode != later.match_mode or earlier.match != later.match):
        return False  # the n-th of some calls need not be the n-th of others
    if earlier.match is None:
        return True
    if later.match is None or (earlier.match_mode == "exact" and later.match_mode == "subset"):
        return False
    return matches(earlier.match, later.match, earlier.match_mode)


def _contradiction(case: StaticCase, match: dict[str, JSON], schema: JSON) -> str | None:
    """Why no arguments that are valid by ``schema`` fit the pattern."""
    declared = obj(schema)
    properties = obj(declared.get("properties"))
    unknown = [n for n in match if n not in properties] if declared.get("additionalProperties") is False else []
    if unknown:
        return f"the tool has no parameter {unknown[0]!r}{near_names(unknown[0], properties)}"
    if case.match_mode == "exact":
        error = first_error(schema, match)
        return None if error is None else f"{error.pointer or '(the arguments)'} {miss.cut(error.message)}"
    for name, value in match.items():
        if is_object(value) or name not in properties:
            continue  # part of an object may be completed to a valid one
        error = first_error({**declared, "properties": {name: properties[name]}, "required": []}, {name: value})
        if error is not None:
            return f"{error.pointer} {miss.cut(error.message)}"
    return None


def _vain_pointers(tool: str, ignore: Sequence[str], schema: Mapping[str, JSON]) -> Iterator[str]:
    properties = obj(schema.get("properties"))
    for pointer in ignore if properties else ():
        name = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
        if name and name != "*" and name not in properties:
            near = near_names(name, properties)
            yield f"/tools/{tool}/ignore: the tool has no parameter {name!r}{near}"
