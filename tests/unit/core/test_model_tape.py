"""Model history: recorded model calls answer equal requests."""

from dataclasses import replace
from typing import Any

import pytest
from recorded_calls import Replayed, call

from playhead.core.model_tape import End, ModelAsked, ModelTape, decide_model
from playhead.core.policy import PassthroughConfig, RunLive, Serve, StaticCase, StaticConfig, Stop, ToolPolicy
from playhead.core.protocol.request import request_key
from playhead.core.tape import Tape
from playhead.core.values import ErrorInfo, ModelCall, Node, NodeKind, NoKey, Outcome, OutcomeKind, Truncated


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "text": text}]}


def calls(*ids: str, tool: str = "f") -> dict[str, Any]:
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": i, "name": tool, "arguments": {"n": n}} for n, i in enumerate(ids)],
    }


def result(call_id: str, content: Any, tool: str = "f") -> dict[str, Any]:
    part = {"type": "tool_result", "id": call_id, "name": tool, "content": content}
    return {"role": "tool", "parts": [part]}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), "tools": [], "tool_choice": None, "params": {}, **more}


def model(
    seq: int, inputs: Any, message: Any = None, *, outcome: Outcome | None = None, key: str | None = "make", **more: Any
) -> Node:
    parent = more.pop("parent_id", None)
    name = more.pop("requested", "gpt")
    missing = more.get("missing", ())
    made = request_key(name, inputs, missing=missing) if key == "make" else key
    return Node(
        id=f"m{seq}",
        session_id="baseline",
        seq=seq,
        kind=NodeKind.MODEL_CALL,
        name="gpt",
        started_at=seq,
        parent_id=parent,
        inputs=inputs,
        outcome=outcome or Outcome(kind=OutcomeKind.VALUE, value=message),
        model=ModelCall(requested=name, key=made, **more),
    )


class Models:
    def __init__(self, nodes: list[Node], policy: ToolPolicy | None = None, on_miss: str = "fail") -> None:
        self.models = ModelTape(nodes)
        self.tape = Tape.build(nodes, policy)
        self.on_miss = on_miss
        self._number = 0

    def ask(self, inputs: Any, requested: str = "gpt", **more: Any) -> Any:
        self._number += 1
        given = more if "key" in more else {"key": request_key(requested, inputs), **more}
        asked = ModelAsked(ref=f"r{self._number}", requested=requested, request=inputs, **given)
        decision = decide_model(asked, self.models, self.tape, on_miss=self.on_miss)
        assert decide_model(asked, self.models, self.tape, on_miss=self.on_miss) == decision
        return decision


def said(decision: Any) -> str:
    assert isinstance(decision, Serve), decision
    return decision.outcome.value["parts"][0]["text"]


def test_equal_requests_are_answered_in_recorded_order() -> None:
    hi = request(user("hi"))
    asked = Models([model(1, hi, says("one")), model(2, hi, says("two")), model(3, request(user("x")), says("three"))])
    assert said(asked.ask(hi)) == "one"
    assert said(asked.ask(request(user("x")))) == "three"
    second = asked.ask(hi)
    assert said(second) == "two"
    assert second.provenance.node_id == "m2"
    stop = asked.ask(hi)
    assert isinstance(stop, Stop)
    assert stop.reason == "used_up"
    assert "all recorded responses to this model request are used" in stop.message


def test_a_request_that_differs_shows_the_first_message_as_a_diff() -> None:
    asked = Models([model(1, request(user("hi"), says("yes"), user("refund order 4821")), says("ok"))])
    stop = asked.ask(request(user("hi"), says("yes"), user("refund order 9")))
    assert isinstance(stop, Stop)
    assert stop.reason == "other_request"
    for words in ("message 3 (user)", "-refund order 4821", "+refund order 9", "Nothing was sent."):
        assert words in stop.message
    assert asked.models.leftovers() != []


def test_a_changed_tool_description_is_shown() -> None:
    tool = {"name": "f", "description": "old words", "parameters": {}}
    asked = Models([model(1, request(user("hi"), tools=[tool]), says("ok"))])
    stop = asked.ask(request(user("hi"), tools=[{**tool, "description": "new words"}]))
    assert "differs  tools" in stop.message
    assert "new words" in stop.message


def test_a_miss_under_live_lets_the_model_be_asked() -> None:
    asked = Models([model(1, request(user("hi")), says("ok"))], on_miss="live")
    decision = asked.ask(request(user("bye")))
    assert isinstance(decision, RunLive)
    assert "The model is asked" in str(decision.missed)


def test_parts_that_were_not_captured_are_not_compared_and_are_named() -> None:
    asked = Models([model(1, request(user("hi")), says("ok"), missing=("tools", "params"), capture="partial")])
    decision = asked.ask(request(user("hi"), tools=[{"name": "f"}], params={"temperature": 1}))
    assert said(decision) == "ok"
    assert decision.marks == ("not compared: tools, params",)
    assert decision.provenance.loose == ()


def test_what_was_captured_is_compared() -> None:
    asked = Models([model(1, request(user("hi")), says("ok"), missing=("tools",), capture="partial")])
    assert isinstance(asked.ask(request(user("bye"), tools=[{"name": "f"}])), Stop)


@pytest.mark.parametrize("more", [{"missing": ("messages",), "capture": "partial"}, {"capture": "none"}])
def test_a_call_without_its_messages_is_never_served(more: Any) -> None:
    asked = Models([model(1, request(user("hi")), says("ok"), **more)])
    stop = asked.ask(request(user("hi")))
    assert isinstance(stop, Stop)
    assert stop.reason == "not_captured"
    assert "request not fully captured: messages" in stop.message


def test_a_request_without_a_key_is_a_miss_that_says_why() -> None:
    asked = Models([model(1, request(user("hi")), says("ok"))])
    no_key = NoKey(reason="non_finite", at="/params/temperature")
    stop = asked.ask(request(user("hi")), key=None, no_key=no_key)
    assert stop.reason == "no_key"
    assert "/params/temperature" in stop.message


def test_a_request_with_no_key_over_the_captured_parts_is_a_miss() -> None:
    nan = {"temperature": {"$float": "nan"}}
    asked = Models([model(1, request(user("hi")), says("ok"), missing=("tools",), capture="partial")])
    assert isinstance(asked.ask(request(user("hi"), params=nan), key="1:any"), Stop)


def test_nothing_recorded() -> None:
    stop = Models([]).ask(request(user("hi")))
    assert (stop.reason, "no model call was recorded" in stop.message) == ("never_recorded", True)


def test_everything_used_says_so_where_another_request_comes() -> None:
    asked = Models([model(1, request(user("hi")), says("ok"))])
    asked.ask(request(user("hi")))
    assert "all 1 recorded model calls are used" in asked.ask(request(user("more"))).message


def test_keys_are_made_again_where_the_recording_has_none_of_this_version() -> None:
    for key in (None, "0:abc"):
        assert said(Models([model(1, request(user("hi")), says("ok"), key=key)]).ask(request(user("hi")))) == "ok"
    broken = model(1, request(user("hi"), params={"t": {"$float": "nan"}}), says("ok"), key=None)
    assert isinstance(Models([broken]).ask(request(user("hi"))), Stop)


def test_a_recorded_failure_is_an_answer_and_a_cut_or_missing_one_is_not() -> None:
    hi = request(user("hi"))
    failure = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="RateLimitError", status=429))
    asked = Models([model(1, hi, outcome=failure), model(2, hi, says("ok"))])
    assert asked.ask(hi).outcome == failure
    assert said(asked.ask(hi)) == "ok"
    cut = Outcome(kind=OutcomeKind.VALUE, truncated=Truncated(bytes=9, sha256=""))
    assert Models([model(1, hi, outcome=cut)]).ask(hi).reason == "truncated"
    nothing = replace(model(1, hi), outcome=None)
    assert Models([nothing]).ask(hi).reason == "no_outcome"
    assert isinstance(Models([nothing], on_miss="live").ask(hi), RunLive)


def test_equal_requests_of_sub_agents_are_told_apart_by_their_tool_call() -> None:
    hi = request(user("hi"))
    nodes = [
        call(1, "research", {"t": 1}, "A"),
        model(2, hi, says("for 1"), parent_id="n1"),
        call(3, "research", {"t": 2}, "B"),
        model(4, hi, says("for 2"), parent_id="n3"),
    ]
    asked = Models(nodes)
    inside = [r.child_path for r in (o.first for o in asked.tape.recorded("research"))]
    assert said(asked.ask(hi, path=inside[1])) == "for 2"
    assert said(asked.ask(hi, path=("elsewhere",))) == "for 1"


def test_calls_below_a_served_tool_call_are_covered() -> None:
    hi = request(user("hi"))
    nodes = [call(1, "research", {}, "A"), model(2, hi, says("inner"), parent_id="n1"), model(3, hi, says("outer"))]
    asked = Models(nodes)
    path = asked.tape.recorded("research")[0].first.child_path
    assert [c.node.id for c in asked.models.cover(path)] == ["m2"]
    assert asked.models.cover(path) == []
    assert said(asked.ask(hi)) == "outer"
    assert asked.models.leftovers() == []


# --- the end of a recording -----------------------------------------------------------------------------------------


def ended(policy: ToolPolicy | None = None, *, contents: Any = ("r0", "r1"), last: Any = None) -> Any:
    """A recording that ends with two answered tool calls, replayed up to the request after them."""
    first = request(user("hi"))
    nodes = [
        model(1, first, calls("a", "b")),
        call(2, "f", {"n": 0}, "r0", call_id="a", model_call="m1", index=0),
        call(3, "f", {"n": 1}, "r1", call_id="b", model_call="m1", index=1),
    ]
    replayed = Replayed(nodes, policy or ToolPolicy())
    asked = Models(nodes, policy)
    asked.tape = replayed.tape
    asked.ask(first)
    replayed.ask("f", {"n": 0})
    replayed.ask("f", {"n": 1})
    after = request(user("hi"), calls("x", "y"), result("x", contents[0]), result("y", contents[1]))
    return asked.ask(last or after)


def test_the_replay_ends_where_the_recording_does() -> None:
    assert isinstance(ended(), End)
    assert isinstance(ended(contents=("as the framework writes it", "r1")), End)


@pytest.mark.parametrize(
    "last",
    [
        request(user("bye"), calls("x", "y"), result("x", "r0"), result("y", "r1")),
        request(user("hi"), calls("x", "y"), result("x", "r0")),
        request(user("hi"), calls("x", "y"), result("x", "r0"), result("y", "r1"), user("more")),
        request(user("hi"), calls("x", "y"), result("x", "r0"), result("y", "r1"), params={"temperature": 1}),
        request(user("hi"), calls("x", "y"), user("no"), user("results")),
        request(user("hi"), calls("x", "y", tool="g"), result("x", "r0", "g"), result("y", "r1", "g")),
    ],
)
def test_any_other_request_is_no_end(last: Any) -> None:
    assert isinstance(ended(last=last), Stop)


def test_a_request_that_has_no_key_is_no_end() -> None:
    last = request(user("hi"), calls("x"), params={"temperature": {"$float": "nan"}})
    nodes = [model(1, request(user("hi")), calls("x"))]
    asked = Models(nodes)
    asked.ask(request(user("hi")))
    assert isinstance(asked.ask(last, key=None), Stop)


def test_results_of_other_policies_have_to_be_the_recorded_ones() -> None:
    for config in (PassthroughConfig(), StaticConfig(cases=(StaticCase(result="r0"),))):
        assert isinstance(ended(ToolPolicy(default=config)), End)
        assert isinstance(ended(ToolPolicy(default=config), contents=("other", "r1")), Stop)


def test_there_is_no_end_while_something_recorded_is_unused_or_after_a_text() -> None:
    nodes = [model(1, request(user("hi")), calls("a")), call(2, "f", {"n": 0}, "r", call_id="a", model_call="m1")]
    asked = Models(nodes)
    asked.ask(request(user("hi")))
    after = request(user("hi"), calls("a"), result("a", "r"))
    assert isinstance(asked.ask(after), Stop)
    text = Models([model(1, request(user("hi")), says("done"))])
    text.ask(request(user("hi")))
    assert isinstance(text.ask(request(user("hi"), says("done"))), Stop)
    failure = Models([model(1, request(user("hi")), outcome=Outcome(kind=OutcomeKind.ERROR))])
    failure.ask(request(user("hi")))
    assert isinstance(failure.ask(request(user("hi"), says("x"))), Stop)
