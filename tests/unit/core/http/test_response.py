"""The stored form of a response, byte for byte."""

import json
from typing import Any

import pytest

from playhead.core.canonical import parse_json, render
from playhead.core.http.response import Broken, Chunk, HttpAnswer, has_no_body, kept, read, store
from playhead.core.http.secrets import without_secrets
from playhead.core.redaction.redact import Redactor


def through_a_file(value: Any) -> Any:
    """As fixture files hold it: text with sorted members."""
    return parse_json(json.dumps(json.loads(render(value)), sort_keys=True, indent=2))


@pytest.mark.parametrize(
    ("body", "member"),
    [
        (b'{"a":1,"b":[1.5,null,true,"\xc3\xa9"]}', "json"),
        (b'{"$date":"x"}', "json"),
        (b'{"n":9007199254740993123}', "json"),
        (b'{ "a" :   1 }\n', "text"),
        (b'{"b":1,"a":2}', "text"),  # members are sorted in files
        (b'{"a":1,"a":2}', "text"),
        (b'{"a":1e2}', "text"),
        (b'{"a":1.0}', "json"),
        (b'{"a":"\\u00e9"}', "text"),
        (b'"\\ud800"', "json"),
        (b"[NaN]", "text"),
        (b"[" * 300 + b"]" * 300, "text"),
        (b"", "text"),
        (b"line\r\nline\n", "text"),
        ("latin-1: é".encode("latin-1"), "b64"),
        (bytes(range(256)), "b64"),
    ],
)
def test_the_bytes_of_a_body_come_back_equal(body: bytes, member: str) -> None:
    value = store(HttpAnswer(status=200, headers=[("content-type", "application/json")], body=body))
    assert [name for name in value if name not in ("status", "headers")] == [member]
    answer = read(through_a_file(value))
    assert answer.body == body
    assert list(answer.headers) == [("content-type", "application/json")]


def test_chunks_come_back_with_their_times_and_cut_characters() -> None:
    chunks = (Chunk(0.012, b"data: \xc3"), Chunk(0.25, b"\xa9\n\n"), Chunk(0.3, b"end"))
    value = store(HttpAnswer(status=200, chunks=chunks))
    assert [sorted(chunk) for chunk in value["chunks"]] == [["b64", "t"], ["b64", "t"], ["t", "text"]]
    assert read(through_a_file(value)).chunks == chunks
    assert read(value).complete


def test_what_ended_a_stream_is_kept() -> None:
    left = HttpAnswer(status=200, chunks=(Chunk(0, b"a"),), complete=False)
    assert store(left)["complete"] is False
    assert not read(through_a_file(store(left))).complete
    broken = HttpAnswer(status=200, chunks=(), broken=Broken("ReadError", "reset"))
    assert read(through_a_file(store(broken))).broken == Broken("ReadError", "reset")


def test_a_response_without_body_has_no_body_member() -> None:
    assert store(HttpAnswer(status=204)) == {"status": 204, "headers": []}
    assert read({"status": 204, "headers": []}).body is None
    assert has_no_body("HEAD", 200)
    assert [has_no_body("GET", status) for status in (100, 204, 205, 304, 200, 404)] == [True] * 4 + [False] * 2


def test_only_headers_on_the_list_are_kept() -> None:
    sent = [
        ("Content-Type", "text/plain"), ("X-RateLimit-Remaining", "9"), ("Set-Cookie", "a=b"), ("Date", "today"),
        ("Content-Encoding", "gzip"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked"), ("X-Total", "1"),
        ("Link", "<a>"), ("Link", "<b>"), ("Location", "/x"), ("ETag", '"1"'), ("Retry-After", "7"),
        ("Last-Modified", "yesterday"),
    ]  # fmt: skip
    names = [name for name, _ in kept(sent)]
    assert names == [
        "content-type", "x-ratelimit-remaining", "link", "link", "location", "etag", "retry-after", "last-modified"
    ]  # fmt: skip
    assert ("x-total", "1") in kept(sent, ["X-Total", "content-length"])
    assert "content-length" not in dict(kept(sent, ["content-length", "*"]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "an object with status"),
        ({"status": True}, "/status"),
        ({"status": "200"}, "/status"),
        ({"status": 200, "headers": {"a": "b"}}, "/headers"),
        ({"status": 200, "headers": [["a"]]}, "/headers/0"),
        ({"status": 200, "headers": [["a", 1]]}, "/headers/0"),
        ({"status": 200, "text": "a", "json": 1}, "one body"),
        ({"status": 200, "text": 1}, "/text"),
        ({"status": 200, "b64": "a"}, "/b64"),
        ({"status": 200, "chunks": {}}, "/chunks"),
        ({"status": 200, "chunks": [{"text": "a"}]}, "/chunks/0"),
        ({"status": 200, "chunks": [{"t": 1}]}, "/chunks/0"),
    ],
)
def test_what_is_no_response_is_named(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(value)


# secrets


def clean(answer: HttpAnswer, redactor: Redactor | None = None) -> Any:
    cleaned = without_secrets(answer, redactor or Redactor({"KEY": "planted-secret-1"}))
    assert cleaned.refused is None
    return store(cleaned.answer)


JSON_TYPE = [("content-type", "application/json")]


def test_secrets_in_json_text_go_and_its_layout_stays() -> None:
    body = b'{ "b": "planted-secret-1", "access_token": "unlisted-99", "a": 1 }\n'
    assert clean(HttpAnswer(status=200, headers=JSON_TYPE, body=body))["text"] == (
        '{ "b": "[REDACTED:KEY]", "access_token": "[REDACTED:access_token]", "a": 1 }\n'
    )


def test_short_secrets_and_numbers_under_names_go_too() -> None:
    body = b'{ "password": "abc", "n": {"pin_secret": 1234}, "count": 3 }'
    value = clean(HttpAnswer(status=200, headers=JSON_TYPE, body=body))
    assert value["json"] == {
        "password": "[REDACTED:password]", "n": {"pin_secret": "[REDACTED:pin_secret]"}, "count": 3
    }  # fmt: skip


def test_a_form_in_a_response_is_searched_by_names() -> None:
    headers = [("content-type", "application/x-www-form-urlencoded")]
    value = clean(HttpAnswer(status=200, headers=headers, body=b"access_token=abc&scope=read+x"))
    assert value["text"] == "access_token=[REDACTED:access_token]&scope=read+x"


def test_a_secret_cut_by_a_chunk_border_goes() -> None:
    chunks = tuple(Chunk(n, part) for n, part in enumerate((b"data: plan", b"ted-sec", b"ret-1 \xc3", b"\xa9 end")))
    value = clean(HttpAnswer(status=200, chunks=chunks))
    assert [chunk.data for chunk in read(value).chunks or ()] == [
        b"data: [REDACTED:KEY]", b"", b" \xc3", b"\xa9 end"
    ]  # fmt: skip


def test_headers_and_errors_lose_their_secrets() -> None:
    headers = [("location", "https://x.example/cb?token=unlisted-99"), ("x-auth-token", "anything")]
    broken = Broken("ReadError", "planted-secret-1 was cut")
    value = clean(HttpAnswer(status=302, headers=headers, chunks=(), broken=broken))
    assert "unlisted" not in str(value)
    assert "anything" not in str(value)
    assert "planted" not in str(value)


def test_bytes_with_a_secret_are_refused() -> None:
    answer = HttpAnswer(status=200, body=b"\xff\x00planted-secret-1")
    assert without_secrets(answer, Redactor({"KEY": "planted-secret-1"})).refused is not None
    assert without_secrets(HttpAnswer(status=200, body=b"\xff\x00"), Redactor({})).refused is None


def test_later_requests_are_keyed_by_the_tag_of_what_a_response_lost() -> None:
    redactor = Redactor({})
    without_secrets(HttpAnswer(status=200, headers=JSON_TYPE, body=b'{"token":"abcdef123"}'), redactor)
    assert redactor.key_view({"q": "abcdef123"}) == {"q": "[REDACTED:token]"}
