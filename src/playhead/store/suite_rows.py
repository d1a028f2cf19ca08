"""Suites as JSON rows, the same in every backend."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playhead.core.codec import dump, load
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema, case_json, suite_json, to_json
from playhead.core.values import JSON
from playhead.errors import NotFoundError


def head_row(suite: Suite, tools: Mapping[str, ToolSchema]) -> JSON:
    return {"suite": suite_json(suite), "tools": {name: to_json(tool) for name, tool in tools.items()}}


def contents_of(head: JSON, cases: Iterable[JSON], labels: Iterable[JSON], accesses: Iterable[JSON]) -> Contents:
    """What was stored."""
    return Contents(
        suite=Suite.model_validate(head["suite"]),
        tools={name: ToolSchema.model_validate(tool) for name, tool in head["tools"].items()},
        cases=tuple(Case.model_validate(case) for case in cases),
        labels=tuple(load(LabelEntry, entry, trusted=True) for entry in labels),
        accesses=tuple(accesses),
    )


def case_rows(cases: Iterable[Case]) -> list[tuple[str, JSON]]:
    return [(case.id, case_json(case)) for case in cases]


def label_rows(entries: Iterable[LabelEntry]) -> list[JSON]:
    return [dump(entry) for entry in entries]


def missing(name: str, names: Sequence[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "playhead suite build makes one"
    return NotFoundError(f"there is no suite {name!r}", hint=hint)


def merged_head(head: Any, suite: Suite | None, tools: Mapping[str, ToolSchema]) -> JSON:
    """The head with what changed; tools are only added or replaced."""
    made = head_row(suite or Suite.model_validate(head["suite"]), tools)
    return {"suite": made["suite"], "tools": {**head["tools"], **made["tools"]}}
