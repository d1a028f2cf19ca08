"""Digests of cases stand in stored trials and exported runs: they may not change by themselves."""

from hashlib import sha256

from playhead.core.canonical import canonical_stored
from playhead.core.suites.suite import Case, ToolSchema, case_digest, to_json

TOOLS = {
    "b": ToolSchema(name="b", description="second", parameters={"type": "object"}),
    "a": ToolSchema(name="a", description="é", parameters={"type": "object", "properties": {"x": {"type": "string"}}}),
}
CASE = Case.model_validate(
    {
        "id": "one",
        "intent": "any",
        "history": [{"role": "user", "content": "hi"}],
        "tools": ["b", "a"],
        "label": {"kind": "no_tool"},
    }
)


def test_a_digest_covers_history_label_and_tools_in_the_order_offered() -> None:
    told = {
        "history": [{"role": "user", "content": "hi"}], "recorded": None, "answer": None, "label": {"kind": "no_tool"},
        "facts": None, "tools": [to_json(TOOLS["b"]), to_json(TOOLS["a"])],
    }  # fmt: skip
    assert case_digest(CASE, TOOLS) == sha256(canonical_stored(told)).hexdigest()[:32]


def test_texts_of_tools_are_made_once_and_give_the_same_digest() -> None:
    texts: dict[str, bytes] = {}
    first = case_digest(CASE, TOOLS, texts)
    assert set(texts) == {"a", "b"}
    assert case_digest(CASE, TOOLS, texts) == first == case_digest(CASE, TOOLS)
    other = {**TOOLS, "a": TOOLS["a"].model_copy(update={"description": "changed"})}
    assert case_digest(CASE, other) != first
    assert case_digest(CASE.model_copy(update={"tools": ("a", "b")}), TOOLS) != first
    assert case_digest(CASE.model_copy(update={"tools": ()}), TOOLS) != first
