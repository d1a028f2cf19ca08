"""Every built-in evaluator by name."""

from types import MappingProxyType
from typing import Final

from playhead.core.evaluators import calls, conduct, faithful, judging, measures, outputs

BUILTINS: Final = MappingProxyType(
    {b.name: b for module in (faithful, outputs, calls, conduct, measures, judging) for b in module.BUILTINS}
)
