"""Whether the arguments of a call fit the schema that the model was given: every error, sorted into bins.

Nothing is coerced: ``"7"`` for an integer is a type error, counted as ``coercible`` beside it. Formats count.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import jsonschema_rs

from playhead.core.json_text import pointer
from playhead.core.protocol.shape import is_object, obj, objects
from playhead.core.values import JSON, Node, NodeKind

Bin: TypeAlias = Literal["json", "required", "type", "enum", "format", "unknown_parameter", "range"]

BINS: Final[tuple[Bin, ...]] = ("json", "required", "type", "enum", "format", "unknown_parameter", "range")

_BINS: Final[dict[str, Bin]] = {
    "required": "required",
    "dependentRequired": "required",
    "type": "type",
    "enum": "enum",
    "const": "enum",
    "format": "format",
    "pattern": "format",
    "additionalProperties": "unknown_parameter",
    "unevaluatedProperties": "unknown_parameter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentError:
    """One place where arguments do not fit. ``pointer`` counts from the arguments; a missing one names its place."""

    bin: Bin
    pointer: str
    keyword: str
    message: str
    coercible: bool = False


def argument_errors(schema: JSON, arguments: JSON) -> list[ArgumentError]:
    """Every error of a call's arguments, as the model emitted them. A schema that cannot be used says nothing."""
    if is_object(arguments) and set(arguments) == {"$invalid"}:
        return [ArgumentError(bin="json", pointer="", keyword="json", message="the text is no JSON object")]
    given: JSON = {} if arguments is None or arguments == "" else arguments
    if not is_object(given):
        return [ArgumentError(bin="json", pointer="", keyword="json", message="the arguments are no JSON object")]
    validator = _validator(schema)
    if validator is None:
        return []
    return [found for error in validator.iter_errors(given) for found in _flat(error)]


def _validator(schema: JSON) -> Any:
    if not is_object(schema) and not isinstance(schema, bool):
        return None
    try:
        return _compiled(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    schema = json.loads(text)
    try:
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)
    except (ValueError, TypeError, jsonschema_rs.ValidationError):
        return None


def _flat(error: Any) -> Iterable[ArgumentError]:
    """The errors that one stands for: of alternatives those of the branch with the fewest, the first on a tie."""
    branches: Sequence[Sequence[Any]] = getattr(error.kind, "context", None) or ()
    if branches and all(branches):
        for inner in min(branches, key=len):
            yield from _flat(inner)
        return
    keyword = str(error.kind.name)
    path = [*error.instance_path, *([error.kind.property] if keyword == "required" else [])]
    yield ArgumentError(
        bin=_BINS.get(keyword, "range"),
        pointer=pointer(path),
        keyword=keyword,
        message=str(error.message)[:300],
        coercible=keyword == "type" and _coercible(error.instance, getattr(error.kind, "types", ())),
    )


def _coercible(value: Any, types: Sequence[str]) -> bool:
    """Whether a lenient reader would have taken the value: a number or boolean as text, or text as one of them."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return False
        return _is_of(read, types)
    return "string" in types and isinstance(value, bool | int | float)


def _is_of(value: Any, types: Sequence[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and float(value).is_integer())
    return value is None and "null" in types


class Offered:
    """The schemas of tools as models were offered them: by the model call that asked, else by any."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._by_call: dict[tuple[str, str], JSON] = {}
        self._any: dict[str, JSON] = {}
        for node in nodes:
            if node.kind is not NodeKind.MODEL_CALL:
                continue
            for tool in objects(obj(node.inputs).get("tools")):
                if tool.get("parameters") is not None:
                    name = str(tool.get("name"))
                    self._by_call[node.id, name] = self._any[name] = tool["parameters"]

    def schema(self, node: Node) -> JSON:
        """The schema that a call's arguments have to fit, None when there is none."""
        assert node.call is not None
        name = node.call.tool
        return self._by_call.get((node.call.model_call or "", name), self._any.get(name))
