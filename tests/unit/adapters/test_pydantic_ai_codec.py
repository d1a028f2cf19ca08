"""Values between PydanticAI and stored form."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import BinaryContent, ImageUrl, ToolReturn
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolResults, ToolDenied
from pydantic_ai.usage import RequestUsage

from playhead.adapters.pydantic_ai import codec, messages
from playhead.core.canonical import canonical_stored, parse_emitted
from playhead.core.protocol.parts import call
from playhead.core.values import Native, Outcome, OutcomeKind, Usage


class Item(BaseModel):
    name: str
    at: datetime


@dataclass
class Point:
    x: int


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def there_and_back(result: Any, annotation: Any = None) -> Any:
    encoded = codec.encode_result(result)
    canonical_stored(encoded.value)  # is plain stored form
    return codec.decode_result(_outcome(encoded), annotation)


def _outcome(encoded: codec.Result) -> Outcome:
    return Outcome(kind=OutcomeKind.VALUE, value=encoded.value, native=encoded.native)


PLAIN = [{"a": [1, None, {"b": "x"}]}, NOON, b"\x00", (1, 2), {1: "a"}, {"$datetime": "no date"}, 2**70, {"kind": "x"}]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_need_no_envelope(value: Any) -> None:
    encoded = codec.encode_result(value)

    assert encoded.native is None
    assert there_and_back(value) == (list(value) if isinstance(value, tuple) else value)


def test_the_value_is_what_the_model_is_shown() -> None:
    encoded = codec.encode_result(ToolReturn(return_value=[Item(name="tea", at=NOON)], content="beside"))

    assert encoded.value == [{"name": "tea", "at": "2026-01-02T12:00:00Z"}]


def test_records_are_made_again_from_the_annotation_only() -> None:
    items = [Item(name="tea", at=NOON)]

    assert there_and_back(items, list[Item]) == items
    assert there_and_back(items) == [{"name": "tea", "at": "2026-01-02T12:00:00Z"}]
    assert there_and_back(Point(1), Point) == Point(1)


def test_an_annotation_that_does_not_fit_leaves_the_json_value() -> None:
    assert there_and_back(Point(1), Item) == {"x": 1}
    assert there_and_back({"p": Point(1)}, "no type") == {"p": {"x": 1}}


def test_files_come_back_with_their_bytes() -> None:
    made = there_and_back(
        {"shot": BinaryContent(b"\x89PNG", media_type="image/png"), "at": ImageUrl("https://x/a.png")}
    )

    assert (made["shot"].data, made["shot"].media_type) == (b"\x89PNG", "image/png")
    assert made["at"].url == "https://x/a.png"


def test_a_refusal_comes_back_as_one() -> None:
    assert there_and_back(ToolDenied("not today")) == ToolDenied("not today")


@pytest.mark.parametrize("native", [Native(codec="other", version=1, data={"denied": True}),
                                    Native(codec="pydantic_ai", version=99, data={"denied": True}),
                                    Native(codec="pydantic_ai", version=1, data="damaged")])  # fmt: skip
def test_an_envelope_of_somebody_else_counts_as_none(native: Native) -> None:
    assert codec.decode_result(Outcome(kind=OutcomeKind.VALUE, value="shown", native=native)) == "shown"


def test_a_decoded_value_is_fresh_each_time() -> None:
    outcome = _outcome(codec.encode_result(ToolReturn(return_value={"n": [1]}, metadata={"m": [1]})))
    first = codec.decode_result(outcome)
    first.return_value["n"].append(2)
    first.metadata["m"].append(2)

    assert codec.decode_result(outcome) == ToolReturn(return_value={"n": [1]}, metadata={"m": [1]})


RESPONSE = ModelResponse(
    parts=[
        ThinkingPart("hm", signature="s"),
        TextPart("look:"),
        ToolCallPart("look", '{"x": null}', tool_call_id="c1"),
        ToolCallPart("bad", '{"x": ', tool_call_id="c2"),
    ],
    model_name="m-1",
    provider_name="acme",
    usage=RequestUsage(input_tokens=7, output_tokens=3, details={"reasoning_tokens": 1}),
    provider_details={"logprobs": [None, 0.5]},
    finish_reason="tool_call",
    run_id="run",
)


def test_a_response_comes_back_whole_but_for_its_run() -> None:
    native = codec.encode_response(RESPONSE)
    made = codec.decode_response(Outcome(kind=OutcomeKind.VALUE, value=None, native=native), "m")

    assert made.run_id is None
    made.run_id = "run"
    assert made == RESPONSE


def test_a_response_with_files_and_provider_tools_comes_back() -> None:
    response = ModelResponse(
        parts=[
            NativeToolCallPart(tool_name="web_search", args={"q": "x"}, tool_call_id="n"),
            NativeToolReturnPart(tool_name="web_search", content=[{"url": "u"}], tool_call_id="n", timestamp=NOON),
            TextPart("found"),
        ],
        timestamp=NOON,
    )
    made = codec.decode_response(Outcome(kind=OutcomeKind.VALUE, native=codec.encode_response(response)), "m")

    assert [part.part_kind for part in made.parts] == ["builtin-tool-call", "builtin-tool-return", "text"]
    assert made.parts[1] == response.parts[1]


@pytest.mark.parametrize(
    "text", ['{"x": ', "[" * 5000 + "]" * 5000, "[1, 2]", '"x"', '{"$deep": "x"}', '{"$date": "y", "z": 1}', "{}"]
)
def test_arguments_of_an_import_are_asked_for_again_as_the_model_wrote_them(text: str) -> None:
    message = {"role": "assistant", "parts": [call("look", text, "c1")]}
    made = codec.decode_response(Outcome(kind=OutcomeKind.VALUE, value=message), "m")
    assert messages.response_message(made)["parts"][0]["arguments"] == parse_emitted(text)
    assert codec.encode_response(made)  # without a warning about its members


def test_a_response_of_an_import_is_made_from_its_message() -> None:
    message = messages.response_message(RESPONSE)
    made = codec.decode_response(Outcome(kind=OutcomeKind.VALUE, value=message), "m")

    kinds = [(p.part_kind, getattr(p, "args", None), getattr(p, "tool_call_id", None)) for p in made.parts]
    assert kinds == [
        ("thinking", None, None),
        ("text", None, None),
        ("tool-call", {"x": None}, "c1"),
        ("tool-call", '{"x": ', "c2"),
    ]
    assert (made.model_name, made.finish_reason) == ("m", "tool_call")


def test_a_prompt_of_texts_and_files_comes_back() -> None:
    prompt = ["look at", ImageUrl("https://x/a.png"), BinaryContent(b"1", media_type="image/png")]
    made = codec.decode_prompt(codec.encode_prompt(prompt))

    assert made[0] == "look at"
    assert made[1].url == "https://x/a.png"
    assert made[2].data == b"1"
    assert codec.decode_prompt(codec.encode_prompt("text")) == "text"
    assert codec.encode_prompt(None) is None


def test_a_history_and_deferred_results_come_back() -> None:
    history = [ModelRequest(parts=[UserPromptPart("hi", timestamp=NOON)]), RESPONSE]
    deferred = DeferredToolResults(approvals={"a": True, "b": ToolDenied("no")}, calls={"c": {"n": 1}})

    assert codec.decode_history(codec.encode_history(history)) == history
    made = codec.decode_deferred(codec.encode_deferred(deferred))
    assert (made.approvals, made.calls) == (deferred.approvals, deferred.calls)


def test_dependencies_come_back_as_their_declared_type() -> None:
    assert codec.decode_deps({"x": 3}, Point) == Point(3)
    assert codec.decode_deps({"x": 3}, type(None)) == {"x": 3}
    assert codec.decode_deps({"y": 3}, Point) == {"y": 3}


# --- messages -------------------------------------------------------------------------------------------------------


def test_one_tool_result_is_one_message() -> None:
    request = ModelRequest(
        parts=[
            ToolReturnPart("look", {"n": 1}, "c1"),
            ToolReturnPart("look", "gone", "c2", outcome="failed"),
            UserPromptPart(["and ", ImageUrl("https://x/a.png")]),
        ]
    )

    assert messages.normal(request) == [
        {"role": "tool", "parts": [{"type": "tool_result", "id": "c1", "name": "look", "content": {"n": 1}}]},
        {
            "role": "tool",
            "parts": [{"type": "tool_result", "id": "c2", "name": "look", "content": "gone", "is_error": True}],
        },
        {
            "role": "user",
            "parts": [
                {"type": "text", "text": "and "},
                {"type": "media", "media_type": "image/png", "url": "https://x/a.png"},
            ],
        },
    ]


def test_a_response_is_an_assistant_message() -> None:
    message = messages.response_message(RESPONSE)

    assert message["finish_reason"] == "tool_calls"
    assert [part["type"] for part in message["parts"]] == ["reasoning", "text", "tool_call", "tool_call"]
    assert message["parts"][3]["arguments"] == {"$invalid": '{"x": '}


def test_usage_is_in_exclusive_buckets() -> None:
    raw = RequestUsage(input_tokens=100, cache_read_tokens=20, cache_write_tokens=10, output_tokens=10)
    raw.details = {"reasoning_tokens": 4}
    found = messages.usage(raw)

    assert found is not None
    assert (found.input_uncached, found.input_cache_read, found.input_cache_write) == (70, 20, 10)
    assert (found.output_visible, found.output_reasoning) == (6, 4)
    assert messages.usage(RequestUsage()) is None
    assert isinstance(found, Usage)


def test_settings_are_parameters_under_common_names() -> None:
    settings = {"max_tokens": 5, "stop_sequences": ["x"], "temperature": None, "timeout": 3, "tool_choice": "auto"}

    assert messages.params(settings) == {"max_tokens": 5, "stop": ["x"]}
