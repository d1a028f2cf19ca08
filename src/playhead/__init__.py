"""Recordings of AI-agent runs that can be run again: record, replay, fork, compare.

Everything public is named in ``__all__``; modules are imported when a name of theirs is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.adapters.functions import agent as agent
    from playhead.adapters.functions import gate as gate
    from playhead.adapters.functions import session as session
    from playhead.adapters.functions import tool as tool
    from playhead.adapters.inline import replay as replay
    from playhead.adapters.installation import install as install
    from playhead.adapters.installation import uninstall as uninstall
    from playhead.core.policy import (
        ErrorCase as ErrorCase,
    )
    from playhead.core.policy import (
        HistoryConfig as HistoryConfig,
    )
    from playhead.core.policy import (
        HistoryModel as HistoryModel,
    )
    from playhead.core.policy import (
        InjectConfig as InjectConfig,
    )
    from playhead.core.policy import (
        LiveModel as LiveModel,
    )
    from playhead.core.policy import (
        LLMConfig as LLMConfig,
    )
    from playhead.core.policy import (
        PassthroughConfig as PassthroughConfig,
    )
    from playhead.core.policy import (
        ReplayOverride as ReplayOverride,
    )
    from playhead.core.policy import (
        StaticCase as StaticCase,
    )
    from playhead.core.policy import (
        StaticConfig as StaticConfig,
    )
    from playhead.core.policy import (
        ToolPolicy as ToolPolicy,
    )
    from playhead.core.requests import EvaluatorConfig as EvaluatorConfig
    from playhead.core.requests import ReplayCreateRequest as ReplayCreateRequest
    from playhead.core.stored import register_type as register_type
    from playhead.engine.client import Client as Client
    from playhead.engine.client import open_client as open
    from playhead.engine.failures import register_error as register_error
    from playhead.engine.project import flush as flush
    from playhead.engine.replay import ReplayResult as ReplayResult
    from playhead.errors import MissError as MissError
    from playhead.errors import PlayheadError as PlayheadError
    from playhead.errors import ReplayedToolError as ReplayedToolError
    from playhead.errors import ReplayStop as ReplayStop
    from playhead.store.ports import SessionQuery as SessionQuery

_HOMES = {
    "agent": "adapters.functions",
    "gate": "adapters.functions",
    "session": "adapters.functions",
    "tool": "adapters.functions",
    "replay": "adapters.inline",
    "install": "adapters.installation",
    "uninstall": "adapters.installation",
    "ErrorCase": "core.policy",
    "HistoryConfig": "core.policy",
    "HistoryModel": "core.policy",
    "InjectConfig": "core.policy",
    "LLMConfig": "core.policy",
    "LiveModel": "core.policy",
    "PassthroughConfig": "core.policy",
    "ReplayOverride": "core.policy",
    "StaticCase": "core.policy",
    "StaticConfig": "core.policy",
    "ToolPolicy": "core.policy",
    "EvaluatorConfig": "core.requests",
    "ReplayCreateRequest": "core.requests",
    "register_type": "core.stored",
    "Client": "engine.client",
    "open": "engine.client:open_client",
    "register_error": "engine.failures",
    "flush": "engine.project",
    "ReplayResult": "engine.replay",
    "MissError": "errors",
    "PlayheadError": "errors",
    "ReplayedToolError": "errors",
    "ReplayStop": "errors",
    "SessionQuery": "store.ports",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("playhead")
    elif name in _HOMES:
        module, _, other = _HOMES[name].partition(":")
        value = getattr(import_module(f"playhead.{module}"), other or name)
    else:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
