"""What stays reachable under the outer guard: allowed model endpoints, what the agent starts itself, files."""

import http.server
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.engine.entry import load
from playhead.engine.isolation import guard as isolation
from playhead.engine.isolation import tunnel as isolation_tunnel
from playhead.engine.isolation.guard import Isolation, tunnelled
from playhead.engine.isolation.tunnel import Tunnel

SOURCE = str(Path(isolation.__file__).parents[2])
CHAT = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}  # fmt: skip


class ModelServer(http.server.BaseHTTPRequestHandler):
    """Answers everything like a model; keeps the paths it was asked for in ``server.asked``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        body = json.dumps(CHAT).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


class Server:
    def __init__(self) -> None:
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ModelServer)
        self.asked: list[str] = []
        self.http.asked = self.asked  # type: ignore[attr-defined]
        self.port = int(self.http.server_address[1])
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def need(level: str, patch: pytest.MonkeyPatch) -> None:
    reason = getattr(isolation.available(), level)
    if reason is not None:
        pytest.skip(f"{level}: {reason}")
    patch.setattr(isolation, "_why_not", cache(lambda name: None if name == level else "not in this test"))


def run(policy: Isolation, program: str, **env: str) -> dict[str, Any]:
    """Runs a program under the guard; what it puts into ``said`` comes back."""
    code = f"import json\nsaid = {{}}\n{textwrap.dedent(program)}\nprint(json.dumps(said))"
    child = isolation.launch(
        [sys.executable, "-c", code],
        policy=policy,
        env={**os.environ, "PYTHONPATH": SOURCE, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err.decode()
    return json.loads(out)


def test_a_model_client_reaches_an_allowed_endpoint(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    need("namespace", monkeypatch)
    program = f"""
    import openai
    client = openai.OpenAI(base_url="http://127.0.0.1:{server.port}/v1", api_key="x", max_retries=0)
    reply = client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "hi"}}])
    said["openai"] = reply.choices[0].message.content
    """
    with tunnelled(Isolation(mode="require", allow_hosts=frozenset({f"http://127.0.0.1:{server.port}/v1"}))) as policy:
        assert run(policy, program) == {"openai": "hello"}
    assert server.asked == ["/v1/chat/completions"]


@pytest.mark.parametrize("level", ["namespace", "bwrap", "landlock"])
def test_an_allowed_port_of_this_machine_is_reached_and_its_neighbour_is_not(
    server: Server, other: Server, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(level, monkeypatch)
    program = f"""
    import httpx
    said["httpx"] = httpx.get("http://127.0.0.1:{server.port}/plain").status_code
    try:
        httpx.get("http://127.0.0.1:{other.port}/")
    except httpx.ConnectError as error:
        said["other"] = "refused"
    """
    with tunnelled(Isolation(mode="require", allow_hosts=frozenset({f"127.0.0.1:{server.port}"}))) as policy:
        said = run(policy, program)
    assert said == {"httpx": 200, "other": "refused"}
    assert server.asked == ["/plain"]
    assert other.asked == []


@pytest.fixture
def models_by_name(server: Server, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """``models.example:8443`` is allowed, and leads to the server."""
    need("namespace", monkeypatch)
    real = isolation_tunnel.upstream

    def upstream(host: str, port: int) -> Any:
        assert (host, port) == ("models.example", 8443)
        return real("127.0.0.1", server.port)

    monkeypatch.setattr(isolation_tunnel, "upstream", upstream)
    return Isolation(mode="require", allow_hosts=frozenset({"models.example:8443"}))


def test_a_client_that_knows_no_proxy_finds_an_allowed_host_by_name(server: Server, models_by_name: Isolation) -> None:
    program = """
    import httpx
    client = httpx.Client(trust_env=False)
    said["status"] = client.get("http://models.example:8443/direct").status_code
    """
    with tunnelled(models_by_name) as policy:
        assert run(policy, program) == {"status": 200}
    assert server.asked == ["/direct"]


def test_a_program_that_uses_proxies_reaches_an_allowed_host_through_them(
    server: Server, models_by_name: Isolation
) -> None:
    program = """
    import subprocess
    done = subprocess.run(["curl", "-sS", "-p", "http://models.example:8443/proxied"], capture_output=True)
    said["body"] = json.loads(done.stdout)["id"]
    """
    with tunnelled(models_by_name) as policy:
        assert run(policy, program) == {"body": "c1"}
    assert server.asked == ["/proxied"]


def test_refused_hosts_are_named_to_the_parent_and_to_the_child(models_by_name: Isolation) -> None:
    program = """
    import os, socket, subprocess
    from playhead.engine.isolation import guard as isolation
    level = isolation.enter(isolation.Isolation.from_json(json.loads(os.environ["POLICY"])))
    import httpx
    for url in ("https://orders.example/", "http://shop.example:8080/"):
        try:
            said[url] = httpx.get(url).status_code
        except httpx.ProxyError as error:
            said[url] = str(error)
    try:
        socket.getaddrinfo("direct.example", 443)
    except socket.gaierror:
        pass
    said["level"] = str(level)
    said["refused"] = isolation.refusals(level)
    said["again"] = isolation.refusals(level)
    """
    refused = ["orders.example:443", "shop.example:8080", "direct.example:lookup"]
    with tunnelled(models_by_name) as policy:
        off = Isolation(mode="off", tunnel=policy.tunnel)
        said = run(off, program, POLICY=json.dumps(policy.as_json()))
    assert said["https://orders.example/"] == "403 Forbidden"
    assert said["http://shop.example:8080/"] == 403
    assert said["level"] == "namespace + python"
    assert said["refused"] == refused
    assert said["again"] == []


AGENT = """
import openai, playhead

@playhead.agent("asker")
def run(prompt: str) -> str:
    client = openai.OpenAI(max_retries=0)
    reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content
"""


def test_a_replay_asks_a_live_model_at_a_base_url_of_this_machine(
    project: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("namespace", monkeypatch)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    (project / "agent_under_test.py").write_text(AGENT)
    playhead.install()
    try:
        load(f"{project / 'agent_under_test.py'}:run")("hi")
        playhead.flush()
        with playhead.open() as client:
            plan = client.replays.plan(playhead.ReplayCreateRequest(baseline_session_id="last"))
            done = client.replays.create(plan).wait().replay
    finally:
        playhead.uninstall()
    assert (done.error, done.guard) == (None, "namespace + python")
    assert [row.detail for row in done.ledger if row.kind == "egress"] == []
    assert server.asked == ["/v1/chat/completions"] * 2


def test_without_allowed_hosts_there_is_no_tunnel() -> None:
    with tunnelled(Isolation(mode="best")) as policy:
        assert policy.descriptors == ()
        assert not any(t.name == "playhead-tunnel" for t in threading.enumerate())


def test_a_closed_tunnel_leaves_no_thread_and_no_connection(server: Server) -> None:
    with Tunnel([f"127.0.0.1:{server.port}"]):
        assert any(t.name == "playhead-tunnel" for t in threading.enumerate())
    assert not any(t.name == "playhead-tunnel" for t in threading.enumerate())


def test_stores_files_unix_sockets_and_own_servers_work_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("namespace", monkeypatch)
    program = f"""
    import os, socket, threading
    from pathlib import Path
    from playhead.store.open import open_store
    folder = Path({str(tmp_path)!r})
    open_store(str(folder / "store.db"), create=True).close()
    said["store"] = (folder / "store.db").exists()
    places = [(socket.AF_UNIX, str(folder / "s")), (socket.AF_UNIX, "\\0own"), (socket.AF_INET, ("127.0.0.1", 0))]
    for family, address in places:
        with socket.socket(family) as server, socket.socket(family) as client:
            server.bind(address)
            server.listen()
            client.connect(server.getsockname())
            peer, _ = server.accept()
            client.sendall(b"hello")
            said.setdefault("heard", []).append(peer.recv(5).decode())
            peer.close()
    """
    assert run(Isolation(mode="require"), program) == {"store": True, "heard": ["hello"] * 3}


def test_what_leads_to_another_machine_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    need("namespace", monkeypatch)
    program = """
    import socket
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as out:
            said[kind.name] = out.connect_ex(("203.0.113.1", 443))
    """
    assert set(run(Isolation(mode="require"), program).values()) == {101}  # no route


def test_a_program_that_is_missing_is_an_error_here() -> None:
    with pytest.raises(FileNotFoundError):
        isolation.launch(["no-such-program-anywhere"], policy=Isolation(mode="best"))


def test_a_launched_program_sees_its_name_arguments_folder_and_environment(tmp_path: Path) -> None:
    child = isolation.launch(
        ["sh", "-c", 'echo "$0 $1 $PWD $(env | sort | tr "\\n" " ")"', "zero", "one"],
        policy=Isolation(mode="best"), env={"PATH": os.environ["PATH"], "ONLY": "this"}, cwd=tmp_path,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = child.communicate(timeout=60)
    words = out.decode().split()
    assert words[:3] == ["zero", "one", str(tmp_path)]
    names = {word.partition("=")[0] for word in words[3:]}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {"PATH", "ONLY"}


@pytest.mark.parametrize("level", ["namespace", "bwrap", "landlock"])
def test_a_launched_program_tells_the_level_it_reached(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(level, monkeypatch)
    child = isolation.launch(["true"], policy=Isolation(mode="require"))
    assert str(child.level).split(" (")[0] == level
    assert child.wait() == 0


def test_a_program_without_a_guard_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_why_not", lambda _: "switched off")
    child = isolation.launch(["true"], policy=Isolation(mode="best"))
    assert str(child.level) == "none (namespace: switched off; bwrap: switched off; landlock: switched off)"
    assert child.wait() == 0
