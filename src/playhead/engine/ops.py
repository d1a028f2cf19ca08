"""What an op declares: its id, effect, schemas, parameters, secrets and where it may connect to."""

import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from playhead.core.fixture_modes import EFFECTS
from playhead.core.secret_names import is_credential_name
from playhead.core.values import JSON
from playhead.engine.binding import FunctionBinder
from playhead.engine.failures import make_known
from playhead.engine.op_schema import InputShape, OutputShape
from playhead.errors import ConfigError, OpError

declared: dict[str, "Op"] = {}
"""The ops of this process by id; of two with one id, the one that was declared last."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A secret that an op may read: the variable that holds it, and the hosts that it may be sent to.

    Args:
        env: the environment variable.
        hosts: after the slot was read, ``ctx.http`` reaches only these; None leaves it at the op's ``egress``.
    """

    env: str
    hosts: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class _Chosen:
    config: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    slots: Mapping[str, str] = field(default_factory=dict[str, str])


class Access:
    """What the ops of a group share. Raises `ConfigError` for a declaration that cannot be used."""

    def __init__(
        self, *, config: Mapping[str, Mapping[str, Any]] | None = None, secrets: Mapping[str, Slot] | None = None,
        egress: Sequence[str] = (), env: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.config = {name: dict(each) for name, each in (config or {}).items()}
        self.secrets = dict(secrets or {})
        self.egress = tuple(egress)
        self.env = tuple(env)
        self._chosen: ContextVar[_Chosen | None] = ContextVar("playhead_op_settings", default=None)
        for name, each in self.config.items():
            if unknown := set(each) - {"default", "pattern"}:
                raise ConfigError(f"config {name!r}: unknown {min(unknown)!r}", hint="default and pattern are known")
        if isinstance(egress, str) or isinstance(env, str):
            raise ConfigError("egress and env are lists of text")
        for name in self.env:
            if is_credential_name(name):
                raise ConfigError(f"env names {name!r}, which looks like a credential", hint="declare it in secrets")

    @contextmanager
    def using(
        self, *, config: Mapping[str, JSON] | None = None, slots: Mapping[str, str] | None = None
    ) -> Generator[None]:
        """Within the block the ops get these parameters, and their slots are read from these variables."""
        before = self._chosen.get() or _Chosen()
        token = self._chosen.set(_Chosen({**before.config, **(config or {})}, {**before.slots, **(slots or {})}))
        try:
            yield
        finally:
            self._chosen.reset(token)

    def settings(self) -> Mapping[str, JSON]:
        """The parameters in force.

        Raises:
            OpError: ``config``: some are unknown, missing or ill-formed; the text names all of them.
        """
        chosen = (self._chosen.get() or _Chosen()).config
        values: dict[str, JSON] = {name: each["default"] for name, each in self.config.items() if "default" in each}
        values |= chosen
        wrong = [f"{name} is not declared" for name in chosen if name not in self.config]
        wrong += [f"{name} is missing" for name in self.config if name not in values]
        for name, value in values.items():
            pattern = self.config.get(name, {}).get("pattern")
            if pattern is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
                wrong.append(f"{name} is {value!r}, which does not fit {pattern!r}")
        if wrong:
            raise OpError(f"config: {'; '.join(sorted(wrong))}", code="config")
        return MappingProxyType(values)

    def variable(self, slot: str) -> str:
        """The variable that a declared slot is read from."""
        chosen = (self._chosen.get() or _Chosen()).slots
        return chosen.get(slot, self.secrets[slot].env)

    def scope(self) -> dict[str, JSON]:
        """What makes a call another call although its arguments are the same: chosen parameters and accounts."""
        config = {
            name: value
            for name, value in self.settings().items()
            if "default" not in self.config[name] or self.config[name]["default"] != value
        }
        slots: dict[str, JSON] = {
            name: self.variable(name) for name, slot in self.secrets.items() if self.variable(name) != slot.env
        }
        scope: dict[str, JSON] = {"config": config} if config else {}
        return {**scope, "slots": slots} if slots else scope


@dataclass(frozen=True, kw_only=True)
class OpOptions:
    """What one op declares beside its function."""

    effect: str
    version: str | None = None
    input: JSON = None
    output: JSON = None
    ignore: Sequence[str] = ()
    errors: Sequence[type[Exception]] = ()
    stream: bool = False
    retries: int = 0
    timeout: float | None = None
    scope: Callable[[Any], Mapping[str, JSON]] | None = None


class Op:
    """One declared op.

    Raises:
        ConfigError: the declaration contradicts itself.
    """

    def __init__(self, function: Callable[..., Any], name: str, access: Access, options: OpOptions) -> None:
        self.function = function
        self.id = name
        self.access = access
        self.options = options
        self.signature = inspect.signature(function)
        self.context = _context_parameter(self.signature)
        excluded = frozenset({self.context} if self.context else ())
        self.binder = FunctionBinder(function, excluded)
        first = next(iter(self.signature.parameters), None)
        self.is_method = first in ("self", "cls") and "." in function.__qualname__.rpartition("<locals>.")[2]
        if self.is_method and first is not None:
            excluded |= {first}
        self.excluded = excluded
        self.input = InputShape(self.binder, options.input, excluded)
        self.output = OutputShape(self.binder, options.output, stream=options.stream)
        self._check()
        for cls in options.errors:
            make_known(cls)

    def _check(self) -> None:
        options = self.options
        if not self.id:
            raise ConfigError("an op needs an id")
        if options.effect not in EFFECTS:
            raise ConfigError(f"{self.id}: effect is {options.effect!r}", hint=f"the effects are {', '.join(EFFECTS)}")
        generates = inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function)
        if generates != options.stream:
            raise ConfigError(f"{self.id}: stream=True is for generators, and they need it")
        if self.is_method and options.scope is None:
            raise ConfigError(
                f"{self.id}: a method needs scope=lambda self: {{...}}", hint="what tells one object from another"
            )
        if options.scope is not None and not self.is_method:
            raise ConfigError(f"{self.id}: scope= is for methods")
        if options.retries < 0 or (options.timeout is not None and options.timeout <= 0):
            raise ConfigError(f"{self.id}: retries and timeout are not negative")
        wrong = [each for each in options.ignore if not each.startswith("/")]
        if wrong:
            raise ConfigError(f"{self.id}: ignore has {wrong[0]!r}, which is no JSON pointer", hint='such as "/ts"')

    def scope(self, args: Sequence[Any]) -> JSON:
        """The scope of a call; raises `OpError` for parameters that cannot be used."""
        scope = self.access.scope()
        own = self.options.scope
        if own is not None and args and (found := dict(own(args[0]))):
            scope["self"] = found
        return scope or None

    def assertions(self) -> dict[str, JSON]:
        """What is noted in recordings of the declaration and the code, beside the key."""
        found: dict[str, JSON] = {"defaults": self.input.defaults, "input": self.input.fingerprint}
        if self.options.version is not None:
            found["op_version"] = self.options.version
        if self.output.fingerprint is not None:
            found["output"] = self.output.fingerprint
        if self.code:
            found["code"] = self.code
        return found

    def changed_since(self, then: Mapping[str, JSON]) -> list[str]:
        """Which assertions of a recording do not hold today; a changed default is a question of the call's key."""
        now = self.assertions()
        names = ("op_version", "input", "output", "code")
        return [name for name in names if then.get(name) is not None and then.get(name) != now.get(name)]

    @cached_property
    def code(self) -> str:
        """A digest of the function's source; empty where that is not to be had."""
        try:
            return f"sha256:{sha256(inspect.getsource(self.function).encode()).hexdigest()}"
        except (OSError, TypeError):
            return ""


def _context_parameter(signature: inspect.Signature) -> str | None:
    parameter = signature.parameters.get("ctx")
    if parameter is None:
        return None
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return "ctx" if named.rpartition(".")[2] == "OpContext" else None
