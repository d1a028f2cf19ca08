"""JSON text is read exactly, at nearly the speed of orjson."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.json_text import may_have_wide_integers, parse_json

EDGES = [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**19, -(10**18), -(10**19), 10**40]
PLACES = ["{}", "[{}]", '{{"a":{}}}', "[1,\n{}]", "[ \t{}\r]", '{{"a" : {}, "b":1}}']


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", EDGES)
def test_integers_beyond_64_bits_are_exact_wherever_they_stand(number: int, place: str) -> None:
    text = place.format(number)
    for given_as in (text, text.encode()):
        assert repr(parse_json(given_as)) == repr(json.loads(text))


@pytest.mark.parametrize("before", range(12))
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_wide_integer_is_found_in_a_long_text_wherever_it_stands(number: int, before: int) -> None:
    text = json.dumps(["x" * (2000 + before), number, "y" * 2000])
    assert parse_json(text)[1] == number
    assert may_have_wide_integers(text.encode())


def test_long_runs_of_digits_in_texts_do_not_count() -> None:
    assert not may_have_wide_integers(json.dumps({"id": "1" * 40, "key": "x" + "9" * 30}).encode())
    assert may_have_wide_integers(b"[%d]" % 2**64)


@given(st.recursive(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_any_numbers_come_back(value: object) -> None:
    assert repr(parse_json(json.dumps(value))) == repr(value)


def test_reading_arguments_keeps_the_interpreter_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching by re2 lets another thread in, and the agent's thread then waits for a whole switch interval."""
    import re2

    from playhead.core.canonical import parse_emitted

    used: list[str] = []
    monkeypatch.setattr(re2._Regexp, "search", lambda *_: used.append("search"))
    monkeypatch.setattr(re2.Set, "Match", lambda *_: used.append("match"))
    assert parse_emitted('{"order_id": "W1", "n": [1, 2.5, null]}') == {"order_id": "W1", "n": [1, 2.5, None]}
    assert used == []
