"""Makes a suite of recorded tau-bench sessions, and scores what was recorded and two scripted models on it. Offline.

    python examples/suite_tau_bench.py FILE.json --tools TOOLS.json [--cases N]

Sessions that earned the reward give weak labels; failed calls that a later call corrected give recovery cases. The last
line of the output is one JSON object: how many cases and labels there are, and per model the passes of each dimension
with their denominators.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import playhead
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.suites.suite import ToolSchema
from playhead.core.suites.summary import RunSummary
from playhead.engine.exports import find_ids
from playhead.engine.suites.build import build
from playhead.engine.suites.folder import write_folder
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore


def always_text(ask: Any) -> dict[str, Any]:
    """A model that never calls a tool."""
    return {"role": "assistant", "parts": [{"type": "text", "text": "How can I help you?"}]}


def always_first(ask: Any) -> dict[str, Any]:
    """A model that calls the first tool, with nothing, whatever is asked."""
    call = {"type": "tool_call", "id": "c", "name": ask.tools[0].name, "arguments": {}}
    return {"role": "assistant", "parts": [call]}


def main() -> int:
    options = arguments()
    tools = [ToolSchema.model_validate(read_tool(tool)) for tool in json.loads(options.tools.read_text("utf-8"))]
    store = MemoryStore()
    report = import_paths(store, [options.file])
    if not report.created:
        print(json.dumps({"error": f"nothing in {options.file} shows tau-bench sessions"}))
        return 2
    found, captured = build(
        store, find_ids(store, playhead.SessionQuery()), name="tau-bench", tools=tools, known_effects=True
    )
    states = Counter(entry.state for entry in found.labels)
    summary: dict[str, Any] = {
        "sessions": report.created,
        "confirmed": len(captured.confirmed),
        "cases": len(found.cases),
        "labels": dict(states),
        "failed_calls": captured.mining,
        "models": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        write_folder(found, Path(folder, "suite"), lambda value: value)
        suite = playhead.suite(Path(folder, "suite"), url=str(Path(folder, "runs.db")))
        labelled = [case.id for case in found.cases if case.label is not None and case.slice == "tune"]
        for model in ("recorded", always_text, always_first):
            run = suite.run(model=model, runs=1, cases=labelled[: options.cases], trust=["weak", "mined"])
            summary["models"][run.model] = rates(run)
        suite.store.close()
    for name, found_rates in summary["models"].items():
        print(f"{name:<13} " + "  ".join(f"{k} {v['passed']}/{v['of']}" for k, v in found_rates.items()))
    print(json.dumps(summary))
    return 0


def rates(run: RunSummary) -> dict[str, dict[str, int]]:
    """Passes and denominators, by dimension."""
    trials = [trial for case in run.cases if case.active for trial in case.trials]
    found: dict[str, dict[str, int]] = {}
    for name in ("selection", "schema", "values", "passed"):
        known = [value for trial in trials if (value := getattr(trial, name)) is not None]
        found[name] = {"passed": sum(known), "of": len(known)}
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a result file of tau-bench")
    parser.add_argument("--tools", type=Path, required=True, help="the schemas of its tools (OpenAI form)")
    parser.add_argument("--cases", type=int, default=100, help="labelled cases to run, at most")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
