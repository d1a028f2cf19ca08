"""Registered evaluators: reading their code, versions by its digest, and finding the one that a name means."""

import ast
import difflib
import hashlib
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from playhead.core.canonical import NoKeyError, canonical_stored, to_stored
from playhead.core.evaluation import NAME, Evaluator, identity
from playhead.core.evaluators.builtin import VERSION, Builtin, parsed
from playhead.core.evaluators.catalog import BUILTINS
from playhead.core.requests import EvaluatorConfig
from playhead.core.values import JSON
from playhead.engine.clock import SYSTEM_CLOCK, Clock
from playhead.errors import EntryPointError, NotFoundError, UsageError
from playhead.store.ports import Store

DEFAULT = EvaluatorConfig(evaluator="fidelity")
"""What judges a replay that names no evaluator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An evaluator that a configuration means, with its parameters. Exactly one of the two kinds is there."""

    name: str
    version: int
    params: Mapping[str, JSON]
    builtin: Builtin | None = None
    registered: Evaluator | None = None

    @property
    def id(self) -> str:
        """What its verdicts are filed under."""
        return identity(self.name, self.version, self.params)

    def as_json(self) -> dict[str, JSON]:
        """The configuration as a replay stores it."""
        digest = self.registered.digest if self.registered is not None else None
        return {"evaluator": f"{self.name}@{self.version}", "params": dict(self.params), "digest": digest}


def resolve(store: Store, configs: Sequence[EvaluatorConfig]) -> tuple[JSON, ...]:
    """Evaluators as a replay stores them: with the version that a bare name means now, and its digest.

    Raises:
        NotFoundError: there is no such evaluator; with near names. UsageError: parameters that it does not take, or
            one evaluator twice with the same parameters.
    """
    chosen = [choose(store, config) for config in configs]
    ids = [one.id for one in chosen]
    for id in ids:
        if ids.count(id) > 1:
            raise UsageError(f"evaluator {id} is named twice with the same parameters", hint="leave one out")
    return tuple(one.as_json() for one in chosen)


def choose(store: Store, config: EvaluatorConfig | Mapping[str, JSON]) -> Chosen:
    """The evaluator that a configuration means; a stored one (`Chosen.as_json`) means its version for ever.

    Raises:
        NotFoundError, UsageError: as `resolve`.
    """
    if not isinstance(config, EvaluatorConfig):
        config = _config(config)
    name, at, number = config.evaluator.partition("@")
    if at and not number.isdecimal():
        raise NotFoundError(f"{config.evaluator!r} is no evaluator", hint="write NAME or NAME@VERSION")
    version = int(number) if at else None
    params = _params(config)
    builtin = BUILTINS.get(name)
    if builtin is not None:
        if version not in (None, VERSION):
            raise NotFoundError(f"{name!r} has no version {version}", hint=f"it is built in: {name}@{VERSION}")
        parsed(builtin, params)
        return Chosen(name=name, version=VERSION, params=params, builtin=builtin)
    found = _find(store, name, version)
    return Chosen(name=name, version=found.version, params=params, registered=found)


def _config(stored: Mapping[str, JSON]) -> EvaluatorConfig:
    try:
        return EvaluatorConfig.model_validate({k: v for k, v in stored.items() if k != "digest"})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise UsageError(f"an evaluator's configuration: {problem['loc']}: {problem['msg']}") from None


def _params(config: EvaluatorConfig) -> dict[str, JSON]:
    try:
        params = to_stored(config.params)
        canonical_stored(params)
    except NoKeyError as error:
        raise UsageError(f"the parameters of evaluator {config.evaluator!r} cannot be stored: {error}") from None
    return params


def _find(store: Store, name: str, version: int | None) -> Evaluator:
    try:
        return store.evaluators.find(name, version)
    except NotFoundError as error:
        known = [*BUILTINS, *store.evaluators.names()]
        if name in known:
            raise
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
        raise NotFoundError(error.message, hint=hint) from None


# --- reading code ---------------------------------------------------------------------------------------------------


def read(
    entry_point: str, *, working_dir: Path, name: str | None = None, env: Sequence[str] = (), network: bool = False,
    timeout: float | None = None, description: str | None = None, clock: Clock = SYSTEM_CLOCK,
) -> Evaluator:  # fmt: skip
    """An evaluator as its code stands now, not registered yet. Nothing of the code runs.

    Args:
        entry_point: ``module:function`` or ``path/to/file.py:function``.
        name: the function's own with hyphens when left out.

    Raises:
        EntryPointError: there is no such file, module or function. UsageError: a name that cannot be used.
    """
    where, colon, qualname = entry_point.rpartition(":")
    if not colon or not where or not all(part.isidentifier() for part in qualname.split(".")):
        raise EntryPointError(f"{entry_point!r} is no function", hint="write module:function, or path/file.py:function")
    path = _file(where, working_dir)
    try:
        source = path.read_bytes().decode("utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError) as error:
        raise EntryPointError(f"{path} cannot be read: {error}") from None
    function = _function(tree, qualname)
    if function is None:
        names = ", ".join(n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        raise EntryPointError(f"{path} has no {qualname!r}", hint=f"its functions: {names or 'none'}")
    code = [qualname, source, ast.get_source_segment(source, function) or ""]
    return Evaluator(
        name=_name(name or qualname.rpartition(".")[2].replace("_", "-").lower()),
        version=0,
        digest=hashlib.sha256("\0".join(code).encode()).hexdigest(),
        entry_point=entry_point,
        source=source,
        created_at=clock.now(),
        working_dir=str(working_dir.resolve()),
        path=str(path),
        env=tuple(env),
        network=network,
        timeout=timeout,
        description=description or _summary(function),
    )


def _file(where: str, working_dir: Path) -> Path:
    if where.endswith(".py"):
        path = (working_dir / where).resolve()
        if not path.is_file():
            raise EntryPointError(f"there is no file {path}", hint="the path counts from the working directory")
        return path
    found: list[str] | None = [str(working_dir), *sys.path]
    for part in where.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, found) if part.isidentifier() else None
        if spec is None:
            raise EntryPointError(f"there is no module {where!r}", hint="it is looked for in the working directory too")
        found = list(spec.submodule_search_locations or ())
        origin = spec.origin
    if not origin or not origin.endswith(".py"):  # pyright: ignore[reportPossiblyUnboundVariable]
        raise EntryPointError(f"module {where!r} has no Python file that could be kept")
    return Path(origin).resolve()


def _function(tree: ast.Module, qualname: str) -> ast.stmt | None:
    """What defines the name: a function, a class's method, or an assignment."""
    body, found = tree.body, None
    for part in qualname.split("."):
        found = next((node for node in reversed(body) if part in _defines(node)), None)
        body = found.body if isinstance(found, ast.ClassDef) else []
    return found


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom | ast.Import):
        return [(alias.asname or alias.name) for alias in node.names]
    targets: list[Any] = list(node.targets) if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _summary(function: ast.stmt) -> str | None:
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (ast.get_docstring(function) or "").strip().split("\n")[0] or None
    return None


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of an evaluator", hint="letters a-z, digits, hyphen, dot and underscore"
        )
    if name in BUILTINS:
        raise UsageError(f"{name!r} is the name of a built-in evaluator", hint="choose another with --name")
    return name


def is_as_registered(evaluator: Evaluator) -> bool:
    """Whether the file still holds the code that was registered."""
    try:
        return Path(evaluator.path or "").read_bytes().decode("utf-8") == evaluator.source
    except (OSError, ValueError):
        return False


def notes(store: Store, resolved: Sequence[JSON]) -> list[str]:
    """What to tell about evaluators whose files have changed since they were registered."""
    found = [choose(store, config).registered for config in resolved]
    return [
        f"evaluator {e.name}@{e.version} runs as it was registered; {e.path} has changed since"
        for e in found
        if e is not None and not is_as_registered(e)
    ]
