"""Proposed changes of tool interfaces: read, shown as diffs, and tried on a suite without being applied to it.

A changed name is mapped through history, recordings and labels, so that a run with the changes is scored by the same
labels as a run without.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from playhead.core.fuzz.cases import Perturbed
from playhead.core.fuzz.interface import perturbed_case, perturbed_effects
from playhead.core.lint.interface import Change, changes
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.schema import usable
from playhead.core.suites.contents import Contents
from playhead.core.suites.labels import label_json, read_label
from playhead.core.suites.suite import Case, ToolSchema, offered, to_json
from playhead.core.values import JSON

FORMAT: Final = "playhead.interface/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A tool as it could be. ``renamed``: new name of a parameter by its old one."""

    before: ToolSchema
    after: ToolSchema
    why: str = ""
    renamed: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def diff(self) -> str:
        """What changes, line by line."""
        old, new = (json.dumps(to_json(one), indent=1, ensure_ascii=False).splitlines() for one in (
            self.before, self.after,
        ))  # fmt: skip
        names = (f"{self.before.name} (now)", f"{self.after.name} (proposed)")
        return "\n".join(difflib.unified_diff(old, new, *names, lineterm=""))

    @property
    def changes(self) -> list[Change]:
        """What changes, by kind; a tool that is only renamed is one change."""
        return changes([self.before], [self.after])


def read_proposals(text: str, tools: Mapping[str, ToolSchema]) -> tuple[list[Proposal], list[str]]:
    """The proposals in a text that holds one JSON object, and why others are none.

    Args:
        tools: the tools that may be changed, by name.
    """
    try:
        held: Any = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except ValueError as error:
        return [], [f"no JSON object: {error}"]
    listed = obj(held).get("proposals")
    if not is_list(listed):
        return [], ['no list under "proposals"']
    found: dict[str, Proposal] = {}
    refused: list[str] = []
    for place, one in enumerate(listed, 1):
        made = _read(one, tools)
        if isinstance(made, str):
            refused.append(f"proposal {place}: {made}")
        elif made.before.name in found or made.after.name in {p.after.name for p in found.values()}:
            refused.append(f"proposal {place}: {made.before.name} is proposed twice")
        else:
            found[made.before.name] = made
    return list(found.values()), refused


def _read(one: Any, tools: Mapping[str, ToolSchema]) -> Proposal | str:
    if not is_object(one):
        return "no object"
    before = tools.get(str(one.get("tool")))
    if before is None:
        return f"there is no tool {one.get('tool')!r}"
    name = str(one.get("name") or before.name)
    parameters = one.get("parameters", before.parameters)
    renamed = {str(old): str(new) for old, new in obj(one.get("renamed")).items()}
    problem = _problem(before, name, parameters, renamed, tools)
    if problem is not None:
        return problem
    after = before.model_copy(
        update={"name": name, "description": str(one.get("description", before.description)), "parameters": parameters}
    )
    return "it changes nothing" if after == before else Proposal(
        before=before, after=after, why=str(one.get("why") or ""), renamed=renamed
    )  # fmt: skip


def _problem(
    before: ToolSchema, name: str, parameters: JSON, renamed: Mapping[str, str], tools: Mapping[str, ToolSchema]
) -> str | None:
    if name != before.name and name in tools:
        return f"there is a tool {name!r} already"
    if not is_object(parameters) or not usable(parameters):
        return "its parameters are no JSON Schema"
    had, has = (set(obj(obj(one).get("properties"))) for one in (before.parameters, parameters))
    wrong = [f"{old} to {new}" for old, new in renamed.items() if old not in had or new not in has]
    return f"it renames {wrong[0]}, which its schemas do not hold" if wrong else None


def interface_json(proposals: Sequence[Proposal]) -> dict[str, JSON]:
    """The proposals as a file that a run takes."""
    return {
        "format": FORMAT,
        "tools": {one.before.name: to_json(one.after) for one in proposals},
        "renamed": {one.before.name: dict(one.renamed) for one in proposals if one.renamed},
        "why": {one.before.name: one.why for one in proposals},
    }


def check_interface(held: Any, contents: Contents) -> dict[str, Any]:
    """A file of proposals, as it can be tried on a suite.

    Raises:
        ValueError: it is none, or changes a tool that no case offers.
    """
    if not is_object(held) or held.get("format") != FORMAT or not obj(held.get("tools")):
        raise ValueError(f"no proposed interface: format {FORMAT!r} with tools is expected")
    tools = {tool.name: tool for tool in contents.tools.values()}
    for name, raw in obj(held["tools"]).items():
        made = _read({**obj(raw), "tool": name, "renamed": obj(held.get("renamed")).get(name, {})}, tools)
        if isinstance(made, str):
            raise ValueError(f"{name}: {made}")
    return {"tools": dict(obj(held["tools"])), "renamed": dict(obj(held.get("renamed")))}


def proposed_case(case: Case, contents: Contents, held: Mapping[str, Any]) -> tuple[Case, dict[str, ToolSchema]]:
    """A case with the proposed tools; as it is where it offers none of them."""
    now = offered(case, contents.tools)
    if not now.keys() & held["tools"].keys():
        return case, {name: contents.tools[name] for name in case.tools}
    made, tools = perturbed_case(case, _perturbed(now, held), case.id)
    return made.model_copy(update={"facts": case.facts}), tools


def _perturbed(now: Mapping[str, ToolSchema], held: Mapping[str, Any]) -> Perturbed:
    names = {old: str(obj(new)["name"]) for old, new in held["tools"].items() if obj(new).get("name") != old}
    tools = {name: {**to_json(tool), **obj(held["tools"].get(name))} for name, tool in now.items()}
    return Perturbed(tools=tools, names=names, parameters=held["renamed"])


def proposed_contents(contents: Contents, held: Mapping[str, Any]) -> Contents:
    """A whole suite with the proposed tools: cases, labels and effects under the new names."""
    tools: dict[str, ToolSchema] = {}
    cases: list[Case] = []
    known = {case.id: case for case in contents.cases}
    for case in contents.cases:
        made, own = proposed_case(case, contents, held)
        cases.append(made)
        tools |= own
    labels = tuple(
        entry
        if entry.label is None or entry.case not in known
        else replace(entry, label=_label(known[entry.case], entry.label, contents, held))
        for entry in contents.labels
    )
    effects = perturbed_effects(contents.suite.effects, _perturbed({}, held))
    suite = contents.suite.model_copy(update={"effects": effects})
    return replace(contents, suite=suite, cases=tuple(cases), tools=tools, labels=labels)


def _label(case: Case, label: Any, contents: Contents, held: Mapping[str, Any]) -> Any:
    made, _ = proposed_case(case.model_copy(update={"label": read_label(label)}), contents, held)
    return None if made.label is None else label_json(made.label)
