"""Every code block of the documentation works as it stands.

The ``python`` blocks of a page run in order in one process, in an empty folder. Lines that begin with ``#> `` say what
the block prints. ``json`` blocks parse; a ``json`` block with a key ``tools`` or ``default`` is a tool policy and is
valid. ``console`` lines that begin with ``$ playhead`` are commands that exist, with options that exist.
"""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Block, blocks, name_of, needs, pages

PAGES = [pytest.param(page, id=name_of(page)) for page in pages() if page.exists()]
RUNNER = """
import contextlib, io, json, sys
blocks = json.load(sys.stdin)
space = {"__name__": "__main__"}
for page, line, text in blocks:
    wanted = [part.strip()[3:] for part in text.splitlines() if part.strip().startswith("#> ")]
    printed = io.StringIO()
    code = compile("\\n" * (line - 1) + text, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, space)
    got = printed.getvalue().splitlines()
    if wanted and got != wanted:
        sys.exit(f"{page}:{line}: printed\\n" + "\\n".join(got) + "\\nnot\\n" + "\\n".join(wanted))
"""


def _is_there(module: str) -> bool:
    """Whether a module can be imported; it is not, which can take long."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    order = [(str(page), block.line, block.text) for block in blocks(page, "python")]
    env = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    warnings = "ignore" if needs(page) else "error"  # frameworks of their own environments may warn as they like
    return subprocess.run(
        [sys.executable, "-W", warnings, "-c", RUNNER],
        cwd=folder, input=json.dumps(order), capture_output=True, text=True, check=False, timeout=120, env=env,
    )  # fmt: skip


@pytest.mark.parametrize("page", [p for p in PAGES if any(blocks(p.values[0], "python"))])  # type: ignore[arg-type]
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    for framework in needs(page):
        if not _is_there(framework):
            pytest.skip(f"framework not installed: {framework}")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES)
def test_json_blocks_are_valid(page: Path) -> None:
    from playhead.core.policy import ToolPolicy

    for block in blocks(page, "json"):
        value = json.loads(block.text)
        if isinstance(value, dict) and {"tools", "default"} & set(value) and not set(value) - {"tools", "default"}:
            ToolPolicy.model_validate(value)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_documentation_exist(page: Path) -> None:
    for block in blocks(page, "console"):
        for line in _commands(block):
            _check(line)


def _commands(block: Block) -> list[str]:
    joined = block.text.replace("\\\n", " ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ playhead")]


def _check(line: str) -> None:
    from playhead.cli.context import split_options
    from playhead.cli.run import find_command, parser

    words = shlex.split(line, comments=True)
    words = words[1 : words.index("|")] if "|" in words else words[1:]
    _, rest = split_options(words)
    found = find_command(rest)
    if isinstance(found, str):
        return
    name, function, given = found
    parser(name, function).parse_args(given, exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    "text", ["raise SystemExit('no')", "print(1)\n#> 2\n", "import warnings\nwarnings.warn('x')", "undefined"]
)
def test_a_block_that_does_not_work_is_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# t\n\n```python\n{text}\n```\n", "utf-8")
    assert run_page(page, tmp_path).returncode != 0


def test_a_command_that_does_not_exist_is_found() -> None:
    with pytest.raises(Exception, match="nothere"):
        _check("playhead session list --nothere")
