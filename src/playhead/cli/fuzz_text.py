"""The results of ``playhead fuzz`` as text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from playhead.cli.output import Block, Fields, Result, Table, shortened, to_json
from playhead.core.reporting.fuzz_pages import finding_row, group_row, interface_row, query_row

if TYPE_CHECKING:
    from playhead.core.fuzz.cases import FuzzSet
    from playhead.engine.fuzz.session import Replayed


def plan_text(made: "FuzzSet") -> Result:
    """The cases that would be tried."""
    data: list[dict[str, Any]] = []
    for case in made.cases:
        one: dict[str, Any] = {
            "case": case.id, "tool": case.tool, "family": case.family, "mutation": case.mutation,
            "pointer": case.pointer, "expectation": case.expectation if case.perturbed is None else None,
            "from": case.source, "query": case.query,
        }  # fmt: skip
        data.append(one | {"arguments": _readable(case.arguments)})
    counts = Counter((one["family"], one["tool"]) for one in data)
    rows = [{"family": family, "tool": tool, "cases": n} for (family, tool), n in sorted(counts.items())]
    text: list[Block] = [f"{len(data)} cases, set {made.digest}, seed {made.seed}"]
    text.append(Table(("family", "tool", "cases"), rows))
    text += [f"no case of {tool}: {why}" for tool, why in made.skipped.items()]
    return Result(data=data, items=True, text=text)


def _readable(value: Any) -> Any:
    text = to_json(value)
    return value if len(text) <= 2_000 else f"{text[:200]}… ({len(text):,} characters)"


def report_text(told: Mapping[str, Any]) -> list[Block]:
    """The report."""
    run, direct = told["run"], told["direct_run"]
    rate = told["false_discovery_rate"]
    confirmed = sum(one["confirmed"] for one in told["findings"])
    blocks: list[Block] = [
        Fields(
            [
                ("run", None if run is None else f"{run['id']} ({run['model']})"),
                ("direct run", None if direct is None else f"{direct['id']} ({direct['model']})"),
                ("status", ", ".join(_status(one) for one in (direct, run) if one is not None)),
                ("cases", f"{told['cases']}, set {told['set']}, seed {told['seed']}"),
                ("trials", f"{told['trials']}" if run is not None else None),
                ("accepted by the tools", told["accepted"] or None),
                ("no case offers the tool", told["without_case"] or None),
                ("errors", f"{told['errors']}: {told['first_error']}" if told["errors"] else None),
                ("findings", f"{confirmed} confirmed of {len(told['findings'])}"),
                ("false discovery rate", None if rate is None else f"{rate:.1%}"),
            ]
        )
    ]
    if run is not None and run["scripted"]:
        blocks.append("made with a scripted model: this measures the harness, not a model")
    if told["direct"] is not None:
        blocks += _direct(told["direct"])
    groups = [group_row(one) for one in told["fed_back"]["groups"]]
    if groups:
        blocks.append(Table(tuple(groups[0]), groups))
    rows = [interface_row(one) for one in told["interface"]]
    if rows:
        blocks.append(Table(tuple(rows[0]), rows))
    rows = [query_row(one) for one in told["queries"]]
    if rows:
        blocks.append(Table(tuple(rows[0]), rows))
    blocks += _findings(told["findings"])
    return blocks


def _status(run: Mapping[str, Any]) -> str:
    return run["status"] if run["stopped_by"] is None else f"{run['status']} by {run['stopped_by']}"


def _direct(found: Mapping[str, Any]) -> list[Block]:
    columns = ("tool", *found["classes"])
    text: list[Block] = [f"{found['calls']} direct calls", Table(columns, found["tools"])]
    rows = [
        {**one, "text": shortened(one["text"], 80)} for one in found["error_texts"] if one["level"] != "prescriptive"
    ]
    if rows:
        text.append(Table(("tool", "level", "count", "text", "better"), rows[:20]))
    return text + ([f"the factory does not have: {', '.join(found['missing'])}"] if found["missing"] else [])


def _findings(found: Sequence[Mapping[str, Any]]) -> list[Block]:
    rows = [{name: shortened(value, 100) for name, value in finding_row(one).items()} for one in found]
    return [Table(tuple(rows[0]), rows)] if rows else []


def replay_text(played: "Replayed") -> Result:
    """A finding played again."""
    found = played.finding
    told = {**asdict(played), "finding": found.id, "tool": found.tool, "arguments": _readable(found.arguments)}
    verdict = "it still stands" if played.stands else "it no longer shows"
    text = Fields(
        [
            ("finding", found.id),
            ("tool", found.tool),
            ("was", found.outcome),
            ("now", ", ".join(played.outcomes)),
            ("said", "\n".join(shortened(text, 300) for text in played.said) or None),
            ("verdict", verdict),
        ]
    )
    return Result(data=told, text=[text], exit_code=1 if played.stands else 0)
