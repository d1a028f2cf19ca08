import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from playhead.engine.egress import EgressGuard, guarded, model_traffic, own_traffic
from playhead.errors import EgressBlockedError


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()


def connect(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=20):
        pass


def test_a_connection_is_refused_and_its_host_is_told(server: tuple[str, int]):
    blocked: list[str] = []
    with guarded(EgressGuard(allow_models=True, on_block=blocked.append)), pytest.raises(EgressBlockedError):
        connect(server)
    assert blocked == [f"127.0.0.1:{server[1]}"]
    connect(server)  # free again after the block


def test_only_a_live_model_call_may_connect(server: tuple[str, int]):
    with guarded(EgressGuard(allow_models=True)), model_traffic():
        connect(server)
    with guarded(EgressGuard(allow_models=False)), model_traffic(), pytest.raises(EgressBlockedError):
        connect(server)


def test_a_latched_guard_refuses_model_endpoints_too(server: tuple[str, int]):
    guard = EgressGuard(allow_models=True, allow_hosts=frozenset({"127.0.0.1"}))
    with guarded(guard), model_traffic():
        connect(server)
        guard.latched = True
        with pytest.raises(EgressBlockedError):
            connect(server)


def test_named_hosts_and_own_traffic_pass(server: tuple[str, int]):
    with guarded(EgressGuard(allow_models=False, allow_hosts=frozenset({f"127.0.0.1:{server[1]}"}))):
        connect(server)
    with guarded(EgressGuard(allow_models=False)), own_traffic():
        connect(server)


def test_asyncio_streams_and_datagrams_are_refused(server: tuple[str, int]):
    async def stream() -> None:
        await asyncio.open_connection(*server)

    with guarded(EgressGuard(allow_models=False)):
        with pytest.raises(EgressBlockedError):
            asyncio.run(stream())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, pytest.raises(EgressBlockedError):
            udp.sendto(b"x", server)


def test_name_lookups_are_refused_outside_model_calls():
    blocked: list[str] = []
    with guarded(EgressGuard(allow_models=True, on_block=blocked.append)), pytest.raises(EgressBlockedError):
        socket.getaddrinfo("secret.example.invalid", 443)
    assert blocked == ["secret.example.invalid:443"]


def test_local_sockets_stay_open_and_started_programs_are_named():
    started: list[str] = []
    with guarded(EgressGuard(allow_models=False, on_process=started.append)):
        left, right = socket.socketpair()
        left.close()
        right.close()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert started == [sys.executable]


def test_a_guard_for_one_context_leaves_the_rest_of_the_process_alone(server: tuple[str, int]):
    with guarded(EgressGuard(allow_models=False, applies=lambda: False)):
        connect(server)
