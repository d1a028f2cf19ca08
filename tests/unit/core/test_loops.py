"""Agents that go in circles."""

import pytest

from playhead.core.loops import longest_failing_run, loops, repeated_failures
from playhead.core.values import ErrorInfo, Node, Outcome, OutcomeKind
from playhead.testing.sessions import a_tool_call

BROKEN = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="ValueError"))


def calls(text: str) -> list[Node]:
    """One call per letter; capitals failed."""
    return [
        a_tool_call(n, letter.lower(), {}, "ok", outcome=BROKEN if letter.isupper() else None)
        for n, letter in enumerate(text)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", 0), ("aa", 0), ("aaa", 1), ("ababab", 1), ("abab", 0), ("abcabcabc", 1), ("abcdabcdabcd", 1),
        ("abcdeabcdeabcde", 0), ("AbAcA", 1), ("AbA", 0), ("xaaay", 1), ("aaabbb", 2), ("abacadaea", 0),
    ],
)  # fmt: skip
def test_loops(text: str, found: int) -> None:
    assert len(loops(calls(text))) == found


def test_limits_can_be_set_and_calls_left_out() -> None:
    assert len(loops(calls("aa"), times=2)) == 1
    assert len(loops(calls("AbA"), failures=2)) == 1
    assert loops(calls("ababab"), round=1) == []
    assert len(loops(calls("atata"), skip=lambda node: node.name == "t")) == 1


def test_a_loop_holds_its_calls_and_says_why() -> None:
    (loop,) = loops(calls("xababab"))
    assert [node.seq for node in loop.calls] == [1, 2, 3, 4, 5, 6]
    assert loop.why == "the same 2 call(s) came 3 times in a row: a, b"


def test_failures_are_counted_by_call() -> None:
    assert [len(nodes) for nodes in repeated_failures(calls("AABAB"), at_least=2).values()] == [3, 2]
    assert longest_failing_run(calls("AAbABCd")) == 3
