"""`playhead.fixtures(...)`: record what a block asks of the network once, and serve it from then on."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, cast

from playhead.adapters.http import intercept_for_good, intercepting
from playhead.core.fixtures.modes import Mode, parse_effects
from playhead.core.http.request import HttpRules
from playhead.engine.fixtures.calls import FixtureOptions, FixtureRow
from playhead.engine.fixtures.report import options_here
from playhead.engine.fixtures.run import FixtureRun
from playhead.engine.fixtures.scope import in_force, join, open_run
from playhead.errors import UsageError


class FixtureTape:
    """What a run with fixtures did so far; empty in mode live."""

    def __init__(self, run: FixtureRun | None) -> None:
        self._run = run

    @property
    def mode(self) -> Mode:
        return "live" if self._run is None else self._run.mode

    @property
    def ledger(self) -> Sequence[FixtureRow]:
        """One row per call, in order."""
        return () if self._run is None else self._run.rows

    @property
    def served(self) -> int:
        return sum(1 for row in self.ledger if row.status == "served")

    @property
    def misses(self) -> Sequence[FixtureRow]:
        return [row for row in self.ledger if row.status == "missed"]

    @property
    def leftovers(self) -> Sequence[str]:
        """Files of the set that answered nothing yet."""
        return [] if self._run is None else self._run.leftovers()


def _ignored(
    ignore: Iterable[str] | Mapping[str, Iterable[str]],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Pointers for every request, and those by tool."""
    if not isinstance(ignore, Mapping):
        return tuple(ignore), {}
    by_tool = cast("Mapping[str, Iterable[str]]", ignore)
    return (), {tool: (each,) if isinstance(each, str) else tuple(each) for tool, each in by_tool.items()}


class fixtures:  # noqa: N801 - used as a function
    """Records the HTTP requests of a block, or serves them from what was recorded; ``with`` and ``async with``.

    Args:
        mode: ``live``, ``record``, ``replay``, ``auto`` or ``check``; left out, ``PLAYHEAD_MODE``, the setting,
            ``replay`` in pytest, else ``live``.
        set: a subfolder of the fixture folder; left out, ``PLAYHEAD_SET``, else the shared set.
        dir: the fixture folder.
        http: True for the requests of every host, or the hosts (``api.example.com``, ``*.example.com``, ``host:8080``).
        ignore: JSON pointers that do not count in requests: ``/body/json/ts``, ``/url/query/nonce``; or a mapping of
            pointers by op id or request (``GET api.example.com``).
        match_headers: request headers that count. keep_headers: response headers stored beside the usual ones.
        sort_query: the order of the query does not count.
        timing: ``recorded`` gives the chunks of a stream with their pauses, a number with that factor of them.
        on_miss: ``error_result`` raises a miss as an ordinary error and goes on; the run fails in the end all the same.
        repeat: what answers past the last recording: nothing, the ``last`` or the ``first`` one again.
        sequence: ``last`` keeps one recording per request, which answers every time.
        order: ``recorded`` serves equal requests of several threads in the order of their starts.
        effects: the most that record, auto and check may run: ``read``, ``write``, ``destructive``.
        allow_empty: a replay that asks for nothing is fine.
        strict: recordings that nothing asked for let a replay fail.
        save: ``always`` puts in use what a run recorded that failed, and marks the set as incomplete.

    Raises:
        NoFixturesError: a replay where nothing is recorded. MissingFixtureError: a request that nothing answers.
        FixtureRunError: another reason why the run failed; both come at the end of the block, also when its code
            swallowed them.
    """

    def __init__(
        self,
        mode: str | None = None,
        set: str | None = None,
        dir: str | os.PathLike[str] | None = None,
        *,
        http: bool | Iterable[str] = False,
        ignore: Iterable[str] | Mapping[str, Iterable[str]] = (),
        match_headers: Iterable[str] = (),
        keep_headers: Iterable[str] = (),
        sort_query: bool = False,
        timing: Literal["recorded"] | float | None = None,
        on_miss: Literal["fail", "error_result"] = "fail",
        repeat: Literal["error", "last", "first"] = "error",
        sequence: Literal["all", "last"] = "all",
        order: Literal["recorded"] | None = None,
        effects: Literal["read", "write", "destructive"] | None = None,
        allow_empty: bool = False,
        strict: bool = False,
        save: Literal["success", "always"] = "success",
    ) -> None:
        for name, texts in {"http": http, "ignore": ignore, "match_headers": match_headers}.items():
            if isinstance(texts, str):
                raise UsageError(f"{name} is {texts!r}", hint=f"{name}=[{texts!r}]")
        for name, value, known in (
            ("on_miss", on_miss, ("fail", "error_result")), ("repeat", repeat, ("error", "last", "first")),
            ("sequence", sequence, ("all", "last")), ("order", order, (None, "recorded")),
        ):  # fmt: skip
            if value not in known:
                raise UsageError(f"{name} is {value!r}", hint=f"one of {', '.join(map(repr, known))}")
        pointers, by_tool = _ignored(ignore)
        rules = HttpRules(
            hosts=None if http is True else tuple(http or ()),
            ignore=pointers,
            match_headers=tuple(match_headers),
            keep_headers=tuple(keep_headers),
            sort_query=sort_query,
        )
        said = options_here()
        self._mode = mode
        self._dir = dir
        self.options = FixtureOptions(
            set_name=os.environ.get("PLAYHEAD_SET", "") if set is None else set,
            http=rules if http else None,
            ignore=by_tool,
            on_miss=on_miss,
            repeat=repeat,
            sequence=sequence,
            order=order,
            effects=parse_effects(effects) or said.effects,
            timing=1.0 if timing == "recorded" else float(timing or 0),
            allow_empty=allow_empty,
            strict=strict or said.strict,
            save="always" if "always" in (save, said.save) else "success",
        )
        self._run: FixtureRun | None = None
        self._stack = ExitStack()

    def __enter__(self) -> FixtureTape:
        self._run = open_run(self._mode, self._dir, self.options)
        if self._run is not None:
            with ExitStack() as stack:
                stack.enter_context(in_force(self._run))
                if self.options.http is not None:
                    stack.enter_context(intercepting())
                self._stack = stack.pop_all()
        return FixtureTape(self._run)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        self._stack.close()
        if run is not None:
            run.finish(error)

    async def __aenter__(self) -> FixtureTape:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def join_command() -> None:
    """Lets the `playhead fixtures run` that started this process answer its requests, from the very start."""
    join()
    intercept_for_good()
