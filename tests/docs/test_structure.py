"""The documentation is whole: every command, error, policy and page is where the reader looks for it."""

from pathlib import Path

import pytest
from adapters_page import PAGE as ADAPTERS_PAGE
from adapters_page import text as adapters_page_text
from cli_page import PAGE as CLI_PAGE
from cli_page import text as cli_page_text
from pages import ROOT, anchor, headings, links, name_of, pages

from playhead import errors
from playhead.cli.commands import COMMANDS
from playhead.core import policy
from playhead.errors import PlayheadError

DOCS = ROOT / "docs"


def subclasses(cls: type[PlayheadError]) -> set[type[PlayheadError]]:
    return {cls, *(found for child in cls.__subclasses__() for found in subclasses(child))}


def test_every_error_code_has_a_heading() -> None:
    codes = {cls.code for cls in subclasses(PlayheadError) if cls.__module__ == errors.__name__}
    assert codes - set(headings(DOCS / "errors.md")) == set()


def test_no_error_is_documented_that_does_not_exist() -> None:
    codes = {cls.code for cls in subclasses(PlayheadError)} | {"internal"}
    described = [title for title in headings(DOCS / "errors.md") if title.islower() and " " not in title]
    assert set(described) - codes == set()


def test_every_command_has_a_heading() -> None:
    assert {f"playhead {name}" for name, _, _ in COMMANDS} - set(headings(CLI_PAGE)) == set()


def test_the_command_reference_shows_what_help_shows() -> None:
    assert CLI_PAGE.read_text("utf-8") == cli_page_text(), "run: python tests/docs/cli_page.py"


def test_the_table_of_adapters_shows_what_was_measured() -> None:
    page = ADAPTERS_PAGE.read_text("utf-8")
    assert page == adapters_page_text(page), "run: python tests/docs/adapters_page.py"


@pytest.mark.parametrize(
    "config", [policy.HistoryConfig, policy.StaticConfig, policy.StaticCase, policy.PassthroughConfig, policy.LLMConfig]
)
def test_every_policy_field_is_described(config: type) -> None:
    text = (DOCS / "policies.md").read_text("utf-8")
    fields = [field.alias or name for name, field in config.model_fields.items()]  # type: ignore[attr-defined]
    assert [name for name in fields if f"`{name}`" not in text] == []


def test_every_policy_type_has_a_heading() -> None:
    assert {"history", "static", "passthrough", "llm", "inject"} - set(headings(DOCS / "policies.md")) == set()


def test_the_index_names_every_page() -> None:
    index = (DOCS / "llms.txt").read_text("utf-8")
    listed = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {name for name in listed if f"({name})" not in index} == set()


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in [*pages(), DOCS / "llms.txt"]])
def test_links_inside_the_documentation_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, fragment = link.partition("#")
        if "://" in link:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), link
        if fragment:
            assert fragment in {anchor(title) for title in headings(found)}, link


def test_records_of_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(page.name[:4]) for page in (DOCS / "adr").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in sorted((DOCS / "adr").glob("*.md"))])
def test_a_record_says_what_changes_and_what_does_not(page: Path) -> None:
    assert headings(page)[1:] == ["Context", "Decision", "Compatibility", "What does not change"]
    assert len(page.read_text("utf-8").splitlines()) <= 60
