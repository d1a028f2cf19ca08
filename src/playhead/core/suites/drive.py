"""How a trial goes, as a dialogue: a driver yields what a model is to be asked, is sent what it said, and ends.

Whoever runs a driver does the I/O, in its own way (`engine.suites.run`, or `drive` with any function).

- `turn`: the model is asked once at the turn of the case. Where the outcome is judged by facts, the recorded rounds are
  spliced in whatever it just did, and it is asked for the final answer. So the outcome never depends on the selection.
- `loop`: the model's own calls are answered by the case's tape (and by injections that lie over it) until it answers
  with a text, or a bound is reached.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from playhead.core.argument_schema import argument_errors
from playhead.core.claim import Announced
from playhead.core.decide import decide
from playhead.core.effects import Effects, ToolEffect, retry_safe
from playhead.core.evaluation import as_text
from playhead.core.guards import Guards, again, correction, fault, told
from playhead.core.injection import Surroundings
from playhead.core.policy import CallView, ErrorResult, HistoryConfig, Inject, Serve, Stop, ToolPolicy
from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message as Normal
from playhead.core.suites.messages import (
    call_node,
    case_nodes,
    history,
    made_call,
    recorded_rounds,
    result_part,
)
from playhead.core.suites.scoring import Answer, Attempt, Emitted, needs_final
from playhead.core.suites.suite import Call, Case, Tools, ToolSchema, offered
from playhead.core.tape import Tape
from playhead.core.values import JSON, LedgerRow, Node, NodeKind, Outcome, OutcomeKind, Provenance, Usage

Ended: TypeAlias = Literal["answer", "turns", "stopped"]
LEAST_TURNS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsk:
    """One request. ``messages`` and the response are in normal form; ``step`` counts from 0 inside the trial."""

    messages: Sequence[Normal]
    tools: Sequence[ToolSchema] = ()
    params: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    tool_choice: str = "auto"
    step: int = 0
    purpose: Literal["turn", "outcome", "loop"] = "turn"
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaid:
    """One response: the assistant message, and what is known of the request. ``raw`` is the provider's own object."""

    message: Normal
    usage: Usage | None = None
    cost: str | None = None  # decimal text, USD
    latency_ms: float | None = None
    served: str | None = None
    raw: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What a trial came to.

    Attributes:
        said: the responses, in order.
        asked: the requests that they answer.
        final: the final text; None where there is none.
        nodes: model and tool calls in order, as a session would hold them; tool calls carry who answered them.
        ended: by an answer, by the bound on turns, or by a stop of the policy.
        ledger: what answered each call, and which recorded outcome an injection hid.
    """

    said: tuple[ModelSaid, ...]
    asked: tuple[ModelAsk, ...]
    final: str | None = None
    nodes: tuple[Node, ...] = ()
    ended: Ended = "answer"
    ledger: tuple[LedgerRow, ...] = ()
    stopped: str | None = None

    @property
    def attempt(self) -> Attempt:
        """What scoring needs: the outcome answer of driver `turn` is the final one, not a turn of its own."""
        turns = [s for a, s in zip(self.asked, self.said, strict=True) if a.purpose != "outcome"]
        return Attempt(answers=tuple(answer_of(one.message) for one in turns), final=self.final)


Drive: TypeAlias = Generator[ModelAsk, ModelSaid, Trace]


def answer_of(message: Normal) -> Answer:
    calls = [Emitted(tool=p["name"], arguments=p["arguments"], id=p["id"]) for p in parts.calls_of(message)]
    return Answer(text=parts.text_of(message), calls=tuple(calls))


def drive(driver: Drive, ask: Callable[[ModelAsk], ModelSaid]) -> Trace:
    """Runs a driver with a function that asks the model."""
    try:
        request = next(driver)
        while True:
            request = driver.send(ask(request))
    except StopIteration as end:
        return end.value


def turn(case: Case, tools: Tools) -> Drive:
    """Driver `turn`."""
    first = ModelAsk(messages=history(case), tools=_offered(case, tools), params=case.model_params)
    said = yield first
    if not needs_final(case):
        final = parts.text_of(said.message) or None
        return Trace(said=(said,), asked=(first,), final=final if not parts.calls_of(said.message) else None)
    spliced = [*first.messages, *recorded_rounds(case)]
    last = replace(first, messages=spliced, step=1, purpose="outcome")
    answer = yield last
    called = parts.calls_of(answer.message)
    final = None if called else parts.text_of(answer.message)
    return Trace(said=(said, answer), asked=(first, last), final=final)


def _offered(case: Case, tools: Tools) -> tuple[ToolSchema, ...]:
    return tuple(offered(case, tools).values())


# --- loop -----------------------------------------------------------------------------------------------------------


def default_policy() -> ToolPolicy:
    """The case's recorded results; anything else is an error that the agent gets."""
    return ToolPolicy(default=HistoryConfig(on_miss="error_result"))


def bound(case: Case, at_least: int = LEAST_TURNS) -> int:
    """The turns after which a loop ends: three times the recorded ones, at least 12."""
    return max(at_least, 3 * (len(case.recorded) + 1))


def loop(
    case: Case,
    tools: Tools,
    *,
    policy: ToolPolicy | None = None,
    effects: Effects | None = None,
    lead: Sequence[Normal] = (),
    extra_tools: Sequence[ToolSchema] = (),
    given: Mapping[str, Outcome] | None = None,
    max_turns: int | None = None,
    guards: Guards | None = None,
) -> Drive:
    """Driver `loop`.

    Args:
        policy: what answers calls, injections included; the case's recorded results, else an error, when left out.
        lead: messages after the history that the model finds there (a call that was rejected).
        extra_tools: tools offered beside the case's own.
        given: by call key, what those calls get whatever else holds (the rejection of a call in ``lead``).
        max_turns: answers of the model, at most; `bound` when left out.
        guards: what is checked of results before the model gets them; nothing when left out.
    """
    going = _Loop(case, [*_offered(case, tools), *extra_tools], policy or default_policy(), effects or {}, lead)
    going.given, going.guards = given or {}, guards or {}
    return going.run(bound(case) if max_turns is None else max_turns)


class _Loop:
    def __init__(
        self, case: Case, tools: Sequence[ToolSchema], policy: ToolPolicy, effects: Effects, lead: Sequence[Normal]
    ) -> None:
        self.case, self.policy, self.effects = case, policy, effects
        self.guards: Guards = {}
        self.tools = {tool.name: tool for tool in tools}
        self.messages: list[Normal] = [*history(case), *lead]
        self.tape = Tape.build(
            case_nodes(case), policy, surroundings=Surroundings(occurs=self._occurs, retry_safe=self._retry_safe)
        )
        self.nodes: list[Node] = []
        self.ledger: list[LedgerRow] = []
        self.given: Mapping[str, Outcome] = {}
        self.asked: list[ModelAsk] = []
        self.said: list[ModelSaid] = []

    def run(self, most: int) -> Drive:
        for step in range(most):
            ask = ModelAsk(
                messages=list(self.messages), tools=tuple(self.tools.values()), params=self.case.model_params,
                step=step, purpose="loop",
            )  # fmt: skip
            said = yield ask
            self.asked.append(ask)
            self.said.append(said)
            self._keep(said.message)
            calls = parts.calls_of(said.message)
            if not calls:
                return self._trace("answer", final=parts.text_of(said.message))
            stop = self._answer(calls)
            if stop is not None:
                return self._trace("stopped", stopped=stop)
        return self._trace("turns")

    def _trace(self, ended: Ended, *, final: str | None = None, stopped: str | None = None) -> Trace:
        return Trace(
            said=tuple(self.said), asked=tuple(self.asked), final=final, nodes=tuple(self.nodes), ended=ended,
            ledger=tuple(self.ledger), stopped=stopped,
        )  # fmt: skip

    def _keep(self, message: Normal) -> None:
        self.messages.append(message)
        self.nodes.append(
            Node(
                id=f"{self.case.id}/trial/m{len(self.said)}",
                session_id=f"{self.case.id}/trial",
                seq=len(self.nodes) + 1,
                kind=NodeKind.MODEL_CALL,
                name="model call",
                started_at=len(self.nodes) + 1,
                outcome=Outcome(kind=OutcomeKind.VALUE, value=message),
            )
        )

    def _answer(self, asked: Sequence[parts.Part]) -> str | None:
        """Answers the calls of one response; gives the text of a stop."""
        model_call = f"m{len(self.said)}"
        calls = [made_call(f"t{len(self.said)}.{n}", part) for n, part in enumerate(asked, 1)]
        claims = self.tape.announce(model_call, [self._announced(call) for call in calls])
        results: list[Normal] = []
        for index, (call, part, claim) in enumerate(zip(calls, asked, claims, strict=True)):
            found = self._decided(self._view(call, claim.ref))
            if isinstance(found, str):
                return found
            outcome = self._guarded(call, found[0], found[1], model_call, index)
            results.append(parts.message("tool", [result_part(part["id"], call.tool, outcome)]))
        self.messages += results
        return None

    def _guarded(self, call: Call, outcome: Outcome, provenance: Provenance, model_call: str, index: int) -> Outcome:
        """What the model gets of an outcome, which is kept as a node. A call that a guard makes again is another one;
        where the recording holds no second occurrence, it helped nothing."""
        guard = self.guards.get(call.tool)
        wrong = fault(guard, outcome.value) if guard is not None and outcome.kind is OutcomeKind.VALUE else None
        if guard is None or wrong is None:
            self._keep_call(call, outcome, provenance, model_call, index)
            return outcome
        safe = self._retry_safe(call.tool, call.emitted)
        retry = again(guard, safe=safe)
        second = self._once_more(call, model_call, index) if retry else None
        if second is not None and fault(guard, second[1].value) is None:
            kept = told(wrong, action="retry", attempts=2, withheld=outcome.value)
            self._keep_call(call, outcome, provenance, model_call, index, guard=kept)
            self._keep_call(*second, model_call, index)
            return second[1]
        instead = correction(call.tool, guard, wrong, safe=safe, retried=retry)
        kept = told(wrong, action="message", attempts=1 + retry, withheld=outcome.value)
        self._keep_call(call, instead, provenance, model_call, index, guard=kept)
        return instead

    def _once_more(self, call: Call, model_call: str, index: int) -> tuple[Call, Outcome, Provenance] | None:
        """The same call as the runtime makes it, and what answers it; None where that is no value."""
        same = call.model_copy(update={"id": f"{call.id}+"})
        (claim,) = self.tape.announce(f"{model_call}+{index}", [self._announced(same)])
        found = self._decided(self._view(same, claim.ref))
        if isinstance(found, str) or found[0].kind is not OutcomeKind.VALUE:
            return None
        return same, found[0], found[1]

    def _keep_call(
        self, call: Call, outcome: Outcome, provenance: Provenance, model_call: str, index: int, *,
        guard: dict[str, JSON] | None = None,
    ) -> None:  # fmt: skip
        node = call_node(
            f"{self.case.id}/trial", len(self.nodes) + 1, call, outcome,
            asked=f"{self.case.id}/trial/{model_call}", index=index, provenance=provenance,
            effect=(self.effects.get(call.tool) or ToolEffect()).kind,
        )  # fmt: skip
        self.nodes.append(node if guard is None else replace(node, attributes={"guard": guard}))
        self._note(node, provenance, () if guard is None else ("guarded",))

    def _announced(self, call: Call) -> Announced:
        node = call_node("trial", 0, call, None)
        assert node.call is not None
        schema = self.tools[call.tool].parameters if call.tool in self.tools else None
        return Announced(
            call_id=call.id, tool=call.tool, arguments=call.emitted, key=node.call.key, no_key=node.call.no_key,
            parameters=schema,
        )  # fmt: skip

    def _view(self, call: Call, ref: str) -> CallView:
        one = self._announced(call)
        return CallView(
            ref=ref, tool=one.tool, arguments=one.arguments, key=one.key, no_key=one.no_key, parameters=one.parameters
        )

    def _decided(self, view: CallView) -> tuple[Outcome, Provenance] | str:
        tool = self.tools.get(view.tool)
        if tool is None:
            text = f"There is no tool {view.tool!r}. Tools: {', '.join(self.tools)}."
            return Outcome(kind=OutcomeKind.INVALID_ARGS, value=text), Provenance(by="rejected")
        if view.key is not None and view.key in self.given:
            return self.given[view.key], Provenance(by="injected", detail="fuzz")
        decision = decide(self.policy, view, self.tape)
        if isinstance(decision, Serve):
            return decision.outcome, decision.provenance
        if isinstance(decision, Inject):
            hides = decision.hides
            return decision.outcome, Provenance(
                by="injected", detail=decision.kind,
                session_id=hides.session_id if hides else None, node_id=hides.node_id if hides else None,
            )  # fmt: skip
        if isinstance(decision, Stop):
            return decision.message
        invalid = argument_errors(tool.parameters, view.arguments)
        if invalid:
            text = "; ".join(f"{e.pointer or 'the arguments'}: {e.message}" for e in invalid[:3])
            outcome = Outcome(kind=OutcomeKind.INVALID_ARGS, value=f"Invalid arguments for {view.tool}: {text}")
            return outcome, Provenance(by="rejected")
        return self._missed(view, decision)

    def _missed(self, view: CallView, decision: Any) -> tuple[Outcome, Provenance]:
        declared = self.effects.get(view.tool)
        if declared is not None and declared.approval:
            text = f"{view.tool} was not run: a person has to approve it first."
        elif isinstance(decision, ErrorResult):
            text = decision.message
        else:
            text = f"{view.tool} failed: no live tool is run in a trial"
        return Outcome(kind=OutcomeKind.RESULT_ERROR, value=text), Provenance(by="missed")

    def _note(self, node: Node, provenance: Provenance, marks: tuple[str, ...]) -> None:
        assert node.call is not None
        by: Any = provenance.by
        self.ledger.append(
            LedgerRow(
                kind="tool", by=by, tool=node.call.tool, arguments=node.call.arguments, key=node.call.key,
                node_id=node.id, from_session=provenance.session_id, from_node=provenance.node_id,
                marks=(*provenance.loose, *marks), detail=provenance.detail,
            )
        )  # fmt: skip

    def _occurs(self, value: JSON) -> bool:
        """Whether a value stands in the conversation so far, before the response that is being answered."""
        if value is None or value == "":
            return False
        text = as_text(value)
        said = self.messages[:-1] if self.messages and self.messages[-1]["role"] == "assistant" else self.messages
        return any(_holds(message, text) for message in said)

    def _retry_safe(self, tool: str, arguments: JSON) -> bool:
        return retry_safe(self.effects.get(tool) or ToolEffect(), arguments)


def _holds(message: Normal, text: str) -> bool:
    shown = [as_text(p.get("text") or p.get("content") or p.get("arguments") or "") for p in message["parts"]]
    return any(text in one for one in shown)
