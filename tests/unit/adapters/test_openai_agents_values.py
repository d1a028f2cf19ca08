"""Values between OpenAI Agents and recordings, where the recording is not its own or is damaged."""

from typing import Any

import pytest
from agents import ModelResponse, ModelSettings, ToolOutputText, Usage, function_tool
from agents.testing import assistant_message, function_call

from playhead.adapters.openai_agents import codec, messages, overrides
from playhead.core.values import Native, Outcome, OutcomeKind


def tool() -> Any:
    def look() -> str:
        return ""

    return function_tool(look)


def value(given: Any, native: Native | None = None) -> Outcome:
    return Outcome(kind=OutcomeKind.VALUE, value=given, native=native)


@pytest.mark.parametrize("native", [None, Native(codec="other", version=1, data={"structured": True}),
                                    Native(codec="openai_agents", version=99, data={"structured": True})])  # fmt: skip
def test_an_envelope_of_another_codec_or_version_counts_as_none(native: Native | None) -> None:
    assert codec.decode_result(value({"type": "text", "text": "x"}, native), tool()) == {"type": "text", "text": "x"}


def test_a_served_value_is_a_copy() -> None:
    outcome = value({"a": [1]})
    codec.decode_result(outcome, tool())["a"].append(2)

    assert codec.decode_result(outcome, tool()) == {"a": [1]}


def test_a_response_of_another_adapter_becomes_items_and_a_stream() -> None:
    said = {
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "let me look"},
            {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"x": 1}},
        ],
    }
    response = codec.decode_response(value(said), "gpt")
    events = list(codec.decode_events(value(said), response, "gpt"))

    assert [item.type for item in response.output] == ["message", "function_call"]
    assert response.output[1].arguments == '{"x":1}'  # type: ignore[union-attr]
    assert events[-1].type == "response.completed"
    assert [item.type for item in events[-1].response.output] == ["message", "function_call"]


def test_a_response_comes_back_whole() -> None:
    usage = Usage(requests=1, input_tokens=7, output_tokens=3, total_tokens=10)
    given = ModelResponse([assistant_message("hi"), function_call("f", {}, call_id="c")], usage, "resp", "req")
    output = messages.plain(given.output)
    found = codec.decode_response(value(messages.said(output), codec.encode_response(given, output)), None)

    assert found.output == given.output
    assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 3)
    assert (found.response_id, found.request_id) == ("resp", "req")


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("hi", {"prompt": "hi"}),
        ([{"role": "user", "content": "hi"}], {"prompt": "hi"}),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
            {
                "prompt": "c",
                "message_history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            },
        ),
        (
            [{"type": "function_call_output", "call_id": "c", "output": "x"}],
            {
                "prompt": None,
                "message_history": [{"type": "function_call_output", "call_id": "c", "output": "x"}],
            },
        ),
    ],
)
def test_inputs_show_the_prompt_and_come_back(given: Any, inputs: dict[str, Any]) -> None:
    assert codec.encode_input(given) == inputs
    again = codec.decode_input(inputs)
    assert again == given or [{"role": "user", "content": again}] == given


def test_parameters_have_their_common_names_and_generated_keys_are_none() -> None:
    extra = {"seed": 1, "prompt_cache_key": "agents-sdk:run:1"}
    settings = ModelSettings(temperature=0.5, max_tokens=9, extra_headers={"x": "y"}, extra_args=extra)

    assert messages.params(settings) == {"temperature": 0.5, "max_tokens": 9, "seed": 1}


def test_parameters_of_an_override_go_where_the_framework_has_a_place_for_them() -> None:
    settings = ModelSettings(temperature=0.5, top_p=0.1, extra_args={"seed": 1, "n": 2})
    changed = overrides.with_params(
        {"max_output_tokens": 7, "top_p": None, "seed": None, "logit_bias": {"1": 2}}, settings
    )

    assert changed == ModelSettings(temperature=0.5, max_tokens=7, extra_args={"n": 2, "logit_bias": {"1": 2}})
    assert settings == ModelSettings(temperature=0.5, top_p=0.1, extra_args={"seed": 1, "n": 2})


def test_system_items_do_not_stand_beside_an_override() -> None:
    given = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}]

    assert overrides.with_system_prompt("be thorough", given) == [{"role": "user", "content": "hi"}]


def test_a_structured_output_keeps_its_kind() -> None:
    encoded = codec.encode_result([ToolOutputText(text="a")])

    assert codec.decode_result(value(encoded.value, encoded.native), tool()) == [ToolOutputText(text="a")]
