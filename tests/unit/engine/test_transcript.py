"""Repeated beginnings of requests are shared; changes of earlier messages are noticed at any depth."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from playhead.engine.transcript import Conversations, Transcript


@dataclass
class Part:
    content: Any


@dataclass
class Message:
    parts: list[Part]
    extra: dict[str, Any] = field(default_factory=dict)


def normal(message: Message) -> list[Any]:
    parts = [{"type": "text", "text": str(part.content)} for part in message.parts]
    return [{"role": "user", "parts": parts}]


def plain(*texts: Any) -> list[Any]:
    return [{"role": "user", "parts": [{"type": "text", "text": t}]} for t in texts]


def test_a_request_that_grows_shares_the_cells_of_its_beginning():
    transcript, messages = Transcript(), plain("a", "b")
    first = transcript.read(messages, None)
    messages += plain("c")
    second = transcript.read(messages, None)
    assert second[:2] == first
    assert second[2].plain == plain("c")


def test_equal_messages_that_were_made_again_are_shared_too():
    transcript = Transcript()
    first = transcript.read(plain("a", "b"), None)
    assert transcript.read(plain("a", "b", "c"), None)[:2] == first


@pytest.mark.parametrize("depth", ["part", "text", "nested"])
def test_a_changed_earlier_message_is_read_again(depth: str):
    transcript = Transcript()
    messages = [*plain("a"), {"role": "tool", "parts": [{"type": "tool_result", "content": {"rows": [{"n": 1}]}}]}]
    messages += plain("z")
    first = transcript.read(messages, None)
    if depth == "part":
        messages[1]["parts"].append({"type": "text", "text": "more"})
    elif depth == "text":
        messages[1]["parts"][0]["type"] = "other"
    else:
        messages[1]["parts"][0]["content"]["rows"][0]["n"] = 2
    second = transcript.read(messages, None)
    assert second[0] is first[0]
    assert second[1] is not first[1]
    assert second[1].plain == [messages[1]]
    assert first[1].plain != [messages[1]]
    assert second[2].plain == plain("z")


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0.0, False), (2.0, 2), ((1,), (True,))])
@pytest.mark.parametrize("made", ["in place", "again"])
@pytest.mark.parametrize("box", ["dict", "list", "object"])
def test_an_equal_value_of_another_type_is_a_change(before: Any, after: Any, made: str, box: str):
    def message(value: Any) -> Any:
        content = {"n": value} if box == "dict" else [0.5, value] if box == "list" else Part(value)
        return {"role": "tool", "parts": [{"type": "tool_result", "content": content}]}

    def to_normal(message: Any) -> list[Any]:
        return [{"role": "tool", "parts": [{"type": "text", "text": repr(message)}]}]

    transcript = Transcript()
    messages = [*plain("a"), message(before), *plain("z")]
    first = transcript.read(messages, to_normal)
    assert transcript.read(messages, to_normal) == first
    assert transcript.read([messages[0], message(before), messages[2]], to_normal) == first
    if made == "again":
        messages[1] = message(after)
    elif box == "object":
        messages[1]["parts"][0]["content"].content = after
    else:
        messages[1]["parts"][0]["content"].update(n=after) if box == "dict" else messages[1]["parts"][0][
            "content"
        ].__setitem__(1, after)
    second = transcript.read(messages, to_normal)
    assert second[0] is first[0]
    assert second[1].plain == to_normal(messages[1])
    assert second[2].plain == first[2].plain
    assert transcript.read(messages, to_normal) == second


def test_an_equal_number_that_was_made_again_is_no_change():
    transcript = Transcript()
    messages = [{"role": "tool", "n": 10**6, "f": 0.1}]
    (first,) = transcript.read(messages, lambda m: [m])
    messages[0].update(n=int("1000000"), f=float("0.1"))
    assert transcript.read(messages, lambda m: [m]) == (first,)


def test_objects_are_read_once_and_their_changes_are_noticed():
    transcript = Transcript()
    messages = [Message([Part("a")]), Message([Part({"k": [1]})])]
    first = transcript.read(messages, normal)
    assert transcript.read(messages, normal) == first
    messages[1].parts[0].content["k"].append(2)
    second = transcript.read(messages, normal)
    assert second[0] is first[0]
    assert second[1].plain == [{"role": "user", "parts": [{"type": "text", "text": "{'k': [1, 2]}"}]}]


def test_a_shorter_request_forgets_what_is_gone():
    transcript = Transcript()
    transcript.read(plain("a", "b", "c"), None)
    assert [c.plain for c in transcript.read(plain("a", "x"), None)] == [plain("a"), plain("x")]


def test_messages_whose_comparison_fails_are_read_every_time():
    class Odd:
        def __init__(self) -> None:
            self.values = [1]

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no comparison")

        __hash__ = None  # type: ignore[assignment]

    transcript = Transcript()
    for _ in range(2):
        cells = transcript.read([Odd()], lambda m: [{"role": "user", "parts": m.values}])
        assert cells[0].plain == [{"role": "user", "parts": [1]}]


def test_conversations_that_take_turns_keep_their_own_transcripts():
    conversations = Conversations()
    one, two = plain("system", "one"), plain("system", "two")
    first = conversations.of(one)
    cells = first.read(one, None)
    second = conversations.of(two)
    second.read(two, None)
    assert second is not first
    assert conversations.of(one) is first
    assert first.read([*one, *plain("more")], None)[:2] == cells


def test_the_key_follows_the_request_and_not_the_way_it_grew():
    grown = Conversations().of(plain("a"))
    for texts in (("a",), ("a", "b"), ("a", "b", "c")):
        cells = grown.read(plain(*texts), None)
        last = grown.key("m", cells, (), {"tool_choice": None, "params": {}})
    fresh = Conversations().of(plain("a"))
    at_once = fresh.key("m", fresh.read(plain("a", "b", "c"), None), (), {"tool_choice": None, "params": {}})
    assert last == at_once
    assert last.key is not None
    other = fresh.key("n", fresh.read(plain("a", "b", "c"), None), (), {"tool_choice": None, "params": {}})
    assert other.key != last.key


def test_a_request_with_something_that_has_no_canonical_form_has_no_key():
    conversation = Conversations().of([])
    messages = [{"role": "user", "parts": [{"type": "other", "value": {"$float": "NaN"}}]}]
    key = conversation.key("m", conversation.read(messages, None), (), {"tool_choice": None, "params": {}})
    assert key.key is None
    assert key.no_key is not None
