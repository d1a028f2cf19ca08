"""The same case with its tools changed: what do names, descriptions, types and the number of tools carry?"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, TypeAlias

from playhead.core.fuzz.cases import FuzzCase, Perturbed, digest_of
from playhead.core.plain_values import plain_json
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.suites.labels import AnyOfLabel, CallLabel, FailSafelyLabel, Label, NoToolLabel, tools_of
from playhead.core.suites.matchers import is_matcher
from playhead.core.suites.suite import Call, Case, Message, Round, Tools, ToolSchema, offered, to_json
from playhead.core.values import JSON

UNCHANGED: Final = "unchanged"
"""The perturbation that changes nothing: what the others are compared with."""

Change: TypeAlias = Callable[[dict[str, ToolSchema], Sequence[ToolSchema], str], "Perturbed | None"]


def interface_cases(cases: Sequence[Case], tools: Tools, *, per_tool: int, seed: int) -> list[FuzzCase]:
    """Of each labelled tool at most ``per_tool`` cases, each unchanged and with every perturbation that changes it."""
    chosen = _chosen(cases, per_tool, seed)
    found: list[FuzzCase] = []
    for case in chosen:
        held = offered(case, tools)
        others = [tool for tool in _one_of_each_name(tools) if tool.name not in held]
        kinds = {name: change(held, others, f"{seed}:{case.id}") for name, change in PERTURBATIONS.items()}
        made = {UNCHANGED: _with(held), **{name: one for name, one in kinds.items() if one is not None}}
        if len(made) > 1:
            found += [_case(case, mutation, one) for mutation, one in made.items()]
    return found


def _case(case: Case, mutation: str, changed: Perturbed) -> FuzzCase:
    id = f"interface-{mutation}-{digest_of([case.id])[:8]}"
    tool = next(iter(sorted(tools_of(case.label))), "")
    return FuzzCase(id=id, tool=tool, family="interface", mutation=mutation, source=case.id, perturbed=changed)


def _chosen(cases: Sequence[Case], per_tool: int, seed: int) -> list[Case]:
    """Labelled cases, at most so many of each tool that their labels name; cases without a call are one group."""
    counts: dict[str, int] = {}
    kept: set[str] = set()
    for case in sorted(cases, key=lambda c: _lot(f"{seed}", c.id)):
        if case.label is None or not case.tools:
            continue
        names = sorted(tools_of(case.label)) or [""]
        if any(counts.get(name, 0) < per_tool for name in names):
            kept.add(case.id)
            for name in names:
                counts[name] = counts.get(name, 0) + 1
    return [case for case in cases if case.id in kept]


def _lot(seed: str, text: str) -> bytes:
    return sha256(f"playhead.fuzz/1:{seed}:{text}".encode()).digest()


def _one_of_each_name(tools: Tools) -> list[ToolSchema]:
    return list({tool.name: tool for tool in tools.values()}.values())


# --- perturbations --------------------------------------------------------------------------------------------------


def _with(tools: Mapping[str, ToolSchema], **more: Any) -> Perturbed:
    return Perturbed(tools={name: to_json(tool) for name, tool in tools.items()}, **more)


def _changed(held: dict[str, ToolSchema], made: dict[str, ToolSchema], **more: Any) -> Perturbed | None:
    return _with(made, **more) if made != held or more else None


def _opaque_tool_names(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    names = {name: f"tool_{place}" for place, name in enumerate(held, 1)}
    made = {name: tool.model_copy(update={"name": names[name]}) for name, tool in held.items()}
    return _changed(held, made, names=names)


def _opaque_parameter_names(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    renames = {
        name: {old: f"p{place}" for place, old in enumerate(obj(obj(tool.parameters).get("properties")), 1)}
        for name, tool in held.items()
    }
    renames = {name: found for name, found in renames.items() if found}
    if not renames:
        return None
    made = {name: _renamed(tool, renames.get(name, {})) for name, tool in held.items()}
    return _with(made, parameters=renames)


def _renamed(tool: ToolSchema, names: Mapping[str, str]) -> ToolSchema:
    schema = dict(obj(tool.parameters))
    schema["properties"] = {names.get(n, n): _untitled(p) for n, p in obj(schema.get("properties")).items()}
    if is_list(schema.get("required")):
        schema["required"] = [names.get(str(n), n) for n in schema["required"]]
    return tool.model_copy(update={"parameters": schema})


def _untitled(schema: JSON) -> JSON:
    return {k: v for k, v in schema.items() if k != "title"} if is_object(schema) else schema


def _opaque_descriptions(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    made = {
        name: tool.model_copy(update={"description": "", "parameters": _everywhere(tool.parameters, _undescribed)})
        for name, tool in held.items()
    }
    return _changed(held, made)


def _undescribed(schema: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in ("description", "title")}


def _swapped_descriptions(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    names = list(held)
    texts = {name: held[names[(place + 1) % len(names)]].description for place, name in enumerate(names)}
    return _changed(held, {n: tool.model_copy(update={"description": texts[n]}) for n, tool in held.items()})


def _dropped_enums(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    def without(schema: dict[str, Any]) -> dict[str, Any]:
        values: Any = schema.get("enum")
        kept = {k: v for k, v in schema.items() if k != "enum"}
        texts = is_list(values) and all(isinstance(value, str) for value in values)
        return {"type": "string", **kept} if texts else kept

    made = {
        n: tool.model_copy(update={"parameters": _everywhere(tool.parameters, without)}) for n, tool in held.items()
    }
    return _changed(held, made)


def _loosened_types(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "format", "default")

    def loose(schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") in ("integer", "number", "boolean"):
            return {**{k: v for k, v in schema.items() if k not in bounds}, "type": "string"}
        return schema

    made = {n: tool.model_copy(update={"parameters": _everywhere(tool.parameters, loose)}) for n, tool in held.items()}
    return _changed(held, made, texts=True) if made != held else None


def _shuffled(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
    names = sorted(held, key=lambda name: _lot(seed, name))
    if names == list(held):
        names = names[1:] + names[:1]
    return _with({name: held[name] for name in names}) if names != list(held) else None


def _distractors(count: int | None) -> Change:
    def add(held: dict[str, ToolSchema], others: Sequence[ToolSchema], seed: str) -> Perturbed | None:
        drawn = sorted(others, key=lambda tool: _lot(seed, tool.name))[:count]
        if not drawn or (count is not None and len(drawn) < count):
            return None
        return _with({**held, **{tool.name: tool for tool in drawn}})

    return add


PERTURBATIONS: Final[dict[str, Change]] = {
    "opaque_tool_names": _opaque_tool_names, "opaque_parameter_names": _opaque_parameter_names,
    "opaque_descriptions": _opaque_descriptions, "swapped_descriptions": _swapped_descriptions,
    "dropped_enums": _dropped_enums, "loosened_types": _loosened_types, "shuffled_order": _shuffled,
    "distractors_3": _distractors(3), "distractors_10": _distractors(10), "distractors_all": _distractors(None),
}  # fmt: skip


def _everywhere(schema: JSON, change: Callable[[dict[str, Any]], dict[str, Any]], at_top: bool = True) -> JSON:
    """A schema with a change made to every schema inside it, and not to the whole itself."""
    if not is_object(schema):
        return schema
    made: dict[str, Any] = dict(schema)
    for key in ("properties", "$defs", "definitions"):
        if is_object(made.get(key)):
            made[key] = {name: _everywhere(inner, change, at_top=False) for name, inner in made[key].items()}
    for key in ("items", "additionalProperties"):
        if is_object(made.get(key)):
            made[key] = _everywhere(made[key], change, at_top=False)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if is_list(made.get(key)):
            made[key] = [_everywhere(inner, change, at_top=False) for inner in made[key]]
    return made if at_top else change(made)


# --- mapping a case along -------------------------------------------------------------------------------------------


def perturbed_case(case: Case, changed: Perturbed, id: str) -> tuple[Case, dict[str, ToolSchema]]:
    """The case with the changed tools: history, recording and label use the new names. Gives the tools beside it, by
    the name under which the case refers to them."""
    mapping = _Mapping(changed)
    made = {f"{id}#{place}": ToolSchema.model_validate(tool) for place, tool in enumerate(changed.tools.values())}
    update = {
        "id": id,
        "tools": tuple(made),
        "history": tuple(mapping.message(message) for message in case.history),
        "recorded": tuple(mapping.round(one) for one in case.recorded),
        "alternatives": tuple(mapping.name(name) for name in case.alternatives),
        "label": None if case.label is None else mapping.label(case.label),
        "facts": (),  # the outcome is not what is compared
    }
    return case.model_copy(update=update), made


def perturbed_effects(effects: Mapping[str, Any], changed: Perturbed) -> dict[str, Any]:
    return {changed.names.get(name, name): effect for name, effect in effects.items()}


class _Mapping:
    def __init__(self, changed: Perturbed) -> None:
        self._changed = changed

    def name(self, tool: str) -> str:
        return self._changed.names.get(tool, tool)

    def arguments(self, tool: str, arguments: JSON, *, label: bool = False) -> JSON:
        if not is_object(arguments):
            return arguments
        names = self._changed.parameters.get(tool, {})
        return {names.get(name, name): self._value(value, label=label) for name, value in arguments.items()}

    def _value(self, value: JSON, *, label: bool) -> JSON:
        """In a label, what may be text because types were loosened."""
        if not self._changed.texts or not label:
            return value
        if isinstance(value, bool | int | float):
            return {"$any_of": [value, _as_text(value)]}
        if is_matcher(value) and "$any_of" in value:
            texts = [_as_text(v) for v in value["$any_of"] if isinstance(v, bool | int | float)]
            return {**value, "$any_of": [*value["$any_of"], *texts]}
        if is_object(value) and not is_matcher(value):
            return {name: self._value(inner, label=True) for name, inner in value.items()}
        return [self._value(inner, label=True) for inner in value] if is_list(value) else value

    def call(self, call: Call) -> Call:
        arguments = self.arguments(call.tool, call.arguments)
        return call.model_copy(update={"tool": self.name(call.tool), "arguments": arguments})

    def message(self, message: Message) -> Message:
        return message.model_copy(update={"calls": tuple(self.call(call) for call in message.calls)})

    def round(self, one: Round) -> Round:
        return one.model_copy(update={"calls": tuple(self.call(call) for call in one.calls)})

    def label(self, label: Label) -> Label:
        if isinstance(label, CallLabel):
            return label.model_copy(update={"calls": self._calls(label.calls)})
        if isinstance(label, AnyOfLabel):
            options = tuple(o.model_copy(update={"calls": self._calls(o.calls)}) for o in label.options)
            return label.model_copy(update={"options": options})
        if isinstance(label, FailSafelyLabel):
            forbidden = None if label.forbidden is None else tuple(map(self.name, label.forbidden))
            return label.model_copy(update={"forbidden": forbidden, "allowed": tuple(map(self.name, label.allowed))})
        assert isinstance(label, NoToolLabel)
        return label

    def _calls(self, calls: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            call.model_copy(
                update={
                    "tool": self.name(call.tool),
                    "arguments": self.arguments(call.tool, plain_json(call.arguments), label=True),
                }
            )
            for call in calls
        )


def _as_text(value: JSON) -> str:
    return (
        ("true" if value else "false")
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
