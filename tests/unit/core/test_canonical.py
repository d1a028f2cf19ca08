"""Canonical JSON, stored form and parsing, beyond what the vectors fix."""

import math
import sys
from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from playhead.core import json_text
from playhead.core.canonical import (
    NoKeyError,
    canonical,
    canonical_stored,
    digest,
    parse_json,
    render,
    to_stored,
)


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


class TestCanonical:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (123456789012345680000.0, "123456789012345680000"),
            (1e15, "1000000000000000"),
            (-0.0, "0"),
            (0.00001, "0.00001"),
            (1.5e-7, "1.5e-7"),
            (4.35, "4.35"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (9007199254740994.0, "9007199254740994"),
        ],
    )
    def test_floats_are_laid_out_as_ecmascript_does(self, value: float, text: str) -> None:
        assert canonical(value).decode() == text
        assert canonical({"v": [value]}).decode() == f'{{"v":[{text}]}}'

    def test_a_string_that_looks_like_a_whole_float_stays_as_it_is(self) -> None:
        assert canonical({"a": 2.0, "b": "[1.0,2.0]", "c": ":3.0,"}) == b'{"a":2,"b":"[1.0,2.0]","c":":3.0,"}'

    def test_one_container_used_twice_is_written_twice(self) -> None:
        shared = [2.0, {"x": 129.0}]
        assert canonical([shared, shared]) == b'[[2,{"x":129}],[2,{"x":129}]]'

    def test_subclasses_of_json_types_are_those_types(self) -> None:
        value = {
            "o": OrderedDict(b=1, a=Word.HI),
            "d": defaultdict(list, k=[Size.S]),
            "m": MappingProxyType({"z": True}),
            "c": ChainMap({"q": 1}),
            "p": Pair(1, None),
        }
        assert canonical(value) == b'{"c":{"q":1},"d":{"k":[1]},"m":{"z":true},"o":{"a":"hi","b":1},"p":[1,null]}'

    def test_text_enum_members_are_text_as_names_and_numbers_are_not(self) -> None:
        assert canonical({Word.HI: 1}) == b'{"hi":1}'
        assert canonical({Size.S: 1}) == b'{"$map":[[1,1]]}'
        assert canonical({True: 1}) == b'{"$map":[[true,1]]}'

    def test_records_of_one_class_name_and_fields_are_equal(self) -> None:
        struct = msgspec.defstruct("Point", ["x", "y"])
        assert canonical(Point(1)) == canonical(struct(1, 0)) == b'{"$object":["Point",{"x":1,"y":0}]}'

    def test_further_fields_of_a_model_count(self) -> None:
        money = Money(amount=Decimal("1.50"), note="x")  # type: ignore[call-arg]
        assert canonical(money) == (b'{"$object":["Money",{"amount":{"$decimal":"1.5"},"currency":"EUR","note":"x"}]}')

    def test_a_field_that_was_never_set_has_no_key(self) -> None:
        @dataclass
        class Half:
            x: int
            y: int = field(init=False)

        assert refused({"h": Half(1)}) == ("unsupported_type", "/h")

    @pytest.mark.parametrize(
        "value", [object(), range(3), iter([]), len, UserDict, 1j, Ellipsis, pydantic.SecretStr("s")]
    )
    def test_a_value_without_a_form_is_refused_at_its_place(self, value: Any) -> None:
        assert refused({"a": [0, {"b~/": value}]}) == ("unsupported_type", "/a/1/b~0~1")

    def test_a_refusal_names_the_class(self) -> None:
        with pytest.raises(NoKeyError, match=r"/c: unsupported_type \(Connection\)"):
            canonical({"c": type("Connection", (), {})()})

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("-Infinity")])
    @pytest.mark.parametrize(
        ("wrap", "at"),
        [
            (lambda v: {"a": [None, v]}, "/a/1"),
            (lambda v: {"o": Point(v)}, "/o/x"),
            (lambda v: {"m": {1: v}}, "/m/1"),
            (lambda v: {"s": {v}}, "/s"),
            (lambda v: {"$where": v}, "/$where"),
            (lambda v: v, ""),
        ],
    )
    def test_what_is_not_finite_is_stored_but_has_no_key(self, value: Any, wrap: Any, at: str) -> None:
        stored = to_stored(wrap(value))
        assert parse_json(render(stored)) == stored
        assert refused(stored, canonical_stored) == ("non_finite", at)
        assert refused(wrap(value)) == ("non_finite", at)

    def test_raw_nan_in_stored_json_is_not_null(self) -> None:
        assert refused({"a": None, "v": math.nan}, canonical_stored) == ("non_finite", "/v")
        assert (
            canonical_stored({"a": None, "v": -7, "t": "\x7f\U0001f600"}) == '{"a":null,"t":"\x7f😀","v":-7}'.encode()
        )

    def test_text_enum_members_in_stored_json_are_text(self) -> None:
        assert canonical_stored({"a": Word.HI, "b": Size.S}) == b'{"a":"hi","b":1}'
        assert canonical_stored({"a": Word.HI, "b": Size.S, "c": 2.0}) == b'{"a":"hi","b":1,"c":2}'

    def test_names_outside_the_basic_plane_sort_by_utf16(self) -> None:
        assert canonical({"ﬁ": 1, "😀": {"\ue000": 1, '😀"': 2}}) == '{"😀":{"😀\\"":2,"\ue000":1},"ﬁ":1}'.encode()

    @pytest.mark.parametrize(
        ("stored", "at"),
        [
            ({"$map": [[[1], math.nan]]}, "/[1]"),
            ({"$map": [5, math.nan]}, ""),
            ({"$map": math.nan}, ""),
            ({"$object": ["C", {"x": {"$float": "NaN"}}]}, "/x"),
            ({"$enum": ["C", [math.nan]]}, "/0"),
            ({"$path": [math.nan]}, "/0"),
            ([{"$decimal": 1}, {"$int": 2}, math.nan], "/2"),
        ],
    )
    def test_pointers_skip_the_levels_of_tags(self, stored: Any, at: str) -> None:
        assert refused(stored, canonical_stored) == ("non_finite", at)

    def test_tags_with_short_content_have_text(self) -> None:
        stored = {"a": {"$int": "-12"}, "b": {"$decimal": "1"}, "c": {"$int": 5, "x": 2.0}}
        assert canonical_stored(stored) == b'{"a":{"$int":"-12"},"b":{"$decimal":"1"},"c":{"$int":5,"x":2}}'

    def test_integers_too_long_for_text(self) -> None:
        for call in (canonical, to_stored, render):
            assert refused([10**5000], call)[0] == "int_too_long"
        assert refused([parse_json("7" * 5000)], canonical_stored) == ("int_too_long", "/0")
        assert render(parse_json("7" * 5000)) == b"7" * 5000

    def test_decimals_of_any_size_and_place(self) -> None:
        texts = {"0E-9": "0", "12345E+19": "1.2345e+23", "1.5E+10": "15000000000", "0.0000010": "0.000001"}
        texts |= {"-0": "0", "-1.50": "-1.5", "100": "100", "0.12345678901234567890123": "0.12345678901234567890123"}
        texts |= {"-1E-10": "-1e-10", "1234567890123456789012.5": "1.2345678901234567890125e+21"}
        texts |= {"123456789012345678.123456": "123456789012345678.123456", "0E+2": "0"}
        for digits, text in texts.items():
            assert canonical(Decimal(digits)).decode() == f'{{"$decimal":"{text}"}}'

    def test_other_json_encoders_limits_do_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_text, "_WRAPPING", 0)
        many: list[Any] = [[] for _ in range(300)]
        assert canonical_stored([many, nest(198)])
        assert refused([many, nest(200)], canonical_stored)[0] == "too_deep"
        monkeypatch.setattr(json_text.orjson, "dumps", lambda _: b"")
        assert json_text._room_for_wrapping() == 0

    def test_cycles_are_found_whatever_they_go_through(self) -> None:
        inner: dict[str, Any] = {"a": [1]}
        inner["a"].append((inner,))
        assert refused({"x": inner}) == ("cycle", "/x/a/1/0")
        point = Point(1)
        point.x = [point]
        assert refused(point) == ("cycle", "/x/0")
        wide: list[Any] = []
        wide.extend([wide] * 50)
        assert refused(wide) == ("cycle", "/0")

    @pytest.mark.parametrize(
        "wrap",
        [lambda v: [v], lambda v: {"a": v}, lambda v: (v,), lambda v: {1: v}, lambda v: Point(v), lambda v: [v, v][:1]],
    )
    def test_depth_has_a_limit_and_never_overflows(self, wrap: Callable[[Any], Any]) -> None:
        assert refused(nest(10_000, wrap))[0] == "too_deep"
        assert refused(nest(10_000, wrap), to_stored)[0] == "too_deep"
        assert canonical(nest(60, wrap))

    def test_200_levels_have_a_key_beside_many_brackets_and_201_have_none(self) -> None:
        many = [[] for _ in range(500)]
        for good, wrap in ((200, lambda v: [v]), (200, lambda v: {"a": v}), (200, lambda v: (v,))):
            assert canonical({"many": many, "deep": nest(good - 1, wrap)})
            assert refused({"many": many, "deep": nest(good, wrap)})[0] == "too_deep"
            assert refused({"many": many, "deep": to_stored(nest(good, wrap))}, canonical_stored)[0] == "too_deep"

    def test_depth_counts_the_levels_of_the_text(self) -> None:
        assert refused(nest(199, lambda v: [v] if v != 1 else [{1}]))[0] == "too_deep"

    def test_a_nearly_full_stack_is_no_recursion_error(self) -> None:
        def at_depth(levels: int) -> Any:
            return at_depth(levels - 1) if levels else to_stored(nest(150, lambda v: [v, Word.HI]))

        frames = 0
        frame = sys._getframe()
        while frame:
            frames, frame = frames + 1, frame.f_back  # type: ignore[assignment]
        with pytest.raises(NoKeyError) as caught:
            at_depth(sys.getrecursionlimit() - frames - 60)
        assert caught.value.reason == "too_deep"

    def test_members_that_become_one_are_refused(self) -> None:
        assert refused({"p": {"\ud83d\ude00": 1, "😀": 2}}) == ("duplicate_key", "/p/😀")
        assert refused({PurePosixPath("a/b"): 1, PureWindowsPath("a\\b"): 2})[0] == "duplicate_key"

    def test_sets_have_no_order_and_no_duplicates(self) -> None:
        assert canonical({PurePosixPath("a/b"), PureWindowsPath("a\\b"), "z", 10, 9}) == (
            b'{"$set":["z",10,9,{"$path":"a/b"}]}'
        )

    def test_datetimes_of_other_zones_and_odd_classes(self) -> None:
        class Stamp(datetime):
            nanosecond = 5

        east = datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        assert canonical(east) == b'{"$datetime":"2026-01-01T21:34:00Z"}'

        class NotATime(datetime):
            year = math.nan  # type: ignore[assignment]

        class Later(datetime):
            pass

        assert refused(Stamp(2026, 1, 2)) == ("unsupported_type", "")
        assert refused([NotATime(2026, 1, 2)]) == ("unsupported_type", "/0")
        assert canonical(Later(2026, 1, 2, 3)) == b'{"$datetime":"2026-01-02T03:00:00"}'

    def test_digest_is_of_the_canonical_text(self) -> None:
        assert digest({"b": 1.0, "a": 2}) == digest({"a": 2, "b": 1})
        assert len(digest(None)) == 32
