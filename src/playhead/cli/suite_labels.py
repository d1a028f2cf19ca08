"""``playhead suite label | review``."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Result, Table, one_line, plain, shortened, to_json
from playhead.cli.suites import home_of, whoever
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.label_log import LabelEntry, Queued
    from playhead.core.suites.suite import Case
    from playhead.engine.suites.labels import ReviewState
    from playhead.engine.suites.location import SuiteHome


def label(
    suite: str,
    how: Literal["weak", "mine", "propose", "facts"],
    /,
    *,
    context: Ctx,
    model: str | None = None,
    second: str | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    confirm: tuple[str, ...] = (),
    case: tuple[str, ...] = (),
    limit: int | None = None,
    concurrency: int = 8,
    dry_run: bool = False,
) -> Result:
    """Give a suite's cases weak, mined or proposed labels, or facts.

    weak takes over what confirmed sessions did; mine takes failures that a later call corrected; propose asks a model,
    which does not see what was recorded; facts finds values that the recorded results and the recorded answer share.

    Args:
        suite: Name of a suite, or its folder.
        how: weak, mine, propose or facts.
        model: Model that proposes, as provider:name, or its bare name with --base-url.
        second: Another model that proposes; where the two agree, they outrank one source.
        base_url: Address of an OpenAI-compatible gateway.
        key_env: Environment variable with its key.
        confirm: Name of a verdict that confirms a session; all but fidelity when left out.
        case: Only this case; may be given several times.
        limit: Propose for at most so many cases.
        concurrency: Requests at a time.
        dry_run: Write nothing, and print the same report.
    """
    home = home_of(context, suite)
    contents = home.contents()
    if how == "facts":
        return _facts(home, contents, case, dry_run=dry_run)
    if how == "propose":
        names = [name for name in (model, second) if name]
        if not names:
            raise UsageError("no model was named", hint="--model PROVIDER:NAME")
        entries, failed = _proposals(context, contents, names, case, limit, concurrency, base_url, key_env)
        report: dict[str, Any] = {"without_label": failed}
    else:
        from playhead.engine.suites.labels import from_recordings

        state = "weak" if how == "weak" else "mined"
        found = from_recordings(context.store, contents, state, confirming=frozenset(confirm) or None)
        entries = [entry for entry in found.entries if not case or entry.case in case]
        report = {"missing_sessions": found.missing}
    if entries and not dry_run:
        from playhead.engine.suites.labels import add_entries

        contents = add_entries(home, contents, entries)
    return _labelled(contents, entries, report, dry_run=dry_run)


def _labelled(
    contents: "Contents", entries: "Sequence[LabelEntry]", report: dict[str, Any], *, dry_run: bool
) -> Result:
    from playhead.engine.suites.labels import review_state

    state = review_state(contents)
    data: dict[str, Any] = {"labels": len(entries), "dry_run": dry_run, **report, **state.data()}
    data["queue"] = len(state.queue)
    text: list[Block] = [f"{len(entries)} labels {'would be ' if dry_run else ''}added"]
    text += [f"{name.replace('_', ' ')}: {len(held)}" for name, held in report.items() if held]
    text += [*quality(state), f"{len(state.queue)} cases wait for a review: playhead suite review"]
    return Result(data=data, text=text)


def _proposals(
    context: Context, contents: "Contents", names: Sequence[str], ids: Sequence[str], limit: int | None,
    concurrency: int, base_url: str | None, key_env: str | None,
) -> "tuple[list[LabelEntry], dict[str, str]]":  # fmt: skip
    from playhead.engine.model_access import LayerAccess
    from playhead.engine.suites.labels import new_only, propose, settle_all

    settled = settle_all(contents)
    cases = [
        c
        for c in contents.cases
        if c.slice == "tune" and c.status == "active" and (c.id in ids if ids else settled[c.id].state != "reviewed")
    ][:limit]
    entries: list[LabelEntry] = []
    failed: dict[str, str] = {}
    for name in names:
        access = LayerAccess(name=name, base_url=base_url, key_env=key_env)
        access.check()
        context.note(f"{name}: asking for {len(cases)} labels")
        found = propose(contents, cases, access, concurrency=concurrency)
        entries += found.entries
        failed |= {f"{name}: {id}": why for id, why in found.failed.items()}
    return new_only(contents, entries), failed


def _facts(home: "SuiteHome", contents: "Contents", ids: Sequence[str], *, dry_run: bool) -> Result:
    from playhead.core.suites.suite import to_json as as_json
    from playhead.engine.suites.labels import fact_proposals

    found = {id: facts for id, facts in fact_proposals(contents).items() if not ids or id in ids}
    if not dry_run:
        home.change(cases=[c.model_copy(update={"facts": tuple(found[c.id])}) for c in contents.cases if c.id in found])
    open_ones = {case.id for case in contents.cases if case.slice == "tune"}  # what is held back is not shown
    seen = {id: facts for id, facts in found.items() if id in open_ones}
    rows = [{"case": id, "facts": ", ".join(f"{f.kind} {f.value}" for f in facts)} for id, facts in seen.items()]
    data = [{"case": id, "facts": [as_json(fact) for fact in facts]} for id, facts in seen.items()]
    text: list[Block] = [f"{len(found)} cases {'would get' if dry_run else 'got'} facts; take out what does not matter"]
    return Result(data=data, items=True, text=[*text, Table(("case", "facts"), rows[:50])])


def quality(state: "ReviewState") -> list[Block]:
    """Agreement of sources, and the bound on what is still wrong, as text."""
    pairs = [
        {
            "sources": " and ".join(pair.sources), "both": pair.n, "agree": f"{pair.raw:.1%}",
            "kappa": None if pair.kappa is None else f"{pair.kappa:.3f}",
            "calls_agree": None if pair.calls is None else f"{pair.calls:.1%}",
        }
        for pair in state.agreements
    ]  # fmt: skip
    groups = [
        {
            "labels_from": audit.group, "labels": audit.labels, "undisputed": audit.agreements,
            "audited": audit.audited, "wrong": audit.wrong, "wrong_left_at_most": f"{audit.upper:.2%}",
            "count": "yes" if audit.trusted else "no",
        }
        for audit in state.audits
    ]  # fmt: skip
    found: list[Block] = []
    if pairs:
        found.append(Table(("sources", "both", "agree", "kappa", "calls_agree"), pairs))
    if groups:
        columns = ("labels_from", "labels", "undisputed", "audited", "wrong", "wrong_left_at_most", "count")
        found.append(Table(columns, groups))
    return found


# --- review ---------------------------------------------------------------------------------------------------------


def review(
    suite: str,
    /,
    *,
    context: Ctx,
    blind: Literal["on", "off"] = "on",
    decisions: str | None = None,
    slice: Literal["tune", "held_back", "all"] = "tune",
    reason: str | None = None,
    who: str | None = None,
) -> Result:
    """Decide on labels, and see how far the rest can be trusted.

    On a terminal each case is shown, and a key decides: a number accepts that label, e edits, r rejects, s skips, q
    ends. Elsewhere the queue is printed; --decisions takes what was decided.

    Args:
        suite: Name of a suite, or its folder.
        blind: Hide which source said what until it is decided.
        decisions: File with a JSON line for each decision: {"case": ID, "label": {...}}, with label null to reject.
        slice: Cases to review; held_back and all need --reason.
        reason: Why what is held back is read; it goes to the access log.
        who: Name of the reviewer; the user when left out.
    """
    from playhead.engine.suites.labels import review_state
    from playhead.engine.suites.location import note_access

    home = home_of(context, suite)
    contents = home.contents()
    if slice != "tune":
        note_access(home, contents, who=whoever(), command="suite review", reason=reason or "")
        contents = home.contents()
    name = who or whoever()
    if decisions is not None:
        contents = _decided(home, contents, decisions, name)
    elif context.mode == "text" and sys.stdin and sys.stdin.isatty():
        contents = _Terminal(home, contents, name, blind=blind == "on", slice=slice).work()
    state = review_state(contents, slice=slice)
    rows = [_queue_row(one, state) for one in state.queue]
    columns = ("case", "why", "sources")
    text: list[Block] = [f"{len(rows)} cases wait for a review", Table(columns, rows[:50], empty="nothing to review")]
    return Result(data=state.data(), text=[*text, *quality(state)])


def _queue_row(one: "Queued", state: "ReviewState") -> dict[str, Any]:
    return {"case": one.case, "why": one.why, "sources": ", ".join(state.settled[one.case].sources)}


def _decided(home: "SuiteHome", contents: "Contents", path: str, who: str) -> "Contents":
    from playhead.engine.suites.labels import add_entries, decision

    cases = {case.id: case for case in contents.cases}
    entries: list[LabelEntry] = []
    try:
        lines = (sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")).splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said: Any = json.loads(line)
            case = cases[said["case"]]
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}, line {number} is no decision on a case of the suite: {error}") from None
        entries.append(decision(case, label=said.get("label"), who=said.get("who") or who, reason=said.get("reason")))
    return add_entries(home, contents, entries) if entries else contents


class _Terminal:
    """The review at a terminal. Each decision is stored at once, so that nothing is lost."""

    def __init__(self, home: "SuiteHome", contents: "Contents", who: str, *, blind: bool, slice: str) -> None:
        self.home, self.contents, self.who, self.blind, self.slice = home, contents, who, blind, slice

    def work(self) -> "Contents":
        from playhead.engine.suites.labels import review_state

        queue = review_state(self.contents, slice=self.slice).queue
        for place, one in enumerate(queue, 1):
            case = next(c for c in self.contents.cases if c.id == one.case)
            _say(f"\n--- {place} of {len(queue)}: {case.id} ({one.why}, intent {case.intent}) ---")
            if not self._one(case):
                break
        return self.contents

    def _one(self, case: "Case") -> bool:
        """Shows a case until something is decided; False ends the review."""
        from playhead.engine.suites.labels import add_entries, decision, settle_all

        sources = _shuffled(case.id, dict(settle_all(self.contents)[case.id].sources))
        _show(self.contents, case, sources, blind=self.blind)
        while True:
            choices = "/".join(str(n) for n in range(1, len(sources) + 1))
            key = _ask(f"[{choices}] accept, e edit, r reject, s skip, q quit > ")
            if key in ("q", ""):
                return False
            if key == "s":
                return True
            try:
                label = self._chosen(key, sources)
                if label == "?":
                    continue
                reason = _ask("why? > ") if key == "r" else None
                entry = decision(case, label=label, who=self.who, reason=reason)
            except UsageError as error:
                _say(error.message)
                continue
            self.contents = add_entries(self.home, self.contents, [entry])
            if self.blind:
                _say("the labels were of: " + ", ".join(f"{n} {name}" for n, (name, _) in enumerate(sources, 1)))
            return True

    def _chosen(self, key: str, sources: Sequence[tuple[str, Any]]) -> Any:
        """The label that a key means; None rejects, ``?`` is no key."""
        from playhead.core.suites.labels import label_json

        if key == "r":
            return None
        if key == "e":
            start = label_json(sources[0][1]) if sources else {"kind": "no_tool"}
            return _edited(start)
        if key.isdecimal() and 1 <= int(key) <= len(sources):
            return label_json(sources[int(key) - 1][1])
        return "?"


def _shuffled(case: str, sources: dict[str, Any]) -> list[tuple[str, Any]]:
    """Sources in an order that says nothing about them."""
    return sorted(sources.items(), key=lambda pair: sha256(f"{case}:{pair[0]}".encode()).digest())


def _show(contents: "Contents", case: "Case", sources: Sequence[tuple[str, Any]], *, blind: bool) -> None:
    from playhead.core.suites.labels import check_label, label_json
    from playhead.core.suites.messages import history, outcome_of, shown_outcome
    from playhead.core.suites.suite import schemas
    from playhead.engine.suites.labels import told

    lines = [line for message in history(case) for line in told(message)]
    for line in lines[-12:]:
        _say("  " + shortened(line, 300))
    declared = schemas(case, contents.tools)
    _say(f"tools: {', '.join(declared)}")
    for number, (name, label) in enumerate(sources, 1):
        _say(f"label {number}{'' if blind else f' ({name})'}: {to_json(label_json(label))}")
        for call in {c.tool for o in getattr(label, "options", [label]) for c in getattr(o, "calls", ())}:
            _say(f"  {call}: {shortened(to_json(declared.get(call)), 400)}")
        for finding in check_label(label, declared, case.facts):
            _say(f"  warning: {finding}")
    for one in case.recorded[:1]:
        for call in one.calls:
            result = shortened(to_json(shown_outcome(outcome_of(one, call.id))), 300)
            _say(f"recorded: {call.tool} {shortened(to_json(call.emitted), 200)} -> {result}")


def _say(text: str) -> None:
    sys.stderr.write(plain(text) + "\n")


def _ask(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return one_line(sys.stdin.readline().strip())


def _edited(start: Any) -> Any:
    """The label as it is in the user's editor, else as one line."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return _json_of(_ask("label as one line of JSON > "))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "label.json"
        path.write_text(json.dumps(start, indent=1, ensure_ascii=False), "utf-8")
        subprocess.run([*shlex.split(editor), str(path)], check=False)
        return _json_of(path.read_text("utf-8"))


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"that is not JSON: {error}") from None
