"""Nine ways out of a process, each tried for real against listeners on this machine's loopback, under every level.

Each way must reach its listener without a guard: a way that fails by itself would prove nothing.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import pytest

from playhead.engine.isolation import guard as isolation
from playhead.engine.isolation.guard import Isolation

NATIVE = Path(__file__).parent / "native"
WAYS = (
    "plain_socket", "uvloop", "pycurl", "psycopg", "native_extension", "ctypes_call", "subprocess_curl", "dns", "udp",
)  # fmt: skip
BY_DATAGRAM = ("dns", "udp")
LEVELS = ("namespace", "bwrap", "landlock")
ENTER = """
import os, runpy, sys
from playhead.engine.isolation import guard as isolation
isolation._IN_PLACE = (os.environ["LEVEL"],)
level = isolation.enter(isolation.Isolation(mode="require"))
assert level.name == os.environ["LEVEL"], level
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the native extension, built for this interpreter."""
    compiler = shutil.which("cc")
    include = sysconfig.get_paths()["include"]
    if compiler is None or not Path(include, "Python.h").exists():
        pytest.skip("needs a C compiler and Python.h")
    folder = tmp_path_factory.mktemp("extension")
    library = folder / f"way_out{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-I{include}", str(NATIVE / "way_out.c"), "-o", str(library), "-lresolv"],
        check=True,
    )
    return folder


class Listeners:
    """A listener of its own for each way, so that one child can try them all."""

    def __init__(self, stack: ExitStack) -> None:
        self.sockets: dict[str, socket.socket] = {}
        for way in WAYS:
            kind = socket.SOCK_DGRAM if way in BY_DATAGRAM else socket.SOCK_STREAM
            made = stack.enter_context(socket.socket(socket.AF_INET, kind))
            made.bind(("127.0.0.1", 0))
            if kind == socket.SOCK_STREAM:
                made.listen()
            made.setblocking(False)
            self.sockets[way] = made

    def ports(self) -> str:
        return json.dumps({way: made.getsockname()[1] for way, made in self.sockets.items()})

    def take(self) -> set[str]:
        """The ways that got through since the last call; connections are closed, so that clients do not wait."""
        found: set[str] = set()
        for way, made in self.sockets.items():
            with suppress(BlockingIOError):
                if way in BY_DATAGRAM:
                    made.recvfrom(2048)
                else:
                    made.accept()[0].close()
                found.add(way)
        return found


def reached(level: str, how: str, folder: Path) -> set[str]:
    """The ways by which a child gets out under a level."""
    with ExitStack() as stack:
        listeners = Listeners(stack)
        paths = os.pathsep.join([str(folder), str(Path(isolation.__file__).parents[2])])
        env = {**os.environ, "PORTS": listeners.ports(), "PYTHONPATH": paths, "LEVEL": level}
        program = str(NATIVE / "ways_out.py")
        argv = [sys.executable, program] if how == "launch" else [sys.executable, "-c", ENTER, program]
        mode = "require" if how == "launch" and level != "off" else "off"
        child = stack.enter_context(
            isolation.launch(argv, policy=Isolation(mode=mode), env=env, stderr=subprocess.PIPE)
        )
        found: set[str] = set()
        while True:
            found |= listeners.take()
            with suppress(subprocess.TimeoutExpired):
                _, said = child.communicate(timeout=0.02)
                break
        assert child.returncode == 0, said.decode()
        return found | listeners.take()


@pytest.fixture(scope="module")
def out(extension: Path) -> dict[tuple[str, str], set[str]]:
    """What each level lets out; one child for each, started when first asked for."""

    class Results(dict[tuple[str, str], set[str]]):
        def __missing__(self, key: tuple[str, str]) -> set[str]:
            level, how = key
            with pytest.MonkeyPatch.context() as patch:
                if level != "off":
                    only(level, patch)
                self[key] = reached(level, how, extension)
            return self[key]

    return Results()


def only(level: str, patch: pytest.MonkeyPatch) -> None:
    """Lets `launch` find one level only; skips where it is not to be had."""
    reason = getattr(isolation.available(), level)
    if reason is not None:
        pytest.skip(f"{level}: {reason}")
    patch.setattr(isolation, "_why_not", cache(lambda name: None if name == level else "not in this test"))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_leads_out_without_a_guard(out: dict[tuple[str, str], set[str]], way: str) -> None:
    assert way in out["off", "launch"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_out_of_a_program_that_was_launched(
    out: dict[tuple[str, str], set[str]], way: str, level: str
) -> None:
    assert way not in out[level, "launch"]


@pytest.mark.parametrize("level", ["namespace", "landlock"])
@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_out_of_a_process_that_entered(out: dict[tuple[str, str], set[str]], way: str, level: str) -> None:
    assert way not in out[level, "enter"]
