"""`playhead fixtures export`: a session's ops as fixtures; and what a session says of an op that a fixture answered."""
# ruff: noqa: SIM117 - the block is what is tested

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.start import main
from playhead.core.values import NodeKind

OPS = """
from dataclasses import dataclass
from datetime import date
import playhead

class OrderGone(Exception):
    pass

@dataclass
class Order:
    order_id: str
    day: date

live = []

@playhead.op("orders.lookup", effect="read", errors=[OrderGone], ignore=["/trace"])
def lookup(order_id: str, day: date = date(2026, 1, 2), limit: int = 5, trace: str = "", token: str = "") -> Order:
    live.append(order_id)
    if order_id == "gone":
        raise OrderGone("gone")
    if order_id == "404":
        raise playhead.OpError("no such order", status=404)
    if order_id == "down":
        raise ConnectionRefusedError("down")
    return Order(order_id, day)

@playhead.op("outer", effect="read")
def outer(order_id: str) -> str:
    return lookup(order_id).order_id

@playhead.tool("plain")
def plain(x: int) -> int:
    return x
"""


@pytest.fixture
def ops(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import importlib

    (here / "pyproject.toml").write_text('[tool.playhead.fixtures]\nops = ["exported_ops"]\n')
    (here / "exported_ops.py").write_text(OPS)
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    yield importlib.import_module("exported_ops")
    sys.modules.pop("exported_ops")


@pytest.fixture
def export(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    def exported(*words: str) -> tuple[int, dict[str, Any]]:
        playhead.flush()
        capsys.readouterr()
        code = main(["fixtures", "export", "last", *words, "--output", "json"])
        return code, json.loads(capsys.readouterr().out)

    return exported


def test_what_says_something_about_an_op_is_exported_and_the_rest_is_listed(here: Path, ops: Any, export: Any) -> None:
    with playhead.session("agent"):
        ops.lookup("4821", trace="t1")
        ops.lookup("4821", trace="t2")
        for order in ("gone", "404", "down"):
            with suppress(Exception):
                ops.lookup(order)
        ops.outer("7")
        ops.plain(1)
        ops.lookup("secret", token="tok-1234567890")
    code, said = export("--set", "s")
    assert (code, said["written"], (here / ".playhead/fixtures").exists()) == (0, False, False)
    assert [(each["tool"], each["occurrence"]) for each in said["fixtures"]] == [
        ("orders.lookup", 1), ("orders.lookup", 2), ("orders.lookup", 1), ("orders.lookup", 1), ("outer", 1),
    ]  # fmt: skip
    left = {each["tool"]: each["reason"] for each in said["left_out"]}
    assert sorted(each["tool"] for each in said["left_out"]) == ["orders.lookup", "orders.lookup", "plain"]
    assert "no op of this name" in left["plain"]
    reasons = " ".join(each["reason"] for each in said["left_out"])
    assert "ConnectionRefusedError says nothing about the op" in reasons
    assert "/token lost a secret that is not configured" in reasons
    export("--set", "s", "--yes")
    ops.live.clear()
    with playhead.fixtures("replay", set="s", strict=True) as tape:
        assert ops.lookup(order_id="4821", limit=5).order_id == "4821"
        assert ops.lookup("4821", trace="t3").day.year == 2026
        with pytest.raises(ops.OrderGone):
            ops.lookup("gone")
        with pytest.raises(playhead.OpError) as caught:
            ops.lookup("404")
        assert ops.outer("7") == "7"
    assert (ops.live, tape.served, caught.value.status) == ([], 5, 404)
    assert main(["fixtures", "doctor", "--set", "s", "--output", "json"]) == 0


def test_arguments_that_a_model_emitted_become_the_declared_types(ops: Any, export: Any) -> None:
    from playhead.core.redaction.redact import Redactor
    from playhead.core.values import Node, Outcome, OutcomeKind, ToolCall
    from playhead.engine.fixtures.export import plan_export

    def node(arguments: Any, value: Any, seq: int) -> Node:
        return Node(
            id=f"n{seq}", session_id="s", seq=seq, kind=NodeKind.TOOL_CALL, name="orders.lookup", started_at=1,
            ended_at=2, outcome=Outcome(kind=OutcomeKind.VALUE, value=value),
            call=ToolCall(tool="orders.lookup", arguments=arguments),
        )  # fmt: skip

    good = {"order_id": "1", "day": {"$date": "2026-01-02"}}
    nodes = [
        node({"order_id": "1", "day": "2026-01-02", "limit": 5}, good, 1), node({"order_id": "1"}, good, 2),
        node({"$invalid": "{"}, good, 3), node({"order_id": 1}, good, 4), node({"order_id": "2"}, {"order_id": 2}, 5),
    ]  # fmt: skip
    plan = plan_export("s", nodes, {"orders.lookup": ops.lookup.__wrapped__.__playhead_op__}, Redactor(), "")
    assert [fixture.args for fixture in plan.fixtures] == [{"order_id": "1"}, {"order_id": "1"}]
    assert [each.node for each in plan.left_out] == ["n3", "n4", "n5"]


def test_the_node_of_an_op_names_the_file_and_the_occurrence_that_answered_it(ops: Any) -> None:
    with playhead.fixtures("record"):
        ops.lookup("1")
        ops.lookup("1")
        ops.outer("1")
    ops.live.clear()
    with playhead.fixtures("replay"):
        with playhead.session("agent") as session:
            for _ in range(2):
                ops.lookup("1")
            ops.outer("1")
    playhead.flush()
    with playhead.open() as client:
        assert session.id is not None
        nodes = [node for node in client.sessions.nodes(session.id) if node.call is not None]
    found = [(node.call.tool, node.call.provenance.by, node.call.provenance.detail) for node in nodes]  # type: ignore
    assert [(tool, by) for tool, by, _ in found] == [("orders.lookup", "served")] * 2 + [("outer", "served")]
    assert [str(detail).partition(", ")[2] for _, _, detail in found] == [
        "occurrence 1", "occurrence 2", "occurrence 1",
    ]  # fmt: skip
    assert str(found[0][2]).startswith("op.orders_lookup.")
    assert ops.live == []  # and no node for the op inside the one that was served


def test_a_call_that_a_session_serves_asks_no_fixture(ops: Any) -> None:
    @playhead.agent("asker")
    def asker(order_id: str) -> str:
        return ops.outer(order_id)

    asker("1")
    playhead.flush()
    with playhead.fixtures("record"):
        ops.lookup("unrelated")
    ops.live.clear()
    with playhead.fixtures("replay", allow_empty=True) as tape:
        result = playhead.replay("last", agent=asker)
    assert (result.fidelity.kind.value, list(tape.ledger), ops.live) == ("faithful", [], [])
