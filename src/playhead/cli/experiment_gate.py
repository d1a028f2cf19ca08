"""The gate on an experiment's run, and its reports as files."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from playhead.cli.context import Context
from playhead.cli.experiment_text import markdown, tables
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.experiments.runs import ExperimentRun
    from playhead.core.gate.verdict import GateReport
    from playhead.engine.experiments import ExperimentClient

DEFAULTS = "default"
"""In place of a file with criteria."""

Form = Literal["text", "json", "markdown", "html", "junit"]
FORMS: Mapping[str, Form] = {".json": "json", ".md": "markdown", ".html": "html", ".xml": "junit"}


def gated(client: "ExperimentClient", run: "ExperimentRun", context: Context, criteria: str) -> "GateReport":
    """The verdict on a run; written down, so that a later look at it knows of this one."""
    from playhead.engine.suites.releases import earlier_looks, note_look, read_criteria, seen_digest

    wanted = read_criteria(None if criteria == DEFAULTS else criteria)
    folder = context.project.folder
    log = folder / "gates.jsonl"
    digest = seen_digest([json.dumps(client.report(run), sort_keys=True)], wanted)
    verdict = client.gate(run, wanted, earlier=earlier_looks(log, run.cohort, run.id, digest))
    if folder.is_dir():
        note_look(log, verdict, digest)
    return verdict


def told(
    client: "ExperimentClient", run: "ExperimentRun", context: Context, *,
    gate: "GateReport | None" = None, against: "ExperimentRun | None" = None,
) -> Any:  # fmt: skip
    """The report of a run with the gate's under ``gate``, secrets taken out."""
    from playhead.core.gate.report_json import gate_json

    found = {**client.report(run, against=against), "gate": None if gate is None else gate_json(gate)}
    return context.project.redactor().redact(found)[0]


def rendered(report: Any, form: Form) -> str:
    """A report as text in a form of files."""
    from playhead.core.reporting.experiment_page import html, junit

    if form == "markdown":
        return markdown(report)
    if form == "html":
        return html(report, tables(report))
    if form == "junit":
        return junit(report)
    return f"{json.dumps(report, indent=2, ensure_ascii=False)}\n"


def form_of(name: str) -> Form:
    """By the end of a file's name.

    Raises:
        UsageError: it has another end.
    """
    for end, form in FORMS.items():
        if name.endswith(end):
            return form
    raise UsageError(f"no report has the form {name!r}", hint=f"end the name with one of {', '.join(FORMS)}")
