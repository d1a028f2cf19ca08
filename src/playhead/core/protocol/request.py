"""When two model requests are the same: one comparable shape, its digests, its key, and the diff where it differs.

The shape leaves out what says nothing about the question asked: ids of calls (providers and test models make them up;
a call is known by its place in the conversation), empty texts, finish reasons, how reasoning is signed, where the
system text stood. A result that is JSON text and the same JSON as a structure are one.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.core.canonical import canonical_stored, digest, render
from playhead.core.keys import call_key
from playhead.core.protocol.parts import Message, Part, parsed_text
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON

PARTS = ("model", "messages", "tools", "tool_choice", "params")
"""What a model key is made from; ``missing`` of `model_key` takes these words."""


class _Call(NamedTuple):
    turn: int
    id: JSON
    name: str
    number: int


@dataclass(slots=True)
class _Shaper:
    """Brings the messages of one conversation to the comparable shape, one after another."""

    turn: int = 0
    number: int = 0
    waiting: list[_Call] = field(default_factory=list[_Call])
    system: list[str] = field(default_factory=list[str])

    def copy(self) -> "_Shaper":
        return _Shaper(self.turn, self.number, list(self.waiting), list(self.system))

    def add(self, message: Message) -> list[JSON]:
        """The comparable messages of one message. System text is put aside."""
        self.turn += 1
        if message["role"] == "system":
            self.system += [p["text"] for p in message["parts"] if p["type"] == "text" and p["text"]]
            return []
        results: list[JSON] = []
        rest: list[JSON] = []
        for part in message["parts"]:
            if part["type"] == "tool_result" and "executor" not in part:
                results.append({"role": "tool", "parts": [self._result(part)]})
            elif (shaped := self._part(part)) is not None:
                rest.append(shaped)
        if rest:
            role = "user" if message["role"] == "tool" else message["role"]
            named = {"name": message["name"]} if message.get("name") else {}
            results.append({"role": role, "parts": rest, **named})
        return results

    def _part(self, part: Part) -> JSON:
        match part["type"]:
            case "text" | "reasoning":
                return {"type": part["type"], "text": part["text"]} if part["text"] else None
            case "tool_call" if "executor" not in part:
                self.number += 1
                self.waiting.append(_Call(self.turn, part["id"], part["name"], self.number))
                return _call(self.number, part)
            case "tool_call":
                return _call(None, part)
            case "tool_result":
                return _result(None, part["name"], part["content"])
            case _:
                return {k: v for k, v in part.items() if v is not None}

    def _result(self, part: Part) -> JSON:
        fitting = [c for c in self.waiting if c.id == part["id"]]
        if not fitting:
            return _result(None, part["name"], part["content"])
        found = next(c for c in fitting if c.turn == fitting[-1].turn)
        self.waiting.remove(found)
        return _result(found.number, found.name, part["content"])


def _call(number: int | None, part: Part) -> JSON:
    return {"type": "tool_call", "call": number, "name": part["name"], "arguments": part["arguments"]}


def _result(number: int | None, name: str | None, content: JSON) -> JSON:
    return {"type": "tool_result", "call": number, "name": name, "content": parsed_text(content)}


def _system(texts: list[str]) -> list[JSON]:
    return [{"role": "system", "parts": [{"type": "text", "text": "\n\n".join(texts)}]}] if texts else []


def comparable(messages: Sequence[Message]) -> list[JSON]:
    """The messages of a request in the one shape in which requests are compared."""
    shaper = _Shaper()
    shaped = [s for m in messages for s in shaper.add(m)]
    return _system(shaper.system) + shaped


def message_digest(shaped: JSON) -> bytes:
    """The digest of one comparable message.

    Raises:
        NoKeyError: something in it has no canonical form.
    """
    return digest(shaped)


class Digests:
    """Digests of a growing conversation: of a request, only messages not seen in the one before are read.

    One for each conversation (agent, thread); a request that begins otherwise starts over.
    """

    def __init__(self) -> None:
        self._seen: list[Message] = []
        self._after: list[tuple[_Shaper, int]] = []  # state and number of digests after each message
        self._digests: list[bytes] = []

    def of(self, messages: Sequence[Message]) -> tuple[bytes, ...]:
        """The digests of the comparable messages, system text first.

        Raises:
            NoKeyError: a message has no canonical form.
        """
        same = self._same(messages)
        shaper, count = self._after[same - 1] if same else (_Shaper(), 0)
        del self._seen[same:], self._after[same:], self._digests[count:]
        for message in messages[same:]:
            shaper = shaper.copy()
            self._digests += [message_digest(s) for s in shaper.add(message)]
            self._seen.append(message)
            self._after.append((shaper, len(self._digests)))
        return tuple(message_digest(s) for s in _system(shaper.system)) + tuple(self._digests)

    def _same(self, messages: Sequence[Message]) -> int:
        pairs = zip(self._seen, messages, strict=False)
        return next((n for n, (a, b) in enumerate(pairs) if a is not b and a != b), min(len(self._seen), len(messages)))


def digests(messages: Sequence[Message]) -> tuple[bytes, ...]:
    return Digests().of(messages)


def model_key(
    model: str | None,
    messages: Sequence[bytes],
    tools: JSON,
    tool_choice: JSON,
    params: JSON,
    *,
    missing: Sequence[str] = (),
) -> str:
    """The key of a model request.

    Args:
        messages: digests of the comparable messages (`Digests`, `digests`).
        tools: tools in normal form, or the digest of their canonical text.
        missing: parts (`PARTS`) that the source did not capture. They are left out, so such a key equals only keys
            made with the same parts missing.

    Raises:
        NoKeyError: something in it has no canonical form.
    """
    values: dict[str, JSON] = {
        "model": model,
        "messages": [d.hex() for d in messages],
        "tools": tools.hex() if isinstance(tools, bytes) else tools_digest(tools).hex(),
        "tool_choice": None if tool_choice == "auto" else tool_choice,
        "params": params or {},
    }
    captured = {name: values[name] for name in PARTS if name not in missing}
    return call_key("", captured, namespace="model")


def tools_digest(tools: JSON) -> bytes:
    """The digest of the tools offered. An empty list, None and nothing said are the same."""
    return digest(tools or [])


def request_key(model: str | None, inputs: JSON, *, missing: Sequence[str] = ()) -> str:
    """The key of a request as a node keeps it.

    Raises:
        NoKeyError: something in it has no canonical form.
    """
    messages = () if "messages" in missing else digests(inputs.get("messages") or ())
    return model_key(
        model, messages, inputs.get("tools"), inputs.get("tool_choice"), inputs.get("params"), missing=missing
    )


# --- where two requests differ --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDiff:
    """The first difference of two requests. ``where`` reads like "message 3 (user)"; ``index`` is 0-based."""

    where: str
    diff: str
    index: int | None = None


def request_diff(
    recorded: JSON,
    asked: JSON,
    *,
    models: tuple[str | None, str | None] = (None, None),
    missing: Sequence[str] = (),
) -> RequestDiff | None:
    """The first part in which two requests (``inputs`` of nodes) differ, as a unified text diff; None if in none."""
    if "model" not in missing and models[0] != models[1]:
        return RequestDiff(where="model", diff=_diff(str(models[0]), str(models[1])))
    if "messages" not in missing and (found := _first_message(recorded, asked)) is not None:
        return found
    for name in ("tools", "tool_choice", "params"):
        left, right = _neutral(recorded.get(name)), _neutral(asked.get(name))
        if name not in missing and not _same(left, right):
            return RequestDiff(where=name.replace("_", " "), diff=_diff(_shown(left), _shown(right)))
    return None


def _neutral(value: JSON) -> JSON:
    return None if value in ("auto", [], {}) else value


def _first_message(recorded: JSON, asked: JSON) -> RequestDiff | None:
    left, right = (comparable(side.get("messages") or ()) for side in (recorded, asked))
    for index in range(max(len(left), len(right))):
        one = left[index] if index < len(left) else None
        two = right[index] if index < len(right) else None
        if not _same(one, two):
            role = (obj(two) or obj(one)).get("role")
            return RequestDiff(
                where=f"message {index + 1} ({role})", diff=_diff(_message_text(one), _message_text(two)), index=index
            )
    return None


def _same(left: JSON, right: JSON) -> bool:
    try:
        return canonical_stored(left) == canonical_stored(right)
    except ValueError:  # no canonical form, such as NaN: text is the best there is
        return render(left) == render(right)


def _message_text(shaped: JSON) -> str:
    if shaped is None:
        return ""
    return "\n".join([f"{shaped['role']}:", *(_part_text(p) for p in shaped["parts"])])


def _part_text(part: Part) -> str:
    match part["type"]:
        case "text":
            return part["text"]
        case "reasoning":
            return f"(reasoning) {part['text']}"
        case "tool_call":
            return f"call {part['name']}:\n{_shown(part['arguments'])}"
        case "tool_result":
            content = part["content"]
            return f"result of {part['name']}:\n{content if isinstance(content, str) else _shown(content)}"
        case _:
            return _shown(part)


def _shown(value: JSON, indent: str = "") -> str:
    """JSON with a line for each member, so that a text diff points at the one that differs."""
    inner = indent + "  "
    if is_object(value) and value:
        lines = [f"{inner}{render(k).decode()}: {_shown(value[k], inner)}" for k in sorted(value)]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if is_list(value) and value:
        return "[\n" + ",\n".join(inner + _shown(v, inner) for v in value) + f"\n{indent}]"
    return render(value).decode()


def _diff(recorded: str, asked: str) -> str:
    lines: Any = difflib.unified_diff(
        recorded.splitlines(), asked.splitlines(), "recorded", "asked", lineterm="", n=2
    )  # fmt: skip
    return "\n".join(lines)
