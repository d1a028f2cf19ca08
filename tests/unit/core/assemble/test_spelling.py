"""Values in foreign spellings."""

import pytest

from playhead.core.assemble.spelling import (
    is_placeholder,
    json_value,
    literal_value,
    reads_like_error,
    same,
    split_error,
    without_call_envelope,
)


def test_a_python_literal_of_json_values_is_read_and_nothing_is_evaluated() -> None:
    assert literal_value("{'a': [1, None, True], 'b': 'x'}") == (True, {"a": [1, None, True], "b": "x"})
    assert literal_value("('a', 1)") == (True, ["a", 1])
    for text in (
        "__import__('os')",
        "{'a': open('x')}",
        "{1: 2}",
        "{'a'}",
        "[b'x']",
        "[1j]",
        "1",
        "[" * 500,
        "{" + "'a'" * 9,
    ):
        assert literal_value(text) == (False, None), text


def test_a_literal_too_long_or_too_deep_is_not_tried() -> None:
    assert literal_value("['" + "x" * (1 << 20) + "']") == (False, None)
    assert literal_value("[" * 101 + "]" * 101) == (False, None)
    assert literal_value("[" * 99 + "]" * 99)[0]


def test_json_text_that_looks_like_a_tag_is_escaped() -> None:
    assert json_value('{"$datetime": "x"}') == (True, {"$$datetime": "x"})
    assert json_value("nul") == (False, None)
    assert json_value("") == (False, None)
    assert json_value("[" * 100_000) == (False, None)


def test_equality_is_that_of_canonical_json() -> None:
    assert same({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0})
    assert not same(True, 1)
    assert not same("1", 1)


@pytest.mark.parametrize("text", ["[REDACTED]", "<redacted>", "[Scrubbed due to 'key']", "Error details are redacted."])
def test_placeholders_are_known(text: str) -> None:
    assert is_placeholder(text)


def test_text_about_redaction_is_no_placeholder() -> None:
    assert not is_placeholder("I wrote [REDACTED] in the report and sent it")
    assert not is_placeholder({"a": "[REDACTED]"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ValueError: no: way", ("ValueError", "no: way")),
        ("pkg.mod.MyException: x", ("pkg.mod.MyException", "x")),
        ("Note: this is text", (None, "Note: this is text")),
        ("Traceback (most recent call last):\n  File \"x\", line 1\n    f()\nKeyError: 'k'", ("KeyError", "'k'")),
    ],
)
def test_class_and_message_come_apart(text: str, expected: tuple) -> None:
    assert tuple(split_error(text)) == expected


@pytest.mark.parametrize(
    "text", ["Error: x", "Error", "ValueError: x", "openai.APIConnectionError: x", " Error executing tool"]
)
def test_error_texts_are_told(text: str) -> None:
    assert reads_like_error(text)


@pytest.mark.parametrize("text", ["No errors", "Errors were few", "The Error: x", "", None, {"Error": 1}])
def test_other_results_are_no_error_texts(text: object) -> None:
    assert not reads_like_error(text)


def test_call_envelopes_come_off() -> None:
    assert without_call_envelope({"args": [], "kwargs": {"a": 1}}) == {"a": 1}
    assert without_call_envelope({"input": {"a": 1}}) == {"a": 1}
    assert without_call_envelope({"input": "text"}) == {"input": "text"}
    assert without_call_envelope({"args": [1], "kwargs": {}}) == {"args": [1], "kwargs": {}}
