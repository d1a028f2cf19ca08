"""A whole suite: its head, tools, cases, the log of its labels, and who read what is held back."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from playhead.core.suites.label_log import LabelEntry, settled
from playhead.core.suites.labels import CallLabel, LabelFinding, check_label, options_of
from playhead.core.suites.matchers import is_matcher, optional
from playhead.core.suites.suite import Case, Suite, ToolSchema, schemas, suite_digest
from playhead.core.suites.tool_names import provider_names
from playhead.core.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something of a source that became no case, or only part of one."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything that a folder or a store holds of a suite."""

    suite: Suite
    cases: tuple[Case, ...] = ()
    tools: Mapping[str, ToolSchema] = field(default_factory=dict[str, ToolSchema])
    labels: tuple[LabelEntry, ...] = ()
    accesses: tuple[JSON, ...] = ()
    skipped: tuple[Skipped, ...] = ()  # of an import; not stored

    @property
    def digest(self) -> str:
        return suite_digest(self.suite, self.cases, self.tools)

    def findings(self) -> dict[str, list[LabelFinding]]:
        """What the label check says, by case."""
        found = {c.id: check_label(c.label, schemas(c, self.tools), c.facts) for c in self.cases if c.label is not None}
        return {id: findings for id, findings in found.items() if findings}


def counted(contents: Contents) -> dict[str, JSON]:
    """What an import found: cases by kind of label, calls and arguments of the labels, what was skipped and why."""
    labels = [case.label for case in contents.cases if case.label is not None]
    calls = [call for label in labels for option in options_of(label) for call in option.calls]
    arguments = [expected for call in calls for expected in call.arguments.values()]
    several = [e for e in arguments if is_matcher(e) and len(e.get("$any_of", ())) > 1]
    states = Counter(settled(case, contents.labels).state for case in contents.cases)
    return {
        "cases": len(contents.cases),
        "labels": dict(Counter(label.kind for label in labels)),
        "states": dict(states),
        "slices": dict(Counter(case.slice for case in contents.cases)),
        "calls": len(calls),
        "arguments": len(arguments),
        "optional": sum(map(optional, arguments)),
        "several_values": len(several),
        "tools": len(contents.tools),
        "mapped_names": sum(
            name != other for name, other in provider_names(t.name for t in contents.tools.values()).items()
        ),
        "findings": sum(map(len, contents.findings().values())),
        "skipped": dict(Counter(one.why for one in contents.skipped)),
        "parallel": sum(isinstance(label, CallLabel) and len(label.calls) > 1 for label in labels),
    }
