"""What makes two HTTP requests the same: method, host, URL, body, and the headers that are asked for."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from playhead.core.http.bodies import body_form
from playhead.core.http.url import Url, pairs_of, parse_url, percent_decoded, tags_plain
from playhead.core.keys import KeyView, strip
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redaction.names import is_credential_name
from playhead.core.redaction.walk import Walk
from playhead.core.values import JSON

_TAGS = re.compile(r"\[REDACTED:[^\[\]]{1,200}\]")
_NO_NAME = re.compile(r"[\[\]\x00-\x1f\x7f\ud800-\udfff]")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as it is about to leave a client. ``body`` is without its content encoding."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRules:
    """What of a request and a response counts.

    ``hosts``: None is every host; else names, ``*.suffix``, and ``host:port`` where the port matters.
    ``ignore``: JSON pointers into the key's arguments; ``/url/query/NAME`` and ``/body/form/NAME`` name a parameter.
    ``keep_headers``: response headers that are stored beside those on the allow list; ``x-*`` is a prefix.
    """

    hosts: tuple[str, ...] | None = None
    match_headers: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    sort_query: bool = False
    keep_headers: tuple[str, ...] = ()

    def concern(self, url: str) -> bool:
        """Whether requests to this URL are recorded and served."""
        if self.hosts is None:
            return True
        found = parse_url(url)
        names = (found.host, f"{found.host}:{_port(found)}")
        return any(_fits(pattern.lower(), name) for pattern in self.hosts for name in names)


def _port(url: Url) -> str:
    return url.port or {"http": "80", "https": "443"}.get(url.scheme, "")


def _fits(pattern: str, name: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


def tool_of(request: HttpRequest) -> str:
    """The identity that requests are listed under: method and host."""
    return f"{request.method.upper()} {parse_url(request.url).host}"


def effect_of(method: str) -> str:
    """``read`` for the methods that HTTP calls safe, ``write`` for all others."""
    return "read" if method.upper() in _SAFE_METHODS else "write"


def arguments_of(
    request: HttpRequest, rules: HttpRules, secrets: KeyView | None = None, *,
    is_configured: Callable[[str], bool] = lambda name: True,
) -> JSON:  # fmt: skip
    """The arguments of the request's key, what `rules` ignore included (`without` takes it out).

    Configured secrets become their tags first. Whatever else stands under a credential-like name in query, form, JSON
    or a matched header becomes ``[REDACTED:name]``, so that a dummy credential replays: also a value that an earlier
    response held, since whoever replays may have it from there, or from a variable that is another one now.

    Args:
        is_configured: whether a name is that of a configured secret; those keep their tag.
    """
    url = parse_url(request.url)
    found: dict[str, JSON] = {
        "url": tags_plain(url.text()),
        "body": _plain_tags(body_form(request.body, header(request.headers, "content-type") or "")),
    }
    if rules.match_headers:
        found["headers"] = _matched(request.headers, rules.match_headers)
    if secrets is not None:
        found = secrets.key_view(found)
    mask = _Credentials(is_configured)
    found["url"] = _sorted(_without_credentials(str(found["url"]), mask), rules)
    found["body"] = _without_part_credentials(found["body"], mask)
    return Walk(mask).whole(found, None)


def without(arguments: JSON, ignore: Iterable[str]) -> JSON:
    """The arguments as the key sees them: without what is ignored. Parameters of query and form go by name."""
    plain: list[str] = []
    for pointer in ignore:
        head, _, name = pointer.rpartition("/")
        name = name.replace("~1", "/").replace("~0", "~")
        if head == "/url/query" and is_object(arguments):
            arguments = {**arguments, "url": _without_parameter(str(arguments.get("url")), name)}
        elif head == "/body/form" and not name.isdecimal() and name != "*":
            arguments = _without_field(arguments, name)
        else:
            plain.append(pointer)
    return strip(arguments, plain) if plain else arguments


def header(headers: Headers, name: str) -> str | None:
    """All values of a header as one text; None when it is not there."""
    values = [value for each, value in headers if each.lower() == name]
    return ", ".join(values) if values else None


def _matched(headers: Headers, names: Iterable[str]) -> dict[str, JSON]:
    values = {name.lower(): header(headers, name.lower()) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _plain_tags(form: JSON) -> JSON:
    """Text bodies with the tags plain: what clients encode in forms is decoded there already."""
    return {"text": tags_plain(form["text"])} if is_object(form) and "text" in form else form


def _without_credentials(url: str, mask: "_Credentials") -> str:
    base, mark, query = url.partition("?")
    if not mark:
        return url
    return f"{base}?{'&'.join(_masked(item, mask) for item in query.split('&'))}"


def _masked(item: str, mask: "_Credentials") -> str:
    name, sign, value = item.partition("=")
    plain = percent_decoded(name.replace("+", " "))
    if not value or not is_credential_name(plain):
        return item
    return f"{name}{sign}{mask.of(value, plain)}"


def _without_part_credentials(body: JSON, mask: "_Credentials") -> JSON:
    if not is_object(body) or not is_list(body.get("parts")):
        return body
    parts = [dict(part) for part in body["parts"]]
    for part in parts:
        if part.get("text") and is_credential_name(part["name"]):
            part["text"] = mask.of(part["text"], part["name"])
    return {"parts": parts}


def _sorted(url: str, rules: HttpRules) -> str:
    base, mark, query = url.partition("?")
    return f"{base}?{'&'.join(sorted(query.split('&')))}" if mark and rules.sort_query else url


def _without_parameter(url: str, name: str) -> str:
    base, mark, query = url.partition("?")
    kept = [item for item in query.split("&") if not any(found == name for found, _ in pairs_of(item))]
    return f"{base}?{'&'.join(kept)}" if mark and kept else base


def _without_field(arguments: JSON, name: str) -> JSON:
    body = arguments.get("body") if is_object(arguments) else None
    if not is_object(body) or not is_list(body.get("form")):
        return arguments
    return {**arguments, "body": {"form": [pair for pair in body["form"] if not is_list(pair) or pair[:1] != [name]]}}


class _Credentials:
    """Puts a tag made of the name in the place of whatever stands under a credential-like name."""

    names_matter = True

    def __init__(self, is_configured: Callable[[str], bool]) -> None:
        self._is_configured = is_configured

    def data(self, raw: bytes) -> bytes:
        return raw

    def under_name(self, text: str, name: str) -> str:
        return self.of(text, name) if text.strip() else text

    def of(self, value: str, name: str) -> str:
        """The tags in a value, which tell configured secrets apart; else a tag made of the name."""
        tags = [tag for tag in _TAGS.findall(value) if self._is_configured(tag[10:-1])]
        return "".join(tags) if tags else f"[REDACTED:{_NO_NAME.sub('_', name)[:64] or 'secret'}]"
