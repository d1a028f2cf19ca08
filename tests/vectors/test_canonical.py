"""Runs spec/vectors/canonical.json."""

import dataclasses
import inspect
import json
from collections import namedtuple
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from hashlib import sha256
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest

from playhead.core.canonical import (
    MAX_DEPTH,
    MAX_INT_DIGITS,
    NoKeyError,
    canonical,
    canonical_stored,
    parse_emitted,
    parse_json,
    to_stored,
)
from playhead.core.keys import KEY_VERSION, bind, call_key, preimage
from playhead.core.redaction.redact import Redactor

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "spec/vectors/canonical.json").read_text())


class Emitted:
    """A value that exists only in stored form: what a model emitted."""

    def __init__(self, stored: Any) -> None:
        self.stored = stored


def build(value: Any) -> Any:
    """The Python value of the vectors' own notation."""
    if isinstance(value, list):
        return [build(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$type" not in value:
        return {name: build(item) for name, item in value.items()}
    return BUILDERS[value["$type"]](value)


def items(value: dict[str, Any]) -> list[Any]:
    return [build(item) for item in value["items"]]


def build_map(value: dict[str, Any]) -> dict[Any, Any]:
    return {build(name): build(item) for name, item in value["pairs"]}


def build_nest(value: dict[str, Any]) -> list[Any]:
    nested: list[Any] = []
    for _ in range(value["depth"] - 1):
        nested = [nested]
    return nested


def build_enum(value: dict[str, Any]) -> Any:
    base = {"plain": Enum, "str": StrEnum, "int": IntEnum}[value["base"]]
    return base(value["class"], {value["member"]: value["value"]})[value["member"]]


def build_record(value: dict[str, Any]) -> Any:
    fields = {name: build(item) for name, item in value["fields"]}
    name = value["class"]
    makers = {
        "dataclass": lambda: dataclasses.make_dataclass(name, fields),
        "pydantic": lambda: pydantic.create_model(name, **dict.fromkeys(fields, (Any, ...))),  # type: ignore[call-overload]
        "msgspec": lambda: msgspec.defstruct(name, list(fields)),
        "namedtuple": lambda: namedtuple(name, list(fields)),
    }
    return makers[value["kind"]]()(**fields)


def build_cycle(_: Any) -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


BUILDERS = {
    "int": lambda v: int(v["text"]),
    "float": lambda v: float(v["text"]),
    "repeat-int": lambda v: (10 ** v["times"] - 1) // 9 * int(v["digit"]),
    "str": lambda v: "".join(chr(int(unit, 16)) for unit in v["utf16"]),
    "repeat": lambda v: v["text"] * v["times"],
    "nest": build_nest,
    "list": items,
    "tuple": lambda v: tuple(items(v)),
    "set": lambda v: set(items(v)),
    "frozenset": lambda v: frozenset(items(v)),
    "map": build_map,
    "datetime": lambda v: datetime.fromisoformat(v["iso"]),
    "date": lambda v: date.fromisoformat(v["iso"]),
    "time": lambda v: time.fromisoformat(v["iso"]),
    "timedelta": lambda v: timedelta(**{k: n for k, n in v.items() if k != "$type"}),
    "uuid": lambda v: UUID(v["text"]),
    "decimal": lambda v: Decimal(v["text"]),
    "path": lambda v: PurePosixPath(v["text"]),
    "bytes": lambda v: bytes.fromhex(v["hex"]),
    "enum": build_enum,
    "record": build_record,
    "cycle": build_cycle,
    "opaque": lambda v: type(v["class"], (), {})(),
    "emitted": lambda v: Emitted(parse_emitted(v["text"])),
}


def text_of(vector: dict[str, Any]) -> bytes:
    value = parse_json(vector["json"]) if "json" in vector else build(vector["value"])
    return canonical_stored(value.stored) if isinstance(value, Emitted) else canonical(value)


def key_inputs(vector: dict[str, Any]) -> tuple[tuple[str, Any], dict[str, Any]]:
    value = parse_json(vector["args_json"]) if "args_json" in vector else build(vector["args"])
    stored = value.stored if isinstance(value, Emitted) else to_stored(value)
    secrets = Redactor({secret["name"]: secret["value"] for secret in vector.get("secrets", ())})
    options = {"scope": to_stored(vector["scope"]), "ignore": vector.get("ignore", ()), "secrets": secrets}
    return (vector["tool"], stored), {**options, "namespace": vector["namespace"]}


def bound_text(vector: dict[str, Any]) -> bytes:
    scope: dict[str, Any] = {}
    exec(f"def called({vector['signature']}): ...", scope)
    signature = inspect.signature(scope["called"])
    return canonical(bind(signature, build(vector["positional"]), build(vector["named"])))


def named(part: str) -> Any:
    return pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in VECTORS[part]])


def groups(relation: str) -> list[Any]:
    return [
        pytest.param(part, names, id=f"{part}-{names[0]}")
        for part, all_names in VECTORS[relation].items()
        for names in all_names
    ]


RESULT = {
    "vectors": text_of,
    "keys": lambda vector: call_key(*key_inputs(vector)[0], **key_inputs(vector)[1]),
    "bind": bound_text,
}


def results(part: str, names: list[str]) -> list[Any]:
    by_name = {vector["name"]: vector for vector in VECTORS[part]}
    return [RESULT[part](by_name[name]) for name in names]


def test_limits_are_those_of_the_vectors() -> None:
    assert (VECTORS["key_version"], VECTORS["max_depth"], VECTORS["max_int_digits"]) == (
        KEY_VERSION,
        MAX_DEPTH,
        MAX_INT_DIGITS,
    )


@named("vectors")
def test_a_value_has_its_canonical_text_or_its_reason(vector: dict[str, Any]) -> None:
    if "reason" in vector:
        with pytest.raises(NoKeyError) as refused:
            text_of(vector)
        assert refused.value.no_key.reason == vector["reason"]
        assert refused.value.no_key.at == vector.get("at", refused.value.no_key.at)
        return
    text = text_of(vector)
    if "canonical" in vector:
        assert text.decode() == vector["canonical"]
    assert len(text) == vector["bytes"]
    assert sha256(text).hexdigest() == vector["sha256"]


@named("keys")
def test_a_call_has_its_key(vector: dict[str, Any]) -> None:
    positional, options = key_inputs(vector)
    assert preimage(*positional, **options).decode() == vector["preimage"]
    assert call_key(*positional, **options) == vector["key"]


@named("bind")
def test_arguments_are_bound(vector: dict[str, Any]) -> None:
    assert bound_text(vector).decode() == vector["args"]


@pytest.mark.parametrize(("part", "names"), groups("same"))
def test_spellings_of_one_thing_are_the_same(part: str, names: list[str]) -> None:
    assert len(set(results(part, names))) == 1


@pytest.mark.parametrize(("part", "names"), groups("different"))
def test_different_things_stay_different(part: str, names: list[str]) -> None:
    for left, right in combinations(results(part, names), 2):
        assert left != right
