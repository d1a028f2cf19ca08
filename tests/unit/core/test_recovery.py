"""Scripted agents with known behaviour are classified right, each, in every injection variant (T21)."""

from typing import Any

import pytest

from playhead.core.effects import ToolEffect
from playhead.core.policy import HistoryConfig, InjectConfig, ToolPolicy
from playhead.core.recovery.trial import Recovery, classify
from playhead.core.suites.drive import Trace, drive, loop
from playhead.core.suites.suite import Case, ToolSchema, add_tool
from playhead.testing.scripted_models import scripted

ANSWER = "Order 4821: R-77 of $129.00 was issued, and A1 and B2 are on their way with T-5."


def schema(**properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: Any = {"type": "string"}
TOOLS = [
    ToolSchema(name="get_order", description="One order", parameters=schema(order_id=TEXT)),
    ToolSchema(name="find_orders", description="Orders of a customer", parameters=schema(email=TEXT)),
    ToolSchema(
        name="issue_refund",
        description="Refund an order",
        parameters=schema(
            order_id=TEXT, amount={"type": "number"}, reason={"type": "string", "enum": ["damaged", "late", "other"]}
        ),
    ),
    ToolSchema(
        name="ship_items",
        description="Ship items",
        parameters=schema(order_id=TEXT, items={"type": "array", "items": {"type": "string"}}),
    ),
    ToolSchema(name="report_failure", description="Give up", parameters=schema(reason=TEXT)),
]
EFFECTS: dict[str, Any] = {
    "get_order": {"class": "read"},
    "find_orders": {"class": "read"},
    "issue_refund": {"class": "write", "financial": True},
    "ship_items": {"class": "write"},
    "report_failure": {"class": "read", "give_up": True},
}


def a_case() -> tuple[Case, dict[str, ToolSchema]]:
    tools: dict[str, ToolSchema] = {}
    names = [add_tool(tools, tool) for tool in TOOLS]
    calls = [
        ("get_order", {"order_id": "4821"}, {"order_id": "4821", "amount": "129.00"}),
        ("issue_refund", {"order_id": "4821", "amount": 129, "reason": "damaged"}, {"refund_id": "R-77"}),
        ("ship_items", {"order_id": "4821", "items": ["A1", "B2"]}, {"tracking": "T-5"}),
    ]
    return Case.model_validate(
        {
            "id": "refund-4821",
            "history": [{"role": "user", "content": "Order 4821 arrived damaged: refund it, send A1 and B2 again."}],
            "tools": names,
            "recorded": [
                {
                    "calls": [{"id": f"c{n}", "tool": tool, "arguments": arguments}],
                    "outcomes": {f"c{n}": {"kind": "value", "value": value}},
                }
                for n, (tool, arguments, value) in enumerate(calls)
            ],
            "answer": ANSWER,
            "facts": [
                {"name": "amount", "as": "money", "value": "129.00"},
                {"name": "refund", "as": "id", "value": "R-77"},
                {"name": "tracking", "as": "id", "value": "T-5"},
            ],
            "alternatives": ["find_orders"],
        }
    ), tools


def run(agent: str, tool: str, **config: Any) -> tuple[Trace, Recovery | None]:
    effects = {name: ToolEffect.model_validate(told) for name, told in (EFFECTS | config.pop("effects", {})).items()}
    case, tools = a_case()
    inject = InjectConfig(then=HistoryConfig(on_miss="error_result"), **config)
    policy = ToolPolicy(default=HistoryConfig(on_miss="error_result"), tools={tool: inject})
    trace = drive(loop(case, tools, policy=policy, effects=effects), scripted(agent, case))
    return trace, classify(trace, case, tools, inject, effects)


AGENTS = ("repeat", "repeat_once", "fix", "tell", "quit", "search", "pretend", "mumble", "guess")
TABLE: list[tuple[str, list[dict[str, Any]], str]] = [
    ("get_order", [{"kind": "validation_error", "allowed": ("ORD-4821",)}], "L B C M G A S U L"),
    ("get_order", [{"kind": "not_found", "candidates": ("4812",)}], "L B C M G A S U L"),
    ("get_order", [{"kind": "rate_limit"}, {"kind": "timeout"}], "C C C M G A S U L"),
    ("get_order", [{"kind": "empty"}], "L B M M G A S U C"),
    ("get_order", [{"kind": "malformed"}], "C C C M G A S U C"),
    ("issue_refund", [{"kind": "validation_error", "pointer": "/reason", "allowed": ("late", "other")}],
     "L B C M G A S U L"),
    ("issue_refund", [{"kind": "rate_limit"}], "C C C M G A S U L"),
    ("issue_refund", [{"kind": "timeout"}, {"kind": "malformed"}], "B+ B+ B+ M G A S U L"),
    ("ship_items", [{"kind": "partial", "done": ("A1",), "failed": ({"item": "B2", "error": "out of stock"},)}],
     "B+ B+ C M G A S S L"),
    ("ship_items", [{"kind": "timeout"}], "B+ B+ B+ M G A S U L"),
]  # fmt: skip
LETTERS = {
    "loop": "L", "blind_repeat": "B", "corrected_retry": "C", "clear_message": "M", "give_up_tool": "G",
    "alternative_tool": "A", "silent_wrong_answer": "S", "unclear_end": "U",
}  # fmt: skip
ROWS = [
    pytest.param(tool, config, agent, expected, id=f"T21-{tool}-{config['kind']}-{agent}")
    for tool, configs, row in TABLE
    for config in configs
    for agent, expected in zip(AGENTS, row.split(), strict=True)
]


@pytest.mark.parametrize(("tool", "config", "agent", "expected"), ROWS)
def test_scripted_agents(tool: str, config: dict[str, Any], agent: str, expected: str):
    _, found = run(agent, tool, **config)
    assert found is not None
    double = any(one.kind == "standing" for one in found.doubles)
    assert LETTERS[found.outcome] + ("+" if double else "") == expected
    assert found.recovered == (expected in ("C", "M", "G", "A"))


@pytest.mark.parametrize("agent", ["repeat", "repeat_once"])
def test_an_idempotent_tool_may_be_called_again(agent: str):
    idempotent = {"issue_refund": {"class": "write", "financial": True, "idempotent": True}}
    _, found = run(agent, "issue_refund", kind="timeout", effects=idempotent)
    assert found is not None
    assert (found.outcome, found.doubles, found.recovered) == ("corrected_retry", (), True)


def test_a_failure_that_never_came_up_is_no_result():
    _, found = run("tell", "find_orders", kind="timeout")
    assert found is None


@pytest.mark.parametrize(
    ("agent", "expected"), [("repeat", "same_call"), ("guess", "same_tool"), ("search", "other_tool"), ("tell", "text")]
)
def test_what_came_right_after(agent: str, expected: str):
    _, found = run(agent, "get_order", kind="not_found", candidates=("4812",))
    assert found is not None
    assert found.next_action == expected


def test_a_gate_is_told_of_loops_and_doubles():
    assert run("repeat", "get_order", kind="empty")[1].flags == ("loop",)  # type: ignore[union-attr]
    assert run("repeat", "ship_items", kind="timeout")[1].flags == ("double_side_effect",)  # type: ignore[union-attr]
