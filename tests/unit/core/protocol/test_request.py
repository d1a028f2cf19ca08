"""When two model requests are the same, and what is shown when they are not."""

from typing import Any

import pytest

from playhead.core.protocol import anthropic_messages, openai_chat, openai_responses
from playhead.core.protocol.request import Digests, comparable, digests, model_key, request_diff, request_key

TOOL: Any = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat(*messages: Any, **more: Any) -> Any:
    return openai_chat.read_request({"model": "m", "messages": list(messages), **more}).inputs


def asked(call_id: str, arguments: str = '{"city": "Oslo"}', name: str = "weather") -> Any:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(call_id: str, content: str = "rain") -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER: Any = {"role": "user", "content": "Weather?"}
SYSTEM: Any = {"role": "system", "content": "Be brief."}


def test_call_ids_do_not_matter_but_their_place_does() -> None:
    one = chat(USER, asked("a"), answered("a"), asked("b"), answered("b"))
    two = chat(USER, asked("x1"), answered("x1"), asked("x1"), answered("x1"))
    crossed = chat(USER, asked("a"), asked("b"), answered("b"), answered("a"))
    straight = chat(USER, asked("a"), asked("b"), answered("a"), answered("b"))
    assert request_key("m", one) == request_key("m", two)
    assert request_key("m", crossed) != request_key("m", straight)


def test_spelling_of_arguments_and_json_results_does_not_matter() -> None:
    one = chat(USER, asked("a", '{"city": "Oslo", "n": 1.0}'), answered("a", '{"t": 7}'))
    two = chat(USER, asked("a", '{"n":1,"city":"Oslo"}'), answered("a", '{"t":7}'))
    other = chat(USER, asked("a", '{"n":1,"city":"Oslo"}'), answered("a", '{"t":8}'))
    assert request_key("m", one) == request_key("m", two) != request_key("m", other)


def test_three_providers_that_ask_the_same_have_the_same_messages() -> None:
    one = chat(SYSTEM, USER, asked("a"), answered("a"))
    two = openai_responses.read_request(
        {
            "instructions": "Be brief.",
            "input": [
                USER,
                {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city":"Oslo"}'},
                {"type": "function_call_output", "call_id": "a", "output": "rain"},
            ],
        }
    ).inputs
    three = anthropic_messages.read_request(
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                USER,
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "rain"}]},
            ],
        }
    ).inputs
    assert comparable(one["messages"]) == comparable(two["messages"]) == comparable(three["messages"])
    assert request_key("m", one) == request_key("m", two) == request_key("m", three)


def test_the_shape_puts_system_text_first_and_leaves_out_what_says_nothing() -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}]},
        {"role": "system", "parts": [{"type": "text", "text": "late"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "z", "name": "f", "arguments": {}}],
            "finish_reason": "tool_calls",
        },
        {
            "role": "tool",
            "parts": [
                {"type": "tool_result", "id": "z", "name": None, "content": "1"},
                {"type": "tool_result", "id": "?", "name": "g", "content": "2"},
            ],
        },
        {"role": "assistant", "parts": [{"type": "text", "text": ""}]},
    ]
    assert comparable(messages) == [
        {"role": "system", "parts": [{"type": "text", "text": "late"}]},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "call": 1, "name": "f", "arguments": {}}]},
        {"role": "tool", "parts": [{"type": "tool_result", "call": 1, "name": "f", "content": "1"}]},
        {"role": "tool", "parts": [{"type": "tool_result", "call": None, "name": "g", "content": "2"}]},
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [SYSTEM, {"role": "user", "content": "Wind?"}]},
        {"messages": [{"role": "system", "content": "Be long."}, USER]},
        {"tools": [{"type": "function", "function": {"name": "weather", "description": "new", "parameters": TOOL}}]},
        {"tool_choice": "required"},
        {"temperature": 0.5},
        {"max_tokens": 10},
    ],
)
def test_whatever_is_asked_differently_has_another_key(change: Any) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "description": "old", "parameters": TOOL}}]
    base: dict[str, Any] = {"model": "m", "messages": [SYSTEM, USER], "tools": tools}
    one = openai_chat.read_request(base).inputs
    two = openai_chat.read_request({**base, **change}).inputs
    assert request_key("m", one) != request_key("m", two)


def test_another_model_has_another_key_and_streaming_has_not() -> None:
    assert request_key("m", chat(USER)) != request_key("n", chat(USER))
    streamed = chat(USER, stream=True, stream_options={"include_usage": True})
    assert request_key("m", chat(USER)) == request_key("m", streamed)
    assert request_key("m", chat(USER)) == request_key("m", chat(USER, tool_choice="auto", tools=[]))


def test_parts_that_were_not_captured_are_not_compared() -> None:
    one, two = chat(USER, temperature=0.1), chat(USER, temperature=0.2)
    assert request_key("m", one, missing=["params"]) == request_key("m", two, missing=["params"])
    assert request_key("m", one, missing=["params"]) != request_key("m", one)
    assert request_key("m", chat(USER), missing=["messages"]) == request_key("m", chat(SYSTEM), missing=["messages"])


def test_a_longer_request_costs_only_its_new_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    from playhead.core.protocol import request

    digest = request.message_digest
    monkeypatch.setattr(request, "message_digest", lambda shaped: read.append(shaped) or digest(shaped))
    messages = chat(USER, *(m for n in range(50) for m in (asked(f"c{n}"), answered(f"c{n}"))))["messages"]
    kept = Digests()
    kept.of(messages[:99])
    read.clear()
    assert kept.of(messages) == digests(messages)
    assert len(read) == 2 + 101  # two new ones, and all of the comparison run

    read.clear()
    kept.of(messages)
    assert read == []


def test_a_conversation_that_turns_off_is_read_from_there() -> None:
    messages = chat(USER, asked("a"), answered("a"), asked("b"), answered("b"))["messages"]
    other = [*messages[:3], chat(asked("c", name="wind"))["messages"][0]]
    kept = Digests()
    kept.of(messages)
    assert kept.of(other) == digests(other)
    assert kept.of(messages) == digests(messages)


def test_a_key_is_made_of_digests() -> None:
    inputs = chat(SYSTEM, USER)
    key = model_key("m", digests(inputs["messages"]), [], None, {})
    assert key == request_key("m", inputs)
    assert key.startswith("1:")


def test_the_diff_shows_the_first_message_that_differs() -> None:
    one = chat(SYSTEM, {"role": "user", "content": "line one\nline two"}, temperature=0.1)
    two = chat(SYSTEM, {"role": "user", "content": "line one\nline 2"}, temperature=0.2)
    found = request_diff(one, two)
    assert found is not None
    assert (found.where, found.index) == ("message 2 (user)", 1)
    assert "-line two" in found.diff
    assert "+line 2" in found.diff
    assert "temperature" not in found.diff


def test_the_diff_shows_what_is_added_missing_or_elsewhere() -> None:
    longer = request_diff(chat(USER), chat(USER, asked("a")))
    shorter = request_diff(chat(USER, asked("a")), chat(USER))
    params = request_diff(chat(USER, temperature=0.1), chat(USER, temperature=0.2))
    model = request_diff(chat(USER), chat(USER), models=("m", "n"))
    assert longer is not None
    assert "+call weather:" in longer.diff
    assert shorter is not None
    assert "-call weather:" in shorter.diff
    assert params is not None
    assert params.where == "params"
    assert '-  "temperature": 0.1' in params.diff
    assert model is not None
    assert model.where == "model"
    assert request_diff(chat(USER), chat(USER), models=("m", "m")) is None


def test_arguments_that_differ_are_shown_line_by_line() -> None:
    found = request_diff(
        chat(USER, asked("a", '{"city": "Oslo", "unit": "c"}')), chat(USER, asked("b", '{"city": "Oslo", "unit": "f"}'))
    )
    assert found is not None
    assert '-  "unit": "c"' in found.diff
    assert '"city": "Oslo"' in found.diff.replace("-", "")


def test_uncaptured_parts_are_not_shown_as_different() -> None:
    assert request_diff(chat(USER, temperature=0.1), chat(USER), missing=["params"]) is None
