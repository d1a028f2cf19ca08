"""The vectors of the tape and of `decide`, as every implementation runs them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playhead.core.canonical import NoKeyError, parse_json
from playhead.core.claim import Announced, Claim
from playhead.core.decide import decide
from playhead.core.keys import call_key
from playhead.core.match import equal
from playhead.core.policy import CallView, Decision, ErrorResult, Generate, Inject, RunLive, Serve, Stop, ToolPolicy
from playhead.core.policy_json import parse_policy
from playhead.core.tape import Tape
from playhead.core.values import (
    ErrorInfo,
    Mark,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Outcome,
    OutcomeKind,
    ToolCall,
    Truncated,
    path_step,
)

VECTORS = parse_json((Path(__file__).parents[2] / "spec" / "vectors" / "decide.json").read_bytes())


def keyed(tool: str, arguments: Any) -> tuple[str | None, NoKey | None]:
    try:
        return call_key(tool, arguments), None
    except NoKeyError as error:
        return None, error.no_key


def outcome(given: dict[str, Any] | None) -> Outcome | None:
    if given is None:
        return None
    error = ErrorInfo(**given["error"]) if "error" in given else None
    cut = Truncated(**given["truncated"]) if "truncated" in given else None
    return Outcome(kind=OutcomeKind(given["kind"]), value=given.get("value"), error=error, truncated=cut)


def nodes(recorded: list[dict[str, Any]]) -> list[Node]:
    made: dict[str, Node] = {}
    for seq, one in enumerate(recorded, 1):
        kind = NodeKind.MODEL_CALL if one.get("model_call") else NodeKind.TOOL_CALL
        call = None
        if kind is NodeKind.TOOL_CALL:
            key, no_key = keyed(one["tool"], one["arguments"])
            outer = made.get(one.get("inside", ""))
            path = ()
            if outer is not None:
                assert outer.call is not None
                path = (*outer.call.path, path_step(outer.call.tool, outer.call.key, outer.call.occurrence))
            call = ToolCall(
                tool=one["tool"],
                arguments=one["arguments"],
                key=key,
                no_key=no_key,
                path=path,
                call_id=one.get("call_id"),
                model_call=one.get("asked_by"),
                index=one.get("index"),
                occurrence=one.get("occurrence", 1),
                attempt=one.get("attempt", 1),
                mark=Mark(one.get("mark", "native")),
                overlapped=one.get("overlapped", False),
                source=one.get("source", "seam"),
            )
        made[one["id"]] = Node(
            id=one["id"],
            session_id="baseline",
            seq=seq,
            kind=kind,
            name=one.get("tool", "model"),
            started_at=one.get("started", seq),
            ended_at=one.get("ended"),
            status=NodeStatus(one.get("status", "completed")),
            parent_id=one.get("inside"),
            outcome=outcome(one.get("outcome")),
            call=call,
        )
    return list(made.values())


@dataclass
class Player:
    """Plays the script of one vector."""

    policy: ToolPolicy
    tape: Tape
    views: dict[str, CallView] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    def path(self, step: dict[str, Any]) -> tuple[str, ...]:
        return tuple(self.claims[ref].step for ref in step.get("inside", ()))

    def view(self, step: dict[str, Any]) -> CallView:
        key, no_key = keyed(step["tool"], step["arguments"])
        return CallView(
            ref=step["ref"],
            tool=step["tool"],
            arguments=step["arguments"],
            key=key,
            no_key=no_key,
            path=self.path(step),
            output_schema=step.get("output_schema"),
            parameters=step.get("parameters"),
        )

    def announce(self, step: dict[str, Any]) -> None:
        calls = [
            Announced(
                call_id=call["call_id"],
                tool=call["tool"],
                arguments=call["arguments"],
                key=keyed(call["tool"], call["arguments"])[0],
                no_key=keyed(call["tool"], call["arguments"])[1],
            )
            for call in step["calls"]
        ]
        for claim in self.tape.announce(step["model_call"], calls, path=self.path(step)):
            self.claims[claim.ref.removesuffix("#1")] = claim

    def call(self, step: dict[str, Any]) -> None:
        view = self.view(step)
        self.claims.setdefault(step["ref"], self.tape.claim(view))
        self.decide(step)

    def decide(self, step: dict[str, Any]) -> None:
        view = self.view(step)
        decision = decide(self.policy, view, self.tape)
        assert decision == decide(self.policy, view, self.tape)
        compare(decision, step["expect"])

    def cover(self, step: dict[str, Any]) -> None:
        assert [r.node_id for r in self.tape.cover(step["ref"])] == step["expect"]

    def reject(self, step: dict[str, Any]) -> None:
        rejection = self.tape.reject(step["ref"], outcome(step.get("outcome")))
        assert rejection.recording is not None
        assert {"same": rejection.same, "from": rejection.recording.node_id} == step["expect"]


def compare(decision: Decision, expected: dict[str, Any]) -> None:
    match decision:
        case Serve():
            seen: dict[str, Any] = {
                "decision": "serve",
                "by": decision.provenance.by,
                "from": decision.provenance.node_id,
                "detail": decision.provenance.detail,
                "loose": list(decision.provenance.loose),
                "marks": list(decision.marks),
                "delay_ms": decision.delay_ms,
            }
            same_outcome(decision.outcome, expected)
        case Inject():
            hides = decision.hides.node_id if decision.hides else None
            seen = {"decision": "inject", "kind": decision.kind, "hides": hides}
            same_outcome(decision.outcome, expected)
        case Stop():
            seen = {"decision": "stop", "reason": decision.reason}
            mentions(decision.message, expected)
            if "closest" in expected:
                seen["closest"] = [c["node_id"] for c in decision.closest]
        case ErrorResult():
            seen = {"decision": "error_result", "reason": decision.reason}
            mentions(decision.missed, expected)
        case RunLive():
            seen = {"decision": "run_live", "missed": decision.missed is not None}
            mentions(decision.missed or "", expected)
        case Generate():
            seen = {"decision": "generate", "instructions": decision.config.instructions}
    for name, value in expected.items():
        if name not in ("outcome", "outcome_mentions", "mentions", "without"):
            assert seen.get(name) == value, name


def mentions(text: str, expected: dict[str, Any]) -> None:
    for words in expected.get("mentions", ()):
        assert words in text
    for words in expected.get("without", ()):
        assert words not in text


def same_outcome(seen: Outcome, expected: dict[str, Any]) -> None:
    for words in expected.get("outcome_mentions", ()):
        assert words in seen.value
    if "outcome" not in expected:
        return
    wanted = outcome(expected["outcome"])
    assert wanted is not None
    assert seen.kind is wanted.kind
    assert equal(seen.value, wanted.value)
    if wanted.error is not None:
        assert seen.error is not None
        for name in expected["outcome"]["error"]:
            assert getattr(seen.error, name) == getattr(wanted.error, name), name


@pytest.mark.parametrize("vector", VECTORS["cases"], ids=lambda v: v["name"])
def test_decisions_are_as_the_vector_says(vector: dict[str, Any]) -> None:
    policy = parse_policy(vector["policy"])
    tape = Tape.build(nodes(vector["recorded"]), policy)
    for tool, recorded in vector.get("wide", {}).items():
        tape.add_wide(tool, nodes(recorded))
    player = Player(policy, tape)
    for step in vector["script"]:
        getattr(player, step["do"])(step)
    if "leftovers" in vector:
        assert [r.node_id for r in tape.leftovers()] == vector["leftovers"]


def test_there_are_enough_vectors_and_no_name_twice() -> None:
    names = [v["name"] for v in VECTORS["cases"]]
    assert len(names) == len(set(names))
    assert len(names) >= 60
