"""The model's side of the tape: recorded model calls answer equal requests, in recorded order.

Two requests are equal when their model keys are. Parts that the source of a recording did not capture are left out of
its key, so a request is held against each recording with that recording's parts. Among equal recorded calls the first
unclaimed one below the same enclosing tool calls answers, else the first unclaimed one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from playhead.core.canonical import NoKeyError
from playhead.core.keys import KEY_VERSION
from playhead.core.match import equal
from playhead.core.policy import HistoryConfig, RunLive, Serve, Stop
from playhead.core.protocol.parts import parsed_text
from playhead.core.protocol.request import PARTS, comparable, model_key, request_diff, request_key
from playhead.core.protocol.shape import is_object, obj, objects
from playhead.core.recording import enclosing_paths
from playhead.core.tape import Tape
from playhead.core.values import JSON, Node, NodeKind, NoKey, OutcomeKind, Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    """A model request of the replay. ``request`` is plain: the ``inputs`` that its node will have."""

    ref: str
    requested: str | None
    request: JSON
    key: str | None
    no_key: NoKey | None = None
    path: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordedModelCall:
    """A recorded model call and what became of it. ``number`` is 1-based in recorded order."""

    node: Node
    number: int
    path: tuple[str, ...]
    key: str | None
    missing: tuple[str, ...]
    claimed: str | None = None
    covered: bool = False

    @property
    def free(self) -> bool:
        return self.claimed is None and not self.covered


class ModelClaim(NamedTuple):
    """The recorded call that answers a request, or the ``reason`` why none does: no_key, used_up, not_captured,
    never_recorded, other_request."""

    call: RecordedModelCall | None
    reason: str | None = None


class End(NamedTuple):
    """The recording ends where this request would be sent; the replay ends too, as its baseline did."""

    detail: Literal["ended with the recording"] = "ended with the recording"


ModelDecision: TypeAlias = Serve | RunLive | Stop | End


class ModelTape:
    """The recorded model calls of one replay, and which of them are used. Plain data without a lock."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        ordered = sorted(nodes, key=lambda n: n.seq)
        paths = enclosing_paths(ordered)
        models = [n for n in ordered if n.kind is NodeKind.MODEL_CALL]
        self.calls = [_recorded(node, n, paths[node.id]) for n, node in enumerate(models, 1)]
        self._by_key: dict[str, list[RecordedModelCall]] = {}
        self._missing = dict.fromkeys(c.missing for c in self.calls if c.key is not None)
        self._claims: dict[str, ModelClaim] = {}
        for call in self.calls:
            if call.key is not None:
                self._by_key.setdefault(call.key, []).append(call)

    def claim(self, asked: ModelAsked) -> ModelClaim:
        """The recorded call for a request; the same one each time for the same ref. A miss uses up nothing."""
        known = self._claims.get(asked.ref)
        if known is None:
            known = self._claims[asked.ref] = self._find(asked)
            if known.call is not None:
                known.call.claimed = asked.ref
        return known

    def hidden(self, asked: ModelAsked) -> RecordedModelCall | None:
        """The recorded call that would answer a request; nothing is claimed."""
        return self._find(asked).call

    def cover(self, path: tuple[str, ...]) -> list[RecordedModelCall]:
        """Marks the recorded calls below a tool call (its `Recording.child_path`) as covered; gives those newly so."""
        below = [c for c in self.calls if c.free and c.path[: len(path)] == path]
        for call in below:
            call.covered = True
        return below

    def leftovers(self) -> list[RecordedModelCall]:
        """Recorded calls that nothing asked for, in recorded order."""
        return [c for c in self.calls if c.free]

    def expected(self, path: tuple[str, ...]) -> RecordedModelCall | None:
        """The recorded call whose turn it is: the first unclaimed one below ``path``, else the first anywhere."""
        free = self.leftovers()
        return next((c for c in free if c.path == path), free[0] if free else None)

    def _find(self, asked: ModelAsked) -> ModelClaim:
        if asked.key is None:
            return ModelClaim(None, "no_key")
        equals = sorted((c for k in self._keys(asked) for c in self._by_key.get(k, ())), key=lambda c: c.number)
        free = [c for c in equals if c.free]
        if free:
            return ModelClaim(next((c for c in free if c.path == asked.path), free[0]))
        if equals:
            return ModelClaim(None, "used_up")
        if any("messages" in c.missing for c in self.calls if c.free):
            return ModelClaim(None, "not_captured")
        return ModelClaim(None, "other_request" if self.calls else "never_recorded")

    def _keys(self, asked: ModelAsked) -> list[str]:
        keys: list[str] = []
        for missing in self._missing:
            if not missing:
                keys.append(asked.key or "")
                continue
            try:
                keys.append(request_key(asked.requested, asked.request, missing=missing))
            except NoKeyError:
                continue
        return keys


def _recorded(node: Node, number: int, path: tuple[str, ...]) -> RecordedModelCall:
    model = node.model
    missing = tuple(p for p in PARTS if model is not None and p in model.missing)
    key = model.key if model is not None else None
    if "messages" in missing or (model is not None and model.capture == "none"):
        key, missing = None, (*missing, *(() if "messages" in missing else ("messages",)))
    elif key is None or not key.startswith(f"{KEY_VERSION}:"):
        try:
            key = request_key(model.requested if model else None, obj(node.inputs), missing=missing)
        except NoKeyError:
            key = None
    return RecordedModelCall(node=node, number=number, path=path, key=key, missing=missing)


# --- the decision ---------------------------------------------------------------------------------------------------


def decide_model(asked: ModelAsked, models: ModelTape, tape: Tape, *, on_miss: str = "fail") -> ModelDecision:
    """What answers a model request under model history. Claims and answers in one step; again for the same ref.

    ``asked.path`` is in the words of the recording (`Tape.recorded_path`).
    """
    claim = models.claim(asked)
    call = claim.call
    if call is None:
        if ends_here(asked, models, tape):
            return End()
        text = _miss_text(asked, claim, models, on_miss)
        return RunLive(missed=text) if on_miss == "live" else Stop(reason=claim.reason or "other_request", message=text)
    outcome = call.node.outcome
    if outcome is None or outcome.truncated is not None:
        why = "has no response" if outcome is None else "was cut when it was recorded"
        text = f"model call {call.number} of the recording {why}, so it cannot be served\n  {_CONSEQUENCE[on_miss]}"
        reason = "no_outcome" if outcome is None else "truncated"
        return RunLive(missed=text) if on_miss == "live" else Stop(reason=reason, message=text)
    marks = (f"not compared: {', '.join(call.missing)}",) if call.missing else ()
    return Serve(
        outcome=outcome,
        provenance=Provenance(by="served", session_id=call.node.session_id, node_id=call.node.id),
        marks=marks,
    )


_CONSEQUENCE = {"fail": "Nothing was sent.", "live": 'The model is asked ("on_miss": "live").'}


def _miss_text(asked: ModelAsked, claim: ModelClaim, models: ModelTape, on_miss: str) -> str:
    near = models.expected(asked.path)
    first = {
        "no_key": "the model request has no key"
        + (f": {asked.no_key.at} {asked.no_key.reason}" if asked.no_key else ""),
        "used_up": "all recorded responses to this model request are used",
        "never_recorded": "no model call was recorded",
        "not_captured": "request not fully captured: messages",
    }.get(claim.reason or "", "no recorded model call has this request")
    lines = [first]
    if near is not None and "messages" not in near.missing:
        recorded = near.node.model.requested if near.node.model else None
        found = request_diff(
            obj(near.node.inputs), obj(asked.request), models=(recorded, asked.requested), missing=near.missing
        )
        lines.append(f"  closest  model call {near.number} of the recording, unused")
        if found is not None:
            lines.append(f"  differs  {found.where}")
            lines += [f"    {line}" for line in found.diff.splitlines()]
    elif near is None and models.calls:
        lines.append(f"  closest  none: all {len(models.calls)} recorded model calls are used")
    return "\n".join([*lines, f"  {_CONSEQUENCE[on_miss]}"])


# --- where the recording ends ---------------------------------------------------------------------------------------


def ends_here(asked: ModelAsked, models: ModelTape, tape: Tape) -> bool:
    """Whether everything recorded is used and the request is the last recorded one, its response and their results."""
    if not models.calls or models.leftovers() or not tape.exhausted():
        return False
    last = models.calls[-1]
    outcome = last.node.outcome
    if "messages" in last.missing or outcome is None or outcome.kind is not OutcomeKind.VALUE:
        return False
    if not is_object(outcome.value) or asked.path != last.path or not _same_frame(asked, last):
        return False
    before = [*objects(obj(last.node.inputs).get("messages")), outcome.value]
    expected, seen = comparable(before), comparable(objects(obj(asked.request).get("messages")))
    calls = [p for p in objects(outcome.value.get("parts")) if p.get("type") == "tool_call" and "executor" not in p]
    results = seen[len(expected) :]
    return (
        len(results) == len(calls) > 0
        and equal(seen[: len(expected)], expected)
        and all(_is_result(shaped, last, tape) for shaped in results)
    )


def _same_frame(asked: ModelAsked, last: RecordedModelCall) -> bool:
    """Whether model, tools and parameters are those of the last request."""
    requested = last.node.model.requested if last.node.model else None
    return _frame_key(asked.requested, obj(asked.request), last.missing) == _frame_key(
        requested, obj(last.node.inputs), last.missing
    )


def _frame_key(model: str | None, request: dict[str, JSON], missing: tuple[str, ...]) -> str | None:
    try:
        return model_key(
            model, (), request.get("tools"), request.get("tool_choice"), request.get("params"), missing=missing
        )
    except NoKeyError:
        return None


def _is_result(shaped: JSON, last: RecordedModelCall, tape: Tape) -> bool:
    """Whether a message is the recorded result of a call of the last response.

    What history served is the recorded result, however the framework writes it down; other answers are compared.
    """
    part = next(iter(objects(obj(shaped).get("parts"))), None)
    if obj(shaped).get("role") != "tool" or part is None or not isinstance(part.get("name"), str):
        return False
    recorded = [o.attempts[-1] for o in tape.recorded(part["name"]) if o.first.model_call == last.node.id]
    config = tape.policy.config_for(part["name"])
    if isinstance(config, HistoryConfig) and config.scope == "baseline":
        return bool(recorded)
    return any(r.outcome is not None and equal(parsed_text(r.outcome.value), part["content"]) for r in recorded)
