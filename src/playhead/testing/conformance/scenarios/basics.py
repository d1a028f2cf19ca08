"""S1 to S4 and S6: transparency, unchanged replay, parallel and repeated calls, entries."""

import asyncio
import contextvars
import threading

from playhead.testing.conformance.bench import NotApplicable
from playhead.testing.conformance.harness import Call, Lab, Spec
from playhead.testing.conformance.scenarios.registry import scenario


def two_turns(lab: Lab) -> Spec:
    def look(x: int) -> dict[str, int]:
        return {"x": x, "n": lab.entered("look")}

    return Spec(turns=[[Call("look", {"x": 1})], [Call("look", {"x": 2}), Call("look", {"x": 3})]], tools=[look])


@scenario("S1")
def transparent(lab: Lab) -> None:
    """The model is asked the same bytes without playhead, while recording, and in an all-passthrough replay."""
    harness = lab.harness
    seen: list[list[bytes]] = []

    def look(x: int) -> dict[str, int]:  # gives the same in whatever order threads come to it
        lab.entered("look")
        return {"x": x}

    def run(prompt: str) -> str:
        agent = harness.build(Spec(turns=two_turns(lab).turns, tools=[look]))
        said = harness.run_sync(agent, prompt)
        seen.append(harness.requests(agent))
        lab.live.clear()
        return said

    plain = run("go")
    baseline = lab.record(run)
    result = lab.replay(baseline, run, policy={"default": {"type": "passthrough"}})
    assert baseline.output == plain == result.output
    assert seen[0] == seen[1] == seen[2], "the model requests differ"


@scenario("S2")
def unchanged(lab: Lab) -> None:
    """An unchanged replay serves everything, enters no tool, gives the same output and asks the same."""
    baseline, result = lab.unchanged(lab.runner(lambda: lab.harness.build(two_turns(lab))))
    assert result.by == ["served"] * 3
    asked = [[node.model.key for node in run.model_calls if node.model] for run in (baseline, result)]
    assert asked[0] == asked[1]


@scenario("S3")
def parallel(lab: Lab) -> None:
    """Parallel calls, two of them equal, that finish in reverse order are never swapped."""
    calls = [Call("poll", {"job": job}, id=f"c{n}") for n, job in enumerate(["a", "b", "a", "c", "d"])]

    async def poll(job: str) -> str:
        mine = lab.entered(job)
        for _ in range(2 * (6 - mine)):
            await asyncio.sleep(0)
        return f"{job}{mine}"

    run = lab.runner(lambda: lab.harness.build(Spec(turns=[calls], tools=[poll])))
    baseline = lab.record(run)
    for _ in range(lab.harness.rounds):
        lab.check_faithful(baseline, lab.replay(baseline, run))


@scenario("S4")
def repeated(lab: Lab) -> None:
    """The same call in turns 1 and 3, with different answers."""

    def poll(job: str) -> int:
        return lab.entered(job)

    turns = [[Call("poll", {"job": job})] for job in ("a", "b", "a")]
    baseline, _ = lab.unchanged(lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[poll]))))
    assert [node.outcome.value for node in baseline.calls if node.outcome] == lab.shown(1, 2, 3)


@scenario("S4-ids")
def repeated_ids(lab: Lab) -> None:
    """A provider that gives the same call id in every response, and one that gives none."""

    def look(x: int) -> int:
        return lab.entered(x) * 10

    for call_id in ("call_0", None):
        turns = [[Call("look", {"x": x}, id=call_id)] for x in (1, 2, 1)]
        lab.live.clear()
        lab.unchanged(lab.runner(lambda turns=turns: lab.harness.build(Spec(turns=turns, tools=[look]))))


@scenario("S6")
def entries(lab: Lab) -> None:
    """Every way to start a run records and replays the same."""
    for entry in lab.harness.entries:
        lab.live.clear()
        baseline, _ = lab.unchanged(lab.runner(lambda: lab.harness.build(two_turns(lab)), entry))
        kinds = [(node.kind, node.name) for node in baseline.nodes]
        models = 3 if lab.harness.has_models else 0
        assert [k.value for k, _ in kinds].count("model_call") == models, f"{entry}: {kinds}"
        assert [k.value for k, _ in kinds].count("tool_call") == 3, f"{entry}: {kinds}"


@scenario("S6-tools")
def colours(lab: Lab) -> None:
    """Sync and async tools in one turn."""

    def plain(x: int) -> int:
        lab.entered(threading.current_thread().name)
        return x + 1

    async def awaited(x: int) -> int:
        lab.entered("async")
        await asyncio.sleep(0)
        return x + 2

    turns = [[Call("plain", {"x": 1}), Call("awaited", {"x": 1})]]
    baseline, _ = lab.unchanged(lab.runner(lambda: lab.harness.build(Spec(turns=turns, tools=[plain, awaited]))))
    assert [node.outcome.value for node in baseline.calls if node.outcome] == lab.shown(2, 3)


@scenario("S6-thread")
def worker_thread(lab: Lab) -> None:
    """A run that a worker thread drives, with the context handed over."""
    if "sync" not in lab.harness.entries:
        raise NotApplicable("no sync entry")

    def run(prompt: str) -> str:
        said: list[str] = []
        agent = lab.harness.build(two_turns(lab))
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(lambda: said.append(lab.harness.run_sync(agent, prompt))))
        thread.start()
        thread.join()
        return said[0]

    lab.unchanged(run)
