"""The shapes that cassettes of the vcr family come in."""

import gzip
import json
from base64 import b64encode
from typing import Any

import pytest

from playhead.errors import FormatError, UsageError
from playhead.importers import vcr
from playhead.importers.vcr import interactions, read_cassette

TODAY = """
version: 1
interactions:
- request:
    body: '{"q": "a"}'
    headers:
      Accept: ['*/*', text/html]
      Content-Type: [application/json]
    method: POST
    uri: https://api.example.com/v1/search?x=1
  response:
    body: {string: '{"ok":true}'}
    headers:
      Content-Type: [application/json]
      Set-Cookie: [a=b, c=d]
    status: {code: 200, message: OK}
- request: {body: null, headers: {}, method: GET, uri: 'https://api.example.com/none'}
  response: {body: {string: ''}, headers: {}, status: {code: 204, message: No Content}}
"""


def test_todays_yaml() -> None:
    first, second = interactions(TODAY, "c.yaml")
    assert (first.request.method, first.request.url) == ("POST", "https://api.example.com/v1/search?x=1")
    assert first.request.body == b'{"q": "a"}'
    assert ("Accept", "text/html") in first.request.headers
    assert (first.answer.status, first.answer.body) == (200, b'{"ok":true}')
    assert [value for name, value in first.answer.headers if name == "Set-Cookie"] == ["a=b", "c=d"]
    assert (second.answer.status, second.answer.body) == (204, None)


def cassette(response: dict[str, Any], request: dict[str, Any] | None = None, **more: Any) -> str:
    asked = {"method": "GET", "uri": "http://h.example/", "headers": {}, "body": None, **(request or {})}
    return json.dumps({"version": 1, "interactions": [{"request": asked, "response": response, **more}]})


ZIPPED = b64encode(gzip.compress(b"plain text", mtime=0)).decode()


@pytest.mark.parametrize(
    ("response", "body"),
    [
        ({"status": 200, "headers": {}, "body": {"string": "é"}}, "é".encode()),
        ({"status_code": 200, "headers": {}, "content": "old httpx", "http_version": "HTTP/1.1"}, b"old httpx"),
        ({"status": {"code": "200"}, "headers": [], "body": {"encoding": None, "base64_string": "AAH/"}}, b"\0\1\xff"),
        ({"status": {"code": 200}, "headers": {"Content-Encoding": ["gzip"]},
          "body": {"base64_string": ZIPPED}}, b"plain text"),
        ({"status": {"code": 200}, "headers": {"content-encoding": ["gzip"]}, "body": {"string": "decoded already"}},
         b"decoded already"),
        ({"status": {"code": 200}, "headers": {}, "parsed_body": {"b": 1, "a": "é"}}, '{"b":1,"a":"é"}'.encode()),
        ({"status": {"code": 200}, "headers": {}, "body": None}, b""),
        ({"status": {"code": 200}, "headers": {}, "body": "bare"}, b"bare"),
    ],
)  # fmt: skip
def test_bodies_of_every_shape(response: dict[str, Any], body: bytes) -> None:
    (found,) = interactions(cassette(response), "c.json")
    assert found.answer.body == body


def test_binary_and_python_tags_of_yaml_are_plain_data() -> None:
    text = f"""
interactions:
- request:
    body: !!python/object/new:_io.BytesIO
      state: !!python/tuple [!!binary "YWJj", 0, null]
    headers: {{X-A: [!!python/unicode b]}}
    method: PUT
    uri: !!python/unicode "http://h.example/"
  response:
    body: {{string: !!binary "{ZIPPED}"}}
    headers: {{content-encoding: [gzip]}}
    status: {{code: 200, message: OK}}
- request: {{body: !!python/object/apply:builtins.iter {{args: !!python/tuple [[ab, c]]}}, method: put, uri: 'http://h/'}}
  response: {{body: {{string: 2020-01-01}}, headers: {{}}, status: {{code: 200}}}}
"""
    first, second = interactions(text, "c.yaml")
    assert first.request.body == b"abc"
    assert first.request.headers == [("X-A", "b")]
    assert first.answer.body == b"plain text"
    assert (second.request.method, second.request.body) == ("PUT", b"abc")
    assert second.answer.body == b"2020-01-01"


def test_bodies_that_a_client_was_given_as_json() -> None:
    for body in ({"q": "é"}, [{"a": 1}, 2]):
        (found,) = interactions(cassette({"status": 200, "headers": {}, "body": None}, {"body": body}), "c.json")
        assert json.loads(found.request.body) == body


def test_no_class_that_a_cassette_names_is_made() -> None:
    text = """
interactions:
- request: {method: GET, uri: 'http://h/', body: !!python/object/apply:os.system [exit 1]}
  response: {status: {code: 200}, headers: {}, body: {string: !!python/name:os.system x}}
"""
    (found,) = interactions(text, "c.yaml")
    assert found.request.body == b"exit 1"


def test_cassettes_from_before_the_format_had_a_version() -> None:
    old_json = json.dumps([
        {"request": {"body": None, "protocol": "http", "method": "GET", "headers": {"accept": "*/*"},
                     "host": "h.example", "path": "/ip", "port": 80},
         "response": {"status": {"message": "OK", "code": 200}, "headers": ["content-type: text/plain\\r\\n"],
                      "body": {"string": "x"}}}
    ])  # fmt: skip
    old_yaml = """
- request: !!python/object:vcr.request.Request
    body: null
    headers: !!python/object/apply:__builtin__.frozenset
    - - !!python/tuple [accept, '*/*']
    host: h.example
    method: GET
    path: /ip
    port: 80
    protocol: http
  response:
    body: {string: !!python/unicode "x"}
    headers: [!!python/unicode "content-type: text/plain\\r\\n"]
    status: {code: 200, message: OK}
"""
    for text in (old_json, old_yaml):
        (found,) = interactions(text, "old")
        assert found.request.url == "http://h.example:80/ip"
        assert found.request.headers == [("accept", "*/*")]
        assert found.answer.headers[0][0] == "content-type"
        assert found.answer.body == b"x"


def test_cassettes_of_other_libraries_of_the_family() -> None:
    text = json.dumps({
        "http_interactions": [
            {"request": {"method": "get", "uri": "http://h.example/", "headers": {"Accept": ["*/*"]},
                         "body": {"encoding": "UTF-8", "string": ""}},
             "response": {"status": {"code": 200, "message": "OK"}, "headers": {},
                          "body": {"encoding": "UTF-8", "string": "hello"}, "url": "http://h.example/"},
             "recorded_at": "2020-01-02T03:04:05"}
        ],
        "recorded_with": "betamax/0.8",
    })  # fmt: skip
    (found,) = interactions(text, "b.json")
    assert (found.request.method, found.answer.body, found.at) == ("GET", b"hello", "2020-01-02T03:04:05")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no list of interactions"),
        ("{}", "no list of interactions"),
        ("just text", "no list of interactions"),
        ("interactions: [}", "line 1"),
        ('{"interactions": [{"request": {}}]}', r"interaction 1 .* no 'response'"),
        ('{"interactions": [{"request": {"uri": "x"}, "response": {}}]}', r"no 'method'"),
        ('{"interactions": [{"request": {"uri": "x", "method": "GET"}, "response": {"status": "?"}}]}', "status is"),
        ('{"interactions": [3]}', "interaction 1"),
        ('{"interactions": [{"request": null, "response": null}]}', "interaction 1"),
        (cassette({"status": 200, "headers": {}, "body": {"base64_string": "a"}}), "interaction 1"),
    ],
)
def test_what_is_no_cassette_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=rf"c\.yaml.*{words}"):
        interactions(text, "c.yaml")


def test_an_empty_cassette_has_no_interactions() -> None:
    assert interactions("interactions: []\nversion: 1\n", "c.yaml") == []
    assert interactions("interactions:\nversion: 1\n", "c.yaml") == []


def test_a_missing_file_and_a_missing_reader_say_what_to_do(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"cannot be read"):
        read_cassette(tmp_path / "absent.yaml")

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(vcr, "import_module", absent)
    with pytest.raises(UsageError) as caught:
        interactions(TODAY, "c.yaml")
    assert "playhead[vcr]" in str(caught.value.hint)
    (tmp_path / "c.json").write_text(cassette({"status": 200, "headers": {}, "body": {"string": "x"}}))
    assert len(read_cassette(tmp_path / "c.json")) == 1
