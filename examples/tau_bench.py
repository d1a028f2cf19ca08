"""Replays recorded tau-bench sessions offline with a real tool-calling loop, and says what is faithful.

    python examples/tau_bench.py FILE.json [--tools TOOLS.json] [--limit N] [--output text|json]

Each session of FILE is imported and its agent run again from the top: a PydanticAI agent with the recorded tool
schemas, whose model and tools are answered by the recording. The last line of the output is one JSON object with
``sessions``, ``faithful``, ``diverged``, ``live_calls`` and the reasons. Exit code 1 when a session is not faithful.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool

import playhead
from playhead.adapters.pydantic_ai import Playhead
from playhead.importers import import_paths

LIVE_CALLS: Counter[str] = Counter()


def tool_schemas(store: Any, path: Path | None) -> dict[str, dict[str, Any]]:
    """Schemas by tool name: those of ``--tools``, else an open object for every tool that was called."""
    if path is not None:
        found = [t.get("function", t) for t in json.loads(path.read_text())]
        return {t["name"]: t for t in found}
    called = {
        node.call.tool
        for session in every_session(store)
        for node in store.sessions.nodes(session.id)
        if node.call is not None
    }
    return {name: {"name": name, "description": "", "parameters": {"type": "object"}} for name in sorted(called)}


def every_session(store: Any) -> list[Any]:
    """All sessions of the store, oldest first."""
    from playhead.store.ports import SessionQuery

    found: list[Any] = []
    cursor = None
    while True:
        page = store.sessions.find(SessionQuery(oldest_first=True), limit=200, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def make_tool(schema: dict[str, Any]) -> Tool:
    """A tool whose body must never run: in an offline replay the recording answers for it."""

    def body(**arguments: Any) -> str:
        LIVE_CALLS[schema["name"]] += 1
        raise RuntimeError(f"the live tool {schema['name']} was called with {arguments}")

    return Tool.from_schema(
        body,
        name=schema["name"],
        description=schema.get("description") or "",
        json_schema=schema.get("parameters") or {"type": "object"},
    )


def make_agent(schemas: dict[str, dict[str, Any]], system_prompt_override: str | None = None) -> Any:
    """The agent under test: an ordinary loop over the turns that the customer's side took in the recording."""
    tools = [make_tool(schema) for schema in schemas.values()]

    def airline_agent(turns: list[Any], system_prompt: str | None = None) -> str | None:
        agent = Agent(
            "openai:gpt-4o",
            system_prompt=system_prompt or (),
            tools=tools,
            retries=0,
            capabilities=[Playhead()],
        )
        history: list[Any] = []
        output: str | None = None
        for turn in turns:
            result = agent.run_sync(turn, message_history=history)
            history, output = result.all_messages(), result.output
        return output

    return airline_agent


def main() -> int:
    parser = argparse.ArgumentParser(description="Replay recorded tau-bench sessions offline.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tools", type=Path, help="JSON file with the tool schemas that the agent was offered")
    parser.add_argument("--limit", type=int, help="replay the first N sessions only")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    with playhead.open("memory:") as engine:
        report = import_paths(engine.store, [options.file])
        for problem in report.errors:
            print(f"not imported: {problem}", file=sys.stderr)
        agent = make_agent(tool_schemas(engine.store, options.tools))
        sessions = every_session(engine.store)[: options.limit]
        reasons = [reason for n, s in enumerate(sessions, 1) if (reason := replay_one(engine, s, agent, n, options))]
    summary = {
        "sessions": len(sessions),
        "faithful": len(sessions) - len(reasons),
        "diverged": len(reasons),
        "live_calls": sum(LIVE_CALLS.values()),
        "reasons": reasons,
    }
    print(json.dumps(summary, ensure_ascii=False))
    return 0 if not reasons and len(sessions) else 1


def replay_one(engine: Any, session: Any, agent: Any, number: int, options: argparse.Namespace) -> dict[str, Any] | None:
    """Replays one session; the reason why it is not faithful, or None."""
    result = playhead.replay(session.id, agent=agent, model_policy={"type": "history"}, store=engine.store)
    fidelity = result.fidelity
    if options.output == "text":
        print(f"{number:4}  {session.name or session.id}  {fidelity.kind}")
    if fidelity.kind == "faithful":
        return None
    found = fidelity.divergence
    reason = {
        "session": session.name or session.id,
        "fidelity": str(fidelity.kind),
        "where": found.where if found else None,
        "what": found.what if found else None,
        "pointers": list(found.pointers) if found else [],
        "why": (found.explanation if found else "; ".join(fidelity.reasons)),
        "diff": found.diff if found else None,
        "error": result.error.message if result.error else None,
    }
    if options.output == "text":
        print(f"      {reason['where']}: {reason['why']}")
    return reason


if __name__ == "__main__":
    sys.exit(main())
