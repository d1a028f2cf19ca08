"""Tools that do to their process what tools should not."""

import asyncio
import ctypes
import os
import sys
import time
from typing import Any

SEEN: list[int] = []


class RefusedByToolError(Exception):
    """The tool's own refusal."""


def tools() -> dict[str, Any]:
    return {tool.__name__: tool for tool in (
        fine, picky, own, says_error, exits, segfaults, hangs, forks, prints, recurses, hungry, daemon, scribbles,
        kills, surprised, later, leaves, remembers, careless,
    )}  # fmt: skip


def fine(n: int) -> dict[str, int]:
    return {"n": n}


def picky(n: int) -> int:
    if n != 1:
        raise ValueError(f"n must be 1, got {n!r}")
    return n


def own(n: int) -> None:
    raise RefusedByToolError(f"no {n}")


def says_error(n: int) -> dict[str, str]:
    return {"error": f"no {n}"}


def exits(n: int) -> None:
    os._exit(3)


def segfaults(n: int) -> None:
    ctypes.string_at(0)


def hangs(n: int) -> None:
    while True:
        time.sleep(60)


def forks(n: int) -> None:
    while True:
        os.fork()


def prints(n: int) -> int:
    for _ in range(200):
        sys.stdout.write("x" * 100_000)
        os.write(1, b"y" * 100_000)
    return n


def recurses(n: int) -> Any:
    return recurses(n)


def hungry(n: int) -> int:
    return len([b"x" * 100_000_000 for _ in range(1000)])


def daemon(n: int) -> int:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return n


def scribbles(n: int) -> int:
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\xff garbage\n")
        except OSError:
            continue
    return n


def kills(n: int) -> None:
    os.kill(os.getppid(), 9)
    time.sleep(600)


def surprised(n: int) -> Any:
    names: dict[int, str] = {}
    return names[n]


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n


def leaves(n: int) -> None:
    sys.exit("no")


def remembers(n: int) -> int:
    SEEN.append(n)
    return len(SEEN)


def careless(text: str, limit: int = 10) -> str:
    """Takes anything, and falls over a long text with a percent sign."""
    if "%" in str(text):
        raise KeyError("%")
    return str(text)[:limit] if isinstance(limit, int) else str(text)
