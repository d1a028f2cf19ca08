"""Redaction: known secrets in every spelling, credential-like names, token shapes, streams, keys."""

import base64
import html
import json
import math
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from playhead.core.canonical import NoKeyError, from_stored, to_stored
from playhead.core.redaction.names import is_credential_name
from playhead.core.redaction.redact import Redactor

ODD = 'abc+/=d"e\\f&g h'
CREDENTIAL_NAMES = """
password PASSWD passphrase client_secret secrets aws.credential Authorization cookie Set-Cookie DD-API-KEY apiKey apikey
APIKey access_key private-key accessJwt access_token authToken token jwt api_keys x-amz-security-token db_password2
userPasswordHash user[token]
"""
OTHER_NAMES = """
token_count input_tokens max_tokens session_id monkey next_token pageToken next-page-token sync_token author key keys
secretary tokenizer cursor_token continuationToken primary_key public_key jwts
"""
AWS = "AKIAABCDEFGHIJKLMNOP"


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def redacted(value: Any, secrets: dict[str, str] | None = None) -> Any:
    return Redactor(secrets).redact(value).value


class TestKnownSecrets:
    @pytest.mark.parametrize(
        "spelled",
        [
            ODD,
            quote(ODD, safe=""),
            quote(ODD, safe="").lower(),
            quote_plus(ODD),
            quote(quote(ODD, safe=""), safe=""),
            json.dumps(ODD)[1:-1],
            json.dumps(json.dumps(ODD))[3:-3],
            "".join(f"\\u{ord(char):04X}" for char in ODD),
            html.escape(ODD),
            "".join(f"&#{ord(char)};" for char in ODD),
            "".join(f"&#x{ord(char):x};" for char in ODD),
            "abc&plus;%2f=d\\u0022e%5Cf&amp;g+h",
            ODD.encode().hex(),
            ODD.encode().hex().upper(),
        ],
    )
    def test_every_spelling_is_found_inside_text(self, spelled: str) -> None:
        assert redacted({"t": f"<{spelled}>"}, {"ODD": ODD}) == {"t": "<[REDACTED:ODD]>"}

    @pytest.mark.parametrize("before", ["", "u", "u:", "u:p"])
    @pytest.mark.parametrize("after", ["", "~", "~~", "~~~"])
    @pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
    def test_base64_leaves_no_bit_of_a_secret(self, before: str, after: str, encode: Any) -> None:
        secret = "hunter2\x00?>é~longer"
        text = redacted(encode(f"{before}{secret}{after}".encode()).decode(), {"S": secret})
        left, tag, right = text.partition("[REDACTED:S]")
        assert tag
        # What stays must be the same for another secret of the same length: it depends on the neighbours only.
        other = redacted(encode(f"{before}{secret[::-1]}{after}".encode()).decode(), {"S": secret[::-1]})
        assert other == text
        assert len(left) <= len(before) * 4 // 3 + 1
        assert len(right) <= len(after) * 4 // 3 + 4

    def test_characters_outside_ascii_are_spelled_too(self) -> None:
        secret = "pässwörd😀"
        for text in (secret, quote(secret), json.dumps(secret)[1:-1], html.escape(secret).replace("ä", "&auml;")):
            assert redacted(text, {"S": secret}) == "[REDACTED:S]"

    def test_names_strings_and_numbers_are_searched_at_every_depth(self) -> None:
        value = {"hunter2-long": [{"n": 1234567.0, "m": -91234567, "t": ["x hunter2-long", "y"]}]}
        redactor = Redactor({"PASS": "hunter2-long", "NUM": "1234567"})
        result = redactor.redact(value)
        assert result.value == {
            "[REDACTED:PASS]": [{"n": "[REDACTED:NUM]", "m": "-9[REDACTED:NUM]", "t": ["x [REDACTED:PASS]", "y"]}]
        }
        first = "/[REDACTED:PASS]"
        assert sorted(result.pointers) == [first, f"{first}/0/m", f"{first}/0/n", f"{first}/0/t/0"]

    def test_numbers_are_searched_by_their_canonical_text(self) -> None:
        assert redacted([1e16, 1.5e-7], {"A": "10000000000000000", "B": "1.5e-7"}) == ["[REDACTED:A]", "[REDACTED:B]"]

    def test_short_secrets_are_whole_values_only(self) -> None:
        tag = "[REDACTED:PIN]"
        value = {"4821": ["4821", "48210", 4821, 4821.0, 4821.5, 48210, "x 4821", "%34821", b64("4821")]}
        expected = {tag: [tag, "48210", tag, tag, 4821.5, 48210, "x 4821", tag, tag]}
        assert redacted(value, {"PIN": "4821"}) == expected
        assert redacted("4821", {"PIN": "4821"}) == "[REDACTED:PIN]"
        assert redacted(4821, {"PIN": "4821"}) == "[REDACTED:PIN]"

    def test_shorter_secrets_are_never_used_and_warned_about(self) -> None:
        redactor = Redactor({"DIGIT": "1"})
        assert redactor.redact({"a": 1, "s": "1"}).value == {"a": 1, "s": "1"}
        assert redactor.warnings == ("DIGIT is shorter than 4 characters and is not redacted",)

    def test_equal_values_take_the_first_name_and_are_warned_about(self) -> None:
        redactor = Redactor({"ZED": "hunter2-long", "ABE": "hunter2-long"})
        assert redactor.redact("hunter2-long").value == "[REDACTED:ABE]"
        assert redactor.warnings == ("ABE and ZED have the same value",)

    def test_overlapping_secrets_are_one_match_with_the_longest_name(self) -> None:
        secrets = {"SHORT": "abc123", "LONG": "abc123XYZ", "TAIL": "XYZ-987-longest"}
        assert redacted("<abc123XYZ>", secrets) == "<[REDACTED:LONG]>"
        assert redacted("<abc123XYZ-987-longest>", secrets) == "<[REDACTED:TAIL]>"
        assert redacted("abc123 abc123abc123", secrets) == "[REDACTED:SHORT] [REDACTED:SHORT][REDACTED:SHORT]"
        assert redacted("<abababababab>", {"S": "ababab"}) == "<[REDACTED:S]>"

    def test_existing_tags_stay_and_inserted_text_is_not_searched(self) -> None:
        secrets = {"ODD": "REDACTED", "PASS": "hunter2-long"}
        assert redacted("hunter2-long REDACTED [REDACTED:X]", secrets) == "[REDACTED:PASS] [REDACTED:ODD] [REDACTED:X]"

    def test_short_secrets_beside_a_tag_are_no_whole_value(self) -> None:
        assert redacted("[REDACTED:X]4821 hunter2-long", {"P": "hunter2-long", "N": "4821"}) == (
            "[REDACTED:X]4821 [REDACTED:P]"
        )
        assert redacted("[REDACTED:X]4821", {"N": "4821"}) == "[REDACTED:X]4821"

    def test_text_that_only_looks_like_a_tag_hides_nothing(self) -> None:
        assert redacted("[REDACTED:hunter2-long]", {"PASS": "hunter2-long"}) == "[REDACTED:[REDACTED:PASS]]"

    def test_members_that_become_equal_are_numbered_whatever_their_order(self) -> None:
        secrets = {"P": "hunter2-long"}
        value = {"hunter2-long": 1, "hunter2%2Dlong": 2, "[REDACTED:P]": 3}
        expected = {"[REDACTED:P]": 3, "[REDACTED:P] (2)": 1, "[REDACTED:P] (3)": 2}
        assert redacted(value, secrets) == expected
        assert redacted(dict(reversed(value.items())), secrets) == expected

    def test_nothing_is_copied_where_nothing_is_found(self) -> None:
        value = {"a": [1, {"b": "text"}], "password": ""}
        assert Redactor({"S": "hunter2-long"}).redact(value).value is value

    def test_many_secrets_are_found(self) -> None:
        secrets = {f"S{number:03d}": f"value-{number:05d}-xx" for number in range(60)}
        assert redacted("value-00059-xx value-00000-xx", secrets) == "[REDACTED:S059] [REDACTED:S000]"

    def test_lone_surrogates_do_not_hide_a_secret(self) -> None:
        assert redacted({"t": "\ud800hunter2-long"}, {"P": "hunter2-long"}) == {"t": "\ud800[REDACTED:P]"}


class TestTypedValues:
    SECRETS = {"P": "hunter2-long", "ID": "00000000-0000-0000-0000-000000000007", "N": "9007199254740993"}  # noqa: RUF012

    def test_a_typed_value_that_is_a_secret_becomes_its_tag(self) -> None:
        value = {"u": {"$uuid": self.SECRETS["ID"]}, "n": {"$int": self.SECRETS["N"]}, "at": {"$date": "2026-01-02"}}
        assert redacted(value, self.SECRETS) == {"u": "[REDACTED:ID]", "n": "[REDACTED:N]", "at": value["at"]}

    def test_texts_inside_tags_keep_their_tag(self) -> None:
        value = to_stored({"p": {"$invalid": "x"}, "o": [{1: "hunter2-long"}]})
        assert redacted({"$path": "a/hunter2-long"}, self.SECRETS) == {"$path": "a/[REDACTED:P]"}
        assert redacted({"$invalid": '{"hunter2-long'}, self.SECRETS) == {"$invalid": '{"[REDACTED:P]'}
        assert redacted(value, self.SECRETS)["o"] == [{"$map": [[1, "[REDACTED:P]"]]}]
        assert redacted({"$object": ["C", {"k": "hunter2-long"}]}, self.SECRETS) == {
            "$object": ["C", {"k": "[REDACTED:P]"}]
        }

    def test_sets_and_maps_are_sorted_anew(self) -> None:
        value = to_stored({"s": {"hunter2-long", "~"}, "m": {"hunter2-long": 1, 7: 2}})
        assert redacted(value, self.SECRETS) == {
            "s": {"$set": ["[REDACTED:P]", "~"]},
            "m": {"$map": [["[REDACTED:P]", 1], [7, 2]]},
        }

    def test_map_keys_that_become_equal_are_numbered(self) -> None:
        value = {"$map": [["hunter2%2Dlong", 1], ["hunter2-long", 2], [7, 3]]}
        keys = [pair[0] for pair in redacted(value, self.SECRETS)["$map"]]
        assert sorted(map(str, keys)) == ["7", "[REDACTED:P]", "[REDACTED:P] (2)"]

    def test_bytes_of_text_are_redacted_and_other_bytes_are_refused(self) -> None:
        result = Redactor(self.SECRETS).redact(
            to_stored({"t": b"k=hunter2-long", "b": b"\xffhunter2-long", "n": b"\xff"})
        )
        assert from_stored(result.value) == {"t": b"k=[REDACTED:P]", "b": "[REDACTED:P]", "n": b"\xff"}
        assert result.refused == ("/b",)
        assert result.pointers == ("/t", "/b")

    def test_entries_of_maps_are_named_values_too(self) -> None:
        value = to_stored({"m": {"token": "abc-123", 5: "x", (1, 2): "hunter2-long"}})
        assert redacted(value, self.SECRETS) == to_stored(
            {"m": {"token": "[REDACTED:token]", 5: "x", (1, 2): "[REDACTED:P]"}}
        )

    def test_refused_bytes_inside_sets_are_named_by_the_set(self) -> None:
        result = Redactor(self.SECRETS).redact(to_stored({"s": {b"\xffhunter2-long", b"ok"}}))
        assert result.value == {"s": {"$set": ["[REDACTED:P]", {"$bytes": "b2s="}]}}
        assert result.refused == ("/s/$set",)
        result = Redactor(self.SECRETS).redact([{"a": [to_stored(b"\xffhunter2-long")]}])
        assert result.refused == result.pointers == ("/0/a/0",)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"$set": "hunter2-long"}, "[REDACTED:P]"),
            ({"$map": [5, ["hunter2-long"]]}, {"$map": [["[REDACTED:P]"], 5]}),
            ({"$object": "hunter2-long"}, "[REDACTED:P]"),
            ({"$object": ["hunter2-long"]}, {"$object": ["[REDACTED:P]"]}),
            ({"$bytes": "?hunter2-long"}, {"$bytes": "?[REDACTED:P]"}),
            ({"$bytes": "?"}, {"$bytes": "?"}),
            ({"$unknown": ["hunter2-long"]}, {"$unknown": ["[REDACTED:P]"]}),
        ],
    )
    def test_tags_with_unexpected_content_are_searched_as_they_stand(self, value: Any, expected: Any) -> None:
        assert redacted(value, self.SECRETS) == expected

    def test_typed_values_under_a_credential_like_name(self) -> None:
        value = {"secret": [to_stored(b"\x00\x01"), {"$uuid": "1"}, {"$date": "2026-01-02"}, math.nan, {"$set": ["a"]}]}
        left = redacted(value)["secret"]
        assert left[:3] == ["[REDACTED:secret]", "[REDACTED:secret.2]", {"$date": "2026-01-02"}]
        assert left[3:] == [value["secret"][3], {"$set": ["[REDACTED:secret.3]"]}]

    def test_user_members_that_look_like_tags_stay_user_members(self) -> None:
        value = to_stored({"$ecret-long1": 1})
        result = Redactor({"S": "ecret-long1"}).redact(value)
        assert from_stored(result.value) == {"$[REDACTED:S]": 1}
        assert result.pointers == ("/$$[REDACTED:S]",)
        assert redacted(to_stored({"$set": ["hunter2-long"]}), self.SECRETS) == {"$$set": ["[REDACTED:P]"]}

    def test_a_value_that_is_not_json_is_refused_not_passed_on(self) -> None:
        for value in ({"password": "x", "o": object()}, object()):
            with pytest.raises(NoKeyError):
                Redactor(self.SECRETS).redact(value, schema={})

    def test_values_nested_too_deeply_are_refused_not_passed_on(self) -> None:
        deep: Any = "hunter2-long"
        for _ in range(10_000):
            deep = [deep]
        with pytest.raises(NoKeyError, match="too_deep"):
            Redactor(self.SECRETS).redact(deep)
        with pytest.raises(NoKeyError, match="too_deep"):
            Redactor(self.SECRETS).redact(deep, schema={})


class TestNames:
    @pytest.mark.parametrize("name", CREDENTIAL_NAMES.split())
    def test_credential_like(self, name: str) -> None:
        assert is_credential_name(name)

    @pytest.mark.parametrize("name", OTHER_NAMES.split())
    def test_not_credential_like(self, name: str) -> None:
        assert not is_credential_name(name)

    def test_every_string_and_number_under_such_a_name_goes(self) -> None:
        value = {"credentials": {"user": "bob", "n": [7, True, None, 1.5]}, "x": 1}
        result = Redactor().redact(value)
        tags = ["[REDACTED:credentials.2]", True, None, "[REDACTED:credentials.3]"]
        assert result.value == {"credentials": {"user": "[REDACTED:credentials]", "n": tags}, "x": 1}
        assert result.pointers == ("/credentials/user", "/credentials/n/0", "/credentials/n/3")

    def test_a_value_found_by_name_goes_wherever_else_it_turns_up(self) -> None:
        redactor = Redactor()
        assert redactor.redact({"access_token": "tok-998877"}).value == {"access_token": "[REDACTED:access_token]"}
        assert redactor.redact({"note": "use tok-998877!"}).value == {"note": "use [REDACTED:access_token]!"}
        assert redactor.redact({"access_token": "tok-112233"}).value == {"access_token": "[REDACTED:access_token.2]"}

    def test_configured_names_win_over_field_names(self) -> None:
        secrets = {"STRIPE": "sk_live_abc+/=1"}
        value = {
            "api_key": "sk_live_abc+/=1",
            "authorization": "Bearer sk_live_abc+/=1",
            "url": "?token=sk_live_abc%2B/=1",
        }
        assert redacted(value, secrets) == {
            "api_key": "[REDACTED:STRIPE]",
            "authorization": "Bearer [REDACTED:STRIPE]",
            "url": "?token=[REDACTED:STRIPE]",
        }

    def test_words_of_schemas_are_not_learnt_as_secrets(self) -> None:
        redactor = Redactor()
        redactor.redact({"password": "string", "token": "required"})
        assert redactor.redact("a required string").value == "a required string"

    def test_declarations_of_fields_are_not_values(self) -> None:
        schema = {
            "type": "object",
            "required": ["password"],
            "properties": {
                "password": {"type": "string", "description": "The password", "default": "hunter2-long"},
                "pin": {"type": "string", "x-playhead-secret": True, "const": "ab-1234"},
                "token": {"$$ref": "#/$defs/token"},
            },
            "$defs": {"token": {"type": "string"}},
        }
        expected = json.loads(json.dumps(schema))
        expected["properties"]["password"]["default"] = "[REDACTED:password]"
        expected["properties"]["pin"]["const"] = "[REDACTED:pin]"
        result = Redactor().redact({"tools": [{"name": "login", "parameters": schema}]})
        assert result.value == {"tools": [{"name": "login", "parameters": expected}]}
        at = "/tools/0/parameters/properties"
        assert result.pointers == (f"{at}/password/default", f"{at}/pin/const")

    def test_declarations_may_be_booleans(self) -> None:
        value = {"properties": {"token": True, "password": {"type": "string", "examples": ["ab-123"]}}}
        assert redacted(value)["properties"] == {
            "token": True,
            "password": {"type": "string", "examples": ["[REDACTED:password]"]},
        }

    def test_a_schema_that_refers_to_itself_or_nowhere_ends(self) -> None:
        schema = {"$ref": "#", "anyOf": [{"$ref": "#/x/y"}], "properties": {"a": {"$ref": "#/properties/a"}, "b": True}}
        assert Redactor().redact({"a": {"token": "ab-123"}, "b": 1}, schema=schema).value["a"] == {
            "token": "[REDACTED:token]"
        }

    def test_a_schema_decides_for_single_fields(self) -> None:
        schema = {
            "properties": {
                "pin_code": {"x-playhead-secret": True},
                "token": {"x-playhead-secret": False},
                "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                "maybe": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/item"}]},
            },
            "$defs": {"item": {"properties": {"code": {"type": "string", "x-playhead-secret": True}}}},
        }
        value = {"pin_code": 77, "token": "EOS", "items": [{"code": "a"}, {"other": "b"}], "maybe": {"code": "c"}}
        assert Redactor().redact(value, schema=schema).value == {
            "pin_code": "[REDACTED:pin_code]",
            "token": "EOS",
            "items": [{"code": "[REDACTED:code]"}, {"other": "b"}],
            "maybe": {"code": "[REDACTED:code.2]"},
        }

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ([["Cookie", "sid=1"], ["x", "y"]], [["Cookie", "[REDACTED:Cookie]"], ["x", "y"]]),
            ({"name": "X-Api-Key", "value": "k1"}, {"name": "X-Api-Key", "value": "[REDACTED:X-Api-Key]"}),
            ({"name": "limit", "value": 5, "password": ""}, {"name": "limit", "value": 5, "password": ""}),
            ({"---": "x", "token": ""}, {"---": "x", "token": ""}),
            ({"name": "password", "type": "string"}, {"name": "password", "type": "string"}),
            (["password", "amount"], ["password", "amount"]),
        ],
    )
    def test_names_beside_values_count(self, value: Any, expected: Any) -> None:
        assert redacted(value) == expected

    def test_brackets_in_a_name_cannot_break_its_tag(self) -> None:
        assert redacted({"a[token]": "v" * 9}) == {"a[token]": "[REDACTED:a_token_]"}


class TestShapes:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("key sk-proj-abcdefghij0123456789.", "key [REDACTED:sk]."),
            ("ghp_abcdefghijklmnop1234", "[REDACTED:ghp]"),
            ("xoxb-123456789012-abc", "[REDACTED:xox]"),
            (f"id={AWS}", "id=[REDACTED:akia]"),
            ("eyJhbGciOi.eyJzdWIiOiIx.abc-_", "[REDACTED:jwt]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", "[REDACTED:pem]\n"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[REDACTED:pem]"),
            ("bearer abc.def-123", "bearer [REDACTED:bearer]"),
            ("Basic YW5hOmh1bnRlcjIt", "Basic [REDACTED:basic]"),
            ("postgres://ana:pw-1@h/x", "postgres://ana:[REDACTED:userinfo]@h/x"),
            ("https://abcdefgh12345678@h/", "https://[REDACTED:userinfo]@h/"),
            ("GET /x?api_key=qwerty12&n=1", "GET /x?api_key=[REDACTED:api_key]&n=1"),
            ('{"password": "swordfish"}', '{"password": "[REDACTED:password]"}'),
            ('"{\\"password\\": \\"sword\\/fish\\"}"', '"{\\"password\\": \\"[REDACTED:password]\\"}"'),
            ("{'api_key': 'k-1'}", "{'api_key': '[REDACTED:api_key]'}"),
            ("Set-Cookie: sid=abc; Path=/\nX: y", "Set-Cookie: [REDACTED:cookie]\nX: y"),
            ("curl -H 'X-Api-Key: abcdefgh1'", "curl -H 'X-Api-Key: [REDACTED:X-Api-Key]'"),
        ],
    )
    def test_credentials_in_text(self, text: str, expected: str) -> None:
        redactor = Redactor()
        assert redactor.redact({"t": text}).value == {"t": expected}
        assert redactor.redact_text(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "The bearer of this letter uses Basic authentication and Bearer authentication.",
            "sk-learn-documentation-pages, risk-0123456789abcdefghij",
            "https://example.com/a@b and mailto:x@y",
            "foo(token=tokenizer.next(), password=password)",
            "max_tokens: 5, ?page_token=abc",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            '{"token_count": "12", "session_id": "abc"}',
        ],
    )
    def test_prose_and_code_stay(self, text: str) -> None:
        assert redacted({"t": text}) == {"t": text}

    @pytest.mark.parametrize(
        "filler", ["\\", '"a":"', '\\"token\\":\\"', "bearer ", "://a:", "?password=", "cookie:", " "]
    )
    def test_hostile_text_takes_linear_time(self, filler: str) -> None:
        # A quadratic search would need minutes for this.
        assert redacted('"password"' + filler * 100_000)


CUT = "key-aaaabbbb"


@pytest.mark.parametrize(
    ("items", "clean"),
    [
        (["say key-aa", "aabb", "bb now"], ["say [REDACTED:API_KEY]", "", " now"]),
        (
            [{"delta": {"text": "key-aaaa"}, "n": 1}, {"end": True}, {"delta": {"text": "bbbb."}, "n": 2}],
            [{"delta": {"text": "[REDACTED:API_KEY]"}, "n": 1}, {"end": True}, {"delta": {"text": "."}, "n": 2}],
        ),
        ([["a", "key-aaaa"], ["b", "bbbb"]], [["a", "[REDACTED:API_KEY]"], ["b", ""]]),
        (["sk-0123456789abcdefghijklmn", "hello"], ["[REDACTED:sk]", "hello"]),
        (["key-aaaa", 3, "bbbb", None, ["x"]], ["[REDACTED:API_KEY]", 3, "", None, ["x"]]),
        (["key-aaaa", "cccc"], ["key-aaaa", "cccc"]),
    ],
)
def test_a_secret_that_is_cut_in_two_by_the_items_of_a_stream_goes(items: list[Any], clean: list[Any]) -> None:
    redactor = Redactor()
    redactor.learn("API_KEY", CUT)
    assert redactor.redact_items(items).value == clean


def test_a_secret_that_is_configured_later_is_out_of_keys_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.key_view(CUT) == CUT
    redactor.configure("API_KEY", CUT)
    redactor.configure("OTHER", CUT)
    assert redactor.key_view(f"a {CUT}") == "a [REDACTED:API_KEY]"
    assert redactor.configured_names == {"API_KEY"}


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("tests.test_a/test_b", None),
        ("test_a[key-aaaabbbb]", "API_KEY"),
        ("test_a_key-aaaabbbb_-1a2b3c", "API_KEY"),
        ("test_a[sk-0123456789abcdefghijklmn]", "sk"),
        ("tests/test_postgres.py::test_a[postgres]", None),
    ],
)
def test_a_name_gives_a_secret_away(name: str, held: str | None) -> None:
    redactor = Redactor()
    redactor.learn("API_KEY", CUT)
    redactor.learn("DB_PASSWORD", "postgres")
    assert redactor.given_away_by(name) == held


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("text", ["it is key-aaaabbbb.", "it is sk-0123456789abcdefghijklmn ."])
def test_text_in_a_wide_encoding_that_holds_a_secret_is_refused(encoding: str, text: str) -> None:
    redactor = Redactor()
    redactor.learn("API_KEY", CUT)
    found = redactor.redact({"a": {"$bytes": base64.b64encode(text.encode(encoding)).decode()}})
    assert found.refused == ("/a",)
    assert "$bytes" not in str(found.value)
    clean: Any = {"a": {"$bytes": base64.b64encode(b"nothing" + b"\0" * 9 + b"\xffheld").decode()}}
    assert redactor.redact(clean) == (clean, (), ())
