"""Conversations of several turns of the Berkeley leaderboard: a case for each turn that can be asked as it stands.

The question files hold what the user says and the calls that are expected, but no results. So a later turn is a case
only where a chat beside them (``*.sessions.jsonl``) shows what came before it.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.core.protocol.parts import stored
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.core.suites.contents import Skipped
from playhead.core.suites.labels import AnyOfLabel, CallLabel, CallOption, ExpectedCall, NoToolLabel
from playhead.core.suites.suite import Call, Case, Message, Round, Source, ToolSchema, add_tool
from playhead.core.values import JSON

DOCS = "multi_turn_func_doc"
_FILES = {
    "GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
    "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}  # fmt: skip
"""Where the functions of a class of the benchmark are declared."""
_WITHOUT = ("miss_func", "miss_param")
_NO_DOCS = f"{DOCS} does not declare its functions"
_NO_RESULTS = "no *.sessions.jsonl shows the results of the turns before it"
_NO_EXPECTATION = "the turn has no expected call"
_NOT_LITERAL = "an expected call is not a call with literal arguments"

Lines = Callable[[Path], Iterator[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Conversations:
    """What lies beside the question files: tools by class, chats and initial states by the id of their entry."""

    tools: Mapping[str, Sequence[ToolSchema]]
    chats: Mapping[str, Sequence[Sequence[dict[str, Any]]]]
    states: Mapping[str, Any]

    @classmethod
    def beside(cls, folder: Path, lines: Lines, tool: Callable[[dict[str, Any]], ToolSchema]) -> "Conversations":
        docs = {name: folder / DOCS / f"{file}.json" for name, file in _FILES.items()}
        tools = {name: [tool(one) for one in lines(path)] for name, path in docs.items() if path.is_file()}
        chats = {
            str(line.get("id")): _turns(objects(line.get("messages")))
            for path in sorted(folder.glob("*.sessions.jsonl"))
            for line in lines(path)
        }
        states: dict[str, Any] = {}
        for path in sorted(folder.glob("BFCL_*multi_turn*.json")) if chats else ():
            states |= {str(line.get("id")): line.get("initial_config") for line in lines(path)}
        return cls(tools, chats, states)

    def chat(self, line: Mapping[str, Any]) -> tuple[Sequence[Sequence[dict[str, Any]]], bool]:
        """The chat of an entry by turns, and whether it is its own: the plain conversation from the same state goes the
        same way up to the turn that lacks something."""
        id = str(line.get("id"))
        if id in self.chats:
            return self.chats[id], True
        for part in _WITHOUT:
            plain = id.replace(part, "base")
            if plain != id and plain in self.chats and self.states.get(plain) == line.get("initial_config"):
                return self.chats[plain], False
        return (), False


def is_conversation(line: Mapping[str, Any]) -> bool:
    return is_list(line.get("question")) and is_list(line.get("involved_classes"))


def turn_cases(
    line: dict[str, Any], category: str, truth: Sequence[Any] | None, beside: Conversations,
    tools: dict[str, ToolSchema],
) -> list[Case | Skipped]:  # fmt: skip
    """The cases of an entry, and its turns that could be none.

    Args:
        truth: by turn, the texts of the expected calls.
    """
    id = str(line.get("id"))
    if truth is None:
        return [Skipped(what=id, why="no ground truth in possible_answer")]
    if any(name not in beside.tools for name in line["involved_classes"]):
        return [Skipped(what=id, why=_NO_DOCS)]
    lacks = any(part in category for part in _WITHOUT)
    chat, own = beside.chat(line)
    shown = chat if own else chat[: next((n for n, calls in enumerate(truth) if not calls), len(truth))]
    found: list[Case | Skipped] = []
    for n, calls in enumerate(truth[: len(line["question"])]):
        declared = _offered(line, beside.tools, n)
        history = _history(line["question"], shown, n)
        label = _label(calls, declared) if calls else NoToolLabel() if lacks else _NO_EXPECTATION
        if history is None or isinstance(label, str):
            found.append(Skipped(what=f"{id}/{n}", why=label if isinstance(label, str) and history else _NO_RESULTS))
            continue
        rounds, answer = _recorded(shown[n] if n < len(shown) and _said(shown[n]) == _said(line["question"][n]) else ())
        found.append(
            Case(
                id=f"{id}/{n}", intent=category, source=Source(external_id=id), history=history, label=label,
                tools=tuple(dict.fromkeys(add_tool(tools, tool) for tool in declared)), recorded=rounds, answer=answer,
            )
        )  # fmt: skip
    return found


def _turns(messages: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The messages of a chat by turn: each begins with what the user says."""
    found: list[list[dict[str, Any]]] = []
    for before, message in zip([{}, *messages], messages, strict=False):
        if (message.get("role") == "user" and before.get("role") != "user") or not found:
            found.append([])
        found[-1].append(message)
    return found


def _said(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [str(m.get("content")) for m in messages if m.get("role") == "user"]


def _offered(line: Mapping[str, Any], declared: Mapping[str, Sequence[ToolSchema]], turn: int) -> list[ToolSchema]:
    """The tools of a turn: without those that are never there, and those that come with a later turn."""
    gone = {str(name) for name in line.get("excluded_function") or ()}
    for since, names in obj(line.get("missed_function")).items():
        gone |= {str(name) for name in names} if int(since) > turn else set()
    return [tool for name in line["involved_classes"] for tool in declared[name] if tool.name not in gone]


def _history(
    question: Sequence[Any], chat: Sequence[Sequence[dict[str, Any]]], turn: int
) -> tuple[Message, ...] | None:
    """Everything up to what the user says at a turn; None where nothing shows the turns before it."""
    if not question[turn] or len(chat) < turn or any(_said(chat[n]) != _said(question[n]) for n in range(turn)):
        return None
    found = [message for n in range(turn) for message in _messages(chat[n])]
    return (*found, *(Message(role=m.get("role", "user"), content=str(m.get("content") or "")) for m in question[turn]))


def _messages(shown: Sequence[dict[str, Any]]) -> Iterator[Message]:
    for message in shown:
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            yield Message(role="tool", call_id=str(message.get("tool_call_id")), outcome=_outcome(content))
        elif role != "assistant":
            yield Message(role="system" if role == "system" else "user", content=str(content or ""))
        elif calls := _calls(message):
            yield Message(role="assistant", content=content or None, calls=calls)
        elif content:
            yield Message(role="assistant", content=content)


def _calls(message: Mapping[str, Any]) -> tuple[Call, ...]:
    return tuple(
        Call(id=str(c.get("id")), tool=str(obj(c.get("function")).get("name")),
             arguments=stored(json.loads(obj(c.get("function")).get("arguments") or "{}")))
        for c in objects(message.get("tool_calls"))
    )  # fmt: skip


def _outcome(content: Any) -> dict[str, Any]:
    try:
        return {"kind": "value", "value": stored(json.loads(content))}
    except (TypeError, ValueError):
        return {"kind": "value", "value": stored(content)}


def _recorded(shown: Sequence[dict[str, Any]]) -> tuple[tuple[Round, ...], str | None]:
    """The rounds of calls that a chat has at a turn, and the answer that ends it."""
    results = {str(m.get("tool_call_id")): _outcome(m.get("content")) for m in shown if m.get("role") == "tool"}
    rounds = [
        Round(calls=calls, outcomes={c.id: results[c.id] for c in calls if c.id in results})
        for message in shown
        if message.get("role") == "assistant" and (calls := _calls(message))
    ]
    last: Any = shown[-1] if shown else {}
    return tuple(rounds), (last.get("content") or None) if last.get("role") == "assistant" else None


def _label(texts: Sequence[Any], declared: Sequence[ToolSchema]) -> CallLabel | AnyOfLabel | str:
    """The label of a turn. Calls of a turn may build on each other, so a first answer may hold one, some or all of
    them, in their order. A text says why there is none."""
    names = {tool.name: list(obj(obj(tool.parameters).get("properties"))) for tool in declared}
    calls: list[ExpectedCall] = []
    for text in texts:
        made = _call(str(text), names)
        if made is None:
            return _NOT_LITERAL
        calls.append(made)
    if len(calls) == 1:
        return CallLabel(calls=tuple(calls), extra_arguments="forbid")
    options = [
        CallOption(calls=tuple(calls[:n]), order="sequence", extra_arguments="forbid")
        for n in range(1, len(calls) + 1)
    ]  # fmt: skip
    return AnyOfLabel(options=tuple(options))


def _call(text: str, names: Mapping[str, Sequence[str]]) -> ExpectedCall | None:
    """The call that a text of the form ``name(1, b='x')`` says; None where it is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            return None
        own = names.get(tree.func.id, ())
        placed = dict(zip(own, map(ast.literal_eval, tree.args), strict=False))
        if len(placed) < len(tree.args) or any(keyword.arg is None for keyword in tree.keywords):
            return None
        given = placed | {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
    except (SyntaxError, ValueError):
        return None
    return ExpectedCall(tool=tree.func.id, arguments={name: _expected(value) for name, value in given.items()})


def _expected(value: Any) -> JSON:
    """The matcher of a value: texts are compared as the benchmark compares them."""
    if isinstance(value, str):
        return {"$as": "text", "$value": value}
    if is_object(value):
        return {name: _expected(inner) for name, inner in value.items()}
    return [_expected(inner) for inner in value] if is_list(value) else stored(value)
