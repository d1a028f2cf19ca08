"""Replays recorded tau-bench sessions offline with a real tool-calling loop, and says which are faithful.

    python examples/tau_bench.py FILE.json [--tools TOOLS.json] [--fork] [--limit N] [--output text|json]

Each session of FILE is imported and the agent run again from the top: a PydanticAI agent with the recorded tool
schemas, whose model and tools are answered by the recording. With ``--fork`` two changes follow: another system prompt
for every session, and one changed argument in one stored tool call of each.

The last line of the output is one JSON object: ``sessions``, ``faithful``, ``diverged``, ``live_calls`` and
``reasons``, the exact first difference of every session that is not faithful; ``not_imported`` names every record of
FILE that could not be read. Exit code 1 when there is either, 2 when there is nothing to replay, with ``error``.
"""

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelRequest, UserPromptPart

import playhead
from playhead.adapters.pydantic_ai import Playhead
from playhead.core.keys import call_key
from playhead.importers import import_paths

LIVE_CALLS: Counter[str] = Counter()
OFFLINE = {"type": "history"}


def main() -> int:
    options = arguments()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # recorded text may be anything
    summary: dict[str, Any] = {"sessions": 0, "faithful": 0, "diverged": 0, "live_calls": 0, "reasons": []}
    try:
        summary |= run(options)
    except (playhead.PlayheadError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        summary["error"] = str(error)
    print(json.dumps(summary))
    if "error" in summary:
        return 2
    return 0 if summary["faithful"] == summary["sessions"] and not summary["not_imported"] else 1


def run(options: argparse.Namespace) -> dict[str, Any]:
    with playhead.open("memory:") as client:
        report = import_paths(client.store, [options.file])
        problems = [*report.errors, *report.skipped]
        lost = [
            {"where": ":".join(filter(None, (n.file, n.position))), "code": n.code, "why": n.message} for n in problems
        ]
        for one in lost:
            print(f"not imported: {one['where']}: {one['why']}", file=sys.stderr)
        sessions = every_session(client)[: options.limit]
        if not sessions:
            return {"not_imported": lost, "error": f"{options.file} holds no session to replay"}
        agent = make_agent(tool_schemas(client, sessions, options.tools))
        summary = unchanged(client, sessions, agent, options.output == "text") | {"not_imported": lost}
        if options.fork:
            summary["other_prompt"] = forked(client, sessions, agent, {"system_prompt": "You are a pirate."})
            summary["other_argument"] = tampered(client, sessions, agent)
        return summary


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Replay recorded tau-bench sessions offline.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tools", type=Path, help="JSON file with the tool schemas that the agent was offered")
    parser.add_argument("--fork", action="store_true", help="then change the prompt, and one recorded argument")
    parser.add_argument("--limit", type=at_least_one, help="the first N sessions only")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    return parser.parse_args()


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def every_session(client: playhead.Client) -> list[Any]:
    """All sessions of the store, oldest first."""
    found: list[Any] = []
    cursor = None
    while True:
        page = client.sessions.find(playhead.SessionQuery(oldest_first=True), limit=200, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


# the agent under test


def tool_schemas(client: playhead.Client, sessions: list[Any], path: Path | None) -> list[dict[str, Any]]:
    """Those of ``--tools``, else an open object for every tool that was called."""
    if path is None:
        names = {n.call.tool for s in sessions for n in client.sessions.nodes(s.id) if n.call is not None}
        return [{"name": name, "parameters": {"type": "object"}} for name in sorted(names)]
    try:
        listed = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"--tools {path} is not JSON: {error}") from None
    entries = listed if isinstance(listed, list) else [listed]
    found = [t.get("function", t) if isinstance(t, dict) else None for t in entries]
    for place, schema in enumerate(found):
        if not isinstance(schema, dict) or not isinstance(schema.get("name"), str):
            raise ValueError(f"--tools {path}: entry {place} is no tool schema: an object with a name was expected")
    return list({schema["name"]: schema for schema in found}.values())


def make_tool(schema: dict[str, Any]) -> Tool:
    """A tool whose body must never run: in an offline replay the recording answers for it."""

    def body(**arguments: Any) -> str:
        LIVE_CALLS[schema["name"]] += 1
        raise RuntimeError(f"the live tool {schema['name']} was called with {arguments}")

    return Tool.from_schema(
        body,
        name=schema["name"],
        description=schema.get("description") or "",
        json_schema=schema["parameters"] if isinstance(schema.get("parameters"), dict) else {"type": "object"},
    )


def make_agent(schemas: list[dict[str, Any]]) -> Callable[..., str | None]:
    """An ordinary loop over the turns that the customer's side took in the recording."""
    tools = [make_tool(schema) for schema in schemas]

    def support_agent(turns: list[Any], system_prompt: str | None = None) -> str | None:
        agent = Agent(
            "openai:gpt-4o",
            output_type=str | None,  # an empty answer is an answer
            system_prompt=system_prompt or (),
            tools=tools,
            capabilities=[Playhead()],
        )
        history: list[Any] = []
        output: str | None = None
        for turn in turns:
            *earlier, prompt = user_messages(turn)
            history += [ModelRequest(parts=[UserPromptPart(text)]) for text in earlier]  # several messages in a row
            result = agent.run_sync(prompt, message_history=history)
            history, output = result.all_messages(), result.output or ""
        return output

    return support_agent


def user_messages(turn: Any) -> list[str]:
    """What the customer's side said in one turn, message by message."""
    if isinstance(turn, str):
        return [turn]
    strange = sorted({part["type"] for part in turn} - {"text"})
    if strange:
        raise ValueError(f"this agent sends texts, and the recorded user message has parts of type {strange}")
    return [part["text"] for part in turn]


# what is done with it


def unchanged(client: playhead.Client, sessions: list[Any], agent: Any, talk: bool) -> dict[str, Any]:
    """Replays every session as it is."""
    reasons: list[dict[str, Any]] = []
    for number, session in enumerate(sessions, 1):
        found = replayed(client, session, agent)
        if found["fidelity"] != "faithful":
            reasons.append(found)
        if talk:
            where = ": ".join(found[k] for k in ("where", "why") if found[k])
            print(f"{number:4} {found['session']} {found['fidelity']}{where and f': {where}'}")
    return {
        "sessions": len(sessions),
        "faithful": len(sessions) - len(reasons),
        "diverged": len(reasons),
        "live_calls": sum(LIVE_CALLS.values()),
        "reasons": reasons,
    }


def replayed(client: playhead.Client, session: Any, agent: Any, **change: Any) -> dict[str, Any]:
    """Replays one session offline and gives the first difference, as plain data."""
    try:
        result = playhead.replay(session.id, agent=agent, model_policy=OFFLINE, store=client.store, **change)
    except playhead.PlayheadError as error:  # refused, such as a conversation that nobody from outside begins
        return difference(session, None) | {"fidelity": "refused", "why": error.message}
    return difference(session, result)


def forked(client: playhead.Client, sessions: list[Any], agent: Any, override: dict[str, Any]) -> dict[str, Any]:
    """Replays every session with an override: the first model request differs, and the diff says how."""
    affected = [session for session in sessions if session.system_prompt is not None]
    firsts = [replayed(client, session, agent, override=override) for session in affected]
    return {
        "sessions": len(firsts),
        "diverged_at_first_model_request": sum(
            f["what"] == "model_request" and f["where"] == "model call 1" and bool(f["diff"]) for f in firsts
        ),
        "first": firsts[0] if firsts else None,
    }


def tampered(client: playhead.Client, sessions: list[Any], agent: Any) -> dict[str, Any]:
    """Changes one argument of the last tool call of each recording: exactly that call is named, with the pointer."""
    named: list[bool] = []
    first: dict[str, Any] | None = None
    for session in sessions:
        nodes = client.sessions.nodes(session.id)
        calls = [n for n in nodes if n.call is not None and n.call.arguments]
        if not calls:
            continue
        changed, member = calls[-1], next(iter(calls[-1].call.arguments))
        other = {**changed.call.arguments, member: "another value"}
        call = replace(changed.call, arguments=other, key=call_key(changed.call.tool, other))
        copy = replace(session, id=session.id[:-1] + ("0" if session.id[-1] != "0" else "1"), imported=None)
        moved = [
            replace(n, session_id=copy.id, imported=None, **({"call": call} if n is changed else {})) for n in nodes
        ]
        client.sessions.put(copy, moved)
        found = replayed(client, copy, agent)
        named.append(found["node"] == changed.id and found["pointers"] == [f"/{member}"])
        first = first or found
        client.sessions.delete(copy.id)
    return {"sessions": len(named), "exactly_that_call_named": sum(named), "first": first}


def difference(session: Any, result: playhead.ReplayResult | None) -> dict[str, Any]:
    """The first difference of a replay, as plain data."""
    found = result.fidelity.divergence if result else None
    faithful = result is not None and result.fidelity.kind == "faithful"
    why = "" if faithful or result is None else "; ".join(result.fidelity.reasons)
    return {
        "session": session.name or session.id,
        "fidelity": result.fidelity.kind.value if result else None,
        "what": found.what if found else None,
        "where": found.where if found else None,
        "node": found.baseline_node if found else None,
        "pointers": list(found.pointers) if found else [],
        "why": found.explanation if found else why,
        "diff": found.diff if found else None,
        "error": result.error.message if result and result.error else None,
    }


if __name__ == "__main__":
    sys.exit(main())
