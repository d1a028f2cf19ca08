"""Redaction over a whole run: what is learnt, streams, and cases met elsewhere."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from playhead.core.redaction.redact import Redacted, Redactor, StreamRedactor

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


class TestRuns:
    def test_values_taken_from_an_outcome_leave_later_keys(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})
        before = redactor.key_view({"t": "tok-998877"})
        outcome = redactor.redact({"access_token": "tok-998877"}, outcome=True).value
        assert before == {"t": "tok-998877"}
        assert redactor.key_view({"t": "x tok-998877"}) == {"t": f"x {outcome['access_token']}"}

    def test_values_taken_from_arguments_stay_in_keys(self) -> None:
        redactor = Redactor()
        redactor.redact({"access_token": "tok-998877"})
        assert redactor.key_view({"t": "tok-998877"}) == {"t": "tok-998877"}

    def test_keys_know_configured_secrets_only(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})
        redactor.learn("ENV", "learnt-secret")
        value = {"password": "hunter2-long", "a": "configured-1", "b": "learnt-secret", "c": "Bearer abcdef1234"}
        assert redactor.key_view(value) == {**value, "a": "[REDACTED:KEY]"}

    def test_learnt_values_are_numbered_by_name(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})
        for value in ("first-value", "second-value", "first-value"):
            redactor.learn("ENV", value)
        redactor.learn("KEY", "another-value")
        redactor.learn("SHORT", "abc")
        text = redactor.redact("first-value second-value another-value configured-1").value
        assert text == "[REDACTED:ENV] [REDACTED:ENV.2] [REDACTED:KEY.2] [REDACTED:KEY]"
        assert "SHORT is shorter than 4 characters and is not redacted" in redactor.warnings

    def test_a_new_run_knows_the_configured_secrets_only(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})
        redactor.learn("ENV", "learnt-secret")
        assert redactor.for_run().redact("configured-1 learnt-secret").value == "[REDACTED:KEY] learnt-secret"

    def test_redacting_twice_changes_nothing_more(self) -> None:
        value = {
            "authorization": "Basic YW5hOmh1bnRlcjIt",
            "token": 12345,
            "u": "db://a:b@h",
            "p": {"password": "Bearer x"},
        }
        redactor = Redactor({"KEY": "configured-1"})
        once = redactor.redact(value).value
        for other in (redactor, redactor.for_run()):
            assert other.redact(once) == Redacted(once)

    def test_threads_may_learn_and_redact_together(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})

        def work(number: int) -> Any:
            redactor.learn("SLOT", f"value-{number:04d}-x")
            return redactor.redact({"a": f"value-{number:04d}-x configured-1"}).value["a"]

        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(work, range(60)))
        assert not any("value" in text or "configured" in text for text in texts)
        assert len(set(texts)) == 60

    def test_a_run_remembers_only_so_many_values_found_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("playhead.core.redaction.redact._MOST_FOUND", 2)
        redactor = Redactor()
        for number in range(4):
            assert redactor.redact({"token": f"tok-{number:06d}"}).value != {"token": f"tok-{number:06d}"}
        assert redactor.redact("tok-000001 tok-000003").value == "[REDACTED:token.2] tok-000003"

    def test_a_last_look_names_what_is_still_there(self) -> None:
        redactor = Redactor({"KEY": "configured-1"})
        redactor.learn("ENV", "learnt-secret")
        assert redactor.known_in(b'{"a":"learnt-secret configured%2D1"}') == ("ENV", "KEY")
        assert redactor.known_in("[REDACTED:KEY] and nothing else") == ()


class TestStreams:
    def feed(self, redactor: Redactor, *chunks: str | bytes) -> list[str | bytes]:
        stream = StreamRedactor(redactor)
        for chunk in chunks:
            stream.feed(chunk)
        return stream.finish()

    def test_a_secret_across_chunks_leaves_its_tag_in_the_first(self) -> None:
        redactor = Redactor({"P": "hunter2-long"})
        chunks = self.feed(redactor, "a hun", "ter", "2-lo", "ng b", "", "hunter2-long")
        assert chunks == ["a [REDACTED:P]", "", "", " b", "", "[REDACTED:P]"]

    def test_chunks_of_bytes_may_cut_characters(self) -> None:
        raw = "é pässwörd-x é".encode()
        chunks = self.feed(Redactor({"P": "pässwörd-x"}), raw[:1], raw[1:5], raw[5:10], raw[10:])
        assert b"".join(chunks) == "é [REDACTED:P] é".encode()  # type: ignore[arg-type]
        assert len(chunks) == 4

    def test_shapes_are_found_across_chunks(self) -> None:
        assert self.feed(Redactor(), "Authorization: Bea", "rer abc.def", "-123\n") == [
            "Authorization: Bea",
            "rer [REDACTED:bearer]",
            "\n",
        ]

    def test_a_clean_stream_is_unchanged(self) -> None:
        assert self.feed(Redactor({"P": "hunter2-long"}), "a", b"\xff", "b") == ["a", b"\xff", "b"]


def test_r28_default_settings_find_the_usual_credentials() -> None:
    redactor = Redactor()
    exchange = {
        "url": "https://api.example/v1?api_key=q-key-123456",
        "headers": [["Authorization", "Bearer tok-abcdef-123"], ["Cookie", "sid=cookie-secret"]],
        "basic": {"authorization": "Basic YW5hOmh1bnRlcjIt"},
        "response": {"headers": [["Set-Cookie", "sid=cookie-two"]], "json": {"access_token": "acc-123456"}},
    }
    everything = json.dumps(redactor.redact(exchange).value) + redactor.redact_text(
        "failed with tok-abcdef-123, acc-123456 and YW5hOmh1bnRlcjIt"
    )
    for secret in ("q-key-123456", "tok-abcdef-123", "cookie-secret", "YW5hOmh1bnRlcjIt", "cookie-two", "acc-123456"):
        assert secret not in everything


def test_r29_spellings_of_a_secret_leave_no_trace() -> None:
    redactor = Redactor({"ODD": ODD, "A": "abc123", "B": "abc123XYZ", "PIN": "4821", "ONE": "1"})
    spelled = [
        ODD,
        quote(ODD),
        quote(ODD).lower(),
        f"k={quote_plus(ODD)}",
        json.dumps(ODD),
        b64(ODD),
        b64("ana:" + ODD),
    ]
    for text in spelled:
        assert "[REDACTED:ODD]" in redactor.redact(text).value
    stream = StreamRedactor(redactor)
    stream.feed(ODD[:5])
    stream.feed(ODD[5:])
    assert stream.finish() == ["[REDACTED:ODD]", ""]
    assert redactor.redact({"abc123XYZ": 1, "abc123": 2, "n": 4821, "one": 1}).value == {
        "[REDACTED:B]": 1,
        "[REDACTED:A]": 2,
        "n": "[REDACTED:PIN]",
        "one": 1,
    }
    assert any(warning.startswith("ONE") for warning in redactor.warnings)


def test_r31_scrubbing_adds_nothing() -> None:
    value = {"headers": [["content-type", "application/json"]], "json": {"token": "tok-1234567", "n": 1}}
    result = Redactor().redact(value).value
    assert result == {**value, "json": {"token": "[REDACTED:token]", "n": 1}}
