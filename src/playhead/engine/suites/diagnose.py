"""Has a model propose changes of a suite's tools, from what its tuning cases show. Nothing is applied."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playhead.core.evaluation import as_text
from playhead.core.proposals import Proposal, read_proposals
from playhead.core.protocol import parts
from playhead.core.reporting.interface import interface_lines, tuned
from playhead.core.suites.contents import Contents
from playhead.core.suites.drive import ModelAsk, answer_of
from playhead.core.suites.labels import tools_of
from playhead.core.suites.suite import Case, ToolSchema, offered, to_json
from playhead.core.suites.summary import CaseResult, RunSummary, TrialResult
from playhead.engine.model_access import Access, Place, TrialFailedError, TryAgainError
from playhead.engine.suites.run import in_a_loop
from playhead.errors import PlayheadError

__all__ = ["Diagnosis", "diagnose"]

_TRIES: Final = 2
_EXAMPLES: Final = 3
_SYSTEM: Final = """\
You improve the interfaces of tools that a language model calls: names, descriptions, parameter schemas. You are shown
the tools, what a check found wrong with them, and how calls failed. Propose the fewest changes that would have
prevented the most failures; do not write about particular examples. Answer with one JSON object and nothing else:
{"proposals": [{"tool": NAME NOW, "why": ONE SENTENCE, "name": NEW NAME, "description": NEW DESCRIPTION,
"parameters": NEW JSON SCHEMA, WHOLE, "renamed": {OLD PARAMETER: NEW PARAMETER}}]}
Leave out name, description, parameters and renamed where they stay as they are.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a model proposes, and why others of its proposals cannot be used."""

    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()


def diagnose(contents: Contents, run: RunSummary | None, access: Access) -> Diagnosis:
    """Asks a model for changes of the tools that tuning cases offer. What is held back is not shown.

    Args:
        run: whose failures are shown; without one the model sees the tools and what the lint says.

    Raises:
        PlayheadError: the model could not be asked.
    """
    tools = {tool.name: tool for case in tuned(contents) for tool in offered(case, contents.tools).values()}
    asked = [
        parts.message("system", [parts.text(_SYSTEM)]),
        parts.message("user", [parts.text(_told(contents, run, tools))]),
    ]
    found: list[Diagnosis] = []

    async def ask() -> None:
        messages = asked
        try:
            for _ in range(_TRIES):
                said = await access.ask(ModelAsk(messages=messages), Place("diagnose", 0))
                proposals, refused = read_proposals(parts.text_of(said.message), tools)
                found.append(Diagnosis(proposals=tuple(proposals), refused=tuple(refused)))
                if proposals or not refused:
                    return
                again = f"None of that can be used: {'; '.join(refused[:3])}. Write the object again."
                messages = [*messages, said.message, parts.message("user", [parts.text(again)])]
        except (TryAgainError, TrialFailedError) as error:
            raise PlayheadError(str(error)) from error
        finally:
            await access.close()

    in_a_loop(ask())
    return found[-1]


def _told(contents: Contents, run: RunSummary | None, tools: Mapping[str, ToolSchema]) -> str:
    lines = [f"Tools: {json.dumps([to_json(tool) for tool in tools.values()], ensure_ascii=False)}"]
    lines += ["What a check found:", *(f"- {line}" for line in interface_lines(contents))]
    if run is not None:
        known = {case.id: case for case in tuned(contents)}
        mine = [case for case in run.cases if case.id in known and case.slice == "tune"]
        lines += ["Arguments that failed:", *_arguments(mine)]
        lines += ["Calls that were not the right ones:", *_confusions(mine, known)]
    return "\n".join(lines)


def _arguments(cases: Sequence[CaseResult]) -> list[str]:
    counts: Counter[tuple[str, str, str]] = Counter()
    seen: dict[tuple[str, str, str], list[str]] = {}
    for trial in (trial for case in cases for trial in case.trials):
        for error in trial.schema_errors:
            counts[error.tool, error.pointer, error.bin] += 1
        for wrong in trial.value_errors:
            place = (wrong.tool, wrong.pointer, wrong.reason)
            counts[place] += 1
            example = f"expected {as_text(wrong.expected)[:80]}, got {as_text(wrong.seen)[:80]}"
            if example not in seen.setdefault(place, []) and len(seen[place]) < _EXAMPLES:
                seen[place].append(example)
    return [
        f"- {tool} {pointer or '(whole call)'}: {why}, {n} times. {'; '.join(seen.get((tool, pointer, why), ()))}"
        for (tool, pointer, why), n in counts.most_common(20)
    ]


def _confusions(cases: Sequence[CaseResult], known: Mapping[str, Case]) -> list[str]:
    counts: Counter[tuple[str, str]] = Counter()
    request: dict[tuple[str, str], str] = {}
    for case in cases:
        wanted = ", ".join(sorted(tools_of(known[case.id].label))) or "no tool"
        for trial in case.trials:
            if trial.selection is False:
                place = (wanted, _called(trial))
                counts[place] += 1
                request.setdefault(place, _last_request(known[case.id]))
    return [
        f"- {wanted} was right, {called} was called, {n} times; for example: {request[wanted, called]}"
        for (wanted, called), n in counts.most_common(10)
    ]


def _called(trial: TrialResult) -> str:
    messages: Any = trial.response or ()
    for message in messages:
        names = [call.tool for call in answer_of(message).calls]
        return ", ".join(names) or "no tool"
    return "no tool"


def _last_request(case: Case) -> str:
    said = next((message.content for message in reversed(case.history) if message.role == "user"), "")
    return as_text(said)[:200]
