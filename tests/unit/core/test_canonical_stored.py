"""Stored forms, JSON text and emitted arguments, and cases met elsewhere."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pydantic
import pytest

from playhead.core.canonical import (
    LongInteger,
    NoKeyError,
    canonical,
    canonical_stored,
    from_stored,
    parse_emitted,
    parse_json,
    register_type,
    render,
    to_stored,
)
from playhead.errors import ConflictError


class Color(Enum):
    RED = "r"


class Size(IntEnum):
    S = 1


class Word(StrEnum):
    HI = "hi"


@dataclass
class Point:
    x: Any
    y: Any = 0


class Pair(NamedTuple):
    left: Any
    right: Any


class Money(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    amount: Decimal
    currency: str = "EUR"


def nest(depth: int, wrap: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    value: Any = wrap(1)
    for _ in range(depth - 1):
        value = wrap(value)
    return value


def refused(value: Any, call: Callable[[Any], Any] = canonical) -> tuple[str, str]:
    with pytest.raises(NoKeyError) as caught:
        call(value)
    return caught.value.no_key.reason, caught.value.no_key.at


class TestStored:
    @pytest.mark.parametrize(
        "value",
        [
            datetime(2026, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC),
            datetime(1, 1, 1),  # noqa: DTZ001
            date(2026, 1, 2),
            time(3, 4, 5, tzinfo=timezone(timedelta(hours=-2))),
            time(3, 4, tzinfo=UTC),
            timedelta(days=-3, microseconds=7),
            UUID(int=7),
            Decimal("-12.3400"),
            Decimal("1E+50"),
            b"\x00\xff",
            {1, "a", (2, frozenset({3}))},
            {1: "a", (1, 2): {"x": b""}, None: 2},
            10**40,
            -(2**53),
            {"$datetime": "x"},
            {"$$a": {"$": {}}},
            {"a": {"$int": 1, "b": 2}},
            PurePosixPath("a/b"),
            [1.5, -0.0, None, True, "é\x00", math.inf],
            "\ud800x",
        ],
    )
    def test_values_come_back_equal(self, value: Any) -> None:
        stored = to_stored({"v": value})
        again = from_stored(parse_json(render(stored)))["v"]
        assert again == value
        assert type(again) is type(value)

    def test_a_copy_shares_nothing_with_the_original(self) -> None:
        value: dict[str, Any] = {"a": [1, {"b": 2}]}
        for copy in (to_stored(value), from_stored(value)):
            copy["a"][1]["b"] = 3
            assert value == {"a": [1, {"b": 2}]}

    def test_stored_form_of_its_own_text_is_unchanged(self) -> None:
        assert to_stored(2.0) == 2.0
        assert render(to_stored({"b": 2.0, "a": 1})) == b'{"b":2.0,"a":1}'

    def test_declared_records_are_lowered_on_request(self) -> None:
        def lower(value: object) -> object:
            return value.__dict__ if isinstance(value, Point) else NotImplemented

        assert to_stored([Point(Point(1)), Color.RED], lower=lower) == [
            {"x": {"x": 1, "y": 0}, "y": 0},
            {"$enum": ["Color", "r"]},
        ]

    def test_records_and_members_of_unknown_classes_come_back_as_plain_values(self) -> None:
        assert from_stored(to_stored({"p": Point(Color.RED), "n": [Pair(1, 2)]})) == {
            "p": {"x": "r", "y": 0},
            "n": [[1, 2]],
        }

    def test_stored_forms_nested_too_deeply_are_refused(self) -> None:
        assert refused(nest(10_000), from_stored)[0] == "too_deep"
        assert refused(nest(240, lambda v: {"a": v, "s": "\ud800"}), canonical_stored)[0] == "too_deep"

    def test_registered_types_come_back_as_instances(self) -> None:
        class Temperature:
            def __init__(self, degrees: float) -> None:
                self.degrees = degrees

        class Mode(Enum):
            ON = ("on", 1)

        register_type(Temperature, lambda t: {"at": t.degrees}, lambda form: Temperature(form["at"]))
        register_type(Mode, lambda mode: mode.name, lambda name: Mode[name])
        stored = to_stored([Temperature(1.5), Mode.ON])
        assert stored == [{"$object": ["Temperature", {"at": 1.5}]}, {"$enum": ["Mode", "ON"]}]
        temperature, mode = from_stored(stored)
        assert (temperature.degrees, mode) == (1.5, Mode.ON)

    def test_two_classes_cannot_share_a_registered_name(self) -> None:
        first = type("Shared", (), {"__module__": "one"})
        register_type(first, str, str)
        register_type(type("Shared", (), {"__module__": "one"}), str, str)  # the module was loaded again
        with pytest.raises(ConflictError, match="Shared"):
            register_type(type("Shared", (), {"__module__": "two"}), str, str)

    @pytest.mark.parametrize(
        "stored",
        [{"$datetime": "noon"}, {"$future": [1]}, {"$bytes": "?"}, {"$set": 5}, {"$int": None}, {"$invalid": "{"}],
    )
    def test_tags_that_cannot_be_read_stay(self, stored: Any) -> None:
        assert from_stored({"v": stored}) == {"v": stored}

    def test_secrets_of_pydantic_are_never_stored(self) -> None:
        with pytest.raises(NoKeyError, match="SecretStr: a secret has no stored form"):
            to_stored({"token": pydantic.SecretStr("hunter2-long")})


class TestJsonText:
    @pytest.mark.parametrize(
        "text",
        [
            "18446744073709551616",
            "-9223372036854775809",
            '{"id": 12345678901234567890123, "x": 1.5}',
            '["\\ud800", "\\ud83d\\ude00", "é"]',
            '{"a": 1, "a": 2, "b": [1e5, -0, -0.0, 1E-7]}',
        ],
    )
    def test_parsing_agrees_with_the_standard_library(self, text: str) -> None:
        assert parse_json(text) == parse_json(text.encode()) == json.loads(text)
        assert str(parse_json(text)) == str(json.loads(text))

    @pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "01", "'a'", "\ufeff1", '"\n"', "[1,]"])
    def test_what_is_not_json_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"\S"):
            parse_json(text)

    def test_bytes_that_are_not_utf8_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"\S"):
            parse_json(b'"\xff"')

    @pytest.mark.parametrize("text", ["[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + '"\\ud800"' + "}" * 10_000])
    def test_deep_text_is_refused_without_overflow(self, text: str) -> None:
        with pytest.raises(NoKeyError, match="too_deep"):
            parse_json(text)

    def test_numbers_too_large_for_their_type(self) -> None:
        digits = "7" * 4301
        assert parse_json("1e400") == math.inf
        assert type(parse_json(digits)) is LongInteger
        assert parse_json("7" * 4300) == int("7" * 4300)
        stored = to_stored(parse_json(f"[{digits}]"))
        assert stored == [{"$int": digits}]
        assert refused(stored, canonical_stored) == ("int_too_long", "/0")

    def test_rendering_is_the_inverse_of_parsing(self) -> None:
        value = {"big": 10**30, "lone": ["\ud800"], "\udfff": None, "n": [1.0, -0.0, 1e-7], "é": "\x00😀"}
        assert parse_json(render(value)) == value
        assert list(parse_json(render(value))) == list(value)

    def test_rendering_keeps_what_is_not_finite(self) -> None:
        assert render([None, math.nan, -math.inf]) == b'[null,{"$float":"NaN"},{"$float":"-Infinity"}]'

    def test_rendering_deep_or_foreign_values_is_a_clear_refusal(self) -> None:
        assert refused(nest(10_000), render)[0] == "too_deep"
        assert refused([object()], render)[0] == "unsupported_type"
        assert refused({1: 2}, render)[0] == "unsupported_type"


class TestEmitted:
    def test_text_is_parsed_and_user_tags_are_escaped(self) -> None:
        assert parse_emitted('{"at": {"$datetime": "x"}, "\\u0024": 1}') == {"at": {"$$datetime": "x"}, "$": 1}
        assert parse_emitted('{"\\u0024a": 1}') == {"$$a": 1}
        assert parse_emitted(b'{"id": 9007199254740993}') == {"id": {"$int": "9007199254740993"}}
        assert parse_emitted('{"v": 1e999}') == {"v": {"$float": "Infinity"}}

    @pytest.mark.parametrize("blank", [None, "", " \n\t", b""])
    def test_no_arguments_are_an_empty_object(self, blank: Any) -> None:
        assert parse_emitted(blank) == {}

    @pytest.mark.parametrize("text", ['{"a": tru', "{'a': 1}", '{"v": NaN}', "call me"])
    def test_text_that_is_not_json_is_kept(self, text: str) -> None:
        assert parse_emitted(text) == {"$invalid": text}

    def test_arguments_parsed_by_others_are_taken(self) -> None:
        assert parse_emitted({"a": {"$x": (1,)}}) == {"a": {"$$x": [1]}}

    @pytest.mark.parametrize("depth", [201, 240, 10_000])
    def test_deep_arguments_are_kept_without_a_key(self, depth: int) -> None:
        text = "[" * depth + "]" * depth
        stored = parse_emitted(text)
        assert stored == {"$deep": text}
        assert refused(stored, canonical_stored) == ("too_deep", "")
        assert refused({"args": stored}, canonical_stored) == ("too_deep", "/args")

    def test_broken_text_with_many_brackets_is_only_broken(self) -> None:
        assert parse_emitted("[" * 10_000) == {"$invalid": "[" * 10_000}


# Recorded cases of calls that other tools take for the same, or for different ones.


def test_r01_order_of_members_does_not_count_and_order_of_items_does() -> None:
    first = {"q": {"x": 1, "y": {"a": [{"k": 1, "j": 2}]}, "l": [1, 2]}}
    assert canonical(first) == canonical({"q": {"l": [1, 2], "y": {"a": [{"j": 2, "k": 1}]}, "x": 1}})
    assert canonical(first) != canonical({"q": {"x": 1, "y": {"a": [{"k": 1, "j": 2}]}, "l": [2, 1]}})


def test_r02_numbers_of_two_languages_are_one_key_and_neighbours_are_two() -> None:
    for left, right in ((2.0, 2), (-0.0, 0), (1e-7, parse_json("1e-7"))):
        assert canonical({"v": left}) == canonical({"v": right})
    for left, right in ((9007199254740993, 9007199254740992), (True, 1), ("2", 2)):
        assert canonical({"v": left}) != canonical({"v": right})


def test_r03_nan_is_not_null() -> None:
    assert canonical({"v": None}) == b'{"v":null}'
    assert refused({"v": math.nan}) == ("non_finite", "/v")
    assert to_stored({"v": math.nan}) == {"v": {"$float": "NaN"}}


def test_r04_escapes_make_no_difference_and_forms_of_a_letter_do() -> None:
    assert canonical(parse_json('"é"')) == canonical(parse_json('"\\u00e9"'))
    assert canonical("\u00e9") != canonical("e\u0301")
    assert canonical({"٩(●)۶": 1, "🎉": 2}) == '{"٩(●)۶":1,"🎉":2}'.encode()
    assert canonical_stored(parse_emitted('{"t": "\\ud800"}')) == b'{"t":"\\ud800"}'


def test_r05_typed_arguments_have_keys_that_keep_types_apart() -> None:
    at = datetime(2026, 1, 2, 3, 4)  # noqa: DTZ001
    assert canonical(at) != canonical(at.replace(tzinfo=UTC))
    assert canonical(Decimal("1.0")) != canonical(1.0)
    assert canonical((1, [2])) == canonical([1, (2,)])
    assert canonical({UUID(int=1)}) != canonical([UUID(int=1)])


def test_r06_mappings_with_other_keys_than_text_are_themselves() -> None:
    texts = [canonical({"d": d}) for d in ({1: "a"}, {"1": "a"}, {1: "a", "1": "b"})]
    assert len(set(texts)) == 3
    assert canonical({1: "a", "1": "b"}) == canonical({"1": "b", 1: "a"})


def test_r09_white_space_and_null_members_are_data() -> None:
    texts = [canonical(v) for v in ({"id": "A-1"}, {"id": " A-1\n"}, {"id": "a-1"}, {"id": "A-1", "note": None})]
    assert len(set(texts)) == 4
