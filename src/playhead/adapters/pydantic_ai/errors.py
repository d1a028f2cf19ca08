"""The framework's exceptions as recorded failures that can be raised again."""

from typing import Any

import pydantic_ai.exceptions

from playhead.engine.failures import register_error


def register() -> None:
    """Lets every exception of the framework, also what it raises for HTTP statuses, come back as itself."""
    known: list[Any] = list(vars(pydantic_ai.exceptions).values())
    for found in known:
        ours = isinstance(found, type) and issubclass(found, Exception)
        if ours and found.__module__ == "pydantic_ai.exceptions" and not found.__name__.startswith("Skip"):
            register_error(found)
