"""What `enter` does to a process, tried in forks and children of this one."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from playhead.engine.isolation import guard as isolation

SOURCE = str(Path(isolation.__file__).parents[2])
PRELUDE = """
import ctypes, json, os, socket, sys, threading
from pathlib import Path
from playhead.engine.isolation import guard as isolation
from playhead.engine.isolation import kernel as isolation_kernel
from playhead.engine.isolation.guard import Isolation, enter
said = {}
def become_nobody():
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    isolation_kernel.prctl(4, 1)  # as after starting a program
"""


def child(program: str, *, pass_fds: tuple[int, ...] = ()) -> dict[str, Any]:
    """Runs a program in a fresh process; what it puts into ``said`` comes back."""
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}\n{textwrap.dedent(program)}\nprint(json.dumps(said))"],
        env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False, pass_fds=pass_fds,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def namespaces() -> None:
    reason = isolation.available().namespace
    if reason is not None:
        pytest.skip(f"namespace: {reason}")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root becomes other users")


@pytest.mark.usefixtures("namespaces")
@needs_root
def test_who_is_not_root_gets_a_namespace_and_holds_nothing_afterwards() -> None:
    said = child("""
    become_nobody()
    said["level"] = str(enter(Isolation(mode="require")))
    said["user"] = [os.getuid(), os.getgid()]
    said["held"] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "CapEff" in line]
    said["links"] = sorted(name for _, name in socket.if_nameindex())
    """)
    assert said["level"] == "namespace + python"
    assert said["user"] == [65534, 65534]
    assert int(said["held"][0], 16) == 0
    assert "lo" in said["links"]


@pytest.mark.usefixtures("namespaces")
@needs_root
def test_root_keeps_its_rights_over_other_users_files(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("data")
    theirs.chmod(0o600)
    os.chown(theirs, 1234, 1234)
    program = f"""
    {{drop}}
    said["level"] = str(enter(Isolation(mode="require")))
    Path({str(theirs)!r}).write_text("changed")
    said["owner"] = os.stat({str(theirs)!r}).st_uid
    """
    expected = {"level": "namespace + python", "owner": 1234}
    assert child(program.replace("{drop}", "")) == expected
    assert child(program.replace("{drop}", "isolation_kernel.drop_capabilities()")) == expected  # as in containers


@pytest.mark.usefixtures("namespaces")
def test_the_way_back_into_the_machines_network_is_closed() -> None:
    said = child(f"""
    enter(Isolation(mode="require"))
    for flags in (0, 0x10000000):  # also from inside another user namespace
        if flags:
            isolation_kernel.call("unshare", flags)
        try:
            with open("/proc/{os.getpid()}/ns/net") as network:
                isolation_kernel.call("setns", network.fileno(), 0x40000000)
            said[str(flags)] = "left"
        except PermissionError:
            said[str(flags)] = "held"
    """)
    assert set(said.values()) == {"held"}


@pytest.mark.usefixtures("namespaces")
def test_connections_made_before_the_fork_are_cut_inside_and_live_on_outside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        peer, _ = server.accept()
        with peer:
            said = child(
                f"""
                old = socket.socket(fileno={ours.fileno()})
                level = enter(Isolation(mode="require"))
                said["severed"] = level.severed
                try:
                    old.sendall(b"from inside")
                except OSError as error:
                    said["sent"] = error.errno
                """,
                pass_fds=(ours.fileno(),),
            )
            ours.sendall(b"from outside")
            assert peer.recv(100) == b"from outside"
        assert said["severed"] == [f"127.0.0.1:{server.getsockname()[1]}"]
        assert said["sent"]


def test_a_process_with_threads_is_refused_or_says_so() -> None:
    said = child("""
    wait = threading.Event()
    thread = threading.Thread(target=wait.wait)
    thread.start()
    try:
        enter(Isolation(mode="require"))
    except isolation.RefusedError as error:
        said["refused"] = error.message
    said["best"] = str(enter(Isolation(mode="best")))
    wait.set()
    """)
    assert "a thread was started before the guard" in said["refused"]
    assert said["best"] == "python (a thread was started before the guard)"


def test_where_namespaces_are_refused_landlock_stands_in_and_the_reason_is_told() -> None:
    if isolation.available().landlock is not None:
        pytest.skip(f"landlock: {isolation.available().landlock}")
    said = child("""
    isolation_kernel.has_privileges = lambda: False
    def refused(*_):
        raise PermissionError(1, "unshare: Operation not permitted")
    isolation_kernel._unshare_as_user = refused
    said["level"] = str(enter(Isolation(mode="require")))
    """)
    assert said["level"] == (
        "landlock + python (namespace: unshare: Operation not permitted; TCP by port, no loopback servers)"
    )


def test_where_nothing_can_be_had_best_says_why_and_require_refuses() -> None:
    said = child("""
    isolation._why_not = lambda level: "switched off"
    isolation_kernel.has_privileges = lambda: False
    said["best"] = str(enter(Isolation(mode="best")))
    for attempt in (lambda: enter(Isolation(mode="require")),
                    lambda: isolation.launch(["true"], policy=Isolation(mode="require"))):
        try:
            attempt()
        except isolation.RefusedError as error:
            said.setdefault("refused", []).append(error.details["reasons"])
    """)
    assert said["best"] == "python (namespace: switched off; landlock: switched off)"
    assert said["refused"] == [
        ["namespace: switched off", "landlock: switched off"],
        ["namespace: switched off", "bwrap: switched off", "landlock: switched off"],
    ]


@pytest.mark.usefixtures("namespaces")
def test_sockets_of_this_machines_services_are_out_of_reach(tmp_path: Path) -> None:
    said = child(f"""
    from playhead.engine.isolation import inside as isolation_inside
    path = {str(tmp_path / "db")!r}
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    isolation_inside._SERVICES = (path,)
    for when in ("before", "after"):
        with socket.socket(socket.AF_UNIX) as client:
            said[when] = client.connect_ex(path)
        if when == "before":
            enter(Isolation(mode="require"))
    """)
    assert said == {"before": 0, "after": 111}


@pytest.mark.usefixtures("namespaces")
def test_processes_forked_inside_share_the_guard() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        said = child(f"""
        enter(Isolation(mode="require"))
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            with socket.socket() as out:
                os.write(writer, str(out.connect_ex(("127.0.0.1", {server.getsockname()[1]}))).encode())
            os._exit(0)
        said["error"] = int(os.read(reader, 10))
        """)
        assert said == {"error": 111}
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.usefixtures("namespaces")
def test_attempts_that_only_the_kernel_saw_are_counted() -> None:
    said = child("""
    import subprocess
    level = enter(Isolation(mode="require"))
    said["before"] = isolation.refusals(level)
    subprocess.run(["curl", "-s", "-m", "2", "http://203.0.113.1/"])
    said["after"] = isolation.refusals(level)
    """)
    assert said == {"before": [], "after": ["hosts not seen (1 tries by programs or native code)"]}
