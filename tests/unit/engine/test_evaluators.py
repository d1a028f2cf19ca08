"""Reading, registering and choosing evaluators."""

from pathlib import Path
from typing import Any

import pytest

from playhead.core.requests import EvaluatorConfig
from playhead.engine.evaluators import choose, is_as_registered, notes, read, resolve
from playhead.errors import EntryPointError, NotFoundError, UsageError
from playhead.store.memory import MemoryStore

CHECKS = '''
import json

LIMIT = 3

def refund_check(ctx):
    """Refunds were issued once."""
    return True

async def other(ctx):
    return LIMIT

class Checks:
    @staticmethod
    def strict(ctx):
        return False

alias = refund_check
'''


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    path = tmp_path / "checks.py"
    path.write_text(CHECKS)
    return path


def register(store: MemoryStore, folder: Path, target: str = "checks.py:refund_check", **more: Any) -> Any:
    return store.evaluators.register(read(target, working_dir=folder, **more))


def test_a_function_of_a_file_is_read_without_running_it(checks: Path) -> None:
    checks.write_text(CHECKS + "\nraise SystemExit('ran')\n")
    found = read("checks.py:refund_check", working_dir=checks.parent)
    assert (found.name, found.description) == ("refund-check", "Refunds were issued once.")
    assert (found.path, found.working_dir) == (str(checks), str(checks.parent))
    assert found.source == checks.read_text()


@pytest.mark.parametrize("target", ["checks.py:other", "checks.py:Checks.strict", "checks.py:alias", "checks:other"])
def test_functions_methods_names_and_modules_can_be_evaluators(checks: Path, target: str) -> None:
    assert read(target, working_dir=checks.parent, name="x").entry_point == target


def test_a_module_of_a_package_is_found_without_importing_it(tmp_path: Path) -> None:
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "pack" / "inner" / "__init__.py").write_text("")
    (tmp_path / "pack" / "inner" / "checks.py").write_text(CHECKS)
    found = read("pack.inner.checks:other", working_dir=tmp_path)
    assert found.path == str(tmp_path / "pack" / "inner" / "checks.py")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("checks", "module:function"),
        ("checks.py:", "module:function"),
        ("checks.py:refund check", "module:function"),
        ("missing.py:f", "no file"),
        ("missing.module:f", "no module"),
        ("json:dumps.x.y", "has no"),
        ("checks.py:refund_chek", "refund_check"),
        ("math:sqrt", "no Python file|no module"),
    ],
)
def test_what_is_no_function_is_refused_with_a_hint(checks: Path, target: str, words: str) -> None:
    with pytest.raises(EntryPointError) as refused:
        read(target, working_dir=checks.parent)
    text = f"{refused.value.message} {refused.value.hint}"
    assert any(word in text for word in words.split("|"))


def test_a_file_that_is_not_python_is_refused(checks: Path) -> None:
    checks.write_text("def refund_check(:")
    with pytest.raises(EntryPointError, match="cannot be read"):
        read("checks.py:refund_check", working_dir=checks.parent)


@pytest.mark.parametrize("name", ["Refund", "a@1", "", "a b", "-x", "fidelity"])
def test_names_that_could_not_be_told_apart_are_refused(checks: Path, name: str) -> None:
    if name == "":
        return
    with pytest.raises(UsageError):
        read("checks.py:other", working_dir=checks.parent, name=name)


def test_the_digest_is_that_of_the_code(checks: Path, tmp_path: Path) -> None:
    first = read("checks.py:other", working_dir=tmp_path)
    assert read("checks.py:other", working_dir=tmp_path).digest == first.digest
    assert read("checks.py:refund_check", working_dir=tmp_path).digest != first.digest
    checks.write_text(CHECKS.replace("LIMIT = 3", "LIMIT = 4"))
    assert read("checks.py:other", working_dir=tmp_path).digest != first.digest


def test_a_bare_name_is_the_newest_version_and_stays_it(checks: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    first = register(store, tmp_path)
    (stored,) = resolve(store, [EvaluatorConfig(evaluator="refund-check", params={"max": 2})])
    assert stored == {"evaluator": "refund-check@1", "params": {"max": 2}, "digest": first.digest}
    checks.write_text(CHECKS + "\n# changed\n")
    assert register(store, tmp_path).version == 2
    assert choose(store, stored).registered == first
    assert choose(store, EvaluatorConfig(evaluator="refund-check")).version == 2


def test_unknown_evaluators_are_refused_with_near_names(tmp_path: Path, checks: Path) -> None:
    store = MemoryStore()
    register(store, tmp_path)
    for asked, near in (("refund-chek", "refund-check"), ("fidelty", "fidelity"), ("refund-check@9", "it has 1")):
        with pytest.raises(NotFoundError) as refused:
            resolve(store, [EvaluatorConfig(evaluator=asked)])
        assert near in (refused.value.hint or "")
    for asked in ("fidelity@2", "refund-check@x", "refund-check@", "@1", ""):
        with pytest.raises(NotFoundError):
            resolve(store, [EvaluatorConfig(evaluator=asked)])


def test_one_evaluator_twice_needs_other_parameters(tmp_path: Path, checks: Path) -> None:
    store = MemoryStore()
    register(store, tmp_path)
    twice = [EvaluatorConfig(evaluator="refund-check", params={"n": n}) for n in (1, 2)]
    ids = [choose(store, config).id for config in resolve(store, twice)]
    assert len(set(ids)) == 2
    assert all(id.startswith("refund-check@1#") for id in ids)
    with pytest.raises(UsageError, match="twice"):
        resolve(store, [twice[0], EvaluatorConfig(evaluator="refund-check@1", params={"n": 1.0})])


def test_parameters_that_cannot_be_kept_are_refused(tmp_path: Path, checks: Path) -> None:
    store = MemoryStore()
    register(store, tmp_path)
    with pytest.raises(UsageError, match="stored"):
        resolve(store, [EvaluatorConfig(evaluator="refund-check", params={"f": object()})])
    with pytest.raises(UsageError, match="/nothere"):
        resolve(store, [EvaluatorConfig(evaluator="fidelity", params={"nothere": 1})])


def test_a_file_that_changed_since_is_told(tmp_path: Path, checks: Path) -> None:
    store = MemoryStore()
    stored = register(store, tmp_path)
    resolved = resolve(store, [EvaluatorConfig(evaluator="refund-check"), EvaluatorConfig(evaluator="fidelity")])
    assert is_as_registered(stored)
    assert notes(store, resolved) == []
    checks.write_text("")
    assert "has changed since" in notes(store, resolved)[0]
    checks.unlink()
    assert not is_as_registered(stored)
