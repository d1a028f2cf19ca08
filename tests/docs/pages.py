"""Reads the pages of the documentation: README.md and everything below docs/."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where the text begins."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str | None = None) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        info = match["info"].strip()
        if language is None or info == language:
            yield Block(
                info, _dedented(match["body"], len(match["indent"])), text.count("\n", 0, match.start("body")) + 1
            )


def _dedented(body: str, indent: int) -> str:
    return "".join(line[indent:] if line[:indent].isspace() else line for line in body.splitlines(keepends=True))


def needs(page: Path) -> list[str]:
    """Modules without which the page's blocks cannot run: ``<!-- needs: crewai -->``."""
    return [name for found in _NEEDS.findall(page.read_text("utf-8")) for name in found.split()]


def headings(page: Path) -> list[str]:
    """Headings as plain text, without code marks; those inside code blocks do not count."""
    return [title.replace("`", "") for title in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8")))]


def links(page: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", page.read_text("utf-8")))


def anchor(heading: str) -> str:
    """The anchor that a heading gets where these pages are shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
