"""Which scenarios stand for the cases of recording and replay, for every adapter, and which lie below adapters."""

import re
from pathlib import Path

import pytest

from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import scenarios

ROOT = Path(__file__).parents[2]

BY_SCENARIO = {
    "R01": ("R01",), "R04": ("R04",), "R08": ("R08",), "R09": ("R09",), "R13": ("S4", "R14"), "R14": ("R14",),
    "R15": ("R14",), "R16": ("R16",), "R17": ("S3",), "R18": ("R18",), "R19": ("R19",), "R22": ("S9", "S2"),
    "R23": ("R23", "S9"), "R24": ("S20-changed",), "R28": ("S27",), "R30": ("S27",), "R32": ("S16", "S16-early",
    "S16-broken"), "R37": ("R37",), "R40": ("S7", "S8-error"),
}  # fmt: skip
"""Cases in which an adapter has a part: every adapter runs these scenarios."""

_KEYS = "keys are made in the core, of what any adapter hands over"
_OPS = "ops and their fixtures: no framework is in between"
_HTTP = "HTTP fixtures: no framework is in between"
_FILES = "files of fixtures: nothing of an adapter is in them"
_STORE = "the store and the recorder, below every adapter"

BELOW = {
    "R02": _KEYS, "R03": _KEYS, "R05": _OPS, "R06": _OPS, "R07": _OPS, "R10": _KEYS, "R11": _HTTP, "R12": _OPS,
    "R20": _OPS, "R21": _OPS, "R25": _FILES, "R26": _HTTP, "R27": _FILES, "R29": "redaction is one gate, in the core",
    "R31": _HTTP, "R33": _HTTP, "R34": _STORE, "R35": _HTTP, "R36": _FILES, "R38": _FILES, "R39": _OPS, "R41": _FILES,
    "R42": _OPS,
}  # fmt: skip
"""Cases in which no adapter has a part, and why."""


def test_every_case_has_its_place_once() -> None:
    assert sorted([*BY_SCENARIO, *BELOW]) == [f"R{n:02}" for n in range(1, 43)]


@pytest.mark.parametrize("adapter", measured().adapters)
def test_every_adapter_was_measured_with_what_stands_for_the_cases(adapter: str) -> None:
    found = measured().adapters[adapter].found
    known = {scenario.id for scenario in scenarios()}
    for case, names in BY_SCENARIO.items():
        assert known.issuperset(names), case
        for name in names:
            verdict, reason = found[name]
            assert verdict == "supported" or reason, f"{adapter}: {case} by {name}"


def test_no_adapter_imports_another() -> None:
    """Beside the contract of lint-imports, which knows packages: a module named in a text is found here."""
    folder = ROOT / "src" / "playhead" / "adapters"
    for path in folder.rglob("*.py"):
        mine = path.relative_to(folder).parts[0]
        if mine.endswith(".py"):
            continue  # installation, inline and fixtures are no adapters
        others = set(re.findall(r"playhead\.adapters\.(\w+)", path.read_text("utf-8"))) - {mine, "installation"}
        assert others == set(), f"{path.name} names {others}"


def test_modules_of_adapters_stay_short() -> None:
    folder = ROOT / "src" / "playhead" / "adapters"
    long = {p.name: n for p in folder.rglob("*.py") if (n := len(p.read_text("utf-8").splitlines())) > 300}
    assert long == {}
