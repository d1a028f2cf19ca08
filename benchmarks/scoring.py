"""Scoring stored trials again with today's labels, as a gate does: cases per second, and memory."""

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial, TrialStep
from playhead.engine.suites.summary import summary_of

RUNS = 3
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]-[0-9]+$"},
        "amount": {"type": "number", "minimum": 0},
        "reason": {"type": "string", "enum": ["damaged", "late", "other"]},
        "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    },
    "required": ["order_id", "amount", "reason"],
    "additionalProperties": False,
}


def arguments(n: int) -> dict[str, Any]:
    return {"order_id": f"A-{n}", "amount": 12.5 + n, "reason": "damaged", "items": [{"sku": f"s{n}"}, {"sku": "t"}]}


def suite(cases: int) -> Contents:
    made = [
        Case.model_validate(
            {
                "id": f"c{n}",
                "intent": f"i{n % 10}",
                "history": [{"role": "user", "content": f"Order A-{n} arrived damaged, refund it."}],
                "tools": [f"tool_{k}" for k in range(10)],
                "label": {"kind": "call", "calls": [{"tool": "tool_0", "arguments": arguments(n)}]},
                "facts": [{"name": "refund", "as": "id", "value": f"R-{n}"}],
            }
        )
        for n in range(cases)
    ]
    tools = {f"tool_{k}": ToolSchema(name=f"tool_{k}", description="refunds", parameters=SCHEMA) for k in range(10)}
    return Contents(suite=Suite(name="bench"), cases=tuple(made), tools=tools)


def trials(cases: int) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for n in range(cases):
        call = {"type": "tool_call", "id": "x", "name": "tool_0", "arguments": arguments(n + (n % 20 == 0))}
        turn = TrialStep(request="r", message={"role": "assistant", "parts": [call]})
        final = TrialStep(
            request="r", purpose="outcome",
            message={"role": "assistant", "parts": [{"type": "text", "text": f"Refund R-{n} of $12.50 was issued."}]},
        )  # fmt: skip
        found[f"c{n}"] = [
            Trial(
                run="r", case=f"c{n}", n=k, seed=k, case_digest="d", steps=(turn, final),
                final=f"Refund R-{n} of $12.50 was issued.",
            )
            for k in range(RUNS)
        ]  # fmt: skip
    return found


def fastest(work: Callable[[], object], times: int = 3) -> float:
    spent: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 3334
    contents, made = suite(cases), trials(cases)
    run = SuiteRun(
        id="r", suite="bench", suite_digest="d", created_at=0, model="m", cases=tuple(c.id for c in contents.cases)
    )
    score = fastest(lambda: summary_of(run, contents, made), 2)
    validator = jsonschema_rs.validator_for(SCHEMA)
    texts = [json.dumps(arguments(n)) for n in range(cases) for _ in range(RUNS)]
    unit = fastest(lambda: [validator.is_valid(json.loads(text)) for text in texts])
    passed = sum(t.passed is True for c in summary_of(run, contents, made).cases for t in c.trials)
    print(f"{cases} cases x {RUNS} trials = {len(texts)}, of which {passed} pass; 10 tools offered")
    print(f"json.loads and jsonschema-rs alone   {unit * 1e6 / len(texts):8.1f} us a trial")
    rate = f"{cases / score:,.0f} cases/s, {len(texts) / score:,.0f} trials/s"
    print(
        f"scored with today's labels           {score * 1e6 / len(texts):8.1f} us a trial: {rate}, {score / unit:.0f}x"
    )
    gc.collect()
    tracemalloc.start()
    kept = summary_of(run, contents, made)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"memory: {held / len(texts):,.0f} bytes a trial are kept, {peak / 1e6:.1f} MB at most for {kept.trials} trials"
    )


if __name__ == "__main__":
    main()
