"""What error texts say (T17 of the tool-testing cases)."""

from typing import Any

import pytest

from playhead.core.lint.errors import Failure, judge, judge_all
from playhead.core.suites.suite import ToolSchema

STATUS = {"type": "string", "enum": ["open", "completed", "cancelled"]}
TOOL = ToolSchema(
    name="orders", parameters={"type": "object", "properties": {"city": {"type": "string"}, "status": STATUS}}
)


@pytest.mark.parametrize(
    ("text", "arguments", "level"),
    [
        ('{"error": "invalid input"}', {"status": "done"}, "opaque"),
        ("Bad Request", {"status": "done"}, "opaque"),
        ("KeyError: 'status'", {"status": "done"}, "opaque"),
        ("City 'Tokyoo' not found", {"city": "Tokyoo"}, "partial"),
        ("status must be one of: open, completed, cancelled (got 'done')", {"status": "done"}, "prescriptive"),
        (
            "City 'Tokyoo' not found. Did you mean 'Tokyo'? Use the English city name.",
            {"city": "Tokyoo"},
            "prescriptive",
        ),
        ("status is not valid", {"status": "done"}, "partial"),
    ],
)
def test_t17_single_texts(text: str, arguments: Any, level: str):
    assert judge(text, arguments, TOOL).level == level


def test_a_rate_limit_names_the_seconds():
    assert judge("Too many requests for city, retry later when it is over", {}, TOOL).allowed is False
    assert judge("Too many requests for city, retry after 30 s", {}, TOOL).level == "prescriptive"


@pytest.mark.parametrize(
    "leak",
    [
        'Traceback (most recent call last)\n File "x.py", line 3',
        "cannot open /etc/shadow",
        "key sk-abcdefghijklmnop1234 refused",
        "x" * 2001,
    ],
)
def test_traces_paths_secrets_and_floods_are_unsafe(leak: str):
    assert not judge(f"status must be one of open or completed. {leak}", {}, TOOL).safe


def test_one_result_for_a_template():
    calls = [
        Failure("orders", {"city": "Tokyoo", "n": 3}, "city Tokyoo has 3 of 17 rooms"),
        Failure("orders", {"city": "Parris", "n": 12}, "city Parris has 12 of 4 rooms"),
        Failure("other", {}, "Bad Request"),
    ]
    found = judge_all(calls, {"orders": TOOL})
    assert [(text.tool, text.count) for text in found] == [("orders", 2), ("other", 1)]


def test_a_suggestion_names_the_parameter_and_its_values():
    assert judge("status is bad", {"status": "done"}, TOOL).suggestion == (
        "status must be one of: open, completed, cancelled (got 'done')"
    )
