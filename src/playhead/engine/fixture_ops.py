"""The ops that a project declares, imported without letting them connect to anything."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from playhead.engine.egress import EgressGuard, guarded
from playhead.engine.ops import Op, declared
from playhead.engine.project import Project
from playhead.errors import ConfigError, OpsImportError


def op_modules(project: Project) -> tuple[str, ...]:
    """The modules that ``[tool.playhead.fixtures] ops`` names.

    Raises:
        ConfigError: it is no list of names.
    """
    said: Any = project.settings.fixtures.get("ops", [])
    if not isinstance(said, list) or not all(isinstance(each, str) and each for each in cast("list[Any]", said)):
        raise ConfigError(
            f"{project.source}: fixtures.ops is {said!r}", hint='a list of modules, such as ["orders.ops"]'
        )
    return tuple(cast("list[str]", said))


def load_ops(project: Project, modules: Sequence[str]) -> Mapping[str, Op]:
    """The ops that the modules, and those below them, declare or hold; no connection is possible meanwhile.

    Raises:
        OpsImportError: a module cannot be imported, or wanted to connect.
    """
    for place in (project.root / "src", project.root):
        if place.is_dir() and str(place) not in sys.path:
            sys.path.insert(0, str(place))
    found: dict[str, Op] = {}
    for name in modules:
        try:
            with guarded(EgressGuard(allow_models=False)):
                module = import_module(name)
        except BaseException as error:  # a module may raise anything, SystemExit too
            if isinstance(error, KeyboardInterrupt):
                raise
            raise OpsImportError(
                f"{name} cannot be imported: {type(error).__name__}: {error}",
                hint="mend fixtures.ops in the settings, or look at the files alone with --no-import",
            ) from error
        held = (getattr(value, "__playhead_op__", None) for value in vars(module).values())
        found |= {op.id: op for op in held if isinstance(op, Op)}
    below = tuple(f"{name}." for name in modules)
    for op in declared.values():
        home = op.function.__module__
        current = vars(sys.modules[home]) is op.function.__globals__ if home in sys.modules else False
        if current and (home in modules or home.startswith(below)):
            found.setdefault(op.id, op)
    return found
