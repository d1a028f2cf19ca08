"""How a trial goes: what the model is asked, what answers its calls, when it ends."""

from typing import Any

import pytest

from playhead.core.effects import ToolEffect
from playhead.core.guards import Guard
from playhead.core.policy import HistoryConfig, InjectConfig, ToolPolicy
from playhead.core.protocol import parts
from playhead.core.suites.drive import ModelAsk, ModelSaid, Trace, bound, drive, loop, turn
from playhead.core.suites.scoring import score
from playhead.core.suites.suite import Case, ToolSchema, schemas
from playhead.core.suites.tool_names import mapped, provider_names, renamed
from playhead.testing.scripted_models import SCRIPTED, Coin, scripted

TOOLS = {
    name: ToolSchema(name=name, parameters={"type": "object", "properties": properties, "required": list(properties)})
    for name, properties in {
        "get_order": {"order_id": {"type": "string"}},
        "issue_refund": {
            "order_id": {"type": "string"},
            "amount": {"type": "number"},
            "reason": {"enum": ["damaged", "late", "other"]},
        },
    }.items()
}
EFFECTS = {
    "get_order": ToolEffect.model_validate({"class": "read"}),
    "issue_refund": ToolEffect.model_validate({"class": "write", "financial": True}),
}
CASE = Case.model_validate(
    {
        "id": "refund",
        "history": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Refund 4821."}],
        "tools": list(TOOLS),
        "recorded": [
            {
                "calls": [{"id": "c1", "tool": "get_order", "arguments": {"order_id": "4821"}}],
                "outcomes": {"c1": {"kind": "value", "value": {"amount": "129.00"}}},
            },
            {
                "calls": [
                    {
                        "id": "c2",
                        "tool": "issue_refund",
                        "arguments": {"order_id": "4821", "amount": 129, "reason": "damaged"},
                    }
                ],
                "outcomes": {"c2": {"kind": "value", "value": {"refund_id": "R-77"}}},
            },
        ],
        "answer": "Refund R-77 of $129.00 was issued.",
        "facts": [{"name": "refund", "as": "id", "value": "R-77"}],
        "label": {"kind": "call", "calls": [{"tool": "get_order", "arguments": {"order_id": "4821"}}]},
    }
)


def say(text: str = "", *calls: tuple[str, dict[str, Any]]) -> ModelSaid:
    made = [parts.call(tool, arguments, f"x{n}") for n, (tool, arguments) in enumerate(calls)]
    return ModelSaid(message=parts.message("assistant", [*parts.texts([text]), *made]))


class Script:
    """Answers in order, the last one again; keeps what it was asked."""

    def __init__(self, *answers: ModelSaid) -> None:
        self.answers, self.asked = answers, list[ModelAsk]()

    def __call__(self, ask: ModelAsk) -> ModelSaid:
        self.asked.append(ask)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def test_a_turn_asks_once_and_then_for_the_answer_after_what_was_recorded() -> None:
    model = Script(say("", ("issue_refund", {})), say("Refund R-77 was issued."))
    trace = drive(turn(CASE, TOOLS), model)
    first, last = model.asked
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert ([t.name for t in first.tools], first.tool_choice) == (list(TOOLS), "auto")
    assert [m["role"] for m in last.messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    found = score(CASE, schemas(CASE, TOOLS), trace.attempt, EFFECTS)
    assert (found.selection, found.why, found.outcome) == (False, "wrong_tool", True)
    assert len(trace.attempt.answers) == 1


def test_a_turn_without_facts_asks_only_once() -> None:
    model = Script(say("", ("get_order", {"order_id": "4821"})))
    trace = drive(turn(CASE.model_copy(update={"facts": ()}), TOOLS), model)
    assert (len(model.asked), trace.final) == (1, None)


def test_the_first_answer_is_the_final_one_where_no_call_is_wanted() -> None:
    asks = CASE.model_copy(update={"label": None}).model_dump() | {"label": {"kind": "no_tool"}}
    model = Script(say("Which one?"))
    assert drive(turn(Case.model_validate(asks), TOOLS), model).final == "Which one?"
    assert len(model.asked) == 1


def test_a_call_in_place_of_the_final_answer_is_no_answer() -> None:
    model = Script(say("", ("get_order", {"order_id": "4821"})))
    trace = drive(turn(CASE, TOOLS), model)
    assert trace.final is None
    assert score(CASE, schemas(CASE, TOOLS), trace.attempt).outcome_why == "no_answer"


def test_a_loop_answers_calls_from_the_recording() -> None:
    trace = drive(loop(CASE, TOOLS, effects=EFFECTS), scripted("fix", CASE))
    assert (trace.ended, trace.final) == ("answer", CASE.answer)
    assert [(row.by, row.tool, row.from_node) for row in trace.ledger] == [
        ("served", "get_order", "refund/c1"), ("served", "issue_refund", "refund/c2"),
    ]  # fmt: skip
    kinds = [node.kind for node in trace.nodes]
    assert kinds == ["model_call", "tool_call", "model_call", "tool_call", "model_call"]
    assert [node.seq for node in trace.nodes] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("call", "by", "told"),
    [
        (("get_order", {"order_id": "1"}), "missed", "no result is available"),
        (("get_order", {"order_id": 1}), "rejected", "/order_id"),
        (("get_ordr", {}), "rejected", "There is no tool 'get_ordr'"),
    ],
)
def test_calls_that_nothing_answers_are_errors_that_the_agent_gets(call: Any, by: str, told: str) -> None:
    model = Script(say("", call), say("I could not."))
    trace = drive(loop(CASE, TOOLS), model)
    assert [row.by for row in trace.ledger] == [by]
    result = model.asked[1].messages[-1]["parts"][0]
    assert result["is_error"]
    assert told in result["content"]


def test_a_call_that_needs_a_person_says_so() -> None:
    effects = {"issue_refund": ToolEffect.model_validate({"class": "write", "approval": True})}
    model = Script(say("", ("issue_refund", {"order_id": "1", "amount": 1, "reason": "late"})), say("Please approve."))
    drive(loop(CASE, TOOLS, effects=effects), model)
    assert "approve" in model.asked[1].messages[-1]["parts"][0]["content"]


def test_a_loop_ends_at_its_bound() -> None:
    trace = drive(loop(CASE, TOOLS), Script(say("", ("get_order", {"order_id": "1"}))))
    assert (trace.ended, len(trace.said), trace.final) == ("turns", 12, None)
    assert bound(CASE.model_copy(update={"recorded": CASE.recorded * 5})) == 33


def test_a_stop_of_the_policy_ends_the_trial() -> None:
    trace = drive(loop(CASE, TOOLS, policy=ToolPolicy()), Script(say("", ("get_order", {"order_id": "1"}))))
    assert trace.ended == "stopped"
    assert "get_order" in (trace.stopped or "")


def injected(kind: Any, tool: str = "get_order", **more: Any) -> ToolPolicy:
    then = HistoryConfig(on_miss="error_result")
    return ToolPolicy(default=then, tools={tool: InjectConfig(kind=kind, nth=1, then=then, **more)})


def test_an_injection_hides_a_recorded_outcome_and_names_it() -> None:
    trace = drive(loop(CASE, TOOLS, policy=injected("timeout"), effects=EFFECTS), scripted("repeat", CASE))
    assert [(row.by, row.detail, row.from_node) for row in trace.ledger] == [
        ("injected", "timeout", "refund/c1"),
        ("served", None, "refund/c1"),
        ("served", None, "refund/c2"),
    ]
    assert trace.final == CASE.answer


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_models_do_what_their_name_says(name: str) -> None:
    policy = injected("validation_error", allowed=("ORD-4821",), pointer="/order_id")
    model = scripted(name, CASE, other_tool="find_orders")
    trace = drive(loop(CASE, TOOLS, policy=policy, effects=EFFECTS), model)
    tools = [node.name for node in trace.nodes if node.call is not None]
    arguments = [node.call.arguments for node in trace.nodes if node.call is not None]
    said = {
        "repeat": None,
        "repeat_once": "I could not complete this request.",
        "fix": CASE.answer,
        "tell": "I could not complete this request because the service answered with an error.",
        "quit": "I could not finish; a colleague will follow up.",
        "search": "I could not complete it automatically.",
        "pretend": CASE.answer,
        "mumble": "Okay, let me know what else you need.",
        "guess": None,
    }
    assert trace.final == said[name]
    if name == "fix":
        assert arguments[1] == {"order_id": "ORD-4821"}
    if name == "guess":
        assert len({str(a) for a in arguments}) == len(arguments)
    if name in ("quit", "search"):
        assert tools[1] == ("report_failure" if name == "quit" else "find_orders")


def test_a_coin_falls_both_ways() -> None:
    coin = Coin(tools=("a", "b"), share=0.5)
    chosen = [parts.calls_of(coin(ModelAsk(messages=[], seed=n)).message)[0]["name"] for n in range(1000)]
    assert 450 <= chosen.count("a") <= 550


def test_names_that_a_provider_refuses_are_mapped_and_never_collide() -> None:
    names = provider_names(["solve.quadratic", "solve_quadratic", "solve quadratic", "ok-1"])
    assert names["solve_quadratic"] == "solve_quadratic"
    assert names["ok-1"] == "ok-1"
    assert len(set(names.values())) == 4


def test_a_request_is_mapped_whole_and_the_answer_back() -> None:
    tool = ToolSchema(name="math.factorial")
    said = parts.message("assistant", [parts.call("math.factorial", {"n": 1}, "c1")])
    ask, back = mapped(ModelAsk(messages=[said], tools=(tool,)))
    assert [t.name for t in ask.tools] == ["math_factorial"]
    assert ask.messages[0]["parts"][0]["name"] == "math_factorial"
    assert renamed(ask.messages[0], back) == said
    same, nothing = mapped(ModelAsk(messages=[], tools=(ToolSchema(name="plain"),)))
    assert (same.tools[0].name, nothing) == ("plain", {})


# --- guards ---------------------------------------------------------------------------------------------------------

BROKEN = {"type": "inject", "kind": "malformed", "nth": 1}


def guarded(tool: str, action: str, *said: ModelSaid, inject: bool = True, **guard: Any) -> Trace:
    policy = ToolPolicy.model_validate({
        "default": {"type": "history", "on_miss": "error_result"}, "tools": {tool: BROKEN} if inject else {},
    })  # fmt: skip
    made = {tool: Guard.model_validate({"action": action, **guard})}
    answers = iter(said)
    return drive(loop(CASE, TOOLS, policy=policy, effects=EFFECTS, guards=made), lambda ask: next(answers))


GET = ("get_order", {"order_id": "4821"})
REFUND = ("issue_refund", {"order_id": "4821", "amount": 129, "reason": "damaged"})


def last_result(trace: Trace) -> Any:
    """What the model was shown before its last answer."""
    return trace.asked[-1].messages[-1]["parts"][0]["content"]


def test_a_guard_asks_once_more_and_the_model_never_sees_the_broken_result():
    trace = guarded("get_order", "retry", say("", GET), say("Done."))
    assert last_result(trace) == {"amount": "129.00"}
    first, second = (node for node in trace.nodes if node.call is not None)
    assert first.call is not None
    assert first.call.provenance is not None
    assert first.call.provenance.by == "injected"
    guard: Any = first.attributes["guard"]
    assert (guard["fault"], guard["action"], guard["attempts"]) == ("malformed", "retry", 2)
    assert second.outcome is not None
    assert second.outcome.value == {"amount": "129.00"}
    assert [(row.by, row.marks) for row in trace.ledger] == [("injected", ("guarded",)), ("served", ())]


def test_a_guard_hands_a_text_to_the_model_where_the_call_may_not_be_repeated():
    trace = guarded("issue_refund", "retry", say("", GET), say("", REFUND), say("I could not tell."))
    assert "Whether the call took effect is not known" in last_result(trace)
    assert len([node for node in trace.nodes if node.call is not None]) == 2
    assert trace.nodes[-2].attributes["guard"]["action"] == "message"  # type: ignore[index]


def test_what_the_recording_holds_no_second_time_is_not_asked_for_in_vain():
    trace = guarded("get_order", "retry", say("", GET), say("Done."), inject=False, range={"/amount": [200, None]})
    assert "is out of range at /amount, twice" in last_result(trace)
    assert [row.by for row in trace.ledger] == ["served"]


def test_guards_look_at_values_only_and_at_the_tools_they_name():
    unknown = say("", ("get_order", {"order_id": "9"}))
    trace = guarded("get_order", "message", unknown, say("Done."), inject=False, not_empty=True)
    assert trace.nodes[1].attributes == {}
    other = guarded("issue_refund", "message", say("", GET), say("Done."), inject=False, range={"/amount": [200, None]})
    assert last_result(other) == {"amount": "129.00"}
