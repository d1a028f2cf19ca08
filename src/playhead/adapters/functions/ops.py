"""`op`: functions whose outcomes are recorded in fixtures, declared with what they take, give and may do.

An op is a tool as well. Outside a session and without fixtures in force it is the plain function, with its context,
timeout and retries.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from playhead.adapters.functions.op_wrappers import wrapper
from playhead.adapters.functions.tools import tool
from playhead.core.values import JSON
from playhead.engine.fixtures.ops import Access, Op, OpOptions, Slot, declared

R = TypeVar("R")


def op(
    name: str | None = None, /, *, effect: str, version: str | None = None,
    config: Mapping[str, Mapping[str, Any]] | None = None, secrets: Mapping[str, Slot] | None = None,
    egress: Sequence[str] = (), env: Sequence[str] = (), input: JSON = None, output: JSON = None,
    ignore: Sequence[str] = (), errors: Sequence[type[Exception]] = (), stream: bool = False, retries: int = 0,
    timeout: float | None = None, scope: Callable[[Any], Mapping[str, JSON]] | None = None,
) -> Callable[[Callable[..., R]], Callable[..., R]]:  # fmt: skip
    """Declares a function as an op, whose outcomes `playhead.fixtures` records and serves.

    For type checkers it then takes any arguments, since ``ctx`` is none of the caller's.

    Args:
        name: the id; the function's name when left out.
        effect: ``read``, ``write`` or ``destructive``: what a call does to the world.
        version: noted in recordings; a recording of another version is served and marked.
        config: parameters by name, each with an optional ``default`` and ``pattern``.
        secrets: what ``ctx.secrets.get`` may read.
        egress: hosts that ``ctx.http`` may reach: ``api.example.com``, ``*.example.com``, ``db.example.com:5432``.
        env: variables that ``ctx.env.get`` may read.
        input: JSON Schema of the arguments, in place of annotations.
        output: JSON Schema of the result, in place of an annotation. Without either the result is not checked.
        ignore: JSON pointers into the arguments that do not count, such as ``/ts`` or ``/items/*/etag``.
        errors: exception classes that are outcomes, beside those with a numeric status.
        stream: the function is a generator.
        retries: how often a ``read`` op is run again after an error whose ``retryable`` is true.
        timeout: seconds; a blocking function then runs in a thread, which is left alone when it is late.
        scope: of a method: what tells its object from others.

    Raises:
        ConfigError: the declaration contradicts itself.
    """
    access = Access(config=config, secrets=secrets, egress=egress, env=env)
    options = OpOptions(
        effect=effect, version=version, input=input, output=output, ignore=ignore, errors=errors, stream=stream,
        retries=retries, timeout=timeout, scope=scope,
    )  # fmt: skip

    def decorate(function: Any) -> Any:
        return _declare(function, name or function.__name__, access, options)

    return decorate


class OpGroup:
    """Ops that share a prefix of their ids, a version, and what they may use. Arguments as of `op`."""

    def __init__(
        self, name: str, *, version: str | None = None, config: Mapping[str, Mapping[str, Any]] | None = None,
        secrets: Mapping[str, Slot] | None = None, egress: Sequence[str] = (), env: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.version = version
        self._access = Access(config=config, secrets=secrets, egress=egress, env=env)

    def op(
        self, name: str | None = None, /, *, effect: str, input: JSON = None, output: JSON = None,
        ignore: Sequence[str] = (), errors: Sequence[type[Exception]] = (), stream: bool = False, retries: int = 0,
        timeout: float | None = None, scope: Callable[[Any], Mapping[str, JSON]] | None = None,
    ) -> Callable[[Callable[..., R]], Callable[..., R]]:  # fmt: skip
        """Declares a function of the group; its id is ``group.name``."""
        options = OpOptions(
            effect=effect, version=self.version, input=input, output=output, ignore=ignore, errors=errors,
            stream=stream, retries=retries, timeout=timeout, scope=scope,
        )  # fmt: skip

        def decorate(function: Any) -> Any:
            return _declare(function, f"{self.name}.{name or function.__name__}", self._access, options)

        return decorate

    def using(
        self, *, config: Mapping[str, JSON] | None = None, slots: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Within the block the group's ops get these parameters, and read these variables for their slots."""
        return self._access.using(config=config, slots=slots)


def _declare(function: Any, name: str, access: Access, options: OpOptions) -> Any:
    one = Op(function, name, access, options)
    wrapped = wrapper(one)
    parameters = [each for each in one.signature.parameters.values() if each.name != one.context]
    wrapped.__signature__ = one.signature.replace(parameters=parameters)
    wrapped.__playhead_op__ = one
    declared[name] = one
    return tool(name, effect=options.effect)(wrapped)
