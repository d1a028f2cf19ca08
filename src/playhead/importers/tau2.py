"""tau2 result files: simulated conversations of one run, with the tasks that they tried."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from playhead.core.assemble.dialogue import message_id
from playhead.core.assemble.records import Captured, Record, RecordError, Trace
from playhead.core.assemble.shapes import at, is_list, is_object, objects
from playhead.core.assemble.transcript import read_messages, transcript_records
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.protocol.parts import stored
from playhead.core.values import FROM_SOURCE, JSON, Cost, NodeKind, Usage, Verdict
from playhead.engine.documents import Document
from playhead.engine.imports import PlainReader, Plan, Planned

NAME = "tau2"
_FAILED = frozenset({"max_steps", "too_many_errors", "agent_error", "infrastructure_error"})
_USER = "user"


class Tau2Reader(PlainReader):
    """Every simulation is a session.

    Calls with ``requestor: user`` are the user simulator's own: spans, never calls of the agent. An answer with neither
    usage nor the provider's data was scripted, so no model call made it.
    """

    def __init__(self, *, tools: Sequence[JSON] | None = None, instance: str = "", depth: int = 200) -> None:
        self._tools, self._instance, self._depth = tools, instance, depth

    def add(self, document: Document) -> Iterator[Planned]:
        run: Any = document.value
        if not is_object(run):
            raise RecordError("undecodable", "it is no JSON object")
        tasks = {str(task.get("id")): task for task in objects(run.get("tasks"))}
        for place, simulation in enumerate(objects(run.get("simulations"))):
            yield self._plan(document, run, simulation, tasks, place)

    def _plan(
        self,
        document: Document,
        run: Mapping[str, Any],
        simulation: dict[str, Any],
        tasks: Mapping[str, Any],
        place: int,
    ) -> Plan:
        stem = PurePath(document.file).name.removesuffix(".json").removesuffix(".results")
        name = f"{stem}/{simulation.get('task_id')}/{simulation.get('trial', 0)}"
        raw = objects(simulation.get("messages"))
        if not raw:
            raise RecordError("undecodable", "no message list in a simulation", name)
        kept = [m for m in raw if m.get("requestor") != _USER]
        messages = read_messages([_message(m) for m in kept], name, self._depth)
        policy = simulation.get("policy") or at(run, "info", "environment_info", "policy")
        if isinstance(policy, str) and policy:
            messages = [{"role": "system", "parts": [{"type": "text", "text": policy}]}, *messages]
            kept = [{}, *kept]
        scripted = [n for n, m in enumerate(kept) if m.get("role") == "assistant" and _is_scripted(m)]
        model = at(run, "info", "agent_info", "llm")
        records = transcript_records(
            messages,
            model=model if isinstance(model, str) else None,
            tools=self._offered(run),
            protocol="openai_chat",
            scripted=scripted,
        )
        spent = {message_id(n): m for n, m in enumerate(kept) if m.get("role") == "assistant"}
        return Plan(runs=((
            Trace(
                format=NAME,
                instance=self._instance,
                external_id=str(simulation.get("id") or name),
                name=name,
                agent=_text(at(run, "info", "agent_info", "implementation")),
                metadata=_metadata(simulation, tasks.get(str(simulation.get("task_id")))),
                verdicts=_verdicts(simulation),
                status="failed" if simulation.get("termination_reason") in _FAILED else "completed",
                transcript=messages,
                whole=True,
                file=PurePath(document.file).name,
                position=f"{document.position}/simulations/{place}",
            ),
            [*(_with_usage(record, spent) for record in records), *_users(raw)],
        ),))  # fmt: skip

    def _offered(self, run: Mapping[str, Any]) -> Sequence[JSON] | None:
        defined = at(run, "info", "environment_info", "tool_defs")
        listed = objects(defined) if is_list(defined) else objects(list(defined.values())) if is_object(defined) else []
        return [read_tool(tool) for tool in listed] or self._tools


def _message(raw: dict[str, Any]) -> dict[str, Any]:
    """A message in the form of the OpenAI API."""
    if raw.get("role") == "tool":
        return {
            "role": "tool", "tool_call_id": raw.get("id"), "content": raw.get("content"),
            "error": raw.get("error") is True,
        }  # fmt: skip
    calls = [c for c in objects(raw.get("tool_calls")) if c.get("requestor") != _USER]
    made = {"role": raw.get("role"), "content": raw.get("content")}
    functions = [
        {
            "id": c.get("id"),
            "type": "function",
            "function": {"name": c.get("name"), "arguments": c.get("arguments")},
        }
        for c in calls
    ]
    return {**made, "tool_calls": functions} if functions else made


def _is_scripted(raw: Mapping[str, Any]) -> bool:
    return raw.get("usage") is None and raw.get("raw_data") is None


def _with_usage(record: Record, spent: Mapping[str, Mapping[str, Any]]) -> Record:
    raw = spent.get(record.external_id, {})
    usage: Any = raw.get("usage")
    tokens = (
        Usage(
            input_uncached=usage.get("prompt_tokens"), output_visible=usage.get("completion_tokens"), raw=stored(usage)
        )
        if is_object(usage)
        else None
    )
    cost: Any = raw.get("cost")
    paid = isinstance(cost, int | float) and not isinstance(cost, bool)
    return replace(record, usage=tokens, cost=Cost(amount=str(cost), source="reported") if paid else None)


def _users(raw: Sequence[dict[str, Any]]) -> list[Record]:
    """What the user simulator called, as spans."""
    results = {
        str(m.get("id")): m.get("content") for m in raw if m.get("role") == "tool" and m.get("requestor") == _USER
    }
    return [
        Record(
            external_id=f"user:{place}:{number}",
            kind=NodeKind.SPAN,
            word="user tool",
            name=str(call.get("name")),
            input=Captured(value=stored(call.get("arguments"))),
            output=Captured(value=stored(results.get(str(call.get("id")))), how="text"),
        )
        for place, message in enumerate(raw)
        for number, call in enumerate(objects(message.get("tool_calls")))
        if call.get("requestor") == _USER
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _metadata(simulation: Mapping[str, Any], task: Any) -> dict[str, JSON]:
    found: dict[str, Any] = {
        "task_id": simulation.get("task_id"),
        "trial": simulation.get("trial"),
        "termination_reason": simulation.get("termination_reason"),
        "reward": at(simulation, "reward_info", "reward"),
        "expected_actions": at(task, "evaluation_criteria", "actions"),
        "user_cost": simulation.get("user_cost"),
    }
    return {name: stored(value) for name, value in found.items() if value is not None}


def _verdicts(simulation: Mapping[str, Any]) -> tuple[Verdict, ...]:
    reward = at(simulation, "reward_info", "reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        return ()
    return (Verdict(name="reward", score=float(reward), passed=reward >= 1, evaluator=FROM_SOURCE),)
