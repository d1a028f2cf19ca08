"""What an HTTP request is keyed by."""

from hashlib import sha256
from typing import Any

import pytest

from playhead.core.http.request import HttpRequest, HttpRules, arguments_of, effect_of, tool_of, without
from playhead.core.http.url import form_text, pairs_of, parse_url
from playhead.core.keys import call_key
from playhead.core.redaction.redact import Redactor

URL = "https://api.example.com/v1/things"


def arguments(
    url: str = URL,
    body: bytes | str = b"",
    content_type: str = "",
    *,
    headers: tuple[tuple[str, str], ...] = (),
    secrets: Redactor | None = None,
    **rules: Any,
) -> Any:
    said = (*headers, *([("Content-Type", content_type)] if content_type else []))
    request = HttpRequest(method="POST", url=url, headers=said, body=body.encode() if isinstance(body, str) else body)
    return arguments_of(request, HttpRules(**rules), secrets)


def key(url: str = URL, body: bytes | str = b"", content_type: str = "", **more: Any) -> str:
    return call_key("POST api.example.com", arguments(url, body, content_type, **more), namespace="http")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("HTTPS://API.Example.com:443/A?b=1#top", "https://api.example.com/A?b=1"),
        ("http://user:pw@host.example:80", "http://host.example/"),
        ("http://host.example:8080/x?", "http://host.example:8080/x?"),
        ("https://[2001:DB8::1]:8443/p", "https://[2001:db8::1]:8443/p"),
        ("https://h.example/a%2Fb/../c?q=%20+é", "https://h.example/a%2Fb/../c?q=%20+é"),
        ("http://h.example?a=b", "http://h.example/?a=b"),
    ],
)
def test_urls_lose_only_what_says_nothing(written: str, normal: str) -> None:
    assert parse_url(written).text() == normal
    assert arguments(written)["url"] == normal


def test_the_order_of_a_query_counts_unless_it_is_sorted() -> None:
    one, other = f"{URL}?b=2&a=1", f"{URL}?a=1&b=2"
    assert key(one) != key(other)
    assert key(one, sort_query=True) == key(other, sort_query=True)


@pytest.mark.parametrize(
    ("body", "content_type", "form"),
    [
        ("", "application/json", None),
        ('{"q": "a"}', "application/json; charset=utf-8", {"json": {"q": "a"}}),
        ('"only text"', "application/vnd.api+json", {"json": "only text"}),
        ('[1, {"b": 2}]', "text/plain", {"json": [1, {"b": 2}]}),
        ('"only text"', "text/plain", {"text": '"only text"'}),
        ('{"$ref": 1, "n": 9007199254740993}', "", {"json": {"$ref": 1, "n": {"$int": "9007199254740993"}}}),
        ('{"$date": "x"}', "", {"json": {"$$date": "x"}}),
        ('{"broken": ', "application/json", {"text": '{"broken": '}),
        ('{"n": NaN}', "application/json", {"text": '{"n": NaN}'}),
        ("a=1&b=x+y%26&a=", "application/x-www-form-urlencoded", {"form": [["a", "1"], ["b", "x y&"], ["a", ""]]}),
        ("100% sure", "application/x-www-form-urlencoded", {"text": "100% sure"}),
        ("<a/>", "application/xml", {"text": "<a/>"}),
        (b"\x00\xff", "application/json", {"sha256": sha256(b"\x00\xff").hexdigest(), "bytes": 2}),
    ],
)
def test_bodies_have_one_form_by_what_they_are(body: bytes | str, content_type: str, form: Any) -> None:
    assert arguments(URL, body, content_type)["body"] == form


def multipart(boundary: str, *parts: bytes) -> tuple[bytes, str]:
    mark = boundary.encode()
    body = b"".join(b"--" + mark + b"\r\n" + part + b"\r\n" for part in parts) + b"--" + mark + b"--\r\n"
    return body, f'multipart/form-data; boundary="{boundary}"'


FIELD = b'Content-Disposition: form-data; name="note"\r\n\r\nhello\r\nworld'
FILE = b'Content-Disposition: form-data; name="f"; filename="a b.bin"\r\nContent-Type: image/png\r\n\r\n\x89PNG\x00'


def test_multipart_bodies_are_their_parts_and_never_their_boundary() -> None:
    assert arguments(URL, *multipart("xxx", FIELD, FILE))["body"] == {
        "parts": [
            {"name": "note", "text": "hello\r\nworld"},
            {"name": "f", "filename": "a b.bin", "type": "image/png", "sha256": sha256(b"\x89PNG\x00").hexdigest(),
             "size": 5},
        ]
    }  # fmt: skip
    assert key(URL, *multipart("xxx", FIELD, FILE)) == key(URL, *multipart("another-one", FIELD, FILE))
    assert key(URL, *multipart("xxx", FIELD, FILE)) != key(URL, *multipart("xxx", FILE, FIELD))


def test_a_broken_multipart_body_is_kept_as_what_it_is() -> None:
    body, content_type = multipart("xxx", FIELD)
    assert arguments(URL, body[:-6], content_type)["body"] == {"text": body[:-6].decode()}


def test_only_named_headers_count() -> None:
    headers = (("User-Agent", "x/1"), ("X-Tenant", "a"), ("x-tenant", "b"))
    assert "headers" not in arguments(headers=headers)
    assert arguments(headers=headers, match_headers=("X-Tenant", "absent"))["headers"] == {"x-tenant": "a, b"}


def test_a_dummy_credential_makes_the_same_key_wherever_it_stands() -> None:
    parts = b'Content-Disposition: form-data; name="api_key"\r\n\r\n%s'
    for one, other in [
        ((f"{URL}?api_key=real-one&q=1",), (f"{URL}?api_key=dummy&q=1",)),
        ((URL, "password=real&user=u", "application/x-www-form-urlencoded"),
         (URL, "password=x&user=u", "application/x-www-form-urlencoded")),
        ((URL, '{"auth": {"accessToken": "real"}, "pin_secret": 12345}'),
         (URL, '{"auth": {"accessToken": "no"}, "pin_secret": 1}')),
        ((URL, *multipart("b", parts % b"real")), (URL, *multipart("b", parts % b"dummy"))),
    ]:  # fmt: skip
        assert key(*one) == key(*other)
        assert "real" not in str(arguments(*one))
    assert key(f"{URL}?q=a") != key(f"{URL}?q=b")
    named = arguments(f"{URL}?client%5Fsecret=a%20b")["url"]
    assert named == f"{URL}?client%5Fsecret=[REDACTED:client_secret]"


def test_two_customers_tokens_stay_two_keys_and_a_rotated_one_hits() -> None:
    recorded = Redactor({"ACME_TOKEN": "acme-token-1", "BETA_TOKEN": "beta-token-1"})
    rotated = Redactor({"ACME_TOKEN": "acme-token-2", "BETA_TOKEN": "beta-token-2"})
    for where in (
        lambda token: {"url": f"{URL}?api_key={token}"},
        lambda token: {"body": f"token={token}", "content_type": "application/x-www-form-urlencoded"},
        lambda token: {"body": f'{{"token": "{token}"}}'},
        lambda token: {"body": f'{{"note": "for {token}"}}'},
        lambda token: {"headers": (("Authorization", f"Bearer {token}"),), "match_headers": ("authorization",)},
    ):
        acme = key(**where("acme-token-1"), secrets=recorded)
        assert acme != key(**where("beta-token-1"), secrets=recorded)
        assert acme == key(**where("acme-token-2"), secrets=rotated)
        # a replay without the variable passes the tag on, and clients encode it
        assert acme == key(**where("[REDACTED:ACME_TOKEN]"), secrets=Redactor({}))
    encoded = key(url=f"{URL}?api_key=%5BREDACTED%3AACME_TOKEN%5D")
    assert encoded == key(url=f"{URL}?api_key=acme-token-1", secrets=recorded)


def test_what_is_ignored_is_named_by_pointer_and_parameters_by_name() -> None:
    made = arguments(f"{URL}?ts=1&q=2&ts=3", "nonce=9&a=b", "application/x-www-form-urlencoded")
    assert without(made, ["/url/query/ts", "/body/form/nonce"]) == {
        "url": f"{URL}?q=2",
        "body": {"form": [["a", "b"]]},
    }
    assert without(made, ["/body"]) == {"url": made["url"]}
    made = arguments(f"{URL}?ts=1", '{"id": 1, "items": [{"at": 5, "n": 1}]}')
    assert without(made, ["/url/query/ts", "/body/json/items/*/at"]) == {
        "url": URL,
        "body": {"json": {"id": 1, "items": [{"n": 1}]}},
    }


def test_hosts_are_named_exactly_by_suffix_or_with_their_port() -> None:
    rules = HttpRules(hosts=("api.example.com", "*.suffix.example", "local.example:8080"))
    assert rules.concern("https://API.example.com/x")
    assert rules.concern("http://a.b.suffix.example/")
    assert rules.concern("http://local.example:8080/")
    assert not rules.concern("http://local.example/")
    assert not rules.concern("https://suffix.example/")
    assert not rules.concern("https://notapi.example.com/")
    assert HttpRules(hosts=("h.example:443",)).concern("https://h.example/")
    assert HttpRules().concern("http://anything/")


def test_identity_and_effect_come_from_the_method() -> None:
    request = HttpRequest(method="get", url="http://u:p@API.example.com:8080/x")
    assert tool_of(request) == "GET api.example.com"
    assert [effect_of(method) for method in ("get", "HEAD", "POST", "DELETE")] == ["read", "read", "write", "write"]


def test_form_text_comes_back() -> None:
    pairs = [["a b", "x&y=z"], ["é", "%+"], ["t", "[REDACTED:token]"]]
    assert pairs_of(form_text(pairs)) == pairs
