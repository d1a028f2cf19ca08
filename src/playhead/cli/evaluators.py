"""``playhead evaluator scaffold | test | register | list | show``."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from playhead.cli import shown
from playhead.cli.context import Context, Ctx
from playhead.cli.output import Block, Fields, Result, Table
from playhead.errors import ConflictError, StoreError, UsageError

if TYPE_CHECKING:
    from playhead.core.values import Verdict
    from playhead.engine.evaluator_client import EvaluatorClient, EvaluatorInfo
    from playhead.engine.evaluators import Chosen

_SCAFFOLD = '''\
"""An evaluator: a function of one session that says what it finds."""

import playhead


def {function}(ctx: playhead.EvaluationContext) -> list[playhead.Verdict]:
    """The session ended well, and no tool call failed twice."""
    verdicts = [
        playhead.Verdict(
            name="ended-well",
            passed=ctx.session.status == "completed",
            explanation=f"the session {{ctx.session.status}}",
        )
    ]

    # ctx.tool_calls are nodes: node.call has tool and arguments, node.outcome what it gave.
    failed = [node for node in ctx.tool_calls if node.outcome is not None and node.outcome.kind != "value"]
    seen: set[tuple[str, str]] = set()
    for node in failed:
        call = (node.name, repr(node.call.arguments))
        if call in seen:
            verdicts.append(
                playhead.Verdict(
                    name="no-repeated-failure",
                    passed=False,
                    explanation=f"{{node.name}} failed again with the same arguments",
                    evidence=({{"node": node.id, "pointer": "/call/arguments"}},),
                )
            )
            break
        seen.add(call)

    # In a replay, ctx.baseline is the recorded session and ctx.comparison how the two differ.
    if ctx.comparison is not None:
        verdicts.append(playhead.Verdict(name="same-answer", passed=ctx.comparison.output_equal))
    return verdicts
'''


def scaffold(name: str, /, *, context: Ctx, file: str | None = None) -> Result:
    """Write a file with an evaluator that works as it stands.

    Args:
        name: Name of the evaluator, such as refund-check.
        file: The file to write; left out, the name with underscores.
    """
    from playhead.core.evaluation import NAME
    from playhead.core.evaluators.catalog import BUILTINS

    function = name.replace("-", "_").replace(".", "_")
    if not NAME.fullmatch(name) or not function.isidentifier():
        raise UsageError(f"{name!r} cannot be the name of an evaluator", hint="for example refund-check")
    if name in BUILTINS:
        raise UsageError(f"{name!r} is the name of a built-in evaluator", hint="choose another name")
    path = Path(file or f"{function}.py")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as made:
            made.write(_SCAFFOLD.format(function=function))
    except FileExistsError:
        raise ConflictError(f"{path} exists", hint="choose another with --file") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None
    target = f"{path}:{function}"
    text = [f"made {path}", f"try it:       playhead evaluator test {target} last"]
    text.append(f"register it:  playhead evaluator register {target} --name {name}")
    return Result(data={"name": name, "file": str(path), "entry_point": target}, text=text)


def try_evaluator(
    target: str,
    session: str = "last",
    /,
    *others: str,
    context: Ctx,
    params: str | None = None,
    labels: str | None = None,
    keep: bool = False,
    env: tuple[str, ...] = (),
    network: bool = False,
    timeout: float | None = None,
) -> Result:
    """Call an evaluator on stored sessions and show its verdicts.

    The session of a replay is judged with its baseline and ledger. Exit code 3 when the evaluator came to no verdict.

    Args:
        target: path/to/file.py:function, module:function, or the NAME or NAME@VERSION of one that is known.
        session: Session to judge: id, shortened id, last or last~N.
        others: Further sessions.
        params: Parameters, as a JSON object or @FILE.
        labels: What people said, as JSON or @FILE: an object from session id to pass or fail. Prints how far the
            evaluator agrees with them.
        keep: Store the verdicts with the sessions.
        env: Environment variable that the evaluator gets; may be given several times.
        network: Let it open connections.
        timeout: Seconds that it may take.
    """
    from playhead.engine.evaluate import error_of, evaluate_session

    store = context.store
    chosen = _chosen(context, target, _json("--params", params), env=env, network=network, timeout=timeout)
    ids = [store.sessions.resolve(one) for one in (session, *others)]
    done = {id: evaluate_session(store, id, [chosen], project=context.project, keep=keep).verdicts for id in ids}
    every = [verdict for verdicts in done.values() for verdict in verdicts]
    data: dict[str, Any] = {
        "evaluator": chosen.id,
        "sessions": [{"session_id": id, "verdicts": [shown.members(v) for v in found]} for id, found in done.items()],
    }
    text: list[Block] = []
    for id, found in done.items():
        text += [f"session {id}", shown.verdict_table(found)]
    text += [f"{v.name}: {v.explanation}" for v in every if v.error is not None]
    if labels is not None:
        data["agreement"] = _agreement(done, {store.sessions.resolve(k): v for k, v in _labels(labels).items()})
        text.append(Fields(list(data["agreement"].items())))
    return Result(data=data, text=text, exit_code=3 if error_of(every) is not None else 0)


def _chosen(
    context: Context, target: str, params: dict[str, Any], *, env: tuple[str, ...], network: bool,
    timeout: float | None,
) -> "Chosen":  # fmt: skip
    from playhead.core.requests import EvaluatorConfig
    from playhead.engine.evaluators import Chosen, choose, read

    if ":" not in target:
        return choose(context.store, EvaluatorConfig(evaluator=target, params=params))
    found = read(target, working_dir=Path.cwd(), env=env, network=network, timeout=timeout)
    return Chosen(name=found.name, version=0, params=params, registered=found)


def _json(option: str, given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    try:
        text = Path(given[1:]).read_text("utf-8") if given.startswith("@") else given
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {given!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{option}: {given!r} is not a JSON object", hint=f"{option} '{{\"max\": 3}}'")
    return cast("dict[str, Any]", found)


def _labels(given: str) -> dict[str, bool]:
    found = _json("--labels", given)
    words = {"pass": True, "fail": False, True: True, False: False}
    for id, word in found.items():
        if not isinstance(word, str | bool) or word not in words:
            raise UsageError(f"--labels: {word!r} of {id} is neither pass nor fail")
    return {id: words[word] for id, word in found.items()}


def _agreement(done: "dict[str, tuple[Verdict, ...]]", labels: dict[str, bool]) -> dict[str, Any]:
    """How far the first verdict of each session that people labelled is theirs."""
    from playhead.core.stats import agreement

    pairs = [(found[0].passed, labels[id]) for id, found in done.items() if id in labels and found]
    said = [(bool(ours), theirs) for ours, theirs in pairs if ours is not None]
    found = agreement(said)
    return {
        "labelled": len(pairs),
        "undecided": len(pairs) - len(said),
        "agreement": round(found.raw, 4) if said else None,
        "kappa": None if found.kappa is None else round(found.kappa, 4),
    }


def register(
    target: str,
    /,
    *,
    context: Ctx,
    name: str | None = None,
    description: str | None = None,
    env: tuple[str, ...] = (),
    network: bool = False,
    timeout: float | None = None,
) -> Result:
    """Register a function as an evaluator.

    The file is kept with the version, and what runs is what was registered. Unchanged code stays the version it is.

    Args:
        target: path/to/file.py:function or module:function.
        name: Its name; left out, that of the function with hyphens.
        description: What it says; left out, the first line of the function's docstring.
        env: Environment variable that it gets, such as the key of a model; may be given several times.
        network: Let it open connections.
        timeout: Seconds that it may take, a minute when left out.
    """
    context.make_store()
    found = _client(context).register(
        target, name=name, description=description, env=env, network=network, timeout=timeout,
        working_dir=os.getcwd(),  # noqa: PTH109 - a text
    )  # fmt: skip
    return Result(data=_row(found), text=[f"{target} is {found.name}@{found.version}", Fields(_fields(found))])


def list_evaluators(*, context: Ctx) -> Result:
    """List built-in and registered evaluators."""
    found = _client(context).list()
    rows = [
        {
            "evaluator": f"{one.name}@{one.version}",
            "kind": one.kind,
            "params": ", ".join(one.params),
            "description": one.description if one.current else f"(changed since) {one.description or ''}",
        }
        for one in found
    ]
    columns = ("evaluator", "kind", "params", "description")
    return Result(data=[_row(one) for one in found], items=True, text=[Table(columns, rows)])


def show_evaluator(evaluator: str, /, *, context: Ctx) -> Result:
    """Show an evaluator's versions, code and parameters.

    Args:
        evaluator: NAME, or NAME@VERSION.
    """
    client = _client(context)
    found = client.get(evaluator)
    versions = client.versions(found.name)
    text: list[Block] = [Fields(_fields(found))]
    if len(versions) > 1:
        rows = [{"version": v.version, "made": shown.when(v.created_at), "digest": v.digest} for v in versions]
        text.append(Table(("version", "made", "digest"), rows))
    data = _row(found) | {"versions": [_row(version) for version in versions]}
    if found.kind == "built-in":
        data["schema"] = _schema(found.name)
    return Result(data=data, text=text)


def _schema(name: str) -> dict[str, Any]:
    """JSON Schema of a built-in's parameters."""
    from playhead.core.evaluators.catalog import BUILTINS

    return BUILTINS[name].params.model_json_schema()


def _client(context: Context) -> "EvaluatorClient":
    from playhead.engine.evaluator_client import EvaluatorClient

    return EvaluatorClient(context.store)


def _row(found: "EvaluatorInfo") -> dict[str, Any]:
    return asdict(found)


def _fields(found: "EvaluatorInfo") -> list[tuple[str, object]]:
    return [
        ("evaluator", f"{found.name}@{found.version}"),
        ("kind", found.kind),
        ("says", found.description),
        ("parameters", ", ".join(found.params) or None),
        ("entry point", found.entry_point),
        ("file", found.path if found.current else f"{found.path} (changed since)"),
        ("digest", found.digest),
        ("environment", ", ".join(found.env) or None),
        ("network", "yes" if found.network else None),
        ("timeout", None if found.timeout is None else f"{found.timeout:g} s"),
        ("made", shown.when(found.created_at)),
    ]
