"""The places of a tool's arguments that a case can change, and valid arguments to start from."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from playhead.core.argument_schema import argument_errors
from playhead.core.lint.interface import followed
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON

DEPTH: Final = 3
"""Levels of named parameters that are changed."""

_FORMATS: Final[dict[str, str]] = {
    "date": "2030-05-20", "date-time": "2030-05-20T11:00:00Z", "time": "11:00:00Z", "email": "sam@example.com",
    "uri": "https://example.com/a", "uuid": "6f1c1e0a-9c1b-4a3e-8d57-0f3a5a1f2b3c", "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1", "hostname": "example.com", "duration": "P1D",
}  # fmt: skip
_TEXTS: Final = (
    "A1", "abc", "ABC", "A", "a", "1", "12", "123", "1234", "12345", "AB", "abcd", "ABC-123", "abc_123", "A-1", "R-77",
    "POL-1", "ORD-1", "2030-05-20", "11:00", "sam@example.com", "+15550100", "https://example.com/a", "/a/b", "0.5",
    "US", "USD", "en-US", "#fff", "some text",
)  # fmt: skip


class Place(NamedTuple):
    """One place. ``name`` is the last named part of its pointer; ``steps`` lead there from the arguments."""

    steps: tuple[str | int, ...]
    name: str
    schema: dict[str, Any]
    required: bool
    value: JSON

    @property
    def pointer(self) -> str:
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.steps)

    @property
    def kind(self) -> str:
        """The JSON type that is declared, null left out; of several the first, empty when none is."""
        declared: JSON = self.schema.get("type")
        names: list[JSON] = declared if is_list(declared) else [declared]
        found = [name for name in names if isinstance(name, str) and name != "null"]
        if not found and ("properties" in self.schema or "additionalProperties" in self.schema):
            return "object"
        return found[0] if found else ""


def places(parameters: JSON, arguments: JSON) -> list[Place]:
    """Every place up to the third named level, outer ones first; of a list its first item stands for all.

    A parameter that the arguments leave out is a place with the value that would be made for it.
    """
    root = obj(parameters)
    return list(_below(root, root, obj(arguments), (), DEPTH))


def _below(
    root: dict[str, Any], schema: dict[str, Any], value: dict[str, Any], at: tuple[str | int, ...], depth: int
) -> Iterator[Place]:
    if depth == 0:
        return
    required: Sequence[Any] = schema["required"] if is_list(schema.get("required")) else ()
    for name, raw in obj(schema.get("properties")).items():
        declared = followed(root, raw)
        held = value[name] if value.get(name) is not None else example(root, declared, depth - 1)
        yield Place((*at, name), name, declared, name in required, held)
        yield from _inside(root, declared, held, (*at, name), name, depth)


def _inside(
    root: dict[str, Any], declared: dict[str, Any], held: JSON, at: tuple[str | int, ...], name: str, depth: int
) -> Iterator[Place]:
    """What is inside an object or list that stands somewhere."""
    if is_object(declared.get("items")) and is_list(held) and held:
        item = followed(root, declared["items"])
        yield Place((*at, 0), name, item, False, held[0])
        yield from _inside(root, item, held[0], (*at, 0), name, depth)
    elif is_object(held):
        yield from _below(root, declared, held, at, depth - 1)


# --- changes --------------------------------------------------------------------------------------------------------


def put(value: JSON, steps: Sequence[str | int], new: JSON) -> JSON:
    """A copy with something else at a place; what is missing on the way is not made."""
    if not steps:
        return new
    step = steps[0]
    if is_object(value) and isinstance(step, str):
        return {**value, step: put(value.get(step), steps[1:], new)}
    if is_list(value) and isinstance(step, int) and step < len(value):
        return [put(item, steps[1:], new) if place == step else item for place, item in enumerate(value)]
    return put({} if isinstance(step, str) else [None], steps, new)


def drop(value: JSON, steps: Sequence[str | int]) -> JSON:
    """A copy without a member or item."""
    step = steps[0]
    if len(steps) > 1:
        held: Any = value
        inner: JSON = held[step] if is_list(value) or step in obj(value) else {}
        return put(value, (step,), drop(inner, steps[1:]))
    if is_object(value):
        return {name: inner for name, inner in value.items() if name != step}
    return [item for place, item in enumerate(value) if place != step]


# --- valid arguments ------------------------------------------------------------------------------------------------


def made_arguments(parameters: JSON) -> JSON:
    """Arguments that fit a schema, every parameter given where that fits; None when none are found."""
    root = obj(parameters)
    whole = example(root, root, DEPTH)
    if not argument_errors(parameters, whole):
        return whole
    required = _required_only(root, root, whole)
    return required if not argument_errors(parameters, required) else None


def _required_only(root: dict[str, Any], schema: dict[str, Any], value: JSON) -> JSON:
    if not is_object(value):
        return value
    wanted: Sequence[Any] = schema["required"] if is_list(schema.get("required")) else ()
    declared = obj(schema.get("properties"))
    return {
        name: _required_only(root, followed(root, declared.get(name)), value[name]) for name in wanted if name in value
    }


def example(root: dict[str, Any], schema: dict[str, Any], depth: int) -> JSON:
    """A value for a schema; a plausible one, not always a valid one."""
    schema = _one_branch(root, followed(root, schema))
    for listed in ("enum", "examples"):
        values = schema.get(listed)
        if is_list(values) and values:
            return next((value for value in values if value is not None), values[0])
    for given in ("const", "default"):
        if schema.get(given) is not None:
            return schema[given]
    declared = schema.get("type")
    kinds: list[Any] = declared if is_list(declared) else [declared]
    kind = next((one for one in kinds if one != "null"), None)
    if kind == "object" or (kind is None and "properties" in schema):
        properties = obj(schema.get("properties"))
        required: Any = schema.get("required") or ()
        return {n: example(root, p, depth - 1) for n, p in properties.items() if depth > 0 or n in required}
    if kind == "array" or (kind is None and "items" in schema):
        return _items(root, schema, depth)
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return True
    return _text(schema)


def _one_branch(root: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The first alternative that is not null, and all parts of a conjunction, as one schema."""
    for choice in ("anyOf", "oneOf"):
        members = [followed(root, m) for m in schema.get(choice) or () if obj(m).get("type") != "null"]
        if members:
            return {**members[0], **{k: v for k, v in schema.items() if k != choice}}
    merged = dict(schema)
    for part in merged.pop("allOf", ()):
        inner = followed(root, part)
        both = {**obj(inner.get("properties")), **obj(merged.get("properties"))}
        merged = {**inner, **merged} | ({"properties": both} if both else {})
    return merged


def _items(root: dict[str, Any], schema: dict[str, Any], depth: int) -> JSON:
    first: Any = schema.get("prefixItems")
    fixed = [example(root, part, depth) for part in first] if is_list(first) else []
    wanted = max(1, int(schema.get("minItems") or 0))
    item = example(root, obj(schema.get("items")), depth)
    filled = [*fixed, *([item] * max(0, wanted - len(fixed)))]
    if schema.get("uniqueItems"):
        filled = [f"{one}{place}" if place and isinstance(one, str) else one for place, one in enumerate(filled)]
    return filled


def _number(schema: dict[str, Any], *, whole: bool) -> JSON:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf") or 1
    value: Any = 1 if low is None and high is None else low if low is not None else high
    if value == schema.get("exclusiveMinimum"):
        value += step
    if value == schema.get("exclusiveMaximum") and low is None:
        value -= step
    return int(value) if whole or float(value).is_integer() else value


def _text(schema: dict[str, Any]) -> str:
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form]
    least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
    texts = [text.ljust(least, "a") for text in _TEXTS]
    fitting = [text for text in texts if not argument_errors(_only(schema), {"v": text})]
    plain = "text".ljust(least, "t")[: most if isinstance(most, int) else None]
    return plain if plain and not argument_errors(_only(schema), {"v": plain}) else next(iter(fitting), plain)


def _only(schema: dict[str, Any]) -> JSON:
    kept = {k: v for k, v in schema.items() if k in ("type", "minLength", "maxLength", "pattern", "format")}
    return {"type": "object", "properties": {"v": kept}}


def schema_at(parameters: JSON, pointer: str) -> dict[str, Any]:
    """The schema that is declared for a place, empty when there is none."""
    root = obj(parameters)
    schema = root
    for part in pointer.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        inner = (
            schema.get("items") if part.isdecimal() and "items" in schema else obj(schema.get("properties")).get(step)
        )
        schema = followed(root, inner)
    return schema
