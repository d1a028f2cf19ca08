# pyright: reportMissingImports=false
"""The scripts whose figures the results name: they run, every call takes place, and every call is in the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder(MemoryStore())
    yield made
    made.close()


@pytest.mark.parametrize("name", ["functions", "pydantic_ai"])
def test_two_calls_of_an_adapter_yield_a_row(name: str):
    from benchmarks.adapters import measure
    from benchmarks.scripted.measuring import line

    row = measure(name, calls=2, rounds=1)
    assert 0 < row.bare.median < row.whole.median
    assert (row.model is None) == (name == "functions")
    assert line(name, "1.0", row).split()[:3] == [name, "1.0", f"{row.bare.median:.1f}"]


def test_a_script_that_is_not_recorded_gives_no_figures(recorder: Recorder):
    from benchmarks.scripted import functions
    from benchmarks.scripted.measuring import check

    @contextmanager
    def half(shape: Any, recorder: Recorder) -> Iterator[Any]:
        with functions.recorded(shape, recorder):
            yield functions.in_session(recorder, functions.bare(shape))

    with pytest.raises(RuntimeError, match=r"recorded are \(0, 0\) tool and model calls instead of \(2, 0\)"):
        check(SimpleNamespace(MODELS=False, recorded=half, bare=functions.bare), recorder, 2)


def test_a_tool_that_does_not_run_gives_no_figures():
    from benchmarks.scripted.measuring import Arm, Shape, timed

    @contextmanager
    def nothing(shape: Any) -> Iterator[Any]:
        yield lambda: None

    with pytest.raises(RuntimeError, match="0 tool calls instead of 3"):
        timed(Arm("idle", nothing), Shape(3, 1))


def test_prices_are_told_apart_by_shape():
    from benchmarks.scripted.measuring import Took, row

    def took(run: float, model: float, tool: float) -> list[Took]:
        counts = ((1, 0), (2, 10), (11, 10))
        return [Took(0.1 + (run + model * models + tool * tools) / 1e6, 0.1) for models, tools in counts]

    found = row("x", [took(0, 0, 0)], [took(500, 70, 30)], 10, models=True)
    assert found.model is not None
    assert (round(found.run.median), round(found.model.median), round(found.tool.median)) == (500, 70, 30)


def test_benchmarks_that_install_packages_run_only_where_they_are_named(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import __main__ as command

    started: list[str] = []
    monkeypatch.setattr(command, "run", lambda name: (started.append(name), (0, ""))[1])
    monkeypatch.setattr(command.sys, "argv", ["benchmarks"])
    assert command.main() == 0
    assert {"adapters", "recording"} < set(started)
    assert not {"peer_kitaru", "thin_adapters"} & set(started)

    monkeypatch.setattr(command.sys, "argv", ["benchmarks", "peer_kitaru"])
    assert command.main() == 0
    assert started[-1] == "peer_kitaru"


def test_figures_are_kept_where_a_benchmark_cannot_run_today(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from benchmarks import __main__ as command
    from benchmarks._environments import SKIPPED

    kept = tmp_path / "RESULTS.md"
    monkeypatch.setattr(command, "RESULTS", kept)
    monkeypatch.setattr(command.sys, "argv", ["benchmarks", "--save", "peer_kitaru"])
    monkeypatch.setattr(command, "run", lambda name: (0, "figures"))
    assert command.main() == 0
    before = kept.read_text()
    assert "figures" in before
    monkeypatch.setattr(command, "run", lambda name: (SKIPPED, "skipped: no network"))
    assert command.main() == 0
    assert kept.read_text() == before


def test_a_peer_that_cannot_be_installed_or_started_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    from benchmarks import _environments
    from benchmarks.peer_kitaru import __main__ as peer
    from benchmarks.peer_kitaru import server

    monkeypatch.setattr(peer.sys, "argv", ["peer_kitaru"])
    monkeypatch.setattr(peer, "made", lambda *args, **kwargs: tmp_path / "python")
    monkeypatch.delenv("KITARU_API_URL", raising=False)
    monkeypatch.setattr(server.shutil, "which", lambda name: None)
    monkeypatch.setattr(server.Path, "glob", lambda *args: iter(()))
    assert peer.main() == _environments.SKIPPED
    assert "no initdb here" in capsys.readouterr().out

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise _environments.UnavailableError("cannot install kitaru: no route")

    monkeypatch.setattr(peer, "made", refuse)
    assert peer.main() == _environments.SKIPPED
    assert capsys.readouterr().out == "skipped: cannot install kitaru: no route\n"
