"""Formats are told by content; what is only recognised is named."""

import json
from pathlib import Path

import pytest

from playhead.engine.documents import Document, read_file
from playhead.importers.detection import detect, is_whole


@pytest.mark.parametrize(
    ("path", "formats"),
    [
        ("otel_genai/genai13_openai/spans.jsonl", {"otlp"}),
        ("claude_code/otel/0004_POST_v1_metrics.json", {"otlp_metrics"}),
        ("langfuse/sdk_v2_ingestion/0002_POST_api_public_ingestion.json", {"langfuse_ingestion"}),
        ("weave/sdk_0.54/0015_POST_v2_acme_shop_calls_complete.json", {"weave"}),
        ("braintrust/sdk_logs3/0005_POST_logs3.bin", {"braintrust"}),
        ("langsmith/sdk_0.15_openai_batch_batch/0003_POST_runs_batch.json", {"langsmith"}),
        ("langsmith/sdk_0.15_openai_batch_multipart/0002_POST_runs_multipart.bin", {"langsmith"}),
        ("mlflow/openai/trace_0.json", {"mlflow"}),
        ("phoenix/openinference_openai/rest_spans.json", {"phoenix"}),
        ("phoenix/openinference_openai/rest_spans_otlpv1.json", {"phoenix"}),
        ("phoenix/openinference_openai/spans_dataframe.jsonl", {"phoenix"}),
        ("opik/sdk_2.2/0002_POST_v1_private_spans_batch.json", {"opik"}),
        ("mastra/tracing_events.jsonl", {"mastra"}),
        ("openai_agents_native/trace_items.jsonl", {"openai_agents"}),
        ("openai_agents_native/to_input_list.json", {"openai_responses"}),
        ("inspect/2026-11-30T19-00-59-00-00_task_Ua5xXqx64epRb8C6xs9bgF.eval", {"inspect"}),
        ("logfire/pydantic_ai_vdefault/pydantic_ai_messages.json", {"pydantic_ai"}),
        ("kitaru_jsonl/sessions.jsonl", {"kitaru"}),
        ("openai_chat/transcript.json", {"openai_chat"}),
        ("openai_responses/transcript.json", {"openai_responses"}),
        ("anthropic_messages/transcript.json", {"anthropic_messages"}),
        ("../tau-bench/gpt-4o-airline.json", {"tau_bench"}),
    ],
)
def test_a_sample_is_recognised(shared_data: Path, path: str, formats: set[str]) -> None:
    file = shared_data / "exports" / path
    found = {detect(p) for p in read_file(str(file), is_whole=is_whole) if isinstance(p, Document)}
    assert found == formats


@pytest.mark.parametrize(
    "value", [None, 1, "text", [], {}, [1], {"messages": []}, {"messages": 3}, {"a": {"b": []}}, [[]]]
)
def test_other_json_is_of_no_format(value: object) -> None:
    assert detect(Document(file="x", value=value)) is None


def test_a_message_list_is_one_record_and_a_list_of_records_is_not() -> None:
    assert is_whole({"role": "user", "content": "x"})
    assert not is_whole({"messages": [{"role": "user", "content": "x"}]})
    assert not is_whole(json.loads("[1]"))
