"""What the program is told when a replay has been stopped."""

import json
from typing import Any

STOP_STATUS = 400
"""A status after which the program does not try again."""
STOPPED = "the replay was stopped"
SERVED = "answered from a recording"


def stop_body() -> bytes:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": STOPPED}}).encode()


def denied(reason: str, *, stop: bool = False) -> dict[str, Any]:
    """A hook's answer: the tool does not run; ``stop`` ends the turn too."""
    said: dict[str, Any] = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
    return {**said, "continue_": False, "stopReason": reason} if stop else said
