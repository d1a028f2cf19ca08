"""Cassettes of the vcr family (vcrpy, pytest-recording, betamax, VCR for Ruby) as HTTP requests and their responses.

Every shape of them is read: YAML and JSON; today's ``interactions``, the bare list of vcrpy before 1.0, and
``http_interactions``; bodies as text, base64, binary, gzip, or as parsed JSON. YAML is read without building an object
of any class: Python tags count as the plain data under them.
"""

import json
from base64 import b64decode
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

from playhead.core.http.request import HttpRequest
from playhead.core.http.response import HttpAnswer, has_no_body
from playhead.core.protocol.shape import is_list, is_object
from playhead.engine.decoding import decoder_for
from playhead.engine.fixtures.imported import Interaction
from playhead.errors import FormatError, UsageError

Pairs = list[tuple[str, str]]


def read_cassette(path: Path) -> list[Interaction]:
    """The interactions of a cassette.

    Raises:
        FormatError: it is none; the text names the file, the interaction and the reason.
        UsageError: it is YAML and the extra ``vcr`` is not installed, or there is no such file.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path} is not a cassette: it is not UTF-8 text") from None
    return interactions(text, str(path))


def interactions(text: str, name: str) -> list[Interaction]:
    """The interactions in the text of a cassette; ``name`` is what errors call it. Raises as `read_cassette`."""
    found = _list_of(_parsed(text, name), name)
    made: list[Interaction] = []
    for place, each in enumerate(found):
        try:
            made.append(_interaction(each))
        except (ValueError, TypeError, KeyError, AttributeError, LookupError) as error:
            why = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
            raise FormatError(f"{name}: interaction {place + 1} is not readable: {why}") from None
    return made


def _parsed(text: str, name: str) -> Any:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # YAML in flow style looks the same
    return _yaml(text, name)


def _yaml(text: str, name: str) -> Any:
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        raise UsageError(
            f"{name} is YAML, and no YAML reader is installed", hint="pip install 'playhead[vcr]'"
        ) from None
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("CassetteLoader", (base,), {})
    loader.add_multi_constructor("tag:yaml.org,2002:python/", _plain)
    # times stay the text that they are: a body may consist of one
    loader.add_constructor("tag:yaml.org,2002:timestamp", loader.construct_scalar)
    try:
        return yaml.load(text, Loader=loader)  # a subclass of the safe loader
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise FormatError(f"{name} is not a cassette: no YAML{where} ({problem})") from None


def _plain(loader: Any, suffix: str, node: Any) -> Any:
    """The data under a Python tag; the class that the tag names is never looked up."""
    kind = type(node).__name__
    if kind == "ScalarNode":
        return loader.construct_scalar(node)
    return loader.construct_sequence(node, True) if kind == "SequenceNode" else loader.construct_mapping(node, True)


def _list_of(data: Any, name: str) -> list[Any]:
    if is_object(data):
        for member in ("interactions", "http_interactions"):
            if is_list(data.get(member)):
                return data[member]
            if member in data and data[member] is None:
                return []
    if is_list(data) and all(is_object(each) and "request" in each for each in data):
        return data
    raise FormatError(f"{name} is not a cassette: it has no list of interactions")


def _interaction(each: Any) -> Interaction:
    request, response = each["request"], each["response"]
    sent = _headers(request.get("headers"))
    method = str(request["method"]).upper()
    headers = _headers(response.get("headers"))
    status = _status(response)
    body = b"" if has_no_body(method, status) else _decoded(_body(response), headers)
    return Interaction(
        request=HttpRequest(method=method, url=_url(request), headers=sent, body=_decoded(_body(request), sent)),
        answer=HttpAnswer(status=status, headers=headers, body=None if has_no_body(method, status) else body),
        at=each.get("recorded_at") if isinstance(each.get("recorded_at"), str) else None,
    )


def _url(request: dict[str, Any]) -> str:
    for member in ("uri", "url"):
        if isinstance(request.get(member), str):
            return request[member]
    scheme, host, path = request["protocol"], request["host"], request.get("path") or request.get("selector") or "/"
    return f"{scheme}://{host}:{request.get('port') or {'https': 443}.get(scheme, 80)}{path}"


def _status(response: dict[str, Any]) -> int:
    status = response.get("status", response.get("status_code"))
    code = status.get("code") if is_object(status) else status
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    if not isinstance(code, int) or isinstance(code, bool) or not 100 <= code <= 999:
        raise ValueError(f"its status is {status!r}")
    return code


def _headers(headers: Any) -> Pairs:
    """Names and values, from an object of values or lists of them, from lines of text, or from pairs."""
    if is_object(headers):
        return [(str(name), _text(value)) for name, values in headers.items() for value in _values(values)]
    return list(_pairs(headers))


def _pairs(entries: Any) -> Generator[tuple[str, str]]:
    for entry in entries if is_list(entries) else ():
        if isinstance(entry, str):
            name, colon, value = entry.partition(":")
            if colon:
                yield name.strip(), value.strip()
        elif is_list(entry) and len(entry) == 2 and isinstance(entry[0], str):
            yield entry[0], _text(entry[1])
        else:  # a set of pairs, written as a call with one argument
            yield from _pairs(entry)


def _values(values: Any) -> list[Any]:
    return values if is_list(values) else [values]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _body(message: dict[str, Any]) -> bytes:
    if "parsed_body" in message and "body" not in message:
        return json.dumps(message["parsed_body"], ensure_ascii=False, separators=(",", ":")).encode()
    body = message["body"] if "body" in message else message.get("content")
    return _bytes(body)


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if is_object(body):
        return _bytes_of_object(body)
    if is_list(body) and all(isinstance(part, str | bytes | list) for part in body):
        return b"".join(_bytes(part) for part in body)
    if is_list(body):
        return _as_json(body)
    raise ValueError(f"its body is {type(body).__name__}")


def _bytes_of_object(body: dict[str, Any]) -> bytes:
    if "base64_string" in body:
        return b64decode(body["base64_string"])
    if is_list(body.get("state")):  # of a file that was sent: its content, and the place in it
        return _bytes(body["state"][0])
    for member in ("args", "string", "text"):  # ``args`` are of an iterator
        if member in body:
            return _bytes(body[member])
    return _as_json(body) if body else b""


def _as_json(body: Any) -> bytes:
    """What aiohttp was given to send as JSON."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _decoded(body: bytes, headers: Pairs) -> bytes:
    """The body without the encoding that its headers name; many cassettes hold it decoded already."""
    encoding = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
    decode = decoder_for(encoding) if body and encoding else None
    if decode is None:
        return body
    try:
        return decode(body)
    except Exception:  # noqa: BLE001 - each decoder has its own class; then it is not encoded
        return body
