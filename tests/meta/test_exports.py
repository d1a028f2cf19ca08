"""The public names. Adding one is a decision, taking one away a breaking change: both show here first."""

import importlib
import subprocess
import sys

import pytest

import playhead

PUBLIC = {
    "__version__",
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
    "agent",
    "case",
    "fixtures",
    "flush",
    "fuzz",
    "gate",
    "guards",
    "inject",
    "judge_release",
    "install",
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
}


def test_the_public_names_are_these() -> None:
    assert set(playhead.__all__) == PUBLIC
    assert {*playhead._HOMES, "__version__"} == PUBLIC  # pyright: ignore[reportPrivateUsage]
    assert set(dir(playhead)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_can_be_used_and_is_described(name: str) -> None:
    value = getattr(playhead, name)
    if callable(value):
        assert value.__doc__


def test_an_unknown_name_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothere'"):
        getattr(playhead, "nothere")  # noqa: B009 - as a user would meet it


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, playhead; sys.exit(str({'pydantic', 'sqlalchemy', 'orjson'} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("module", ["playhead.engine.client", "playhead.importers"])
def test_documented_modules_name_what_they_export(module: str) -> None:
    loaded = importlib.import_module(module)
    assert all(hasattr(loaded, name) for name in loaded.__all__)
