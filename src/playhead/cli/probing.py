"""The family ``ambiguity`` of ``playhead fuzz``: tools that read alike, and whether a model tells them apart."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.cli.context import Context
from playhead.cli.output import Block, Fields, Result, Table, shortened
from playhead.cli.suite_runs import Teller, access_for
from playhead.errors import UsageError

if TYPE_CHECKING:
    from playhead.core.probes import PairResult, Probe, ToolPair
    from playhead.core.suites.contents import Contents
    from playhead.core.suites.suite import Case
    from playhead.core.suites.trials import SuiteRun
    from playhead.engine.model_access import Access
    from playhead.engine.suites.run import Limits

_COLUMNS = ("tools", "similarity", "verdict", "chosen", "others", "minority", "interval", "runs", "query")


def probes_for(
    contents: "Contents", cases: "Sequence[Case]", *, pairs: Sequence[str] = (), queries: str | None = None,
    queries_file: Path | None = None, base_url: str | None = None, key_env: str | None = None,
    note: Any = None,
) -> "list[Probe]":  # fmt: skip
    """What is asked: requests of a file, of cases that accept either tool, and those that a model writes.

    Args:
        pairs: of tools, as ``LEFT,RIGHT``; those that read alike when left out.
        queries: the model that writes requests.
        note: called with what went wrong beside the result.
    """
    from playhead.core.probes import case_probes, written_probe

    chosen = _pairs(contents, cases, pairs)
    found = [probe for pair in chosen for probe in case_probes(pair, cases, contents.tools)]
    for pair, query in _given(queries_file, chosen):
        found.append(written_probe(pair, query, cases, contents.tools))
    if queries is not None:
        found += _written(contents, cases, chosen, queries, base_url, key_env, note)
    if not found:
        names = ", ".join(f"{pair.left} and {pair.right}" for pair in chosen[:3])
        raise UsageError(
            f"there is no request that {names} could both serve",
            hint="--queries MODEL has them written, --queries-file FILE holds them; labels of kind any_of give some",
        )
    return list({probe.id: probe for probe in found}.values())


def _pairs(contents: "Contents", cases: "Sequence[Case]", named: Sequence[str]) -> "list[ToolPair]":
    from playhead.core.probes import accepted_pairs, named_pairs, similar_pairs, tool_sets

    sets = tool_sets(cases, contents.tools)
    if named:
        try:
            return named_pairs([_two(text) for text in named], sets)
        except ValueError as error:
            raise UsageError(f"--pair: {error}") from None
    found = similar_pairs(sets)
    if found:
        return found
    nearest = similar_pairs(sets, 0.0)[:1]
    told = f"; the most alike are {nearest[0].left} and {nearest[0].right}, {nearest[0].similarity}" if nearest else ""
    named_for = accepted_pairs(cases)[:1] or [(one.left, one.right) for one in nearest]
    hint = f"--pair {','.join(named_for[0])} asks about two tools all the same" if named_for else None
    raise UsageError(f"no two tools that are offered together read alike{told}", hint=hint)


def _two(text: str) -> tuple[str, str]:
    left, _, right = text.partition(",")
    if not left.strip() or not right.strip():
        raise UsageError(f"--pair {text!r} does not name two tools", hint="--pair LEFT,RIGHT")
    return left.strip(), right.strip()


def _given(path: Path | None, pairs: "Sequence[ToolPair]") -> "list[tuple[ToolPair, str]]":
    """The requests of a file: objects with ``query`` and ``tools`` for the pair of that name, texts for every pair."""
    from playhead.core.protocol.shape import is_list, is_object

    if path is None:
        return []
    found: list[tuple[ToolPair, str]] = []
    for place, one in enumerate(_listed(path), 1):
        if isinstance(one, str):
            found += [(pair, one) for pair in pairs]
        elif is_object(one) and isinstance(one.get("query"), str) and is_list(one.get("tools", [])):
            named = {str(name) for name in one.get("tools", ())}
            found += [(pair, str(one["query"])) for pair in pairs if not named or named == {pair.left, pair.right}]
        else:
            raise UsageError(
                f"{str(path)!r}: request {place} is none", hint='a text, or {"tools": [LEFT, RIGHT], "query": TEXT}'
            )
    return found


def _listed(path: Path) -> list[Any]:
    """A JSON list, JSON lines, or one request a line."""
    import json

    from playhead.core.protocol.shape import is_list

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"requests cannot be read from {str(path)!r}: {error}") from None
    try:
        whole: Any = json.loads(text)
    except ValueError:
        whole = None
    if is_list(whole):
        return whole
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) if line.startswith("{") else line for line in lines]
    except ValueError as error:
        raise UsageError(f"{str(path)!r} holds a line that is no JSON: {error}") from None


def _written(
    contents: "Contents", cases: "Sequence[Case]", pairs: "Sequence[ToolPair]", model: str, base_url: str | None,
    key_env: str | None, note: Any,
) -> "list[Probe]":  # fmt: skip
    from playhead.core.probes import written_probe
    from playhead.engine.fuzz.probes import write_queries
    from playhead.engine.model_access import LayerAccess

    access = LayerAccess(name=model, base_url=base_url, key_env=key_env)
    access.check()
    made = write_queries(contents, pairs, access)
    for (left, right), why in made.failed.items():
        if note is not None:
            note(f"{model} wrote no request for {left} and {right}: {why}")
    return [
        written_probe(pair, query, cases, contents.tools, "model")
        for pair in pairs
        for query in made.queries.get((pair.left, pair.right), ())
    ]


def planned(probes: "Sequence[Probe]") -> Result:
    """What would be asked."""
    from playhead.core.probes import EXTENDED, RUNS

    rows = [{"tools": f"{p.left}, {p.right}", "origin": p.origin, "query": shortened(p.query, 100)} for p in probes]
    data = [
        {"probe": p.id, "left": p.left, "right": p.right, "origin": p.origin, "query": p.query, "runs": RUNS}
        for p in probes
    ]
    head = f"{len(probes)} requests, each asked {RUNS} times, and {EXTENDED} times where that decides nothing"
    return Result(data=data, items=True, text=[head, Table(("tools", "origin", "query"), rows)])


def probed(context: Context, contents: "Contents", run: "SuiteRun", limits: "Limits") -> Result:
    """Asks the probes of a run, new or stopped, and says what came of it."""
    from playhead.core.suites.trials import ERROR_LIMIT
    from playhead.engine.fuzz.probes import probe, probes_of_run

    store = context.make_store()
    probes = probes_of_run(run)
    context.note(f"{run.model}: run {run.id}, {len(probes)} requests that either of two tools could serve")
    teller = Teller(context, run.model)
    done = probe(store, contents, run, _access(context, run, probes), limits=limits, tell=teller)
    teller.end()
    told = report(context, contents, done)
    bad = told["trials"] and told["errors"] / told["trials"] > ERROR_LIMIT
    return Result(data=told, text=_text(told), exit_code=3 if bad else 0)


def _access(context: Context, run: "SuiteRun", probes: "Sequence[Probe]") -> "Access":
    """The model of a run; ``scripted:coin`` chooses by chance, ``scripted:coin:0.05`` the first tool so often."""
    scripted, _, share = run.model.removeprefix("scripted:").partition(":")
    if run.model.startswith("scripted:") and scripted == "coin":
        from playhead.testing.scripted_models import CoinAccess

        try:
            return CoinAccess({one.id: (one.left, one.right) for one in probes}, float(share or 0.5))
        except ValueError:
            raise UsageError(f"{run.model!r}: {share!r} is no share", hint="scripted:coin:0.05") from None
    return access_for(context, run, [one.case for one in probes])


def report(context: Context, contents: "Contents", run: "SuiteRun") -> dict[str, Any]:
    """What the stored answers of a run say, as JSON."""
    from playhead.cli.shown import members
    from playhead.core.probes import by_pair, findings
    from playhead.engine.fuzz.probes import probe_results

    store = context.store
    results = probe_results(store, run, contents.suite.effects)
    pairs = by_pair(_asked(contents, results), results)
    trials = store.suites.trials(run.id)
    return {
        "run": run.id, "model": run.model, "status": run.status, "stopped_by": run.stopped_by,
        "scripted": run.scripted, "trials": len(trials),
        "errors": sum(trial.status == "error" for trial in trials),
        "first_error": next((trial.error for trial in trials if trial.status == "error"), None),
        "pairs": [asdict(pair) for pair in pairs],
        "findings": [members(one) for one in findings(pairs)],
        "verdicts": _counted(pairs),
    }  # fmt: skip


def _asked(contents: "Contents", results: Sequence[Any]) -> "list[ToolPair]":
    """The pairs of results with their similarity today; of tools that are gone it is not known."""
    from playhead.core.probes import ToolPair, similar_pairs, tool_sets

    known = {(one.left, one.right): one for one in similar_pairs(tool_sets(contents.cases, contents.tools), 0.0)}
    found = dict.fromkeys((one.left, one.right) for one in results)
    return [known.get(pair) or ToolPair(*pair) for pair in found]


def _counted(pairs: "Sequence[PairResult]") -> dict[str, int]:
    return {name: sum(pair.verdict == name for pair in pairs) for name in ("ambiguous", "undecided", "clear")}


def _text(told: Mapping[str, Any]) -> list[Block]:
    counts = ", ".join(f"{n} {name}" for name, n in told["verdicts"].items() if n)
    blocks: list[Block] = [
        Fields(
            [
                ("run", told["run"]),
                ("model", told["model"]),
                ("status", told["status"]),
                ("stopped by", told["stopped_by"]),
                ("pairs of tools", counts or "none"),
                ("errors", f"{told['errors']}: {told['first_error']}" if told["errors"] else None),
            ]
        ),
        Table(_COLUMNS, [_row(pair, query) for pair in told["pairs"] for query in pair["queries"]]),
    ]
    blocks += [f"{one['message']}. {one['fix']}" for one in told["findings"]]
    return blocks


def _row(pair: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
    low, high = query["interval"]
    return {
        "tools": f"{pair['left']}, {pair['right']}",
        "similarity": pair["similarity"],
        "verdict": query["verdict"] + (" (extended)" if query["extended"] else ""),
        "chosen": ", ".join(f"{name} {n}" for name, n in query["chosen"].items()),
        "others": ", ".join(f"{name} {n}" for name, n in query["others"].items()) or None,
        "minority": f"{query['minority']}/{query['n']}",
        "interval": f"{low:.1%} to {high:.1%}",
        "runs": query["runs"],
        "query": shortened(query["query"], 80),
    }
