"""Call keys: ignored places, secrets, scope, and binding of arguments."""

import inspect
import math
from typing import Any

import pytest

from playhead.core.canonical import NoKeyError, canonical, to_stored
from playhead.core.keys import bind, call_key, preimage, strip
from playhead.core.redaction.redact import Redactor


def bound(function: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return bind(inspect.signature(function), args, kwargs)


def test_an_empty_list_of_ignored_places_changes_nothing() -> None:
    assert call_key("f", {"a": 1}, ignore=()) == call_key("f", {"a": 1})


def test_the_refusal_of_an_argument_names_its_place() -> None:
    with pytest.raises(NoKeyError) as caught:
        call_key("f", to_stored({"v": [1, math.nan]}))
    assert (caught.value.no_key.reason, caught.value.no_key.at) == ("non_finite", "/v/1")


def test_an_ignored_place_may_be_one_without_a_key() -> None:
    assert call_key("f", to_stored({"q": 1, "v": math.nan}), ignore=["/v"]) == call_key("f", {"q": 1})


@pytest.mark.parametrize(
    ("pointer", "left"),
    [
        ("/a/b", {"a": {"c": [1, {"d": 2}]}, "x/y": {"~": 3}}),
        ("/a/c/0", {"a": {"b": 0, "c": [None, {"d": 2}]}, "x/y": {"~": 3}}),
        ("/a/c/*/d", {"a": {"b": 0, "c": [1, {}]}, "x/y": {"~": 3}}),
        ("/*/*", {"a": {}, "x/y": {}}),
        ("/x~1y/~0", {"a": {"b": 0, "c": [1, {"d": 2}]}, "x/y": {}}),
        ("/none/at/all", {"a": {"b": 0, "c": [1, {"d": 2}]}, "x/y": {"~": 3}}),
        ("", None),
    ],
)
def test_values_at_pointers_are_dropped_from_a_copy(pointer: str, left: Any) -> None:
    arguments = {"a": {"b": 0, "c": [1, {"d": 2}]}, "x/y": {"~": 3}}
    assert strip(arguments, [pointer]) == left
    assert arguments == {"a": {"b": 0, "c": [1, {"d": 2}]}, "x/y": {"~": 3}}


def test_pointers_go_through_records_and_escapes_but_not_into_other_typed_values() -> None:
    record = {"order": {"$object": ["Order", {"id": 1, "at": {"$date": "2026-01-02"}}]}}
    assert strip(record, ["/order/at"]) == {"order": {"$object": ["Order", {"id": 1}]}}
    assert strip({"q": {"$$gt": 5}}, ["/q/$gt"]) == {"q": {}}
    assert strip({"at": {"$date": "2026-01-02"}}, ["/at/$date"]) == {"at": {"$date": "2026-01-02"}}


def test_tags_with_unexpected_content_are_left_alone() -> None:
    assert strip({"$object": "x"}, ["/a"]) == {"$object": "x"}
    assert strip({"$object": []}, ["/a"]) == {"$object": []}


def test_what_is_left_cannot_pass_for_a_tag() -> None:
    left = strip(to_stored({"q": {"$int": "7", "ts": 1}}), ["/q/ts"])
    assert left == to_stored({"q": {"$int": "7"}})


def test_secrets_are_taken_out_after_ignored_places() -> None:
    redactor = Redactor({"PASS": "hunter2-long"})
    key = call_key("f", {"hunter2-long": 1, "t": "hunter2-long"}, ignore=["/hunter2-long"], secrets=redactor)
    assert key == call_key("f", {"t": "[REDACTED:PASS]"})


def test_scope_and_names_cannot_reach_into_each_other() -> None:
    assert preimage("a", {}, scope={"b": 1}) != preimage('a",4:null', {"b": 1})
    assert call_key("f", {}, scope={"config": {"p": "eu"}}) != call_key("f", {}, scope={"config": {"p": "us"}})


def test_names_with_any_text_have_keys() -> None:
    keys = {call_key(name, {}) for name in ("", "é", "\ud800", "a\nb", "😀")}
    assert len(keys) == 5


def test_arguments_without_canonical_text_are_never_their_default() -> None:
    marker = object()

    def function(a: Any = marker, b: Any = math.nan) -> None: ...

    assert bound(function, object()).keys() == {"a"}
    assert bound(function, marker, math.nan) == {}


def test_defaults_that_only_a_schema_declares_count() -> None:
    def function(x: int, **options: Any) -> None: ...

    signature = inspect.signature(function)
    arguments = bind(signature, (1,), {"limit": 5, "page": 2}, defaults={"limit": 5.0, "x": 2})
    assert arguments == {"x": 1, "page": 2}


def test_injected_parameters_are_no_arguments() -> None:
    class Shop:
        def lookup(self, order_id: str, *, ctx: Any = None) -> None: ...

    signature = inspect.signature(Shop.lookup)
    assert bind(signature, (Shop(), "1"), {"ctx": object()}, exclude=("self", "ctx")) == {"order_id": "1"}


def test_a_keyword_named_like_a_positional_only_argument_stays_apart() -> None:
    def function(x: int, /, **extra: Any) -> None: ...

    assert canonical(bound(function, 1, x=2)) == b'{"**extra":{"x":2},"x":1}'


def test_arguments_that_do_not_fit_are_a_type_error() -> None:
    def function(x: int) -> None: ...

    with pytest.raises(TypeError, match="missing"):
        bound(function)


def test_r07_spellings_of_one_call_share_a_key() -> None:
    def before(x: str, limit: int = 5) -> None: ...

    def after(x: str, limit: int = 5, region: str = "eu") -> None: ...

    def changed(x: str, limit: int = 10) -> None: ...

    recorded = call_key("f", bound(before, "a"))
    spelled = (bound(before, x="a"), bound(before, "a", limit=5), bound(after, "a"), bound(after, "a", 5, "eu"))
    assert {call_key("f", arguments) for arguments in spelled} == {recorded}
    assert call_key("f", bound(changed, "a", limit=5)) != recorded


def test_r08_ignored_places_may_change_between_calls() -> None:
    first = {"q": "x", "ts": 1, "idem": "a"}
    second = {"q": "x", "ts": 2, "idem": "b"}
    assert call_key("f", first) != call_key("f", second)
    assert call_key("f", first, ignore=["/ts", "/idem"]) == call_key("f", second, ignore=["/ts", "/idem"])


def test_r30_a_rotated_secret_keeps_its_key_and_two_customers_have_two() -> None:
    old, new = Redactor({"KEY": "old-secret-1"}), Redactor({"KEY": 'new "secret" 22'})
    recorded = call_key("f", {"t": "old-secret-1"}, secrets=old)
    assert call_key("f", {"t": 'new "secret" 22'}, secrets=new) == recorded
    assert call_key("f", {"t": "[REDACTED:KEY]"}, secrets=new) == recorded
    both = Redactor({"ONE": "customer-1-tok", "TWO": "customer-2-tok"})
    assert call_key("f", {"t": "customer-1-tok"}, secrets=both) != call_key("f", {"t": "customer-2-tok"}, secrets=both)
