"""Cases from the Berkeley leaderboard: counted, checked, and scored with agents whose behaviour is known."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.core.protocol import parts
from playhead.core.suites.contents import Contents, counted
from playhead.core.suites.drive import ModelAsk, answer_of
from playhead.core.suites.labels import CallLabel, check_label, options_of, recorded_label
from playhead.core.suites.matchers import first_variant
from playhead.core.suites.scoring import Answer, Attempt, Emitted, Score, score
from playhead.core.suites.suite import Case, schemas
from playhead.core.suites.tool_names import mapped, renamed
from playhead.importers.bfcl import read

CATEGORIES = ("simple_python", "multiple", "parallel", "irrelevance")
Agent = Callable[[Case, Contents], Answer]


@pytest.fixture(scope="module")
def bfcl(shared_data: Path) -> Contents:
    return read(shared_data / "bfcl", categories=CATEGORIES)


def test_t11_the_import_counts_labels_calls_and_arguments(bfcl: Contents) -> None:
    found = counted(bfcl)
    assert (found["cases"], found["labels"]) == (400, {"call": 300, "no_tool": 100})
    assert (found["calls"], found["arguments"], found["optional"], found["several_values"]) == (471, 1344, 203, 190)
    by = {c: Counter[str]() for c in CATEGORIES}
    for case in bfcl.cases:
        for option in options_of(case.label):
            by[case.intent]["calls"] += len(option.calls)
            by[case.intent]["arguments"] += sum(len(call.arguments) for call in option.calls)
    assert [by[c]["calls"] for c in CATEGORIES] == [100, 100, 271, 0]
    assert [by[c]["arguments"] for c in CATEGORIES] == [292, 290, 762, 0]
    parallel = [case.label for case in bfcl.cases if case.intent == "parallel"]
    assert all(isinstance(label, CallLabel) and len(label.calls) > 1 for label in parallel)
    assert {len({call.tool for call in option.calls}) for label in parallel for option in options_of(label)} == {1}


def test_t11_tools_of_one_name_keep_their_schemas(bfcl: Contents) -> None:
    assert sum(len(case.tools) for case in bfcl.cases) == 582
    names = {tool.name for tool in bfcl.tools.values()}
    assert (len(names), sum("." in name for name in names)) == (444, 224)
    assert {"solve.quadratic_equation", "solve_quadratic_equation"} <= names
    assert {tool.parameters["type"] for tool in bfcl.tools.values()} == {"object"}


def test_t11_a_provider_that_refuses_dots_sees_other_names_and_scores_come_back(bfcl: Contents) -> None:
    allowed = re.compile(r"[A-Za-z0-9_-]{1,64}")
    changed = 0
    for case in bfcl.cases:
        answer = perfect(case, bfcl)
        said = parts.message(
            "assistant", [parts.call(c.tool, c.arguments, f"x{n}") for n, c in enumerate(answer.calls)]
        )
        ask, back = mapped(ModelAsk(messages=[said], tools=tuple(bfcl.tools[name] for name in case.tools)))
        names = [tool.name for tool in ask.tools]
        assert all(allowed.fullmatch(name) for name in names)
        assert len(set(names)) == len(names)
        changed += bool(back)
        assert renamed(ask.messages[0], back) == said
        assert answer_of(renamed(ask.messages[0], back)).calls == answer_of(said).calls
    assert changed > 100
    assert counted(bfcl)["mapped_names"] == 224


def test_t12_the_label_check_finds_what_contradicts_the_schemas(bfcl: Contents) -> None:
    found = [(id, f.code, f.pointer, f.keyword, f.value) for id, fs in bfcl.findings().items() for f in fs]
    assert [(id, code, pointer) for id, code, pointer, _, _ in found] == [
        ("multiple_76", "value_not_valid", "/material"),
        ("parallel_88", "required_is_optional", "/initial_velocity"),
        ("parallel_152", "value_not_valid", "/mod"),
        ("parallel_152", "value_not_valid", "/mod"),
    ]
    assert [(k, v) for _, code, _, k, v in found if code == "value_not_valid"] == [
        ("enum", "bronze"), ("type", None), ("type", None),
    ]  # fmt: skip


def recorded(path: Path) -> list[tuple[str, Any]]:
    """A label for each turn with calls of the recorded chats in a file."""
    labels: list[tuple[str, Any]] = []
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        for message in record["messages"]:
            calls = [c["function"] for c in message.get("tool_calls") or ()]
            if calls:
                label = recorded_label([(c["name"], json.loads(c["arguments"])) for c in calls])
                labels.append((record["id"], label))
    return labels


def test_t12_recorded_calls_as_labels(shared_data: Path) -> None:
    tools = json.loads((shared_data / "bfcl-executed" / "tools.json").read_text("utf-8"))
    declared = {name: tool["function"]["parameters"] for name, tool in tools.items()}
    files = sorted((shared_data / "bfcl-executed").glob("*.sessions.jsonl"))
    labels = [one for file in files for one in recorded(file)]
    assert sum(len(label.calls) for _, label in labels) == 1119
    found = [(id, f) for id, label in labels for f in check_label(label, declared)]
    assert [(id, f.tool, f.pointer, f.keyword, f.value) for id, f in found] == [
        ("multi_turn_base_173", "close_ticket", "/ticket_id", "type", "ticket_001"),
        ("multi_turn_long_context_173", "close_ticket", "/ticket_id", "type", "ticket_001"),
    ]


def test_t12_ground_truth_that_fits_its_tools_gives_no_finding(shared_data: Path) -> None:
    calls = 0
    for file in sorted((shared_data / "agentdojo-groundtruth").glob("*.sessions.jsonl")):
        tools = json.loads(file.with_name(file.name.replace("sessions.jsonl", "tools.json")).read_text("utf-8"))
        declared = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        for _, label in recorded(file):
            calls += len(label.calls)
            assert check_label(label, declared) == []
    assert calls == 191


# --- agents whose behaviour is known --------------------------------------------------------------------------------


def perfect(case: Case, contents: Contents) -> Answer:
    options = options_of(case.label)
    if not options:
        return Answer(text="I cannot do that with these tools.")
    calls = [Emitted(tool=c.tool, arguments=first_variant(c.arguments)) for c in options[0].calls]
    return Answer(calls=tuple(calls))


def backwards(case: Case, contents: Contents) -> Answer:
    return Answer(text=perfect(case, contents).text, calls=tuple(reversed(perfect(case, contents).calls)))


def silent(case: Case, contents: Contents) -> Answer:
    return Answer()


def talker(case: Case, contents: Contents) -> Answer:
    return Answer(text="Here is what I think.")


def eager(case: Case, contents: Contents) -> Answer:
    return Answer(calls=(Emitted(tool=contents.tools[case.tools[0]].name, arguments={}),))


def sibling(case: Case, contents: Contents) -> Answer:
    wanted = perfect(case, contents).calls[0].tool
    other = next(n for n in case.tools if contents.tools[n].name != wanted)
    return Answer(calls=(Emitted(tool=contents.tools[other].name, arguments={}),))


def run(contents: Contents, agent: Agent, *kinds: str, **label: Any) -> dict[str, Score]:
    found: dict[str, Score] = {}
    for case in contents.cases:
        if kinds and case.intent not in kinds and (case.label is None or case.label.kind not in kinds):
            continue
        if label and isinstance(case.label, CallLabel):
            case = case.model_copy(update={"label": case.label.model_copy(update=label)})
        found[case.id] = score(case, schemas(case, contents.tools), Attempt(answers=(agent(case, contents),)))
    return found


def held(scores: dict[str, Score], dimension: str) -> tuple[int, int]:
    known = [value for s in scores.values() if (value := getattr(s, dimension)) is not None]
    return sum(known), len(known)


def test_t13_a_perfect_agent_fails_where_a_label_contradicts_its_schema(bfcl: Contents) -> None:
    labelled = run(bfcl, perfect, "call")
    assert held(labelled, "selection") == (300, 300)
    assert held(labelled, "arguments") == (299, 300)
    assert [id for id, s in labelled.items() if not s.arguments] == ["parallel_88"]
    assert held(run(bfcl, perfect, "no_tool"), "selection") == (100, 100)


def test_t13_order_counts_only_where_the_label_says_so(bfcl: Contents) -> None:
    anyhow = run(bfcl, backwards, "call")
    assert (held(anyhow, "selection"), held(anyhow, "arguments")) == ((300, 300), (299, 300))
    strict = run(bfcl, backwards, "parallel", order="sequence")
    assert held(strict, "selection") == (100, 100)
    assert [id for id, s in strict.items() if s.arguments] == ["parallel_96", "parallel_116"]


def test_t13_agents_that_call_nothing(bfcl: Contents) -> None:
    assert held(run(bfcl, talker, "call"), "selection") == (0, 300)
    assert held(run(bfcl, talker, "no_tool"), "selection") == (100, 100)
    assert held(run(bfcl, talker), "arguments") == (0, 0)
    empty = run(bfcl, silent)
    assert held(empty, "selection") == (0, 400)
    assert {s.why for s in empty.values()} == {"empty_response"}
    assert held(empty, "arguments") == (0, 0)


def test_t13_wrong_calls_are_still_held_against_their_schema(bfcl: Contents) -> None:
    called = run(bfcl, eager, "irrelevance")
    assert held(called, "selection") == (0, 100)
    assert {s.why for s in called.values()} == {"called_when_none"}
    assert (held(called, "schema")[1], held(called, "values")[1]) == (100, 0)
    other = run(bfcl, sibling, "multiple")
    assert (held(other, "selection"), {s.why for s in other.values()}) == ((0, 100), {"wrong_tool"})
    assert (held(other, "schema")[1], held(other, "values")[1]) == (100, 0)


def changed(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Agent:
    """The perfect agent with another first call; ``change`` gets its arguments and the tool's schema."""

    def answer(case: Case, contents: Contents) -> Answer:
        calls = list(perfect(case, contents).calls)
        schema = schemas(case, contents.tools)[calls[0].tool]
        arguments = dict(calls[0].arguments)
        change(arguments, schema)
        return Answer(calls=(Emitted(tool=calls[0].tool, arguments=arguments), *calls[1:]))

    return answer


def without_required(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    arguments.pop(next(n for n in schema["required"] if n in arguments))


def integer_as_text(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    for name, value in arguments.items():
        if schema["properties"].get(name, {}).get("type") == "integer" and type(value) is int:
            arguments[name] = str(value)
            return


def unknown_member(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    for name in arguments:
        if schema["properties"].get(name, {}).get("enum"):
            arguments[name] = "zzz"
            return


def extra_argument(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    arguments["x_extra"] = 1


def binned(scores: dict[str, Score], bin: str) -> set[str]:
    return {id for id, s in scores.items() for call in s.calls if any(e.bin == bin for e in call.errors)}


@pytest.mark.parametrize("change", [without_required, integer_as_text, unknown_member, extra_argument])
def test_t14_arguments_never_change_the_selection(bfcl: Contents, change: Any) -> None:
    assert held(run(bfcl, changed(change), "call"), "selection") == (300, 300)


def test_t14_errors_of_arguments_are_sorted_into_bins(bfcl: Contents) -> None:
    assert len(binned(run(bfcl, changed(without_required), "call"), "required")) == 300
    texts = run(bfcl, changed(integer_as_text), "call")
    wrong = binned(texts, "type")
    by = [sum(id.startswith(c) for id in wrong) for c in ("simple", "multiple", "parallel")]
    assert (len(wrong), by) == (186, [65, 56, 65])
    coercible = {id for id, s in texts.items() for call in s.calls if any(e.coercible for e in call.errors)}
    assert coercible == wrong
    enums = binned(run(bfcl, changed(unknown_member), "call"), "enum")
    assert [sum(id.startswith(c) for id in enums) for c in ("simple", "multiple", "parallel")] == [4, 5, 5]


def test_t14_a_forbidden_extra_is_wrong_by_the_label_and_not_by_the_schema(bfcl: Contents) -> None:
    found = run(bfcl, changed(extra_argument), "call")
    assert held(found, "values") == (0, 300)
    assert binned(found, "unknown_parameter") == set()
    assert held(found, "schema") == (299, 300)  # parallel_88 alone lacks a parameter
