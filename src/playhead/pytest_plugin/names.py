"""Names that the parts of the plugin share. Nothing but pytest is imported here."""

from typing import Any

import pytest

TAPE = "playhead_tape"
CASE = "playhead_case"
TRIALS = pytest.StashKey[list[dict[str, Any]]]()
"""What the trials of a case's test came to."""
