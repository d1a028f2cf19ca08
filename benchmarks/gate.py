"""The gate on simulated releases: how often it blocks an identical one, how often it sees a real drop; report times.

``python -m benchmarks.gate [PAIRS] [--seed TEXT]``: the same seed gives the same verdicts on every machine; 0 pairs
measure times alone.
"""

import gc
import json
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence

from playhead.core.gate.judge import judge
from playhead.core.gate.parts import rate_part, stability_part
from playhead.core.reporting.data import report_json
from playhead.core.stats import literal_false_block
from playhead.core.stats.distributions import beta_quantile
from playhead.core.suites.summary import RunSummary, from_text, to_text
from playhead.engine.report_files import FORMS, rendered
from playhead.testing.runs import draws, simulated_run

A = [0.8 if i < 40 else 1.0 for i in range(400)]
HEAD = f"{'':32}{'fail':>8}{'pass':>8}{'incl.':>8}{'literal blocks':>16}"


def beta(a: float, b: float, n: int, seed: str) -> list[float]:
    """Pass probabilities drawn once."""
    return [beta_quantile(u, a, b) for u in draws(f"beta {seed}", n)]


def pair(old: Sequence[float], new: Sequence[float], seed: str, intents: int) -> tuple[RunSummary, RunSummary]:
    before = simulated_run(old, seed=f"{seed} old", intents=intents, run="old")
    return before, simulated_run(new, seed=f"{seed} new", intents=intents, run="new")


def blocked_literally(before: RunSummary, after: RunSummary) -> bool:
    """By "rate at or above the last release" or "flaky count must not rise"."""
    both = list(zip(before.cases, after.cases, strict=True))
    parts = rate_part("", both, "selection", 0.05, "literal", 0.05), stability_part(both, 0.1, "literal", 0.05)
    return any(part.verdict == "fail" for part in parts)


def line(
    name: str, old: Sequence[float], new: Sequence[float], pairs: int, seed: str, *, intents: int = 10,
    literal: bool = False, named: str | None = None,
) -> str:  # fmt: skip
    """Verdicts over ``pairs`` releases; ``named``: also how often that criterion failed."""
    found: Counter[str] = Counter()
    for index in range(pairs):
        before, after = pair(old, new, f"{seed} {name} {index}", intents)
        report = judge(after, before)
        found[report.verdict] += 1
        found["named"] += any(part.name == named and part.verdict == "fail" for part in report.parts)
        found["blocked"] += literal and blocked_literally(before, after)
    shares = "".join(f"{100 * found[verdict] / pairs:7.1f}%" for verdict in ("fail", "pass", "inconclusive"))
    blocked = f"{100 * found['blocked'] / pairs:15.1f}%" if literal else f"{'':16}"
    told = f"  {named} named in {100 * found['named'] / pairs:.1f}%" if named else ""
    return f"{name:32}{shares}{blocked}{told}"


def verdicts(pairs: int, seed: str) -> None:
    half = max(1, pairs // 4)
    b, c, d = beta(0.9, 1.2, 400, seed + "B"), beta(4, 1, 400, seed + "C"), beta(4, 1, 50, seed + "D")
    print(f"identical releases, {pairs} pairs each, 3 runs (target: fail at most 5 %)\n{HEAD}", flush=True)
    for name, population, intents in (
        ("A 400 cases, 40 at 0.8", A, 10), ("B 400 cases, Beta(0.9, 1.2)", b, 10),
        ("C 400 cases, Beta(4, 1)", c, 10), ("D 50 cases, Beta(4, 1)", d, 2),
    ):  # fmt: skip
        print(line(name, population, population, pairs, seed, intents=intents, literal=True), flush=True)
    exact = literal_false_block(A, 3)
    rules = f"rate rule {100 * exact.rate_rule:.1f} %, flaky rule {100 * exact.flaky_rule:.1f} %"
    print(f"A under literal rules, exactly: {rules}, either {100 * exact.either:.1f} %\n")
    print(f"real regressions, {half} pairs each (target: fail in at least 95 %)\n{HEAD}", flush=True)
    worse = [0.0 if 40 <= i < 60 else p for i, p in enumerate(A)]
    intent = [0.0 if i % 10 == 7 and 40 <= i < 160 else p for i, p in enumerate(A)]
    print(line("A, 20 cases now fail (5 points)", A, worse, half, seed), flush=True)
    print(line("A, 12 of an intent's 40 fail", A, intent, half, seed, named="intent intent-7"), flush=True)
    print("a true drop in every case (target: pass in at most 5 % from 5 points on)")
    for name, population, intents in (("C", c, 10), ("D", d, 2)):
        for drop in (0.05, 0.10):
            lower = [max(0.0, p - drop) for p in population]
            print(line(f"{name}, each {drop:.2f} lower", population, lower, half, seed, intents=intents), flush=True)


def timed(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three."""
    spent: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def peak(work: Callable[[], object]) -> int:
    """Bytes that are held at most while it runs, beside what is there before."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return found


def times() -> None:
    """One gate and its reports over 10,000 trials on each side; the unit is reading such a run from its file."""
    population = beta(4, 1, 3334, "times")
    before, after = pair(population, population, "times", 10)
    text = to_text(after)
    gate = judge(after, before)
    report = report_json(after, baseline=before, gate=gate)
    parse, unit = timed(lambda: json.loads(text)), timed(lambda: from_text(text))
    print(f"\n{after.trials} trials against {before.trials}; a run is a file of {len(text) / 1e6:.1f} MB")
    print(f"{'json.loads of the file':32}{parse:8.2f} s")
    for name, spent in (
        ("reading the run", unit),
        ("gate", timed(lambda: judge(after, before))),
        ("report, as data", timed(lambda: report_json(after, baseline=before, gate=gate))),
        *((f"report, {form[1:]}", timed(lambda form=form: rendered(report, form))) for form in FORMS),
    ):
        print(f"{name:32}{spent:8.2f} s{spent / parse:8.1f}x of json.loads")
    held = peak(lambda: from_text(text))
    used = peak(lambda: rendered(report_json(after, baseline=before, gate=judge(after, before)), ".html"))
    print(f"memory: a run {held / 1e6:.0f} MB, gate and HTML report of two {used / 1e6:.0f} MB more", end="")
    print(f", {used / (2 * held):.2f}x of the runs (target 1x)")
    sizes = {form: len(rendered(report, form)) for form in FORMS}
    print("sizes: " + ", ".join(f"{form[1:]} {size / 1e3:.0f} kB" for form, size in sizes.items()))


def main() -> None:
    words = sys.argv[1:]
    seed = words[words.index("--seed") + 1] if "--seed" in words else "1"
    pairs = next((int(word) for word in words if word.isdecimal() and word != seed), 2000)
    if pairs:
        verdicts(pairs, seed)
    times()


if __name__ == "__main__":
    main()
