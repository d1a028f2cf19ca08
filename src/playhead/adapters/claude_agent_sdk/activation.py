"""`install()`: queries of the process are seen, without a change to its code.

What is wrapped is the public `query`; a name that was imported from the package before stays as it was.
"""

import functools
import logging
import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from playhead.adapters.claude_agent_sdk.identity import DEFAULT
from playhead.adapters.claude_agent_sdk.runner import PlayheadClaudeRunner
from playhead.engine import seam
from playhead.engine.patching import require
from playhead.engine.zero_code import sessions_wanted
from playhead.errors import RecordingError

log = logging.getLogger("playhead")
_lock = threading.Lock()
_told: set[str] = set()


def install() -> None:
    """Wraps `claude_agent_sdk.query`. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the framework lacks what recording takes.
    """
    with _lock:
        if not is_installed():
            _check()
            claude_agent_sdk.query = _wrapped(claude_agent_sdk.query)


def uninstall() -> None:
    """Undoes `install`."""
    with _lock:
        if is_installed():
            claude_agent_sdk.query = claude_agent_sdk.query.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]


def is_installed() -> bool:
    return getattr(getattr(claude_agent_sdk, "query", None), "__playhead__", False) is True


def _check() -> None:
    options = {field.name for field in fields(ClaudeAgentOptions)}
    found = {f"ClaudeAgentOptions.{name}": name in options for name in ("hooks", "env", "mcp_servers")}
    found |= {"HookMatcher.hooks": "hooks" in {field.name for field in fields(HookMatcher)}}
    found |= {"query": callable(getattr(claude_agent_sdk, "query", None))}
    require("claude-agent-sdk", "adapter-claude-agent-sdk.md", found)


def _refuse_stream() -> None:
    """A prompt that is a stream of messages is not seen; in a replay it would go live with all its tools."""
    state = seam.replay_here()
    if state is not None:
        raise state.refuse(
            RecordingError(
                "a query whose prompt is a stream of messages was made in a replay, where nothing can answer it",
                hint="give the prompt as text, or use the client that playhead wraps",
            )
        )


def _tell_of_unknown(more: Mapping[str, Any]) -> None:
    """Options that a newer framework takes, and this adapter does not know: the query is not recorded."""
    names = ", ".join(sorted(more))
    problem = f"a query was given {names}, which this version of playhead does not know"
    state = seam.replay_here()
    if state is not None:
        raise state.refuse(RecordingError(problem, hint="use a version that docs/adapter-claude-agent-sdk.md names"))
    if names not in _told:
        _told.add(names)
        log.warning("playhead: %s: the query is not recorded", problem)


def _wrapped(original: Any) -> Any:
    def query(*, prompt: Any, options: Any = None, transport: Any = None, **more: Any) -> Any:
        wanted = seam.is_seen(wanted=sessions_wanted())
        if wanted and not isinstance(prompt, str):
            _refuse_stream()
        if wanted and more:
            _tell_of_unknown(more)
        if not wanted or more or not isinstance(prompt, str):
            return original(prompt=prompt, options=options, transport=transport, **more)
        return PlayheadClaudeRunner(DEFAULT).query(prompt=prompt, options=options, transport=transport)

    wrapped: Any = functools.wraps(original)(query)
    wrapped.__playhead__ = True
    return wrapped
