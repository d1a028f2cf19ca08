"""Run by a child: tries to reach a port of this machine by each way out. ``PORTS`` is JSON: way -> port."""

import asyncio
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import traceback


def plain_socket(port: int) -> None:
    socket.create_connection(("127.0.0.1", port), 2).close()


def uvloop(port: int) -> None:
    import uvloop as loops

    async def connect() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(connect())


def pycurl(port: int) -> None:
    import pycurl as curl

    client = curl.Curl()
    client.setopt(curl.URL, f"http://127.0.0.1:{port}/")
    client.setopt(curl.PROXY, "")
    client.setopt(curl.TIMEOUT, 2)
    client.perform()


def psycopg(port: int) -> None:
    import psycopg as postgres

    postgres.connect(host="127.0.0.1", port=port, user="x", dbname="x", connect_timeout=2)


def native_extension(port: int) -> None:
    import way_out  # pyright: ignore[reportMissingImports]

    way_out.connect(port)


def ctypes_call(port: int) -> None:
    libc = ctypes.CDLL(None)
    address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton("127.0.0.1"))
    libc.connect(libc.socket(2, 1, 0), address, len(address))


def subprocess_curl(port: int) -> None:
    program = shutil.which("curl") or "curl"
    subprocess.run([program, "--silent", "--max-time", "2", "--noproxy", "*", f"http://127.0.0.1:{port}/"], check=False)


def dns(port: int) -> None:
    import way_out  # pyright: ignore[reportMissingImports]

    way_out.lookup(port)


def udp(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"out", ("127.0.0.1", port))


WAYS = {
    way.__name__: way
    for way in (plain_socket, uvloop, pycurl, psycopg, native_extension, ctypes_call, subprocess_curl, dns, udp)
}


def main() -> None:
    ports: dict[str, int] = json.loads(os.environ["PORTS"])
    for name, port in ports.items():
        try:
            WAYS[name](port)
        except Exception:  # what a guard does to each way differs; whether it was reached is what counts
            print(f"{name}: {traceback.format_exc(limit=1)}", file=sys.stderr)


if __name__ == "__main__":
    main()
