"""A fixture file that was damaged is refused by name, and never answers another call than it was recorded for."""

from hypothesis import given
from hypothesis import strategies as st

from playhead.core.fixtures.file import Fixture, dump, load
from playhead.core.keys import call_key
from playhead.errors import FixtureFormatError

_ARGS = {"order_id": "a", "n": [1, 2.5, None]}
GOOD = Fixture(
    kind="op", tool="orders.lookup", key=call_key("orders.lookup", _ARGS), args=_ARGS, effect="read",
    outcome={"kind": "value", "value": {"a": ["x"]}}, assertions={"defaults": {"limit": 5}},
)  # fmt: skip
DATA = dump(GOOD)
PIECES = (b"", b"null", b"{}", b"[]", b"1e999", b"-1", b"1" * 5000, b"[" * 300, b"\xff", b"\\ud800", b"<<<<<<< ours\n")
PLACES = st.integers(0, len(DATA))


def loaded(data: bytes) -> Fixture | None:
    """None for a file that is refused as it should be."""
    try:
        return load(data, GOOD.name)
    except FixtureFormatError as error:
        named = GOOD.name in error.message
    assert named, "an error without the file's name"
    return None


@given(PLACES, st.integers(0, 40), st.sampled_from(PIECES) | st.binary(max_size=4))
def test_a_changed_file_is_refused_by_name_or_answers_the_same_call(start: int, length: int, piece: bytes) -> None:
    found = loaded(DATA[:start] + piece + DATA[start + length :])
    if found is not None:
        assert (found.kind, found.tool, found.key, found.args) == (GOOD.kind, GOOD.tool, GOOD.key, GOOD.args)


@given(st.integers(0, len(DATA.rstrip()) - 1))
def test_a_truncated_file_is_refused(length: int) -> None:
    assert loaded(DATA[:length]) is None
