"""The framework's exceptions as recorded failures that can be raised again."""

from langchain_core.exceptions import LangChainException, OutputParserException
from langchain_core.tools.base import ToolException

from playhead.engine.failures import register_error


def register() -> None:
    """Lets the framework's exceptions come back as themselves."""
    for found in (ToolException, LangChainException, OutputParserException):
        register_error(found)
