"""Runs anywhere: `pytest`. To record again, with a database and a network: `pytest --playhead=record`."""

from typing import Any

import pytest
import shop


@pytest.mark.playhead(http=True)
def test_a_lost_order_is_refunded_in_euros(playhead_tape: Any) -> None:
    assert shop.refund("4821") == "118.68 EUR"
    assert [row.tool for row in playhead_tape.ledger] == ["orders.lookup", "GET rates.example"]


@pytest.mark.playhead
@pytest.mark.parametrize("order_id", ["4822", "4823"])
def test_other_orders_are_not(order_id: str) -> None:
    assert shop.refund(order_id) == "no refund"


def test_the_agent_still_does_what_it_did(playhead_replay: Any) -> None:
    playhead_replay("sessions/refund-4821.jsonl", shop.refunder)
