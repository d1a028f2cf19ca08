"""The structured exit is the tool that `playhead inject --add-exit` offers."""

import inspect
import typing

from playhead.core.recovery.plan import REPORT_FAILURE
from playhead.testing import report_failure


def test_the_function_has_the_schema_that_is_offered():
    hints = typing.get_type_hints(report_failure)
    declared = REPORT_FAILURE.parameters["properties"]
    assert set(inspect.signature(report_failure).parameters) == set(declared)
    assert list(typing.get_args(hints["reason"])) == declared["reason"]["enum"]
    required = {n for n, p in inspect.signature(report_failure).parameters.items() if p.default is p.empty}
    assert required == set(REPORT_FAILURE.parameters["required"])
    assert report_failure("other", "refund", "A colleague follows up.") == "reported"
