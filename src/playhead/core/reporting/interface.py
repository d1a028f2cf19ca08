"""What a report says of the tools themselves: names, descriptions and error texts that lead models astray."""

from typing import Final

from playhead.core.lint.interface import lint
from playhead.core.recovery.report import recorded_texts
from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, ToolSchema, offered

_FIRST: Final = ("overlap", "description_elsewhere", "vague_name", "values_in_prose", "type_in_prose", "no_description")
"""Rules that a report repeats, the ones first that make a model choose wrong."""
_TOP: Final = 10


def tuned(contents: Contents | None) -> tuple[Case, ...]:
    """The cases that a report may speak of."""
    if contents is None:
        return ()
    return tuple(case for case in contents.cases if case.slice == "tune" and case.status == "active")


def interface_lines(contents: Contents | None) -> list[str]:
    """Tools that read alike, vague names and texts, and opaque error texts, of what tuning cases show."""
    if contents is None:
        return []
    sets: dict[tuple[str, ...], tuple[ToolSchema, ...]] = {}
    for case in tuned(contents):
        sets.setdefault(tuple(sorted(case.tools)), tuple(offered(case, contents.tools).values()))
    findings = [finding for tools in sets.values() for finding in lint(tools) if finding.rule in _FIRST]
    findings.sort(key=lambda finding: (_FIRST.index(finding.rule), finding.tool, finding.pointer))
    lines = [f"{one.tool} {one.pointer}".strip() + f": {one.message} ({one.rule})" for one in findings]
    opaque = [text for text in recorded_texts(contents, tuned(contents)) if text.level == "opaque"]
    lines = list(dict.fromkeys(lines))[:_TOP]
    return lines + [
        f"{text.tool}: the error text {text.text[:80]!r} is opaque, {text.count} times" for text in opaque[:3]
    ]
