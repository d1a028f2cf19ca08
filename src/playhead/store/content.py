"""What of a node is its head and what its payload; when two recordings have equal content.

A head is of bounded size and answers every listing. Payloads hold everything else and are read only when asked for.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from playhead.core.codec import FORMAT, dump, encode, load
from playhead.core.values import JSON, Node, Session, Verdict


class Parts(NamedTuple):
    """A dumped node in two: ``payload`` has the members inputs, attributes, arguments, value, native, usage, raw."""

    head: dict[str, JSON]
    payload: dict[str, JSON]


_PLACES = (("call", "arguments", "arguments"), ("outcome", "value", "value"), ("outcome", "native", "native"),
           ("imported", "raw", "raw"))  # fmt: skip


def split(node: Node) -> Parts:
    head = dump(node)
    payload: dict[str, JSON] = {}
    for name in ("inputs", "attributes"):
        if name in head:
            payload[name] = head.pop(name)
    for outer, inner, name in _PLACES:
        part = head.get(outer)
        if part is not None and inner in part:
            payload[name] = part.pop(inner)
    usage = head["model"].get("usage") if "model" in head else None
    if usage is not None and "raw" in usage:
        payload["usage"] = usage.pop("raw")
    return Parts(head, payload)


def join(head: dict[str, JSON], payload: Mapping[str, JSON]) -> dict[str, JSON]:
    """Inverse of `split`; fills ``head`` in place."""
    for name in ("inputs", "attributes"):
        if name in payload:
            head[name] = payload[name]
    for outer, inner, name in _PLACES:
        if name in payload:
            head[outer][inner] = payload[name]
    if "usage" in payload:
        head["model"]["usage"]["raw"] = payload["usage"]
    return head


def node_of(head: dict[str, JSON], payload: Mapping[str, JSON] | None, *, format: int = FORMAT) -> Node:
    """The node; with ``payload`` None the one that listings show, its payload members empty."""
    joined = head if payload is None else join(head, payload)
    call = joined.get("call")
    if call is not None:
        call.setdefault("arguments", None)  # a member without a default
    return load(Node, joined, format=format, trusted=True)


def content_digest(session: Session, nodes: Sequence[Node], verdicts: Sequence[Verdict]) -> str:
    """Equal for equal content: nothing that says how often or by whom it was stored."""
    messages = _Messages()
    whole = [
        dump(replace(session, revision=1, owner=None)),
        [messages.named_in(dump(node)) for node in sorted(nodes, key=lambda n: (n.seq, n.id))],
        sorted((dump(verdict) for verdict in verdicts), key=lambda v: (v.get("evaluator") or "", v["name"])),
    ]
    return _VERSION + hashlib.sha256(encode(whole, sort_keys=True)).hexdigest()


def is_current(digest: str | None) -> bool:
    """Whether a stored digest may be compared with one that is made today."""
    return digest is not None and digest.startswith(_VERSION)


_VERSION = "2:"


class _Messages:
    """Messages by their digest: the requests of a session repeat them, so each is read once."""

    def __init__(self) -> None:
        self._digests: dict[int, str] = {}  # by identity, which holds while `_kept` keeps the messages alive
        self._kept: list[JSON] = []

    def named_in(self, node: dict[str, JSON]) -> dict[str, JSON]:
        """A dumped node in which the digest of each message of the request stands for it."""
        inputs = node.get("inputs")
        if "model" not in node or not isinstance(inputs, dict):
            return node
        request = cast("dict[str, JSON]", inputs)
        messages = request.get("messages")
        if isinstance(messages, list | tuple):
            node["inputs"] = {**request, "messages": [self._digest(m) for m in cast("Sequence[JSON]", messages)]}
        return node

    def _digest(self, message: JSON) -> str:
        found = self._digests.get(id(message))
        if found is None:
            found = hashlib.sha256(encode(message, sort_keys=True)).hexdigest()
            self._digests[id(message)] = found
            self._kept.append(message)
        return found
