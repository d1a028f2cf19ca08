"""Counting of equal calls while they are recorded."""

from playhead.core.occurrence import Occurrences, response_of, slot_ids, slot_of, start_ref


def test_equal_calls_are_counted_for_each_path() -> None:
    counts = Occurrences()
    assert counts.reserve("m:a", tool="f", key="k") == 1
    assert counts.reserve("m:b", tool="f", key="k", path=("x",)) == 1
    assert counts.reserve("m:c", tool="f", key="k") == 2
    assert counts.reserve("m:a", tool="f", key="k") == 1
    assert counts.of("m:c") == 2
    assert counts.of("nobody") is None


def test_calls_without_a_key_are_counted_for_each_tool() -> None:
    counts = Occurrences()
    assert counts.reserve("1", tool="f", key=None) == 1
    assert counts.reserve("2", tool="g", key=None) == 1
    assert counts.reserve("3", tool="f", key=None) == 2


def test_missing_and_repeated_ids_are_made_up_from_the_position() -> None:
    assert slot_ids([None, "a", "a", "", "b"]) == ("@0", "a", "@2", "@3", "b")


def test_a_call_that_nobody_announced_has_no_response() -> None:
    assert response_of(slot_of(start_ref(3)).slot) is None
    assert response_of("m1:call:0") == "m1"
    assert response_of("anything") is None


def test_a_ref_without_a_number_is_a_first_attempt() -> None:
    assert slot_of("m:call#x") == ("m:call#x", 1)
    assert slot_of("m:call#2") == ("m:call", 2)
