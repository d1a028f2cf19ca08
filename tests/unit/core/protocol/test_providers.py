"""Each provider form: requests, answers, streams, usage, overrides."""

from typing import Any

import pytest

from playhead.core.protocol import sse
from playhead.core.protocol.forms import Event, Response
from playhead.core.protocol.parts import call, finish, message, text
from playhead.core.protocol.providers import FORMS, Place, place_of, read_request, with_model_in_path
from playhead.core.values import Usage

SAID = message(
    "assistant",
    [text("Let me see."), call("weather", {"city": "Oslo"}, "a"), call("wind", '{"at": "Oslo"}', "b")],
    finish_reason="tool_calls",
)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_back(form: str) -> None:
    body = FORMS[form].write_response(Response(message=SAID, model="m-1", response_id="r1"))
    read = FORMS[form].read_response(body)
    assert [p["type"] for p in read.message["parts"]] == ["text", "tool_call", "tool_call"]
    assert [(c["name"], c["arguments"]) for c in read.calls] == [
        ("weather", {"city": "Oslo"}),
        ("wind", {"at": "Oslo"}),
    ]
    assert [c["id"] for c in read.calls] == (["call:0", "call:1"] if form == "gemini" else ["a", "b"])
    assert (read.model, read.response_id, read.finish_reason) == ("m-1", "r1", "tool_calls")


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_adds_up_to_the_plain_answer(form: str) -> None:
    body = FORMS[form].write_response(Response(message=SAID, model="m-1", response_id="r1"))
    sent = b"".join(sse.write(e) for e in FORMS[form].write_stream(body))
    assembled = FORMS[form].read_stream(sse.read(sent))
    assert FORMS[form].read_response(assembled) == FORMS[form].read_response(body)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_cut_stream_what_arrived_is_kept(form: str) -> None:
    body = FORMS[form].write_response(Response(message=SAID))
    events = FORMS[form].write_stream(body)
    for length in range(len(events)):
        said = FORMS[form].read_response(FORMS[form].read_stream(events[:length])).message
        assert said["role"] == "assistant"
    most = FORMS[form].read_response(FORMS[form].read_stream(events[: len(events) - 2])).message
    assert most["parts"][0] == {"type": "text", "text": "Let me see."}


@pytest.mark.parametrize("form", FORMS)
def test_bodies_of_the_wrong_shape_do_not_raise(form: str) -> None:
    wrong: list[Any] = [
        {},
        {"messages": None, "input": 3, "contents": 4, "tools": "x"},
        {"messages": ["x", None], "choices": [], "output": ["x"], "content": None, "candidates": [{}]},
        {"error": {"message": "overloaded"}},
    ]
    for body in wrong:
        FORMS[form].read_request(body)
        FORMS[form].read_response(body)
    FORMS[form].read_stream([Event(None, "[DONE]"), Event(None, None), Event("x", {})])


@pytest.mark.parametrize(
    ("form", "raw", "buckets"),
    [
        (
            "openai_chat",
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
            (36, 64, None, 22, 8),
        ),
        (
            "openai_responses",
            {
                "input_tokens": 100,
                "output_tokens": 30,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "output_tokens_details": {"reasoning_tokens": 8},
            },
            (30, 60, 10, 22, 8),
        ),
        (
            "anthropic_messages",
            {
                "input_tokens": 36,
                "output_tokens": 30,
                "cache_read_input_tokens": 64,
                "cache_creation_input_tokens": 5,
                "output_tokens_details": {"thinking_tokens": 8},
            },
            (36, 64, 5, 22, 8),
        ),
        (
            "gemini",
            {
                "promptTokenCount": 100,
                "candidatesTokenCount": 22,
                "thoughtsTokenCount": 8,
                "cachedContentTokenCount": 64,
            },
            (36, 64, None, 22, 8),
        ),
        ("openai_chat", {"prompt_tokens": -1, "completion_tokens": 2.5}, (None, None, None, None, None)),
        ("anthropic_messages", {"input_tokens": 3.0, "output_tokens": True}, (3, None, None, None, None)),
    ],
)
def test_usage_goes_into_exclusive_buckets(form: str, raw: Any, buckets: tuple[int | None, ...]) -> None:
    body = FORMS[form].write_response(Response(message=SAID, usage=Usage(raw=raw)))
    usage = FORMS[form].read_response(body).usage
    assert usage is not None
    assert (
        usage.input_uncached, usage.input_cache_read, usage.input_cache_write,
        usage.output_visible, usage.output_reasoning,
    ) == buckets  # fmt: skip
    assert usage.raw == raw


def test_tools_choice_and_parameters_have_one_form() -> None:
    schema = {"type": "object", "$defs": {}, "properties": {}}
    chat = FORMS["openai_chat"].read_request(
        {
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "max_completion_tokens": 9,
            "stop": ["x"],
        }
    )
    anthropic = FORMS["anthropic_messages"].read_request(
        {
            "tools": [{"name": "f", "description": "d", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": "f"},
            "max_tokens": 9,
            "stop_sequences": ["x"],
        }
    )
    responses = FORMS["openai_responses"].read_request(
        {
            "tools": [{"type": "function", "name": "f", "description": "d", "parameters": schema, "strict": False}],
            "tool_choice": {"type": "function", "name": "f"},
            "max_output_tokens": 9,
            "stop": ["x"],
        }
    )
    gemini = FORMS["gemini"].read_request(
        {
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": schema}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {"maxOutputTokens": 9, "stopSequences": ["x"]},
        }
    )
    for other in (anthropic, responses, gemini):
        assert (other.tools, other.tool_choice, other.params) == (chat.tools, chat.tool_choice, chat.params)
    assert chat.tools == [{"name": "f", "description": "d", "parameters": schema}]


def test_what_the_provider_ran_itself_is_not_to_be_answered() -> None:
    anthropic = FORMS["anthropic_messages"].read_response(
        {
            "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            ]
        }
    )
    responses = FORMS["openai_responses"].read_response(
        {
            "status": "completed",
            "output": [
                {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "x"}},
                {"type": "mcp_call", "id": "m", "name": "add", "arguments": "{}", "output": "3"},
                {"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"},
            ],
        }
    )
    for answer in (anthropic, responses):
        assert [c["id"] for c in answer.calls] == ["t1"]
    assert [p["name"] for p in responses.message["parts"] if p.get("executor") == "provider"] == [
        "web_search", "add", "add",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/v1/chat/completions", Place("openai_chat")),
        ("/openai/deployments/x/chat/completions/", Place("openai_chat")),
        ("/v1/responses", Place("openai_responses")),
        ("/v1/messages", Place("anthropic_messages")),
        ("/v1beta/models/gemini-2.5:generateContent", Place("gemini", "gemini-2.5", False)),
        ("/v1beta/models/gemini-2.5:streamGenerateContent", Place("gemini", "gemini-2.5", True)),
        ("/v1/messages/count_tokens", None),
        ("/v1/embeddings", None),
        ("/v1/responses/resp_1/cancel", None),
        ("/", None),
    ],
)
def test_paths_say_which_form(path: str, place: Place | None) -> None:
    assert place_of(path) == place


def test_the_model_in_a_path_is_read_and_replaced() -> None:
    place = place_of("/v1beta/models/old:streamGenerateContent")
    assert place is not None
    read = read_request(place, {"contents": "hi"})
    assert (read.model, read.stream) == ("old", True)
    assert with_model_in_path("/v1beta/models/old:generateContent", "new") == "/v1beta/models/new:generateContent"
    assert with_model_in_path("/v1/responses", "new") == "/v1/responses"


@pytest.mark.parametrize("form", FORMS)
def test_system_text_is_replaced_wherever_it_stood(form: str) -> None:
    bodies: dict[str, Any] = {
        "openai_chat": {
            "messages": [
                {"role": "developer", "content": "old"},
                {"role": "user", "content": "hi"},
                {"role": "system", "content": "older"},
            ]
        },
        "openai_responses": {
            "instructions": "old",
            "input": [{"role": "developer", "content": "older"}, {"role": "user", "content": "hi"}],
        },
        "anthropic_messages": {
            "system": [{"type": "text", "text": "old"}],
            "messages": [{"role": "user", "content": "hi"}],
        },
        "gemini": {
            "system_instruction": {"parts": [{"text": "old"}]},
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        },
    }
    before = repr(bodies[form])
    changed = FORMS[form].read_request(FORMS[form].with_system(bodies[form], "new")).messages
    assert changed == [
        {"role": "system", "parts": [{"type": "text", "text": "new"}]},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
    ]
    assert repr(bodies[form]) == before


@pytest.mark.parametrize(
    ("form", "body", "params", "changed"),
    [
        ("openai_chat", {"max_completion_tokens": 5, "top_p": 1}, {"max_tokens": 9, "top_p": None},
         {"max_completion_tokens": 9}),
        ("openai_chat", {}, {"max_tokens": 9}, {"max_tokens": 9}),
        ("openai_responses", {"max_output_tokens": 5}, {"max_tokens": 9, "temperature": 0},
         {"max_output_tokens": 9, "temperature": 0}),
        ("anthropic_messages", {"max_tokens": 5, "stop_sequences": ["a"]}, {"stop": ["b"]},
         {"max_tokens": 5, "stop_sequences": ["b"]}),
        ("gemini", {"generationConfig": {"topP": 1}}, {"max_tokens": 9, "top_p": None},
         {"generationConfig": {"maxOutputTokens": 9}}),
        ("gemini", {}, {"temperature": 0}, {"generationConfig": {"temperature": 0}}),
    ],
)  # fmt: skip
def test_parameters_are_merged_under_the_providers_names(form: str, body: Any, params: Any, changed: Any) -> None:
    assert FORMS[form].with_params(body, params) == changed


def test_events_are_split_whatever_the_line_ends() -> None:
    body = b'\xef\xbb\xbfevent: a\r\ndata: {"x":\r\ndata: 1}\r\n\r\n: comment\n\ndata: [DONE]\n\ndata: {"cut"'
    assert sse.read(body) == [Event("a", {"x": 1}), Event(None, "[DONE]")]


@pytest.mark.parametrize(
    ("reason", "normal"),
    [
        ("tool-calls", "tool_calls"), ("tool_use", "tool_calls"), ("STOP", "stop"), ("end_turn", "stop"),
        ("MAX_TOKENS", "length"), ("refusal", "content_filter"), ("new_reason", "other"), (None, None), ("", None),
    ],
)  # fmt: skip
def test_finish_reasons_are_normalised(reason: Any, normal: str | None) -> None:
    assert finish(reason) == normal
