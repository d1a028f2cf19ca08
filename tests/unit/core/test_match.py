"""What the vectors of matching cannot hold: depth, size, limits."""

from playhead.core.match import (
    ABSENT,
    Candidate,
    count_differences,
    differences,
    equal,
    matches,
    nearest,
    pattern_differences,
)


def nested(depth: int, leaf: object) -> object:
    value = leaf
    for n in range(depth):
        value = [value] if n % 2 else {"a": value}
    return value


def test_depth_is_no_obstacle() -> None:
    assert equal(nested(5_000, 1), nested(5_000, 1))
    assert not equal(nested(5_000, 1), nested(5_000, 2))
    assert matches({"x": nested(5_000, 1)}, {"x": nested(5_000, 1), "y": 1}, "subset")
    assert len(differences(nested(5_000, 1), nested(5_000, 2))) == 1


def test_differences_stop_at_the_limit() -> None:
    left, right = list(range(100)), list(range(1, 101))
    assert [d.pointer for d in differences(left, right, limit=2)] == ["/0", "/1"]
    assert count_differences(left, right, 7) == 7
    assert "(absent)" in repr(differences({}, {"a": 1}))


def test_pattern_differences_are_empty_exactly_when_it_fits() -> None:
    assert pattern_differences({"a": 1}, {"a": 1, "b": 2}, "subset") == []
    found = pattern_differences({"a": 1, "c": [1]}, {"a": 2, "c": [1, 2]}, "subset")
    assert [(d.pointer, d.left, d.right) for d in found] == [("/a", 1, 2), ("/c/1", ABSENT, 2)]


def test_a_surrogate_pair_is_its_character() -> None:
    assert equal({"\ud83d\ude00": "\ud83d\ude00"}, {"\U0001f600": "\U0001f600"})
    assert not equal("\ud83d", "\ud83d\ude00")


def test_the_nearest_of_thousands_is_found_with_early_ends() -> None:
    recorded = [Candidate({"id": n, "rest": [n] * 20}, claimed=n % 2 == 0) for n in range(5000)]
    found = nearest({"id": -1, "rest": [4001] * 20}, recorded)
    assert found[0].place == 4001
    assert found[0].differ == 1
    assert [f.place for f in found[1:]] == [1, 3]
