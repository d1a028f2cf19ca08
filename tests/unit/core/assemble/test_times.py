import pytest

from playhead.core.assemble.records import RecordError
from playhead.core.assemble.times import parse_time

SECOND = 1_796_064_679 * 10**9


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (1796064679, SECOND),
        ("1796064679", SECOND),
        (1796064679.5, SECOND + 5 * 10**8),
        (1796064679070, SECOND + 70_000_000),
        ("1796064679070864", SECOND + 70_864_000),
        (1796064679070864155, SECOND + 70_864_155),
        ("2026-11-30T18:51:19Z", SECOND),
        ("2026-11-30T18:51:19.070864155Z", SECOND + 70_864_155),
        ("2026-11-30 19:51:19+01:00", SECOND),
        ("2026-11-30T13:51:19-0500", SECOND),
        ("2026-11-30T18:51:19", SECOND),
        (0, None),
        ("0", None),
        ("", None),
        (None, None),
    ],
)
def test_every_spelling_of_a_time_is_one_moment(spelling: object, expected: int | None) -> None:
    assert parse_time(spelling) == expected


@pytest.mark.parametrize("bad", ["yesterday", "2026-13-01T00:00:00Z", -5, "9" * 25, [1], float("nan"), "2026-11-30"])
def test_what_is_no_time_is_refused(bad: object) -> None:
    with pytest.raises(RecordError) as caught:
        parse_time(bad)
    assert caught.value.code == "bad_time"
