"""What results look like, and that recorded text does nothing but be read."""

import io
import json

import pytest

from playhead.cli.output import Fields, Mode, Result, Table, emit, emit_note, one_line, plain, shortened, to_json

HOSTILE = "a\x1b[31mred\x1b[0m\rb\u202egnp\u2066\u200b\x9b2J\ud800[bold]c[/bold]"


def rendered(result: Result, mode: Mode) -> str:
    stream = io.StringIO()
    emit(result, mode, stream)
    return stream.getvalue()


def test_plain_makes_what_a_terminal_would_obey_visible() -> None:
    assert plain(HOSTILE) == ("a\\x1b[31mred\\x1b[0m\\rb\\u202egnp\\u2066\\u200b\\x9b2J\\ud800[bold]c[/bold]")


def test_plain_keeps_lines_tabs_and_every_script() -> None:
    text = "d'accord\tok\n日本語 🇫🇷 👩\u200d🔬 نعم"
    assert plain(text) == text


def test_one_line_shows_line_breaks() -> None:
    assert one_line("a\nb\tc") == "a\\nb\\tc"


def test_a_cut_is_visible() -> None:
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"


@pytest.mark.parametrize("block", [Table(("text",), [{"text": HOSTILE}]), Fields([("text", HOSTILE)]), HOSTILE])
def test_no_block_lets_hostile_text_through(block: Table | Fields | str) -> None:
    shown = rendered(Result(text=[block]), "text")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]c[/bold]" in shown


def test_a_table_is_not_cut_when_it_goes_into_a_pipe() -> None:
    long = "x" * 300
    assert long in rendered(Result(text=[Table(("id", "text"), [{"id": 1, "text": long}])]), "text")


def test_an_empty_table_says_so() -> None:
    assert rendered(Result(text=[Table(("id",), [], empty="nobody here")]), "text") == "nobody here\n"


def test_fields_without_a_value_are_left_out() -> None:
    shown = rendered(Result(text=[Fields([("one", 1), ("none", None), ("lines", "a\nb")])]), "text")
    assert shown.splitlines() == ["one    1", "lines  a", "       b"]


def test_items_are_one_object_in_json_and_lines_in_jsonl() -> None:
    result = Result(data=[{"n": 1}, {"n": 2}], items=True, next_cursor="c")
    assert json.loads(rendered(result, "json")) == {"items": [{"n": 1}, {"n": 2}], "next_cursor": "c"}
    assert [json.loads(line) for line in rendered(result, "jsonl").splitlines()] == [{"n": 1}, {"n": 2}]


def test_text_says_how_to_go_on() -> None:
    assert "--cursor c" in rendered(Result(text=["x"], next_cursor="c"), "text")


def test_json_holds_deep_values_wide_integers_and_half_characters() -> None:
    deep: object = 1
    for _ in range(250):
        deep = [deep]
    value = {"deep": deep, "id": 10**30, "half": "\ud800"}
    assert json.loads(to_json(value)) == value


def test_notes_are_text_for_people_and_objects_for_programs() -> None:
    stream = io.StringIO()
    emit_note("half done", "text", stream)
    emit_note("half done", "json", stream)
    first, second = stream.getvalue().splitlines()
    assert first == "half done"
    assert json.loads(second) == {"note": "half done"}
