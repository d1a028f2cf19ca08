"""Every built-in evaluator by name."""

from types import MappingProxyType
from typing import Final

from playhead.core.evaluators import faithful

BUILTINS: Final = MappingProxyType({b.name: b for module in (faithful,) for b in module.BUILTINS})
