"""Messages are recognised by their keys, in every shape that recordings hold them in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.canonical import parse_emitted
from playhead.core.protocol.messages import detect, has_placeholders, offered_tools
from playhead.core.protocol.parts import as_arguments, call

CALL = {"city": "Oslo"}
SHAPES: dict[str, Any] = {
    "genai": [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "weather", "arguments": CALL}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "rain"}]},
    ],
    "genai with results under user": [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "a", "name": "weather", "arguments": '{"city": "Oslo"}'}],
        },
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "a", "name": "weather", "result": "rain"}]},
    ],
    "own normal form": [
        {"role": "user", "parts": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "weather", "arguments": CALL}]},
        {"role": "tool", "parts": [{"type": "tool_result", "id": "a", "name": "weather", "content": "rain"}]},
    ],
    "openai chat": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
    ],
    "openai responses": [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city":"Oslo"}', "id": "fc_1"},
        {"type": "function_call_output", "call_id": "a", "output": "rain"},
    ],
    "anthropic": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": CALL}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "rain"}]},
            ],
        },
    ],
    "langchain constructors": [
        {"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "Weather?"}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "AIMessage"],
            "kwargs": {
                "content": "",
                "tool_calls": [{"name": "weather", "args": CALL, "id": "a", "type": "tool_call"}],
            },
        },
        {
            "lc": 1,
            "type": "constructor",
            "id": ["x", "ToolMessage"],
            "kwargs": {"content": "rain", "tool_call_id": "a", "status": "success"},
        },
    ],
    "langchain data": [
        {"type": "human", "data": {"content": "Weather?"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "weather", "args": CALL, "id": "a"}]}},
        {"type": "tool", "data": {"content": "rain", "tool_call_id": "a"}},
    ],
    "langchain flat": [
        {"type": "human", "content": "Weather?"},
        {"type": "AIMessageChunk", "content": "", "tool_calls": [{"name": "weather", "args": CALL, "id": "a"}]},
        {"type": "tool", "content": "rain", "tool_call_id": "a"},
    ],
    "ai sdk": [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "weather", "input": CALL}],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "a",
                    "toolName": "weather",
                    "output": {"type": "text", "value": "rain"},
                }
            ],
        },
    ],
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"function_call": {"name": "weather", "args": CALL}}]},
            {"role": "user", "parts": [{"function_response": {"name": "weather", "response": "rain"}}]},
        ]
    },
    "pydantic ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Weather?"}]},
        {
            "kind": "response",
            "parts": [
                {"part_kind": "tool-call", "tool_name": "weather", "args": '{"city":"Oslo"}', "tool_call_id": "a"}
            ],
        },
        {
            "kind": "request",
            "parts": [
                {"part_kind": "tool-return", "tool_name": "weather", "content": "rain", "tool_call_id": "a"},
            ],
        },
    ],
    "microsoft": [
        {"role": "user", "contents": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "contents": [{"type": "function_call", "call_id": "a", "name": "weather", "arguments": '{"city":"Oslo"}'}],
        },
        {"role": "tool", "contents": [{"type": "function_result", "call_id": "a", "result": "rain"}]},
    ],
    "text that lists calls": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "finish_reason": "tool_calls",
            "content": '[{"function": {"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}, "id": "a", '
            '"type": "function"}]',
        },
        {"role": "tool", "content": "rain"},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_conversation(shape: str) -> None:
    found = detect(SHAPES[shape])
    assert found is not None
    user, asked, answered = found
    (call,), (result,) = asked["parts"], answered["parts"]
    assert user == {"role": "user", "parts": [{"type": "text", "text": "Weather?"}]}
    assert (asked["role"], answered["role"]) == ("assistant", "tool")
    assert (call["type"], call["name"], call["arguments"]) == ("tool_call", "weather", CALL)
    assert (result["type"], result["name"], result["content"]) == ("tool_result", "weather", "rain")
    assert result["id"] == call["id"]
    assert call["id"] == ("call:0" if shape == "gemini" else "a")


@pytest.mark.parametrize("shape", SHAPES)
def test_json_in_a_string_once_or_twice_is_the_same(shape: str) -> None:
    once = json.dumps(SHAPES[shape])
    assert detect(once) == detect(json.dumps(once)) == detect(SHAPES[shape])


ANSWERS: dict[str, Any] = {
    "choices": {"choices": [{"message": {"role": "assistant", "content": "Rain."}, "finish_reason": "stop"}]},
    "a list of choices": [{"message": {"role": "assistant", "content": "Rain."}, "finish_reason": "STOP"}],
    "a Responses body": {
        "object": "response",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
        ],
    },
    "an Anthropic body": {
        "role": "assistant",
        "content": [{"type": "text", "text": "Rain."}],
        "stop_reason": "end_turn",
    },
    "candidates": {"candidates": [{"content": {"parts": [{"text": "Rain."}]}, "finishReason": "STOP"}]},
    "one candidate": {"content": {"role": "model", "parts": [{"text": "Rain."}]}, "finish_reason": "STOP"},
    "generations": {"generations": [[{"text": "Rain.", "message": {"type": "ai", "content": "Rain."}}]]},
    "nested lists": {"messages": [[{"role": "assistant", "content": "Rain."}]]},
    "pairs": [["assistant", "Rain."]],
}


@pytest.mark.parametrize("shape", ANSWERS)
def test_answers_are_found_in_what_holds_them(shape: str) -> None:
    found = detect(ANSWERS[shape])
    assert found is not None
    (said,) = found
    assert said["role"] == "assistant"
    assert said["parts"] == [{"type": "text", "text": "Rain."}]
    assert said.get("finish_reason") in (None, "stop")


@pytest.mark.parametrize(
    "value",
    [
        "system: be brief\nuser: hello",
        "hello",
        "[not json",
        {"order_id": "4821", "note": "x"},
        {"city": "Oslo"},
        [1, 2],
        [],
        {},
        None,
        7,
        {"content": "role"},
        {"output": {"status": "shipped"}},
    ],
)
def test_what_is_no_message_is_not_taken_for_one(value: Any) -> None:
    assert detect(value) is None


def test_bare_calls_of_the_ai_sdk_are_the_assistants() -> None:
    found = detect('[{"toolCallId": "a", "toolName": "weather", "input": "{\\"city\\": \\"Oslo\\"}"}]')
    assert found == [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "weather", "arguments": CALL}]}
    ]


def test_a_tool_definition_under_role_tool_is_no_result_but_an_offered_tool() -> None:
    definition = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"x": 1}}}
    listed = [{"role": "user", "content": "Weather?"}, {"role": "tool", "content": definition}]
    assert [m["role"] for m in detect(listed) or ()] == ["user"]
    assert offered_tools(listed) == [{"name": "weather", "description": "d", "parameters": {"x": 1}}]


def test_unparsable_arguments_are_kept_as_their_text() -> None:
    found = detect([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x"'}}]}])
    assert found is not None
    assert found[0]["parts"][0]["arguments"] == {"$invalid": '{"x"'}


@pytest.mark.parametrize("text", ['{"x": ', "[" * 5000 + "]" * 5000, "[1, 2]", '{"$deep": "x"}', '{"$invalid": 1}'])
def test_arguments_are_written_as_the_model_wrote_them(text: str) -> None:
    part = call("look", text, "c1")
    assert parse_emitted(as_arguments(part)) == part["arguments"]


def test_call_ids_that_are_lists_find_their_result() -> None:
    found = detect(
        [
            {"role": "assistant", "tool_calls": [{"id": ["r", "c"], "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": ["r", "c"], "content": "x"},
        ]
    )
    assert found is not None
    assert found[1]["parts"][0]["name"] == "f"


def test_an_id_used_again_belongs_to_the_latest_request() -> None:
    def asked(name: str) -> dict[str, Any]:
        return {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": name, "arguments": "{}"}}]}

    result = {"role": "tool", "tool_call_id": "x", "content": "r"}
    found = detect([asked("one"), result, asked("two"), result])
    assert found is not None
    assert [m["parts"][0]["name"] for m in found if m["role"] == "tool"] == ["one", "two"]


def test_an_id_that_repeats_in_one_response_is_told_apart_by_position() -> None:
    calls = [{"id": "x", "function": {"name": n, "arguments": "{}"}} for n in ("one", "two")]
    results = [{"role": "tool", "tool_call_id": "x", "content": c} for c in ("1", "2")]
    found = detect([{"role": "assistant", "tool_calls": calls}, *results])
    assert found is not None
    assert [p["id"] for p in found[0]["parts"]] == ["x", "call:1"]
    assert [(m["parts"][0]["id"], m["parts"][0]["name"]) for m in found[1:]] == [("x", "one"), ("call:1", "two")]


def test_failed_results_are_marked() -> None:
    shapes: list[Any] = [
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}]}],
        [{"type": "tool", "content": "no", "tool_call_id": "a", "status": "error"}],
        [
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "a",
                        "toolName": "f",
                        "output": {"type": "error-text", "value": "no"},
                    }
                ],
            }
        ],
        [
            {
                "kind": "request",
                "parts": [{"part_kind": "retry-prompt", "tool_name": "f", "tool_call_id": "a", "content": "no"}],
            }
        ],
    ]
    for shape in shapes:
        found = detect(shape)
        assert found is not None
        assert found[0]["parts"][0]["is_error"] is True
        assert found[0]["parts"][0]["content"] == "no"


def test_placeholders_are_not_content() -> None:
    standing_in = detect([{"role": "assistant", "content": "[tool: lookup_order][tool: get_weather]"}])
    real = detect([{"role": "assistant", "content": "[tool: x] is my favourite"}])
    assert standing_in is not None
    assert real is not None
    assert has_placeholders(standing_in)
    assert not has_placeholders(real)


def test_data_that_looks_like_a_tag_is_escaped() -> None:
    found = detect([{"role": "tool", "tool_call_id": "a", "content": {"$datetime": "x"}}])
    assert found is not None
    assert found[0]["parts"][0]["content"] == {"$$datetime": "x"}


@pytest.mark.parametrize(
    "file",
    [
        "openai_chat/transcript.json",
        "openai_responses/transcript.json",
        "anthropic_messages/transcript.json",
        "logfire/pydantic_ai_vdefault/pydantic_ai_messages.json",
    ],
)
def test_recorded_transcripts_tell_the_same_three_calls(shared_data: Path, file: str) -> None:
    found = detect((shared_data / "exports" / file).read_text())
    assert found is not None
    calls = [p for m in found for p in m["parts"] if p["type"] == "tool_call"]
    results = [p for m in found for p in m["parts"] if p["type"] == "tool_result"]
    assert [c["name"] for c in calls] == ["lookup_order", "get_weather", "refund_payment"]
    assert calls[0]["arguments"] == {"order_id": "4821", "note": "日本語 naïve café 🚀"}
    assert [r["name"] for r in results] == [c["name"] for c in calls]
    assert [r["id"] for r in results] == [c["id"] for c in calls]


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": []},
        [{"type": {}, "role": "user"}],
        {"role": "user", "content": [{"type": ["text"]}]},
        {"object": "response", "output": [{"type": {}}]},
        {"role": "assistant", "content": None, "tool_calls": 1},
        {"role": "assistant", "content": None, "tool_calls": [{"function": "x"}]},
        {"type": "ai", "data": {"content": "", "tool_calls": True}},
        {"lc": 1, "id": 7},
        {"role": "tool", "content": {"function": 1}},
        {"object": "response", "output": [{"role": "assistant", "content": 1.5}]},
        {"kind": "response", "parts": [{"part_kind": "tool-call"}]},
    ],
    ids=repr,
)
def test_foreign_members_of_another_kind_are_no_error(foreign: Any) -> None:
    for message in detect(foreign) or []:
        assert isinstance(message["parts"], list)


@pytest.mark.parametrize("key", [None, "content", "messages"])
def test_what_nests_too_deeply_has_no_known_shape(key: str | None) -> None:
    value: Any = {"role": "user", "content": "x"}
    for _ in range(5000):
        value = [value] if key is None else {key: value}
    assert detect(value) is None
    assert detect([{"role": "tool", "tool_call_id": "a", "content": value}]) is None


_JUNK = st.sampled_from([1, 1.5, None, True, "", "x", [], {}, [1], {"a": 1}, [[]], [{}], {"type": []}, {"name": {}}])


@given(data=st.data(), shape=st.sampled_from(sorted(SHAPES)))
def test_any_member_may_be_of_any_kind(data: st.DataObject, shape: str) -> None:
    value = json.loads(json.dumps(SHAPES[shape]))
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(_places(value))
        box, name = data.draw(st.sampled_from(places))
        box[name] = json.loads(json.dumps(data.draw(_JUNK)))
    found = detect(value)
    assert found is None or all(isinstance(message["parts"], list) for message in found)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for name, held in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, name
        yield from _places(held)
