"""Known defects seeded into real tool schemas, one at a time: how many are found, and what is said without reason.

Prints the table of `docs/lint.md`. The schemas are those of public benchmarks, in a folder beside the checkout
(``PLAYHEAD_SHARED`` or ``../shared``); without them there is nothing to measure.

- *lint*: a finding about the tool or parameter that the untouched schema does not have.
- *against*: a change that names the tool, when the untouched schema is the older version.
- *fuzz*: a finding of ``playhead fuzz --direct`` on the new schema, where the tool goes on as the untouched schema says
  and refuses everything else, that the untouched schema does not give.
- *elsewhere*: findings or changes that name another tool than the one that was touched.
"""

import copy
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.core.argument_schema import argument_errors
from playhead.core.fuzz.direct import FOUND, Told, class_of
from playhead.core.fuzz.sets import make_set
from playhead.core.lint.interface import changes, lint
from playhead.core.suites.suite import ToolSchema, offered
from playhead.engine.suites.tool_sets import read_tools
from playhead.importers import bfcl

EACH = 4
SEED = 0
FILES = {
    "tau-bench airline": "tau-bench/tools-airline.json",
    **{f"AgentDojo {name}": f"agentdojo-groundtruth/{name}.tools.json"
       for name in ("slack", "banking", "travel", "workspace")},
    "BFCL executed": "bfcl-executed/tools.json",
}  # fmt: skip

Sets = Mapping[str, Sequence[ToolSchema]]
Tool = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One thing that was made worse. ``touched``: the tools that it is about."""

    kind: str
    where: str
    touched: tuple[str, ...]
    pointer: str
    before: Sequence[ToolSchema]
    after: Sequence[ToolSchema]

    @property
    def found_by_lint(self) -> bool:
        return any(tool in self.touched for _, tool, _ in self._new())

    @property
    def found_against(self) -> bool:
        return any(change.tool in self.touched for change in changes(self.before, self.after))

    @property
    def found_by_fuzz(self) -> bool:
        known = {tool.name: tool for tool in self.before}
        for name, tool in ((tool.name, tool) for tool in self.after if tool.name in self.touched):
            real = known.get(name)
            if real is not None and fuzzed(tool, real) - fuzzed(real, real):
                return True
        return False

    @property
    def elsewhere(self) -> int:
        """What is said of tools that nobody touched."""
        new = sum(tool not in self.touched for _, tool, _ in self._new())
        return new + sum(change.tool not in self.touched for change in changes(self.before, self.after))

    def _new(self) -> list[tuple[str, str, str]]:
        """Findings by rule, tool and pointer that are there since."""
        now, then = (Counter(_keys(tools)) for tools in (self.after, self.before))
        return list((now - then).elements())


def _keys(tools: Sequence[ToolSchema]) -> Iterator[tuple[str, str, str]]:
    for finding in lint(tools):
        yield finding.rule, finding.tool, finding.pointer
        if "other" in finding.details:
            yield finding.rule, str(finding.details["other"]), finding.pointer


def fuzzed(declared: ToolSchema, real: ToolSchema) -> set[tuple[str, str]]:
    """What fuzzing the declared interface finds of a tool that does what another one says: class and mutation."""
    made = make_set((), {declared.name: declared}, families=("type_confusion", "constraint"), per_tool=50)
    found = {(class_of(_told(real, case.arguments), case.expectation), case.mutation) for case in made.cases}
    return {one for one in found if one[0] in FOUND}


def _told(real: ToolSchema, arguments: Any) -> Told:
    """What a tool does that goes by the untouched schema, and refuses the rest in its own words."""
    wrong = argument_errors(real.parameters, arguments)
    named = real.parameters.get("properties") or {}
    if wrong or (isinstance(arguments, dict) and set(arguments) - set(named)):
        return Told(kind="raised", text="invalid arguments", classes=("ValueError", "Exception"))
    return Told(kind="value", text="ok")


def tool_sets(shared: Path) -> dict[str, list[ToolSchema]]:
    """Tools that are offered together, of every source that is there."""
    data = shared / "data"
    found = {name: read_tools(data / path) for name, path in FILES.items() if (data / path).exists()}
    if (data / "bfcl").exists():
        contents = bfcl.read(data / "bfcl", name="bfcl", categories=())
        found |= {case.id: list(offered(case, contents.tools).values()) for case in contents.cases}
    return found


# --- what is made worse ---------------------------------------------------------------------------------------------

Place = tuple[str, str]
"""A tool and one of its own parameters, which is empty where the tool itself is meant."""


def _parameters(tool: Tool) -> dict[str, Any]:
    return tool["parameters"].get("properties") or {}


def _required(tool: Tool) -> list[str]:
    return list(tool["parameters"].get("required") or ())


def _is(schema: Any, *types: str) -> bool:
    return isinstance(schema, dict) and schema.get("type") in types


def _with_enum(tool: Tool) -> list[str]:
    return [name for name, one in _parameters(tool).items() if "enum" in one]


def _drop_enum(tool: Tool, name: str, dice: random.Random) -> None:
    del _parameters(tool)[name]["enum"]


def _enum_as_prose(tool: Tool, name: str, dice: random.Random) -> None:
    one = _parameters(tool)[name]
    values = [str(value) for value in one.pop("enum")]
    form = dice.choice(("One of: {}.", "Possible values are {}.", "Can be '{}'.", "[Enum]: {}"))
    told = form.format("' or '".join(values) if "'{}'" in form else ", ".join(values))
    one["description"] = f"{one.get('description', '')} {told}".strip()


_VAGUE = {"user_id": "user", "username": "user", "reservation_id": "id", "order_id": "id", "file_id": "id",
          "ticket_id": "id", "message": "data", "content": "data", "text": "input", "query": "input"}  # fmt: skip


def _renamed(tool: Tool, name: str, dice: random.Random) -> None:
    held = tool["parameters"]
    held["properties"] = {_VAGUE[name] if k == name else k: v for k, v in _parameters(tool).items()}
    held["required"] = [_VAGUE[name] if k == name else k for k in _required(tool)]


def _to_string(tool: Tool, name: str, dice: random.Random) -> None:
    one = _parameters(tool)[name]
    for gone in ("items", "minimum", "maximum", "default"):
        one.pop(gone, None)
    one["type"] = "string"


def _not_required(tool: Tool, name: str, dice: random.Random) -> None:
    tool["parameters"]["required"] = [one for one in _required(tool) if one != name]


def _no_text(tool: Tool, name: str, dice: random.Random) -> None:
    tool["description"] = ""


def _no_parameter_text(tool: Tool, name: str, dice: random.Random) -> None:
    _parameters(tool)[name].pop("description")


def _opened(tool: Tool, name: str, dice: random.Random) -> None:
    one = _parameters(tool)[name]
    inner = one["items"] if one["type"] == "array" else one
    for gone in ("properties", "required", "additionalProperties"):
        inner.pop(gone, None)


def _bare(schema: Any) -> bool:
    return not {"enum", "format", "pattern", "minimum", "maximum"} & schema.keys()


ONE_TOOL: dict[str, tuple[Callable[[Tool], list[str]], Callable[[Tool, str, random.Random], None]]] = {
    "enum dropped": (_with_enum, _drop_enum),
    "enum only in the text": (_with_enum, _enum_as_prose),
    "name made vague (`user_id` to `user`)": (
        lambda tool: [n for n in _parameters(tool) if n in _VAGUE and _VAGUE[n] not in _parameters(tool)], _renamed,
    ),
    "type loosened to text": (
        lambda tool: [n for n, s in _parameters(tool).items() if _is(s, "integer", "number", "boolean", "array")],
        _to_string,
    ),
    "required parameter not required": (_required, _not_required),
    "description of a tool lost": (lambda tool: [""] if len(tool["description"]) >= 20 else [], _no_text),
    "description of a parameter lost": (
        lambda tool: [n for n, s in _parameters(tool).items()
                      if _is(s, "string", "integer", "number") and _bare(s) and len(s.get("description", "")) >= 10],
        _no_parameter_text,
    ),
    "object without its members": (
        lambda tool: [n for n, s in _parameters(tool).items()
                      if "properties" in (s.get("items", {}) if _is(s, "array") else s)],
        _opened,
    ),
}  # fmt: skip


def _swapped(tools: list[Tool], dice: random.Random) -> tuple[str, ...] | None:
    if len(tools) < 4:
        return None
    left, right = dice.sample(tools, 2)
    left["description"], right["description"] = right["description"], left["description"]
    return None if left["description"] == right["description"] else (left["name"], right["name"])


def _twin(tools: list[Tool], dice: random.Random) -> tuple[str, ...] | None:
    one = dice.choice(tools)
    name, text = f"{one['name']}_v2", one["description"]
    tools.append({**copy.deepcopy(one), "name": name, "description": f"{text} Newer."})
    return (one["name"], name)


SEVERAL: dict[str, Callable[[list[Tool], random.Random], tuple[str, ...] | None]] = {
    "descriptions of two tools swapped": _swapped,
    "a second tool for the same thing": _twin,
}


def seeded(sets: Sets, *, seed: int = SEED, each: int = EACH) -> list[Defect]:
    """So many defects of every kind, of different sets where there are enough."""
    dice = random.Random(seed)
    found: list[Defect] = []
    for kind, (eligible, spoil) in ONE_TOOL.items():
        held = {name: _plain(tools) for name, tools in sets.items()}
        places = [(w, t["name"], p) for w, tools in held.items() for t in tools for p in eligible(t)]
        for where, tool, name in _spread(places, each, dice):
            after = _plain(sets[where])
            spoil(next(one for one in after if one["name"] == tool), name, dice)
            found.append(_defect(kind, where, (tool,), f"/{name}" if name else "", sets[where], after))
    for kind, spoil_set in SEVERAL.items():
        named = [name for name in sets if name in FILES]
        done = 0
        while named and done < each:
            where = named[done % len(named)]
            after = _plain(sets[where])
            touched = spoil_set(after, dice)
            if touched is not None:
                found.append(_defect(kind, where, touched, "", sets[where], after))
                done += 1
    return found


def _spread(places: list[tuple[str, str, str]], each: int, dice: random.Random) -> list[tuple[str, str, str]]:
    """Places drawn from different sets first."""
    dice.shuffle(places)
    counts: Counter[str] = Counter()
    ranked = []
    for place in places:
        ranked.append((counts[place[0]], place))
        counts[place[0]] += 1
    return [place for _, place in sorted(ranked, key=lambda one: one[0])[:each]]


def _plain(tools: Sequence[ToolSchema]) -> list[Tool]:
    return copy.deepcopy([tool.model_dump() for tool in tools])


def _defect(
    kind: str, where: str, touched: tuple[str, ...], pointer: str, before: Sequence[ToolSchema], after: list[Tool]
) -> Defect:
    made = [ToolSchema.model_validate(one) for one in after]
    return Defect(kind=kind, where=where, touched=touched, pointer=pointer, before=before, after=made)


# --- what nobody touched --------------------------------------------------------------------------------------------


def rewritten(tools: Sequence[ToolSchema], dice: random.Random) -> list[ToolSchema]:
    """The same tools as another program may write them: in another order, with titles, keys in another order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(one) for key, one in reversed(list(value.items()))}
        return [turned(one) for one in value] if isinstance(value, list) else value

    made = [ToolSchema.model_validate({**one, "parameters": turned(one["parameters"])}) for one in _plain(tools)]
    for one in made:
        for name, schema in _parameters({"parameters": one.parameters}).items():
            schema.setdefault("title", name.replace("_", " ").title())
    dice.shuffle(made)
    return made


def false_changes(sets: Sets, seed: int = SEED) -> int:
    """What ``--against`` says of tool sets that are only written in another way."""
    dice = random.Random(seed)
    return sum(len(changes(tools, rewritten(tools, dice))) for tools in sets.values())


def fuzz_alarms(sets: Sets) -> int:
    """What fuzzing finds of untouched tools that do what they say."""
    return sum(len(fuzzed(tool, tool)) for tools in sets.values() for tool in tools)


def untouched(sets: Sets) -> dict[str, int]:
    """Findings of the untouched sets, by rule, the most frequent first."""
    return dict(Counter(finding.rule for tools in sets.values() for finding in lint(tools)).most_common())


def table(defects: Sequence[Defect]) -> list[str]:
    """A row for each kind, and their sum."""
    kinds = dict.fromkeys(defect.kind for defect in defects)
    rows = ["| defect | seeded | lint | against | fuzz | elsewhere |", "|---|---|---|---|---|---|"]
    for kind in (*kinds, None):
        mine = [defect for defect in defects if kind in (None, defect.kind)]
        found = [sum(getattr(d, name) for d in mine) for name in ("found_by_lint", "found_against", "found_by_fuzz")]
        found.append(sum(d.elsewhere for d in mine))
        rows.append(f"| {kind or 'all'} | {len(mine)} | {' | '.join(map(str, found))} |")
    return rows


def main() -> int:
    shared = Path(os.environ.get("PLAYHEAD_SHARED") or Path(__file__).parents[2] / "shared")
    sets = tool_sets(shared)
    if not sets:
        print(f"skipped: there are no tool schemas in {shared.name}/data")
        return 0
    tools = sum(map(len, sets.values()))
    print(f"{tools} tools in {len(sets)} sets, seed {SEED}")
    defects = seeded(sets)
    print("\n".join(table(defects)))
    missed = [d for d in defects if not d.found_by_lint]
    for one in missed:
        print(f"not seen by lint alone: {one.kind}: {one.where}, {' and '.join(one.touched)} {one.pointer}")
    many = seeded(sets, seed=1, each=25)
    share = sum(d.found_by_lint for d in many) / len(many)
    print(f"{len(many)} further defects of the same kinds: lint {share:.1%}, "
          f"against {sum(d.found_against for d in many) / len(many):.1%}, "
          f"elsewhere {sum(d.elsewhere for d in many)}")  # fmt: skip
    print(f"neither lint nor fuzz: {sum(not (d.found_by_lint or d.found_by_fuzz) for d in defects)} of {len(defects)}")
    print(f"fuzz findings of the untouched tools: {fuzz_alarms(sets)}")
    print(f"the same tools written in another way: {false_changes(sets)} changes")
    for name, some in (
        ("six tool sets", [n for n in sets if n in FILES]),
        ("BFCL", [n for n in sets if n not in FILES]),
    ):
        held = {one: sets[one] for one in some}
        print(f"findings of the untouched {name}, {sum(map(len, held.values()))} tools: {json.dumps(untouched(held))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
