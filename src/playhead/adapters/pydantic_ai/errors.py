"""The framework's exceptions as recorded failures that can be raised again."""

import pydantic_ai.exceptions

from playhead.engine.failures import register_error


def register() -> None:
    """Lets every public exception of the framework, and what it raises for HTTP statuses, come back as itself."""
    for found in list(vars(pydantic_ai.exceptions).values()):
        if isinstance(found, type) and issubclass(found, Exception) and found.__module__ == "pydantic_ai.exceptions":
            register_error(found)
