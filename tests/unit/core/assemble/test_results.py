"""The mark of a result, rule by rule."""

import pytest

from playhead.core.assemble.records import Captured
from playhead.core.assemble.results import judge
from playhead.core.values import Mark

UNTYPED = [
    # stored, view (... = unknown), value, mark
    ("plain words", ..., "plain words", Mark.EXACT),
    ("plain words", "other", "plain words", Mark.EXACT),
    ('{"a": 1}', ..., '{"a": 1}', Mark.TEXT),
    ('{"a": 1}', '{"a": 1}', '{"a": 1}', Mark.TEXT),
    ('{"a":1}', '{"a": 1}', {"a": 1}, Mark.EXACT),
    ('{"a":1}', "{'a': 1}", {"a": 1}, Mark.EXACT),
    ('{"a":1}', {"a": 1}, {"a": 1}, Mark.EXACT),
    ('{"a":"\\u00fc"}', '{"a":"ü"}', {"a": "ü"}, Mark.EXACT),
    ('{"a":1}', '{"a":2}', '{"a":1}', Mark.TEXT),
    ("{'a': 1}", ..., "{'a': 1}", Mark.REPR),
    ("{'a': 1}", "{'a': 1}", "{'a': 1}", Mark.TEXT),
    ("255.0", "255.0", "255.0", Mark.TEXT),
    ("255.0", 255.0, 255, Mark.EXACT),
    ('"quoted"', "quoted", "quoted", Mark.EXACT),
    ("true", ..., "true", Mark.TEXT),
    ("[REDACTED]", ..., "[REDACTED]", Mark.REDACTED),
    ("[REDACTED]", "[REDACTED]", "[REDACTED]", Mark.TEXT),
    ("long te... [truncated]", ..., "long te... [truncated]", Mark.TRUNCATED),
    ("long te... [truncated]", "long text", "long text", Mark.TEXT),
    ("long te... [truncated]", "another", "long te... [truncated]", Mark.TRUNCATED),
]


@pytest.mark.parametrize(("stored", "view", "value", "mark"), UNTYPED)
def test_an_untyped_result_is_as_sure_as_what_the_model_saw_proves(stored, view, value, mark) -> None:
    captured = Captured(value=stored, how="untyped")
    judged = judge(captured) if view is ... else judge(captured, view)
    assert (judged.value, judged.mark) == (value, mark)


def test_nothing_stored_takes_what_the_model_saw() -> None:
    assert judge(None).mark is Mark.MISSING
    assert judge(None, "seen")[:2] == ("seen", Mark.TEXT)
    assert judge(None, {"a": 1})[:2] == ({"a": 1}, Mark.EXACT)


def test_a_result_that_is_smaller_than_its_recorded_size_is_truncated() -> None:
    assert judge(Captured(value="abc", how="untyped", cut=True)).mark is Mark.TRUNCATED
    assert judge(Captured(value="abc", how="untyped", cut=True), "abcdef")[:2] == ("abcdef", Mark.TEXT)


MESSAGE = {"content": "seen", "tool_call_id": "c1", "status": "error"}


@pytest.mark.parametrize(
    "stored",
    [
        {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": MESSAGE},
        {"type": "tool", "data": MESSAGE},
        {"type": "tool", **MESSAGE},
        {"role": "tool", **MESSAGE},
    ],
)
def test_a_tool_message_in_any_spelling_is_an_envelope_of_its_content(stored: dict) -> None:
    judged = judge(Captured(value=stored))
    assert (judged.value, judged.mark, judged.is_error) == ("seen", Mark.WRAPPED, True)


def test_other_envelopes_are_taken_off_and_what_only_looks_like_one_stays() -> None:
    assert judge(Captured(value={"output": {"a": 1}}))[:2] == ({"a": 1}, Mark.WRAPPED)
    mcp = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": False}
    assert judge(Captured(value=mcp))[:2] == ("ab", Mark.WRAPPED)
    image = {"content": [{"type": "image", "data": "x"}]}
    assert judge(Captured(value=image))[:2] == (image, Mark.EXACT)
    more = {"output": 1, "other": 2}
    assert judge(Captured(value=more))[:2] == (more, Mark.EXACT)
