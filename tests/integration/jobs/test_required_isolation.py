"""``--isolation require`` on a machine that has no outer guard: nothing of the agent runs, and the command says why."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import ctypes, os, struct, sys
from playhead.engine.isolation.kernel import prctl
LD, JEQ, RET, ALLOW, ERRNO, EPERM, ENOSYS = 0x20, 0x15, 0x06, 0x7FFF0000, 0x50000, 1, 38
calls = {"x86_64": ((272, EPERM), (444, ENOSYS)), "aarch64": ((97, EPERM), (444, ENOSYS))}[os.uname().machine]
code = [(LD, 0, 0, 0)]
for number, error in calls:  # unshare, landlock_create_ruleset
    code += [(JEQ, 0, 1, number), (RET, 0, 0, ERRNO | error)]
code += [(RET, 0, 0, ALLOW)]
text = b"".join(struct.pack("HBBI", *one) for one in code)
held = ctypes.create_string_buffer(text, len(text))
prctl(38, 1)
prctl(22, 2, ctypes.c_char_p(struct.pack("HxxxxxxP", len(code), ctypes.addressof(held))))
start = "import sys; from playhead.cli.start import main; sys.exit(main())"
os.execv(sys.executable, [sys.executable, "-c", start, *sys.argv[1:]])
"""
"""Becomes the command line in a process where neither namespaces nor Landlock can be had."""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"),
    reason="the calls are refused by a filter of the kernel",
)
def test_isolation_that_is_required_and_cannot_be_had_ends_the_command_before_the_agent_runs(desk: Path):
    (desk / "harm").write_text(f"open({str(desk / 'ran')!r}, 'w').close()")
    env = {**os.environ, "PATH": str(desk / "no-programs")}  # no bubblewrap either

    def create(isolation: str) -> "subprocess.CompletedProcess[str]":
        words = ["replay", "create", "last", "--wait", "--output", "json", "--isolation", isolation]
        argv = [sys.executable, "-c", WITHOUT, *words]
        return subprocess.run(argv, cwd=desk, env=env, capture_output=True, text=True, check=False, timeout=120)

    refused = create("require")
    assert refused.returncode == 2, refused.stderr
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "refused"
    assert "isolation is required and cannot be had: namespace: " in error["message"]
    assert "landlock: " in error["message"]
    assert not (desk / "ran").exists()

    done = create("best")
    assert done.returncode == 0, done.stderr
    guard = json.loads(done.stdout)["guard"]
    assert guard.startswith("python (namespace: ")
    assert (desk / "ran").exists()
