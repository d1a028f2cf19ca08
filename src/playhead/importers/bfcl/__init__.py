"""Files of the Berkeley Function Calling Leaderboard as labelled cases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from playhead.core.protocol.parts import stored
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.suites.contents import Contents, Skipped
from playhead.core.suites.labels import CallLabel, ExpectedCall, NoToolLabel
from playhead.core.suites.suite import Case, Intent, Message, Source, Suite, ToolSchema, add_tool
from playhead.core.values import JSON
from playhead.errors import FormatError, UsageError
from playhead.importers.bfcl.turns import Conversations, is_conversation, turn_cases

NAME = "bfcl"
_TYPES = {
    "dict": "object", "float": "number", "int": "integer", "bool": "boolean", "list": "array", "str": "string",
    "tuple": "array",
}  # fmt: skip
_NONE = ("irrelevance", "live_irrelevance")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf")


def read(folder: Path, *, name: str = "bfcl", categories: Sequence[str] = ()) -> Contents:
    """The cases of a folder of question files, with their ground truth in ``possible_answer``.

    Args:
        categories: only these, such as ``simple_python`` or ``parallel``.

    Raises:
        UsageError: no such folder, no question file in it, or no such category.
        FormatError: a line that is no JSON object.
    """
    files = {_category(path): path for path in sorted(folder.glob("BFCL_*.json"))} if folder.is_dir() else {}
    if not files:
        raise UsageError(f"{folder} holds no BFCL_*.json file", hint="name the folder with the question files")
    unknown = [category for category in categories if category not in files]
    if unknown:
        raise UsageError(f"there is no category {unknown[0]!r} in {folder}", hint=f"it has {', '.join(files)}")
    cases: list[Case] = []
    tools: dict[str, ToolSchema] = {}
    skipped: list[Skipped] = []
    beside = Conversations.beside(folder, _lines, _tool)
    for category in categories or files:
        answers = _answers(folder / "possible_answer" / files[category].name)
        for line in _lines(files[category]):
            made = (
                turn_cases(line, category, answers.get(str(line.get("id"))), beside, tools)
                if is_conversation(line)
                else [_case(line, category, answers, tools)]
            )
            cases += [one for one in made if isinstance(one, Case)]
            skipped += [one for one in made if isinstance(one, Skipped)]
    intents = {category: Intent() for category in dict.fromkeys(case.intent for case in cases)}
    return Contents(suite=Suite(name=name, intents=intents), cases=tuple(cases), tools=tools, skipped=tuple(skipped))


def _category(path: Path) -> str:
    return path.stem.split("_", 2)[-1]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value: object = json.loads(line)
        except ValueError as error:
            raise FormatError(f"{path.name}, line {number} is not JSON: {error}") from None
        if not is_object(value):
            raise FormatError(f"{path.name}, line {number} is no JSON object")
        yield value


def _answers(path: Path) -> dict[str, list[Any]]:
    if not path.is_file():
        return {}
    found = {str(line.get("id")): line.get("ground_truth") for line in _lines(path)}
    return {id: truth for id, truth in found.items() if is_list(truth)}


def _case(
    line: dict[str, Any], category: str, answers: Mapping[str, list[Any]], tools: dict[str, ToolSchema]
) -> Case | Skipped:
    id = str(line.get("id"))
    history = _history(line.get("question"))
    if history is None:
        return Skipped(what=id, why="several turns: only the first could be a case without results")
    functions = [f for f in line.get("function") or () if is_object(f)]
    label = _label(category, answers.get(id))
    if label is None:
        return Skipped(what=id, why="no ground truth in possible_answer")
    return Case(
        id=id,
        intent=category,
        source=Source(external_id=id),
        history=history,
        tools=tuple(dict.fromkeys(add_tool(tools, _tool(f)) for f in functions)),
        label=label,
    )


def _history(question: Any) -> tuple[Message, ...] | None:
    """The messages of the only turn; None when there are several."""
    turns = question if is_list(question) else []
    if len(turns) != 1 or not is_list(turns[0]):
        return None
    return tuple(Message(role=m.get("role", "user"), content=str(m.get("content") or "")) for m in turns[0])


def _tool(function: dict[str, Any]) -> ToolSchema:
    return ToolSchema(
        name=str(function.get("name")),
        description=str(function.get("description") or ""),
        parameters=stored(json_schema(function.get("parameters") or {"type": "dict", "properties": {}})),
    )


def json_schema(declared: Any) -> Any:
    """The JSON Schema of a declaration in the benchmark's own types; ``any`` becomes no type."""
    if is_list(declared):
        return [json_schema(one) for one in declared]
    if not is_object(declared):
        return declared
    made: dict[str, Any] = {}
    for name, value in declared.items():
        if name == "properties" and is_object(value):
            made[name] = {inner: json_schema(one) for inner, one in value.items()}
        elif name == "type" and isinstance(value, str):
            if value != "any":
                made[name] = _TYPES.get(value, value)
        elif name in ("items", "additionalProperties") or name in _SCHEMA_LISTS:
            made[name] = json_schema(value)
        elif not (name == "required" and value is True):
            made[name] = value
    return made


def _label(category: str, truth: list[Any] | None) -> CallLabel | NoToolLabel | None:
    if truth is None:
        return NoToolLabel() if category in _NONE else None
    calls = [
        ExpectedCall(tool=str(tool), arguments={n: _acceptable(v) for n, v in obj(arguments).items()})
        for one in truth
        if is_object(one)
        for tool, arguments in one.items()
    ]
    return CallLabel(calls=tuple(calls), extra_arguments="forbid") if calls else None


def _acceptable(values: Any) -> JSON:
    """The matcher for a list of acceptable values, in which an empty text says that the argument may be absent."""
    listed = values if is_list(values) else [values]
    present = [_value(v) for v in listed if v != ""]
    if len(present) == len(listed):
        return present[0] if len(present) == 1 and not is_object(present[0]) else {"$any_of": present}
    return {"$optional": True, "$any_of": present}


def _value(value: Any) -> JSON:
    if isinstance(value, str):
        return {"$as": "text", "$value": value}
    if is_object(value):
        return {name: _acceptable(inner) for name, inner in value.items()}
    return [_value(inner) for inner in value] if is_list(value) else stored(value)
