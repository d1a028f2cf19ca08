"""A recorded session as cases: one for each answer of the model, with what the recording says should happen there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from playhead.core.effects import Effects, effect_of
from playhead.core.evaluation import failed, tool_calls
from playhead.core.loops import token
from playhead.core.protocol.parts import Message as Normal
from playhead.core.protocol.parts import calls_of, text_of
from playhead.core.protocol.shape import is_object, obj, objects
from playhead.core.recording import enclosing_paths
from playhead.core.suites.contents import Skipped
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.labels import label_json, recorded_label
from playhead.core.suites.messages import Answers, Numbered, from_messages, outcome_json, shown_outcome
from playhead.core.suites.suite import Case, Round, Source, ToolSchema, add_tool, slice_of
from playhead.core.values import JSON, SERVED_MARKS, Node, NodeKind, OutcomeKind, Session, Verdict

WINDOW = 3
"""Calls after a failed one among which its correction is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """How sessions become cases.

    Attributes:
        tools: schemas to use where a recording shows none.
        effects: what is declared of the tools.
        intent: of every session; what each names itself when None.
        confirming: names of the verdicts that confirm a session; all but fidelity when None.
    """

    tools: Sequence[ToolSchema] = ()
    effects: Effects = field(default_factory=dict[str, Any])
    intent: str | None = None
    confirming: frozenset[str] | None = None


@dataclass(slots=True, kw_only=True)
class Captured:
    """What sessions gave. ``mining`` counts failed calls by what became of them."""

    cases: list[Case] = field(default_factory=list[Case])
    tools: dict[str, ToolSchema] = field(default_factory=dict[str, ToolSchema])
    labels: list[LabelEntry] = field(default_factory=list[LabelEntry])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    mining: dict[str, int] = field(default_factory=dict[str, int])
    confirmed: list[str] = field(default_factory=list[str])


def intent_of(session: Session) -> str:
    """The intent that a session names in its metadata or a tag ``intent:...``; ``all`` where it names none."""
    named = session.metadata.get("intent")
    if isinstance(named, str) and named:
        return named
    return next((tag.removeprefix("intent:") for tag in session.tags if tag.startswith("intent:")), "all")


def confirmed_by(verdicts: Sequence[Verdict], names: frozenset[str] | None = None) -> str | None:
    """What confirms that a session went well: verdicts that pass, and none that fails."""
    counted = [v for v in verdicts if (v.name in names if names is not None else v.name != "fidelity")]
    if any(v.passed is False for v in counted):
        return None
    return next((f"{v.evaluator or 'verdict'}:{v.name}" for v in counted if v.passed), None)


def capture(
    into: Captured,
    session: Session,
    nodes: Sequence[Node],
    verdicts: Sequence[Verdict] = (),
    options: CaptureOptions | None = None,
) -> None:
    """Adds the cases and labels of one session."""
    options = options or CaptureOptions()
    reading = _Reading(session, nodes, options)
    confirmed = confirmed_by(verdicts, options.confirming)
    if confirmed:
        into.confirmed.append(session.id)
    ids: dict[str, str] = {}
    for turn in reading.turns:
        id = f"{reading.name}:{turn.place + 1}"
        made = reading.case(id, turn, into.tools)
        if isinstance(made, Skipped):
            into.skipped.append(made)
            continue
        into.cases.append(made)
        ids[turn.node.id] = id
        if confirmed and (label := reading.weak(turn)) is not None:
            entry = LabelEntry(case=id, state="weak", label=label, who="playhead", confirmed_by=confirmed)
            into.labels.append(replace(entry, at=made.source.captured_at))
    for mined in reading.mine():
        into.mining[mined.why] = into.mining.get(mined.why, 0) + 1
        if mined.label is not None and mined.turn is not None and mined.turn.id in ids:
            into.labels.append(
                LabelEntry(
                    case=ids[mined.turn.id], state="mined", label=mined.label, who="playhead",
                    confirmed_by=confirmed, chain=mined.chain,
                    reason=None if confirmed else "the session is not confirmed",
                )
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One answer of the model."""

    place: int
    node: Node
    messages: list[Normal]
    said: Normal

    @property
    def calls(self) -> list[dict[str, Any]]:
        return calls_of(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """A failed call, and what became of it. ``turn`` is the model call whose turn the correction is the label of."""

    failed: Node
    why: str
    turn: Node | None = None
    label: JSON = None
    chain: str | None = None


class _Reading:
    """One session, read once."""

    def __init__(self, session: Session, nodes: Sequence[Node], options: CaptureOptions) -> None:
        self.session, self.options = session, options
        self.name = (session.imported.external_id if session.imported else "") or session.id
        self.calls = tool_calls(nodes)
        ordered = sorted(nodes, key=lambda n: n.seq)
        paths = enclosing_paths(ordered)
        self.models = [n for n in ordered if n.kind is NodeKind.MODEL_CALL and not paths[n.id]]
        self._asked: dict[str, list[Node]] = {}
        for node in self.calls:
            if node.call is not None and node.call.model_call is not None:
                self._asked.setdefault(node.call.model_call, []).append(node)
        self.turns = [t for place, node in enumerate(self.models) if (t := _turn(place, node)) is not None]

    def bookkeeping(self, tool: str) -> bool:
        declared = self.options.effects.get(tool)
        return declared is not None and declared.bookkeeping

    def case(self, id: str, turn: _Turn, tools: dict[str, ToolSchema]) -> Case | Skipped:
        why = self._refused(turn)
        if why is not None:
            return Skipped(what=id, why=why)
        offered = self._tools(turn)
        if not offered:
            return Skipped(what=id, why="no tool schemas were captured")
        history, numbered = from_messages(turn.messages, Answers(self.calls))
        rounds, answer = self._rounds(turn, numbered)
        bad = next((r for r in rounds if isinstance(r, str)), None)
        if bad is not None:
            return Skipped(what=id, why=bad)
        inputs = obj(turn.node.inputs)
        started = self.session.started_at
        return Case(
            id=id,
            intent=self.options.intent or intent_of(self.session),
            slice=slice_of(self.session.id),
            source=Source(
                session=self.session.id,
                node=turn.node.id,
                captured_at=_iso(turn.node.started_at or started),
                agent_version=self.session.agent_version,
                agent=self.session.agent,
                external_id=self.session.imported.external_id if self.session.imported else None,
                task=self.session.metadata.get("task_id"),
            ),
            history=history,
            tools=tuple(dict.fromkeys(add_tool(tools, tool) for tool in offered)),
            tool_choice=inputs.get("tool_choice") or "auto",
            model_params=dict(obj(inputs.get("params"))),
            recorded=tuple(r for r in rounds if not isinstance(r, str)),
            answer=answer,
        )

    def _refused(self, turn: _Turn) -> str | None:
        model = turn.node.model
        if model is not None and (model.capture == "none" or "messages" in model.missing):
            return "the request was not captured"
        if self.session.not_replayable:
            return f"not replayable: {self.session.not_replayable[0]}"
        if not turn.messages:
            return "the request has no messages"
        return None

    def _tools(self, turn: _Turn) -> list[ToolSchema]:
        listed = objects(obj(turn.node.inputs).get("tools"))
        made = [
            ToolSchema(
                name=str(t["name"]),
                description=str(t.get("description") or ""),
                parameters=t.get("parameters") or {"type": "object", "properties": {}},
                strict=bool(t.get("strict")),
            )
            for t in listed
            if "name" in t
        ]
        return made or list(self.options.tools)

    def _rounds(self, turn: _Turn, numbered: Numbered) -> tuple[list[Round | str], str | None]:
        """The rounds of calls from a turn to the answer that ends them; a text names why one cannot be used."""
        rounds: list[Round | str] = []
        current: _Turn | None = turn
        while current is not None:
            if not current.calls:
                return rounds, text_of(current.said)
            following = next((t for t in self.turns if t.place > current.place), None)
            if following is not None and len(following.messages) <= len(current.messages):
                following = None  # another conversation
            rounds.append(self._round(current, following, numbered))
            current = following
        return rounds, None

    def _round(self, turn: _Turn, following: _Turn | None, numbered: Numbered) -> Round | str:
        asked = list(self._asked.get(turn.node.id, ()))
        seen = _results(following.messages[len(turn.messages) :]) if following is not None else {}
        made = Round(calls=tuple(numbered.call(part) for part in turn.calls), text=text_of(turn.said) or None)
        outcomes: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for index, (call, part) in enumerate(zip(made.calls, turn.calls, strict=True)):
            node = next((n for n in asked if n.call is not None and n.call.index == index), None)
            if node is None or node.outcome is None:
                continue
            assert node.call is not None
            if node.outcome.truncated is not None:
                return f"the result of {node.name} was cut when it was recorded"
            if node.call.mark not in SERVED_MARKS:
                return f"the result of a call has the mark {node.call.mark.value}"
            outcomes[call.id] = outcome_json(node.outcome)
            view = seen.get(str(part["id"]))
            if view is not None and view["content"] != shown_outcome(node.outcome):
                shown[call.id] = view["content"]
        return made.model_copy(update={"outcomes": outcomes, "shown": shown})

    # --- labels ---

    def weak(self, turn: _Turn) -> JSON:
        """What a confirmed session did at a turn, as a label; None where it is none: failed or bookkeeping calls."""
        if not turn.calls:
            return label_json(recorded_label(())) if text_of(turn.said).strip() else None
        counted = [part for part in turn.calls if not self.bookkeeping(part["name"])]
        nodes = [n for n in self._asked.get(turn.node.id, ()) if not self.bookkeeping(n.name)]
        good = [n for n in nodes if n.outcome is not None and n.outcome.kind is OutcomeKind.VALUE and not failed(n)]
        if not counted or len(good) < len(counted):
            return None
        return label_json(recorded_label([(p["name"], p["arguments"]) for p in counted]))

    def mine(self) -> list[Mined]:
        """Every failed call, and the correction where one followed."""
        calls = [n for n in self.calls if not self.bookkeeping(n.name)]
        return [self._mined(calls, place) for place, node in enumerate(calls) if failed(node)]

    def _mined(self, calls: Sequence[Node], place: int) -> Mined:
        bad = calls[place]
        window = calls[place + 1 : place + 1 + WINDOW]
        good = next(
            (n for n in window if n.name == bad.name and token(n) != token(bad) and n.outcome and not failed(n)), None
        )
        if good is None or good.call is None:
            again = any(token(n) == token(bad) and failed(n) for n in window)
            return Mined(failed=bad, why="failed again" if again else "never corrected" if window else "last call")
        turn = next((m for m in self.models if m.seq > bad.seq), None)
        label = label_json(recorded_label([(good.call.tool, good.call.arguments)]))
        return Mined(failed=bad, why="corrected", turn=turn, label=label, chain=good.id)


def _turn(place: int, node: Node) -> _Turn | None:
    said = node.outcome.value if node.outcome is not None and node.outcome.kind is OutcomeKind.VALUE else None
    if not is_object(said) or "parts" not in said:
        return None
    return _Turn(place=place, node=node, messages=list(obj(node.inputs).get("messages") or ()), said=said)


def _results(messages: Sequence[Normal]) -> dict[str, dict[str, Any]]:
    return {str(p["id"]): p for m in messages for p in m["parts"] if p["type"] == "tool_result"}


def _iso(ns: int) -> str | None:
    if not ns:
        return None
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def declared_effects(nodes: Sequence[Node], known: Mapping[str, Any]) -> dict[str, Any]:
    """What recordings say of the tools' effects, beside what is declared already."""
    found: dict[str, Any] = dict(known)
    for node in nodes:
        if node.call is not None and node.call.tool not in found and node.call.effect.value != "unknown":
            found[node.call.tool] = effect_of(node, {})
    return found
