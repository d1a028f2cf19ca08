"""``playhead gate``."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.core.gate.criteria import Criteria
from playhead.core.gate.judge import GateReport, Part
from playhead.core.gate.parts import percent, points
from playhead.core.values import JSON
from playhead.errors import UsageError

_COLUMNS = ("criterion", "verdict", "baseline", "candidate", "change", "at_least", "limit", "p", "cases")


def gate(
    run: str = "last",
    /,
    *,
    context: Ctx,
    against: str,
    criteria: str | None = None,
    recovery: str | None = None,
    literal: bool = False,
    sequential: bool = False,
    release: bool = False,
    reason: str | None = None,
    accept: bool = False,
    report: tuple[str, ...] = (),
) -> Result:
    """Say whether a run may ship: pass, fail or inconclusive, with reasons.

    Fails on proof of harm only, so that an identical release is blocked in at most 5 % of comparisons, all criteria
    together; passes on proof that no loss of a margin is left. Exit code 3: too many trials ended in errors to judge.

    Args:
        run: The candidate: id of a suite run, last, last~1, or a file that suite run --export wrote.
        against: The run to compare with: the same, or last-release.
        criteria: File with criteria, TOML or JSON; the defaults when left out.
        recovery: Run with injected failures.
        literal: Judge by the bare numbers, without statistics.
        sequential: Judge by evidence that counts at every look, so that one may look as often as one likes; it takes
            more cases.
        release: Use held-back cases too; needs --reason.
        reason: Why held-back cases are read; it goes to the suite's access log.
        accept: Keep the run as last-release when it passes.
        report: Write a report to this file (.html, .md, .xml or .json); may be given several times.
    """
    from playhead.core.gate.judge import judge
    from playhead.core.gate.report_json import gate_json
    from playhead.engine.suites.releases import accept as keep
    from playhead.engine.suites.releases import (
        earlier_looks,
        history_of,
        look_digest,
        note_look,
        read_run,
    )

    _check_reports(report)
    wanted = _criteria(criteria, literal=literal, sequential=sequential)
    folder = context.project.folder
    releases, log = folder / "releases", folder / "gates.jsonl"
    candidate = read_run(run, lambda: context.store, releases=releases)
    baseline = read_run(against, lambda: context.store, releases=releases, suite=candidate.suite)
    injected = None if recovery is None else read_run(recovery, lambda: context.store, releases=releases)
    if release:
        _note_access(context, candidate.suite, reason, candidate.run)
        candidate = replace(candidate, held_back_accesses=(candidate.held_back_accesses or 0) + 1)
    digest = look_digest(candidate, baseline, injected, criteria=wanted)
    earlier = earlier_looks(log, baseline.run, candidate.run, digest)
    history = history_of(run, candidate, lambda: context.store)
    verdict = judge(candidate, baseline, wanted, recovery=injected, release=release, earlier=earlier, history=history)
    if folder.is_dir():
        note_look(log, verdict, digest)
    text = gate_text(verdict)
    if accept and verdict.verdict == "pass":
        text.append(f"kept as last-release: {keep(candidate, releases).name}")
    elif accept:
        text.append("not kept as last-release: only a run that passes is")
    if report:
        from playhead.engine.report_files import write_reports
        from playhead.engine.suites.releases import contents_of

        paths = [Path(path) for path in report]
        write_reports(
            paths, candidate, baseline=baseline, gate=verdict, recovery=injected, history=history,
            contents=contents_of(run, lambda: context.store), redact=_redaction(context),
        )  # fmt: skip
    return Result(data=_redaction(context)(gate_json(verdict)), text=text, exit_code=verdict.exit_code)


def _check_reports(paths: tuple[str, ...]) -> None:
    for path in paths:
        if Path(path).suffix not in {".html", ".md", ".xml", ".json"}:
            raise UsageError(f"no report has the form {path!r}", hint="end the name with .html, .md, .xml or .json")


def _note_access(context: Context, suite: str, reason: str | None, run: str) -> None:
    if not (reason or "").strip():
        raise UsageError("reading the held-back slice needs a reason", hint="--reason TEXT; it goes to the access log")
    from playhead.cli.suites import home_of, whoever
    from playhead.engine.suites.location import note_access
    from playhead.errors import NotFoundError

    try:
        home = home_of(context, suite)
    except NotFoundError as error:
        context.note(f"the access log of {suite} is not here: {error.message}")
        return
    note_access(home, home.contents(), who=whoever(), command="gate --release", reason=reason or "", run=run)


def _criteria(file: str | None, *, literal: bool, sequential: bool) -> Criteria:
    from playhead.engine.suites.releases import read_criteria

    if literal and sequential:
        raise UsageError("--literal and --sequential exclude each other")
    wanted = read_criteria(file)
    if literal or sequential:
        return wanted.all_in("literal" if literal else "sequential")
    return wanted


def gate_text(report: GateReport) -> list[Block]:
    """A verdict as it is read on a terminal: why first, then what was measured."""
    text: list[Block] = [f"{report.verdict.replace('_', ' ')}: {report.candidate} against {report.baseline}"]
    text += [f"  {reason}" for reason in report.reasons]
    text += [f"  would settle it: {line}" for line in report.settle]
    text += [f"  {part.name}: {part.reasons[-1]}" for part in report.parts if _has_history(part)]
    parts = [*report.parts, *report.held_back]
    if parts:
        text.append(Table(_COLUMNS, [part_row(part) for part in parts]))
    if report.zero:
        rows = [
            {"none of": item.name, "seen": item.seen, "trials": item.of, "at_most": f"{100 * item.upper:.2f} %"}
            for item in report.zero
        ]
        text.append(Table(("none of", "seen", "trials", "at_most"), rows))
    if report.worst:
        shown = [
            {"case": c.id, "intent": c.intent, "before": c.baseline, "now": c.candidate, "why": "; ".join(c.reasons)}
            for c in report.worst
        ]
        text.append(Table(("case", "intent", "before", "now", "why"), shown))
    text.append(Fields(_facts(report)))
    return text


def _has_history(part: Part) -> bool:
    return part.verdict == "pass" and part.name == "stability" and "of this configuration" in part.reasons[-1]


def part_row(part: Part) -> dict[str, object]:
    """One criterion as a row; a rate without a baseline shows its own lower bound."""
    bound = part.high if part.spends or part.name.endswith("stability") else part.low
    rate = part.baseline is None
    return {
        "criterion": part.name,
        "verdict": f"{part.verdict}{' (fails only)' if part.only_fails and part.verdict != 'fail' else ''}",
        "baseline": _amount(part, part.baseline),
        "candidate": _amount(part, part.candidate),
        "change": None if part.change is None else points(part.change),
        "at_least": None if bound is None else percent(bound) if rate else points(bound),
        "limit": None if part.limit is None else f"{100 * part.limit:g}",
        "p": None if part.p_adjusted is None else f"{part.p_adjusted:.2g}",
        "cases": part.cases,
    }


def _amount(part: Part, value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:.4g}" if part.spends else percent(value)


def _facts(report: GateReport) -> list[tuple[str, object]]:
    return [
        ("shared cases", f"{report.shared} of {report.baseline_active}"),
        ("newly flaky", ", ".join(report.newly_flaky) or None),
        ("no longer flaky", ", ".join(report.no_longer_flaky) or None),
        ("retired", ", ".join(report.retired) or None),
        ("relabelled", ", ".join(report.relabelled) or None),
        ("held back, read", None if report.held_back_accesses is None else f"{report.held_back_accesses} times"),
        ("alpha", f"{report.alpha:g}, look {report.look} of {report.planned_looks} planned"),
        ("earlier looks", ", ".join(f"{look.at} {look.verdict}" for look in report.earlier) or None),
        ("note", "\n".join(report.warnings) or None),
    ]


def _redaction(context: Context) -> Callable[[JSON], JSON]:
    redactor = context.project.redactor()
    return lambda value: redactor.redact(value)[0]
