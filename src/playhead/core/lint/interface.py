"""What makes tools hard to call rightly: names that say nothing, loose schemas, tools that read alike; and what changed
between two versions of a tool set.

The rules are those of the tool-testing reference: vague names, paths without a base, dates without a format, missing
descriptions, values that stand in prose only, open objects, lists without a bound, overlapping tools.
"""

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final, NamedTuple

from playhead.core.canonical import canonical_stored
from playhead.core.lint.texts import gaps, swapped_texts
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import JSON

OVERLAP: Final = 0.8
"""Cosine from which on two tools read alike."""

_VAGUE: Final = {
    "user", "id", "data", "value", "item", "object", "input", "info", "thing", "target", "arg", "args", "param",
    "params", "payload",
}  # fmt: skip
_DATES: Final = {"date", "time", "dob", "day", "deadline", "until", "since"}
_LISTS: Final = ("list", "search", "find", "get_all", "fetch_all")
_BOUNDS: Final = {"limit", "page", "page_size", "cursor", "offset", "n", "top_k", "max_results", "count"}
_PATHS: Final = ("path", "file", "dir", "directory", "folder")
_PROSE: Final = re.compile(
    r"\[Enum\]|\bone of\b(?! the \w+ of\b)|\beither\b.+\bor\b|"
    r"\b(?:possible|allowed|valid|accepted) (?:values|options)\b|"
    r"\b(?:options|choices|values)(?: are|:)|\b(?:can|may|must|should) be ['\"`]|\([a-z]{3,}(?:/[a-z]{3,})+\)|"
    r"(?:['\"`][\w -]{1,30}['\"`]\s*(?:,|/|\||or)\s*){2,}",
    re.IGNORECASE,
)
_EXAMPLES: Final = re.compile(
    r"\b(?:such as|e\.g\.,?|for example,?|like)\s+(?:['\"`][^'\"`]{1,40}['\"`](?:\s*(?:,|or|and)\s*)*)+", re.IGNORECASE
)
"""Values that stand for others: a list that goes on."""
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to mend. ``pointer`` names the parameter, empty for the tool itself."""

    rule: str
    tool: str
    pointer: str = ""
    message: str
    fix: str
    details: dict[str, JSON] = field(default_factory=dict[str, JSON])


class Parameter(NamedTuple):
    """A parameter at any depth. ``pointer`` has ``*`` for the items of a list; ``name`` is the last named part."""

    pointer: str
    name: str
    schema: dict[str, Any]


def lint(tools: Sequence[ToolSchema]) -> list[Finding]:
    """Every finding about a set of tools that are offered together, tool by tool, those about two tools last."""
    found = [finding for tool in tools for finding in _tool(tool)]
    found += [
        Finding(
            rule="description_elsewhere",
            tool=left,
            message=f"the descriptions of {left} and {right} speak of each other",
            fix="give each tool its own description",
            details={"other": right},
        )
        for left, right in swapped_texts(tools)
    ]
    return found + [
        Finding(
            rule="overlap",
            tool=pair.left,
            message=f"{pair.left} and {pair.right} read alike ({pair.similarity:.2f})",
            fix="say in each description when to use it and when the other one",
            details={"other": pair.right, "similarity": round(pair.similarity, 4)},
        )
        for pair in alike(tools)
        if pair.similarity >= OVERLAP
    ]


# parameters


def parameters(tool: ToolSchema, depth: int = 8) -> list[Parameter]:
    """Every parameter of a tool, outer ones first. References inside the schema are followed."""
    root = obj(tool.parameters)
    return list(_below(root, root, "", depth))


def _below(root: dict[str, Any], schema: dict[str, Any], at: str, depth: int) -> Iterator[Parameter]:
    if depth == 0:
        return
    for name, raw in obj(schema.get("properties")).items():
        declared = followed(root, raw)
        pointer = f"{at}/{_step(name)}"
        yield Parameter(pointer, name, declared)
        inner, below = declared, pointer
        while is_object(inner.get("items")):
            inner, below = followed(root, inner["items"]), f"{below}/*"
        yield from _below(root, inner, below, depth - 1)


def followed(root: dict[str, Any], raw: Any) -> dict[str, Any]:
    """A schema with its reference followed, and of a choice with null the other member, marked nullable; its own
    texts stay."""
    schema = obj(raw)
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        there: Any = root
        for part in reference[2:].split("/"):
            there = obj(there).get(part.replace("~1", "/").replace("~0", "~"))
        schema = {**obj(there), **{k: v for k, v in schema.items() if k != "$ref"}}
    for choice in ("anyOf", "oneOf"):
        every = objects(schema.get(choice))
        members = [m for m in every if m.get("type") != "null"]
        if len(members) == 1:
            rest = {k: v for k, v in schema.items() if k != choice}
            nullable = {"nullable": True} if len(every) > 1 else {}
            return {**followed(root, members[0]), **rest, **nullable}
    return schema


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def types_of(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema declares, null left out."""
    declared: JSON = schema.get("type")
    names: list[JSON] = declared if is_list(declared) else [declared]
    return {name for name in names if isinstance(name, str) and name != "null"}


# rules about one tool


def _tool(tool: ToolSchema) -> Iterator[Finding]:
    found = parameters(tool)
    if len(tool.description.strip()) < 20:
        yield Finding(
            rule="no_description",
            tool=tool.name,
            message=f"{tool.name} has no description to choose it by",
            fix="say what it does, when to use it and what it gives",
        )
    if tool.name.lower().startswith(_LISTS) and not _BOUNDS & {p.name.lower() for p in found}:
        yield Finding(
            rule="unbounded_list",
            tool=tool.name,
            message=f"{tool.name} lists things and has no parameter that bounds how many",
            fix="add limit (with a default and a maximum), or a cursor",
        )
    for parameter in found:
        yield from _parameter(tool.name, parameter)
    yield from _gaps(tool, found)
    for pointer, schema in (("", obj(tool.parameters)), *((p.pointer, p.schema) for p in found)):
        if _is_open(schema):
            yield Finding(
                rule="open_object",
                tool=tool.name,
                pointer=pointer,
                message=f"{pointer or 'the arguments'}: an object of any members; strict mode is impossible",
                fix="declare its properties and additionalProperties: false",
            )


def _gaps(tool: ToolSchema, found: Sequence[Parameter]) -> Iterator[Finding]:
    """Where texts and schemas disagree. Of an object inside of which nothing is required, any member may be left out;
    where that holds for the arguments themselves and no text says so, it is one finding about the tool."""
    every = _required(tool)
    required = {above(pointer) for pointer in every}
    missing: list[Finding] = []
    for name, pointer, schema in ((p.name, p.pointer, p.schema) for p in found):
        partial = bool(above(pointer)) and above(pointer) not in required
        for gap in gaps(name, schema, types_of(schema), required=partial or pointer in every):
            text = f"{name}: {gap.message}"
            one = Finding(rule=gap.rule, tool=tool.name, pointer=pointer, message=text, fix=gap.fix)
            if gap.rule == "optional_unsaid" and "" not in required:
                missing.append(one)
            else:
                yield one
    if missing:
        text = f"{tool.name} requires nothing, and not every parameter says what happens without it"
        yield replace(missing[0], pointer="", message=text, fix="name what is required, or say what a default is")


def above(pointer: str) -> str:
    """The pointer of the object that a parameter is a member of."""
    return pointer.rpartition("/")[0]


def _parameter(tool: str, parameter: Parameter) -> Iterator[Finding]:
    pointer, name, schema = parameter
    about = str(schema.get("description") or "")
    is_text = types_of(schema) == {"string"}

    def finding(rule: str, message: str, fix: str) -> Finding:
        return Finding(rule=rule, tool=tool, pointer=pointer, message=f"{name}: {message}", fix=fix)

    if name.lower() in _VAGUE:
        yield finding("vague_name", "the name does not say what it holds", f"say which: for example {_better(name)}")
    if is_text and _ends_in_path(name) and not re.search(r"\b(absolute|relative|name)", about, re.IGNORECASE):
        yield finding("path_base", "a path from where?", "say absolute or relative to what, or that it is a name")
    if is_text and names_date(name) and not _has_form(schema):
        yield finding(
            "date_without_format",
            "a date or time without a format",
            'add "format": "date", or a pattern with an example',
        )
    if not _is_bound(schema) and len(about.strip()) < 10:
        yield finding("no_description", "neither described nor bound by its schema", "say what it is, with an example")
    if "enum" not in schema and "const" not in schema and _is_plain(schema) and lists_values(about):
        yield finding("values_in_prose", "the description lists values, the schema does not", "add them as enum")


def names_date(name: str) -> bool:
    """Whether a parameter of this name holds a date or time."""
    return bool(_DATES & set(name.lower().split("_")))


def lists_values(about: str) -> bool:
    """Whether a description lists the values that may stand there."""
    return _PROSE.search(_EXAMPLES.sub("", about)) is not None


def _is_plain(schema: Mapping[str, Any]) -> bool:
    """Whether an enum could bound it: no object, and no list of them."""
    inner = obj(schema.get("items")) if "array" in types_of(schema) else schema
    return "object" not in types_of(inner) and not {"properties", "anyOf", "oneOf", "allOf", "$ref"} & inner.keys()


def _better(name: str) -> str:
    better = {"user": "user_id or user_name", "id": "order_id", "data": "order_json", "input": "search_text"}
    return better.get(name.lower(), f"what the {name.lower()} is: customer_{name.lower()}")


def _ends_in_path(name: str) -> bool:
    return (bool(_WORD.findall(name)) and _WORD.findall(name)[-1].lower() in _PATHS) or name.lower().endswith(_PATHS)


def _has_form(schema: Mapping[str, Any]) -> bool:
    return any(key in schema for key in ("format", "pattern", "enum", "const"))


def _is_bound(schema: Mapping[str, Any]) -> bool:
    """Whether the schema itself says what may stand there."""
    bounds = ("enum", "const", "format", "pattern", "minimum", "maximum", "properties", "items", "$ref")
    return types_of(schema) == {"boolean"} or any(key in schema for key in bounds)


def _is_open(schema: Mapping[str, Any]) -> bool:
    if types_of(schema) == {"array"}:
        return is_object(schema.get("items")) and _is_open(schema["items"])
    if types_of(schema) != {"object"}:
        return False
    members = schema.get("additionalProperties")
    return ("properties" not in schema and members is not False) or bool(members)


# tools that read alike


class Alike(NamedTuple):
    left: str
    right: str
    similarity: float


def alike(tools: Sequence[ToolSchema]) -> list[Alike]:
    """Every pair of tools with the cosine of raw counts x idf over the words of names, descriptions and parameter
    names; the most alike first. idf = ln((1+N)/(1+df)) + 1 within the set."""
    counts = [Counter(words(tool)) for tool in tools]
    documents = Counter(word for count in counts for word in count)
    weight = {word: math.log((1 + len(tools)) / (1 + df)) + 1 for word, df in documents.items()}
    vectors = [{word: n * weight[word] for word, n in count.items()} for count in counts]
    sizes = [math.sqrt(math.fsum(v * v for v in vector.values())) for vector in vectors]
    pairs = [
        Alike(tools[i].name, tools[j].name, _dot(vectors[i], vectors[j]) / (sizes[i] * sizes[j]))
        for i, j in combinations(range(len(tools)), 2)
        if sizes[i] and sizes[j]
    ]
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.left, pair.right))


def _dot(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    return math.fsum(value * right[word] for word, value in left.items() if word in right)


def words(tool: ToolSchema) -> list[str]:
    """The words of a tool: its name, description and the names of its parameters at every depth."""
    text = " ".join([tool.name, tool.description, *(p.name for p in parameters(tool))])
    return [word.lower() for word in _WORD.findall(text)]


# two versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two versions of a tool set. ``breaking``: calls that were right may be wrong now."""

    kind: str
    tool: str
    pointer: str = ""
    old: JSON = None
    new: JSON = None
    breaking: bool = False


def changes(old: Sequence[ToolSchema], new: Sequence[ToolSchema]) -> list[Change]:
    """What differs: tools and parameters added, removed, renamed; enum members lost; types loosened or changed;
    required sets; descriptions, swapped ones as such."""
    before, after = {tool.name: tool for tool in old}, {tool.name: tool for tool in new}
    gone, come = [n for n in before if n not in after], [n for n in after if n not in before]
    found: list[Change] = []
    for left, right in _renamed({n: _shape(before[n]) for n in gone}, {n: _shape(after[n]) for n in come}):
        gone.remove(left)
        come.remove(right)
        found.append(Change(kind="tool_renamed", tool=left, old=left, new=right, breaking=True))
    found += [Change(kind="tool_removed", tool=name, breaking=True) for name in gone]
    found += [Change(kind="tool_added", tool=name) for name in come]
    shared = [name for name in before if name in after]
    swapped = _swapped(shared, before, after)
    for a, b in swapped:
        found.append(Change(kind="descriptions_swapped", tool=a, old=a, new=b, breaking=True))
        found.append(Change(kind="descriptions_swapped", tool=b, old=b, new=a, breaking=True))
    quiet = {name for pair in swapped for name in pair}
    for name in shared:
        if name not in quiet and before[name].description != after[name].description:
            found.append(
                Change(kind="description", tool=name, old=before[name].description, new=after[name].description)
            )
        found += _parameter_changes(name, before[name], after[name])
    return found


def _swapped(
    shared: Iterable[str], before: Mapping[str, ToolSchema], after: Mapping[str, ToolSchema]
) -> list[tuple[str, str]]:
    moved = [name for name in shared if before[name].description != after[name].description]
    return [
        (a, b)
        for a, b in combinations(moved, 2)
        if before[a].description == after[b].description and before[b].description == after[a].description
    ]


def _shape(tool: ToolSchema) -> str:
    return canonical_stored([tool.description, tool.parameters]).decode()


def _renamed(gone: Mapping[str, str], come: Mapping[str, str]) -> list[tuple[str, str]]:
    """What went and came with the same content; of several the nearest name."""
    found: list[tuple[str, str]] = []
    for left, shape in gone.items():
        taken = {right for _, right in found}
        same = [right for right, other in come.items() if other == shape and right not in taken]
        near = difflib.get_close_matches(left, same, n=1, cutoff=0.0)
        found += [(left, right) for right in near]
    return found


def _parameter_changes(tool: str, old: ToolSchema, new: ToolSchema) -> Iterator[Change]:
    before, after = ({p.pointer: p for p in parameters(each)} for each in (old, new))
    gone, come = [p for p in before if p not in after], [p for p in after if p not in before]
    renamed = _renamed({p: _content(before[p]) for p in gone}, {p: _content(after[p]) for p in come})
    for left, right in renamed:
        gone.remove(left)
        come.remove(right)
        yield Change(kind="parameter_renamed", tool=tool, pointer=left, old=left, new=right, breaking=True)
    for pointer in gone:
        yield Change(kind="parameter_removed", tool=tool, pointer=pointer, breaking=True)
    for pointer in come:
        yield Change(kind="parameter_added", tool=tool, pointer=pointer)
    for pointer in before:
        if pointer in after:
            yield from _one_parameter(tool, pointer, before[pointer].schema, after[pointer].schema)
    moved = dict(renamed)
    was = {moved.get(pointer, pointer) for pointer in _required(old)}
    now = _required(new)
    for pointer in sorted((was - now) & set(after)):
        yield Change(kind="no_longer_required", tool=tool, pointer=pointer)
    for pointer in sorted(now - was):
        yield Change(kind="now_required", tool=tool, pointer=pointer, breaking=True)


def _content(parameter: Parameter) -> str:
    return canonical_stored({k: v for k, v in parameter.schema.items() if k != "title"}).decode()


def _one_parameter(tool: str, pointer: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = old.get("enum"), new.get("enum")
    if before != after:
        kept = [canonical_stored(v) for v in after or ()]
        lost = [v for v in before or () if canonical_stored(v) not in kept]
        if after is None:
            yield Change(kind="enum_dropped", tool=tool, pointer=pointer, old=before)
        elif before is None:
            yield Change(kind="enum_added", tool=tool, pointer=pointer, new=after, breaking=True)
        elif lost:
            yield Change(kind="enum_members_lost", tool=tool, pointer=pointer, old=lost, breaking=True)
        else:
            yield Change(kind="enum_members_added", tool=tool, pointer=pointer, old=before, new=after)
    if types_of(old) != types_of(new):
        loosened = types_of(old) < types_of(new) or not types_of(new) or types_of(new) == {"string"}
        kind = "type_loosened" if loosened else "type_changed"
        told = sorted(types_of(old)), sorted(types_of(new))
        yield Change(kind=kind, tool=tool, pointer=pointer, old=told[0], new=told[1], breaking=True)
    if old.get("description") != new.get("description"):
        yield Change(
            kind="description", tool=tool, pointer=pointer, old=old.get("description"), new=new.get("description")
        )


def _required(tool: ToolSchema) -> set[str]:
    root = obj(tool.parameters)
    found = {f"/{_step(str(name))}" for name in root.get("required") or ()}
    for parameter in parameters(tool):
        inner, at = parameter.schema, parameter.pointer
        while is_object(inner.get("items")):
            inner, at = followed(root, inner["items"]), f"{at}/*"
        found |= {f"{at}/{_step(str(name))}" for name in inner.get("required") or ()}
    return found
