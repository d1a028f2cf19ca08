"""The framework's exceptions as recorded failures that can be raised again."""

import agents.exceptions
import openai

from playhead.engine.failures import register_error


def register() -> None:
    """Lets every public exception of the framework and of its client come back as itself."""
    for module in (agents.exceptions, openai):
        for name, found in list(vars(module).items()):
            if isinstance(found, type) and issubclass(found, Exception) and not name.startswith("_"):
                register_error(found)
