"""kitaru's API server and a PostgreSQL for it, on loopback, as long as a block runs."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._environments import UnavailableError

SECONDS = 120
QUIET = {"KITARU_DISABLE_CLIENT_ANALYTICS": "1", "DO_NOT_TRACK": "1", "KITARU_SERVER_ANALYTICS_OPT_IN": "false"}


@dataclass(frozen=True, slots=True)
class Server:
    """``about`` says what it is; ``pids`` are its API process and PostgreSQL's first one, empty for one elsewhere."""

    url: str
    about: str
    home: str
    pids: tuple[int, ...] = ()


@contextmanager
def running(python: Path) -> Iterator[Server]:
    """The server that ``KITARU_API_URL`` names, else one of the package that ``python`` has.

    Raises:
        UnavailableError: there is no PostgreSQL, or the server does not start.
    """
    with tempfile.TemporaryDirectory(prefix="peer-kitaru-") as name:
        named = os.environ.get("KITARU_API_URL")
        if named:
            yield Server(named, "the server of KITARU_API_URL", name)
            return
        programs = _postgres_programs()
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        with _postgres(programs, folder) as (port, postgres), _api(python, folder, port) as (url, api):
            version = subprocess.run(
                [programs / "postgres", "--version"], capture_output=True, text=True
            ).stdout.split()
            yield Server(url, f"its API server, one process, on PostgreSQL {version[2]}", name, (api, postgres))


def _postgres_programs() -> Path:
    found = [Path(path).resolve().parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if all((folder / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return folder
    raise UnavailableError("kitaru's server needs PostgreSQL, and there is no initdb here; or set KITARU_API_URL")


@contextmanager
def _postgres(programs: Path, folder: Path) -> Iterator[tuple[int, int]]:
    """Its port and the id of its first process. PostgreSQL refuses to run as root: then it runs as its own user."""
    data, port = folder / "pg", _free_port()
    data.mkdir()
    given: dict[str, Any] = {}
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            raise UnavailableError("PostgreSQL does not run as root, and there is no user postgres") from None
        os.chown(data, user.pw_uid, user.pw_gid)
        given = {"user": "postgres", "group": user.pw_gid, "extra_groups": []}
    control = [str(programs / "pg_ctl"), "-D", str(data)]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    _did([str(programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "-E", "UTF8"], given)
    _did([*control, "-w", "-l", str(data / "log"), "-o", options, "start"], given)
    try:
        yield port, int((data / "postmaster.pid").read_text().split()[0])
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], capture_output=True, cwd="/", **given)


def _did(command: list[str], given: dict[str, Any]) -> None:
    with tempfile.TemporaryFile() as said:  # a pipe would stay open in the server that `start` leaves behind
        if subprocess.run(command, stdout=said, stderr=said, cwd="/", **given).returncode != 0:
            said.seek(0)
            raise UnavailableError(f"{Path(command[0]).name} failed: {said.read().decode(errors='replace')[-400:]}")


@contextmanager
def _api(python: Path, folder: Path, database: int) -> Iterator[tuple[str, int]]:
    port = _free_port()
    settings = {
        "DB_HOST": "127.0.0.1", "DB_PORT": database, "DB_USER": "postgres", "DB_PWD": "bench", "DB_NAME": "kitaru",
        "JWT_SIGNING_KEY": "bench" * 8, "SECRET_ENCRYPTION_KEY": "bench" * 8, "AUTH_SCHEME": "none",
        "HOST": "127.0.0.1", "PORT": port, "LOG_LEVEL": "WARNING",
    }  # fmt: skip
    env = {**os.environ, **QUIET, "HOME": str(folder), **{f"KITARU_SERVER_{k}": str(v) for k, v in settings.items()}}
    log = folder / "api.log"
    with log.open("wb") as out:
        if (
            subprocess.run([python, "-m", "kitaru.server.database.main"], env=env, stdout=out, stderr=out).returncode
            != 0
        ):
            raise UnavailableError(f"kitaru's database cannot be made: {log.read_text()[-400:]}")
        process = subprocess.Popen([python, "-m", "kitaru.server.api.main"], env=env, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + SECONDS
        while not _answers(f"{url}/health/live"):
            if process.poll() is not None or time.monotonic() > until:
                raise UnavailableError(f"kitaru's server does not start: {log.read_text()[-400:]}")
            time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
