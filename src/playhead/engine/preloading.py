"""What a forked child still had to load or build, so that the next one need not: modules, and pydantic schemas that
are built at their first use."""

import gc
import importlib
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

_OWN = ("__main__", "__mp_main__", "_playhead_entry_")


def new_modules(before: Iterable[str]) -> list[str]:
    """Modules that were loaded since; those that have no name of their own to load them by are left out."""
    known = set(before)
    found = [name for name in list(sys.modules) if name not in known]
    return [name for name in found if not name.startswith(_OWN) and getattr(sys.modules[name], "__spec__", None)]


def unbuilt() -> set[str]:
    """Pydantic models and adapters whose schema is not built yet, as ``module:name``."""
    if "pydantic" not in sys.modules:
        return set()
    return {f"{module}:{name}" for module, name, _ in _lazy()}


def preload(modules: Iterable[str], built: Iterable[str]) -> None:
    """Loads modules and builds schemas. What cannot be is left to the child, which can."""
    for name in modules:
        with suppress(Exception):
            importlib.import_module(name)
    wanted = set(built)
    for module, name, value in list(_lazy()) if wanted else ():
        if f"{module}:{name}" in wanted:
            with suppress(Exception):
                getattr(value, "model_rebuild" if isinstance(value, type) else "rebuild")(raise_errors=False)


def _lazy() -> Iterable[tuple[str, str, Any]]:
    """Module, name and value of every pydantic model class and type adapter that is incomplete."""
    from pydantic import BaseModel, TypeAdapter

    classes: list[type[BaseModel]] = [BaseModel]
    while classes:
        cls = classes.pop()
        classes += cls.__subclasses__()
        if not getattr(cls, "__pydantic_complete__", True) and cls is not BaseModel:
            yield cls.__module__, cls.__qualname__, cls
    for module_name, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if type(value) is TypeAdapter and not value.pydantic_complete:
                yield module_name, name, value


def settle_memory() -> None:
    """Before a fork: what is alive now stays, and a collection in a child need not touch (and so copy) it."""
    gc.collect()
    gc.freeze()
