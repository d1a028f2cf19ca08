"""Recordings of AI-agent runs that can be run again: record, replay, fork, compare.

Everything public is named in ``__all__``; modules are imported when a name of theirs is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.adapters.fixtures import fixtures
    from playhead.adapters.functions import OpGroup, agent, gate, op, session, tool
    from playhead.adapters.inline import replay
    from playhead.adapters.installation import install, uninstall
    from playhead.core.evaluation import EvaluationContext
    from playhead.core.experiments.definition import Arm, ExperimentConfig, RunConfig
    from playhead.core.gate.judge import judge as judge_release
    from playhead.core.policy import (
        ErrorCase,
        HistoryConfig,
        HistoryModel,
        InjectConfig,
        LiveModel,
        LLMConfig,
        ModelFailure,
        PassthroughConfig,
        ReplayOverride,
        StaticCase,
        StaticConfig,
        ToolPolicy,
    )
    from playhead.core.requests import EvaluatorConfig, ReplayCreateRequest
    from playhead.core.stored import register_type
    from playhead.core.values import Verdict
    from playhead.engine.async_client import PlayheadClient, open_async
    from playhead.engine.client import Client
    from playhead.engine.client import open_client as open
    from playhead.engine.failures import register_error
    from playhead.engine.fixtures.op_context import OpContext
    from playhead.engine.fixtures.ops import Slot
    from playhead.engine.fuzz.client import FuzzResult, fuzz
    from playhead.engine.given_secrets import secrets
    from playhead.engine.guards import GuardScope, guards
    from playhead.engine.named_secret import secret
    from playhead.engine.project import flush
    from playhead.engine.replay import ReplayResult
    from playhead.engine.suites.client import SuiteClient
    from playhead.engine.suites.client import open_suite as suite
    from playhead.engine.suites.inject_client import InjectResult, inject
    from playhead.errors import MissError, MissingFixtureError, OpError, PlayheadError, ReplayedToolError, ReplayStop
    from playhead.store.ports import SessionQuery
    from playhead.testing.marks import case

    __version__: str

__all__ = [
    "Arm",
    "Client",
    "ErrorCase",
    "EvaluationContext",
    "EvaluatorConfig",
    "ExperimentConfig",
    "FuzzResult",
    "GuardScope",
    "HistoryConfig",
    "HistoryModel",
    "InjectConfig",
    "InjectResult",
    "LLMConfig",
    "LiveModel",
    "MissError",
    "MissingFixtureError",
    "ModelFailure",
    "OpContext",
    "OpError",
    "OpGroup",
    "PassthroughConfig",
    "PlayheadClient",
    "PlayheadError",
    "ReplayCreateRequest",
    "ReplayOverride",
    "ReplayResult",
    "ReplayStop",
    "ReplayedToolError",
    "RunConfig",
    "SessionQuery",
    "Slot",
    "StaticCase",
    "StaticConfig",
    "SuiteClient",
    "ToolPolicy",
    "Verdict",
    "__version__",
    "agent",
    "case",
    "fixtures",
    "flush",
    "fuzz",
    "gate",
    "guards",
    "inject",
    "install",
    "judge_release",
    "op",
    "open",
    "open_async",
    "register_error",
    "register_type",
    "replay",
    "secret",
    "secrets",
    "session",
    "suite",
    "tool",
    "uninstall",
]

_HOMES = {
    "fixtures": "adapters.fixtures",
    "agent": "adapters.functions",
    "gate": "adapters.functions",
    "OpGroup": "adapters.functions",
    "op": "adapters.functions",
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
    "ModelFailure": "core.policy",
    "PassthroughConfig": "core.policy",
    "ReplayOverride": "core.policy",
    "StaticCase": "core.policy",
    "StaticConfig": "core.policy",
    "ToolPolicy": "core.policy",
    "EvaluationContext": "core.evaluation",
    "Arm": "core.experiments.definition",
    "ExperimentConfig": "core.experiments.definition",
    "RunConfig": "core.experiments.definition",
    "EvaluatorConfig": "core.requests",
    "Verdict": "core.values",
    "ReplayCreateRequest": "core.requests",
    "register_type": "core.stored",
    "PlayheadClient": "engine.async_client",
    "open_async": "engine.async_client",
    "Client": "engine.client",
    "open": "engine.client:open_client",
    "register_error": "engine.failures",
    "FuzzResult": "engine.fuzz.client",
    "fuzz": "engine.fuzz.client",
    "GuardScope": "engine.guards",
    "guards": "engine.guards",
    "secret": "engine.named_secret",
    "secrets": "engine.given_secrets",
    "judge_release": "core.gate.judge:judge",
    "InjectResult": "engine.suites.inject_client",
    "inject": "engine.suites.inject_client",
    "OpContext": "engine.fixtures.op_context",
    "Slot": "engine.fixtures.ops",
    "flush": "engine.project",
    "ReplayResult": "engine.replay",
    "SuiteClient": "engine.suites.client",
    "suite": "engine.suites.client:open_suite",
    "MissError": "errors",
    "MissingFixtureError": "errors",
    "OpError": "errors",
    "PlayheadError": "errors",
    "ReplayedToolError": "errors",
    "ReplayStop": "errors",
    "case": "testing.marks",
    "SessionQuery": "store.ports",
}


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
