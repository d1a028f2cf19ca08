"""The tools of other packages as playhead calls them: functions by name, in the state that each package starts with."""

import importlib
from collections.abc import Callable
from typing import Any

APIS = {
    "GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
    "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}  # fmt: skip
SUITES = ("workspace", "travel", "banking", "slack")
_SOURCES = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_HELD: dict[str, Any] = {}
_SUITES: dict[str, Any] = {}


def _held(name: str) -> Any:
    if name not in _HELD:
        _HELD[name] = importlib.import_module(name)
    return _HELD[name]


def bfcl() -> dict[str, Callable[..., Any]]:
    """The methods of the eight APIs of the Berkeley Function Calling Leaderboard."""
    found: dict[str, Callable[..., Any]] = {}
    for name, module in APIS.items():
        api = getattr(_held(f"{_SOURCES}.{module}"), name)()
        if hasattr(api, "_load_scenario"):
            api._load_scenario({})
        found |= {method: getattr(api, method) for method in dir(api) if not method.startswith("_")}
    return {name: method for name, method in found.items() if callable(method)}


def _agentdojo(name: str) -> dict[str, Callable[..., Any]]:
    suite, environment = _SUITES[name]
    runtime = _held("agentdojo.functions_runtime").FunctionsRuntime(suite.tools)

    def bound(tool: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            return runtime.run_function(environment, tool, arguments, raise_on_error=True)[0]

        return call

    return {tool.name: bound(tool.name) for tool in suite.tools}


def agentdojo_schemas(name: str) -> list[dict[str, Any]]:
    """The tools of a suite as models are offered them."""
    return [
        {"name": t.name, "description": t.description, "parameters": t.parameters.model_json_schema()}
        for t in _SUITES[name][0].tools
    ]


def workspace() -> dict[str, Callable[..., Any]]:
    return _agentdojo("workspace")


def travel() -> dict[str, Callable[..., Any]]:
    return _agentdojo("travel")


def banking() -> dict[str, Callable[..., Any]]:
    return _agentdojo("banking")


def slack() -> dict[str, Callable[..., Any]]:
    return _agentdojo("slack")


def _prepare() -> None:
    """Imports and reads everything before the first call is forked: a call has no time for it."""
    for name in (*(f"{_SOURCES}.{module}" for module in APIS.values()), "agentdojo.functions_runtime"):
        try:
            _held(name)
        except ImportError:
            continue
    try:
        suites = _held("agentdojo.task_suite.load_suites").get_suites("v1.2")
    except ImportError:
        return
    for name in SUITES:
        _SUITES[name] = suites[name], suites[name].load_and_inject_default_environment({})


_prepare()
