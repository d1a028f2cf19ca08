"""Loading the price table does not surprise the agent's client libraries."""

import subprocess
import sys

import pytest

_SCRIPT = """
import sys, types
if {openai}:
    sys.modules["openai"] = types.ModuleType("openai")
from playhead.engine import pricing
pricing.prepare()
print("httpx2" in sys.modules)
"""


@pytest.mark.parametrize("openai", [True, False])
def test_the_table_is_loaded_by_the_agents_thread_only_where_a_client_peeks_at_a_half_imported_module(
    openai: bool,
) -> None:
    script = _SCRIPT.format(openai=openai)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == str(openai)
