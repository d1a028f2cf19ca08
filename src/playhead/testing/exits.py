"""A structured exit for agents: a tool that ends a task which cannot be done. Frameworks take it as a function."""

from typing import Literal

__all__ = ["report_failure"]


def report_failure(
    reason: Literal["missing_information", "not_permitted", "not_found", "tool_unavailable", "other"],
    what_failed: str,
    user_message: str,
    tried: str = "",
) -> str:
    """Ends the task when it cannot be done: call it instead of trying again without new information.

    Args:
        reason: Why it cannot be done.
        what_failed: The step that failed, and the error that it gave.
        user_message: What the user is told: what happened, what to do now.
        tried: What was tried, with which values.
    """
    return "reported"
