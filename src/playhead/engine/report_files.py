"""Writes reports: the form follows the end of the file's name."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playhead.core.gate.judge import GateReport
from playhead.core.reporting.data import report_json
from playhead.core.suites.contents import Contents
from playhead.core.suites.history import History
from playhead.core.suites.summary import RunSummary
from playhead.core.values import JSON
from playhead.errors import UsageError

FORMS = (".html", ".md", ".xml", ".json")


def write_reports(
    paths: Sequence[Path], run: RunSummary, *, baseline: RunSummary | None = None, gate: GateReport | None = None,
    recovery: RunSummary | None = None, history: History | None = None, contents: Contents | None = None,
    redact: Callable[[JSON], JSON] = lambda value: value,
) -> None:  # fmt: skip
    """Writes a report to each path, with everything secret taken out first.

    Raises:
        UsageError: a name that ends otherwise, or a place that cannot be written.
    """
    found = report_json(run, baseline=baseline, gate=gate, recovery_run=recovery, history=history, contents=contents)
    report: Any = redact(found)
    for path in paths:
        write_text(path, rendered(report, path.suffix))


def rendered(report: Any, form: str) -> str:
    """A report as text in one of `FORMS`."""
    if form == ".html":
        from playhead.core.reporting.page import html

        return html(report)
    if form == ".md":
        from playhead.core.reporting.markdown import markdown

        return markdown(report)
    if form == ".xml":
        from playhead.core.reporting.junit import junit

        return junit(report)
    if form == ".json":
        return json.dumps(report, ensure_ascii=True, indent=1) + "\n"
    raise UsageError(f"no report has the form {form!r}", hint=f"end the name with one of {', '.join(FORMS)}")


def write_text(path: Path, text: str) -> None:
    """Writes a report in one step, readable by the owner alone.

    Raises:
        UsageError: a place that cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
