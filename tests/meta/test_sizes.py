"""Modules stay one idea long, functions one screen."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULE_LINES = 500
FUNCTION_LINES = 60
CODE = ("src", "tests", "benchmarks", "examples")


def modules() -> list[Path]:
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a module with its length, the docstring left out."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in _statements(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{prefix}{child.name}", _length(child)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands directly below a statement, without expressions: those hold no function with a name."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, field, ())


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def test_there_is_code_to_measure() -> None:
    assert len(modules()) > 20


def test_no_module_is_too_long() -> None:
    found = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: lines for name, lines in found.items() if lines > MODULE_LINES} == {}


def test_no_function_is_too_long() -> None:
    found = {f"{name_of(path)}::{name}": lines for path in modules() for name, lines in functions(path)}
    assert {name: lines for name, lines in found.items() if lines > FUNCTION_LINES} == {}


def test_the_measure_leaves_the_docstring_out(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text('class A:\n    def f(self):\n        """One.\n\n        Two.\n        """\n        return 1\n')
    assert list(functions(path)) == [("A.f", 2)]
