"""Being told of a module's import right after it, without ever importing anything for the user."""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class ImportHook(MetaPathFinder):
    """Calls what waits for a module once that module is imported; a module that is there already is not waited for."""

    def __init__(self, waiting: Mapping[str, Callable[[], None]]) -> None:
        self._waiting = {name: then for name, then in waiting.items() if name not in sys.modules}

    def start(self) -> None:
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        then = self._waiting.pop(fullname, None)
        if then is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            self._waiting[fullname] = then
            return None
        spec.loader = _After(spec.loader, then)
        return spec


class _After(Loader):
    """Runs the real loader, then what was waiting for it."""

    def __init__(self, inner: Loader, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._inner
        self._then()
