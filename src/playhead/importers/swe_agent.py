"""SWE-agent trajectories: what the agent did in its shell, step by step."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from playhead.core.assemble.records import RecordError, Trace
from playhead.core.assemble.shapes import is_object, objects
from playhead.core.assemble.transcript import read_messages, transcript_records
from playhead.core.protocol.parts import stored
from playhead.core.values import JSON
from playhead.engine.documents import Document
from playhead.engine.imports import PlainReader, Plan, Planned

NAME = "swe_agent"
ACTION = "action"
_COMMAND: dict[str, Any] = {
    "name": ACTION,
    "description": "Runs a command in the shell of the environment.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


class SweAgentReader(PlainReader):
    """A file is a session.

    Steps come from ``trajectory``; ``history``, which may lack some, adds the names, ids and arguments of calls. Agents
    that write commands as text have one tool, ``action``. Demonstrations are input.
    """

    def __init__(self, *, tools: Sequence[JSON] | None = None, instance: str = "", depth: int = 200) -> None:
        self._tools, self._instance, self._depth = tools, instance, depth

    def add(self, document: Document) -> Iterator[Planned]:
        body: Any = document.value
        if not is_object(body):
            raise RecordError("undecodable", "it is no JSON object")
        name = PurePath(document.file).name.removesuffix(".traj")
        steps, history = objects(body.get("trajectory")), objects(body.get("history"))
        if not steps:
            steps = _steps_of(history)
        if not steps:
            raise RecordError("undecodable", "no steps in trajectory or history", name)
        spoken = [m for m in history if m.get("role") == "assistant" and not m.get("is_demo")]
        raw = [_input(m) for m in _before(history)]
        calls = False
        aligned = _aligned(steps, spoken)
        for number, step in enumerate(steps):
            made = _step(step, aligned[number], number)
            calls = calls or bool(objects(obj(aligned[number]).get("tool_calls")))
            raw += made
        messages = read_messages(raw, name, self._depth)
        tools = self._tools if calls or self._tools else [_COMMAND]
        yield Plan(runs=((
            Trace(
                format=NAME,
                instance=self._instance,
                external_id=name,
                name=name,
                metadata=_metadata(body),
                transcript=messages,
                whole=True,
                file=PurePath(document.file).name,
            ),
            transcript_records(messages, tools=tools),
        ),))  # fmt: skip


def obj(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


def _before(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the agent was given: everything before its first own answer, demonstrations with it."""
    found: list[dict[str, Any]] = []
    for message in history:
        if message.get("role") == "assistant" and not message.get("is_demo"):
            break
        found.append(message)
    return found


def _input(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    shown = "user" if role not in ("system", "user") else role
    return {"role": shown, "content": message.get("content") or ""}


def _aligned(steps: Sequence[dict[str, Any]], spoken: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """For each step the answer in the history with its action, in order; None where the history lacks it."""
    found: list[dict[str, Any] | None] = []
    place = 0
    for step in steps:
        fitting = next((n for n in range(place, len(spoken)) if _same(spoken[n], step)), None)
        if fitting is None:
            found.append(None)
            continue
        found.append(spoken[fitting])
        place = fitting + 1
    return found


def _same(message: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    return str(message.get("action") or "").strip() == str(step.get("action") or "").strip()


def _step(step: Mapping[str, Any], said: dict[str, Any] | None, number: int) -> list[dict[str, Any]]:
    """The answer of the model and the result of its call, in the form of the OpenAI API."""
    text = step.get("response") or step.get("thought") or obj(said).get("content") or ""
    calls = objects(obj(said).get("tool_calls"))
    action = step.get("action")
    if not calls and not action:
        observed = step.get("observation")
        answer = [{"role": "assistant", "content": text}]
        return [*answer, {"role": "user", "content": observed}] if observed else answer
    if not calls:
        calls = [{"id": f"step-{number}", "function": {"name": ACTION, "arguments": {"command": action}}}]
    asked = {"role": "assistant", "content": text, "tool_calls": [{**call, "type": "function"} for call in calls]}
    observed = str(step.get("observation") or "")
    return [asked, *({"role": "tool", "tool_call_id": call.get("id"), "content": observed} for call in calls)]


def _steps_of(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a file that has only a history."""
    found: list[dict[str, Any]] = []
    for message in history:
        if message.get("is_demo"):
            continue
        if message.get("role") == "assistant":
            found.append({"action": message.get("action"), "response": message.get("content")})
        elif found and "observation" not in found[-1] and message.get("role") in ("user", "tool"):
            found[-1]["observation"] = message.get("content")
    return found


def _metadata(body: Mapping[str, Any]) -> dict[str, JSON]:
    info = obj(body.get("info"))
    found = {
        "environment": body.get("environment"),
        "exit_status": info.get("exit_status"),
        "model_stats": info.get("model_stats"),
        "submission": info.get("submission"),
    }
    return {name: stored(value) for name, value in found.items() if value is not None}
