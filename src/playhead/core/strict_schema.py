"""Whether a provider's strict mode can hold a schema, and the form that it is sent in."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from playhead.core.json_text import pointer
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON

_REFUSED: Final = (
    "oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties",
)  # fmt: skip


class StrictForm(NamedTuple):
    """The schema to send, or the first thing that prevents it: ``keyword at pointer``."""

    schema: JSON
    why: str | None


def strict_form(parameters: JSON) -> StrictForm:
    """Every object closed; one whose members may be absent, or that is open, has no strict form."""
    why = _problem(parameters, ())
    return StrictForm(None, why) if why else StrictForm(_closed(parameters), None)


def _problem(schema: JSON, at: tuple[Any, ...]) -> str | None:
    if not is_object(schema):
        return None if isinstance(schema, bool) else f"no schema at {pointer(at) or 'the top'}"
    for keyword in _REFUSED:
        if keyword in schema:
            return f"{keyword} at {pointer(at) or 'the top'}"
    properties = obj(schema.get("properties"))
    if schema.get("type") == "object" or properties:
        required: Sequence[Any] = schema["required"] if is_list(schema.get("required")) else ()
        absent = [name for name in properties if name not in required]
        if absent:
            return f"required at {pointer(at) or 'the top'}: {absent[0]!r} may be absent"
        if schema.get("additionalProperties", False) is not False or not (properties or at == ()):
            return f"additionalProperties at {pointer(at) or 'the top'}"
    return next((why for place, inner in _inner(schema) if (why := _problem(inner, (*at, *place)))), None)


def _inner(schema: dict[str, Any]) -> list[tuple[tuple[Any, ...], JSON]]:
    found: list[tuple[tuple[Any, ...], JSON]] = []
    for group in ("properties", "$defs", "definitions"):
        found += [((group, name), inner) for name, inner in obj(schema.get(group)).items()]
    if "items" in schema:
        found.append((("items",), schema["items"]))
    options: list[Any] = schema["anyOf"] if is_list(schema.get("anyOf")) else []
    return found + [(("anyOf", place), inner) for place, inner in enumerate(options)]


def _closed(schema: JSON) -> JSON:
    if not is_object(schema):
        return schema
    made: dict[str, Any] = dict(schema)
    for group in ("properties", "$defs", "definitions"):
        if group in made:
            made[group] = {name: _closed(inner) for name, inner in obj(made[group]).items()}
    if "items" in made:
        made["items"] = _closed(made["items"])
    if is_list(made.get("anyOf")):
        made["anyOf"] = [_closed(inner) for inner in made["anyOf"]]
    if made.get("type") == "object" or "properties" in made:
        made["additionalProperties"] = False
        made.setdefault("required", [])
    return made
