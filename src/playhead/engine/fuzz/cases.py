"""Cases of a suite from findings: the conversation up to the rejected call, and the call that should have been made."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from playhead.core.fuzz.cases import FuzzCase
from playhead.core.fuzz.feedback import bad_call, rejection, started
from playhead.core.fuzz.findings import Finding
from playhead.core.fuzz.queries import asked
from playhead.core.protocol.shape import obj
from playhead.core.suites.contents import Contents, Skipped
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.labels import label_json, read_label
from playhead.core.suites.messages import outcome_json
from playhead.core.suites.suite import Case, Message, Suite, ToolSchema, add_tool
from playhead.core.suites.trials import SuiteRun
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.engine.fuzz.runs import set_of
from playhead.engine.fuzz.session import find_finding
from playhead.engine.suites.location import iso
from playhead.store.ports import Store

ContentsOf = Callable[[Mapping[str, Any]], "tuple[Contents, list[Case]]"]


def build_from_findings(
    store: Store, ids: Sequence[str], *, name: str, contents_of: ContentsOf, known: Contents | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Contents:  # fmt: skip
    """A suite of findings, each with a proposed label.

    Args:
        contents_of: gives the suite of a run's settings, and its cases.
        known: a suite that the cases are added to; those that it has stay as they are.

    Raises:
        NotFoundError: no such finding, or its set no longer holds its case.
    """
    tools: dict[str, ToolSchema] = dict(known.tools) if known is not None else {}
    have = {case.id for case in known.cases} if known is not None else set[str]()
    cases: list[Case] = []
    labels: list[LabelEntry] = []
    skipped: list[Skipped] = []
    effects: dict[str, Any] = {}
    for text in ids:
        finding, run = find_finding(store, text)
        made = _case(store, finding, run, contents_of, tools)
        if made is None:
            skipped.append(Skipped(what=finding.id, why="its case or tool is no longer there"))
            continue
        case, source = made
        effects |= dict(source.suite.effects)
        if case.id not in have:
            cases.append(case)
            labels += _labels(case, finding, iso(clock.now()))
    base = known.suite if known is not None else Suite(name=name)
    suite = base.model_copy(update={"effects": {**effects, **base.effects}})
    return Contents(
        suite=suite, cases=(*(known.cases if known else ()), *cases), tools=tools,
        labels=(*(known.labels if known else ()), *labels), accesses=known.accesses if known else (),
        skipped=tuple(skipped),
    )  # fmt: skip


def _case(
    store: Store, finding: Finding, run: SuiteRun, contents_of: ContentsOf, tools: dict[str, ToolSchema]
) -> tuple[Case, Contents] | None:
    settings: Any = run.config["fuzz"]
    contents, suite_cases = contents_of(settings["where"])
    made = {case.id: case for case in set_of(store, run).cases}
    fuzz = made.get(finding.cases[0])
    if fuzz is None:
        return None
    fuzz = replace(fuzz, arguments=finding.arguments) if fuzz.query is None and fuzz.result is None else fuzz
    source = next((case for case in suite_cases if case.id == fuzz.source), None)
    id = f"finding-{finding.id}"
    if source is not None:
        names = tuple(add_tool(tools, contents.tools[name]) for name in source.tools)
        begun = asked(fuzz, source) if fuzz.query is not None else started(source, fuzz.round, id)
    else:
        tool = next((one for one in contents.tools.values() if one.name == finding.tool), None)
        if tool is None:
            return None
        names = (add_tool(tools, tool),)
        begun = Case(id=id, history=(_request(finding),))
    said = () if fuzz.query is not None else _rejected(finding, fuzz, contents)
    label = _label(finding)
    update = {
        "id": id, "tools": names, "intent": source.intent if source is not None else "fuzz", "tags": ("fuzz",),
        "history": (*begun.history, *said), "recorded": (), "answer": None, "facts": (), "slice": "tune",
        "label": None if label is None else read_label(label),
    }  # fmt: skip
    return begun.model_copy(update=update), contents


def _request(finding: Finding) -> Message:
    return Message(role="user", content=f"Call {finding.tool} with {json.dumps(finding.base, ensure_ascii=False)}.")


def _rejected(finding: Finding, fuzz: FuzzCase, contents: Contents) -> tuple[Message, ...]:
    """The bad call and what came of it, as messages."""
    parameters = next((t.parameters for t in contents.tools.values() if t.name == finding.tool), None)
    told = rejection(fuzz, parameters, said=finding.text or None)
    call = bad_call(fuzz)
    result = Message(role="tool", call_id=call.id, outcome=outcome_json(told.outcome))
    return (Message(role="assistant", calls=(call,)), result)


def _label(finding: Finding) -> JSON:
    """The call that should have been made: with the arguments that the bad ones were made from."""
    if finding.base is None or not finding.tool:
        return None
    call = {"tool": finding.tool, "arguments": {k: v for k, v in obj(finding.base).items()}}
    return {"kind": "call", "calls": [call]}


def _labels(case: Case, finding: Finding, at: str) -> list[LabelEntry]:
    if case.label is None:
        return []
    return [
        LabelEntry(
            case=case.id, state="proposed", label=label_json(case.label), source="fuzz", who="fuzz", at=at,
            reason=f"finding {finding.id}: {finding.outcome}",
        )
    ]  # fmt: skip
