"""The framework's exceptions as recorded failures that can be raised again."""

from typing import Any

import pydantic_ai.exceptions

from playhead.engine.failures import register_error


def register() -> None:
    """Lets every exception of the framework, also what it raises for HTTP statuses, come back as itself."""
    known: list[Any] = list(vars(pydantic_ai.exceptions).values())
    for found in known:
        if _is_ours(found):
            register_error(found)


def _is_ours(found: Any) -> bool:
    """Whether a name of the framework's module is an exception of it. `Skip...` are results, not failures."""
    known = isinstance(found, type) and issubclass(found, Exception)
    return known and found.__module__ == "pydantic_ai.exceptions" and not found.__name__.startswith("Skip")
