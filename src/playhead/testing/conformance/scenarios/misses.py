"""S9 to S13: what the recording does not hold, and the other policies."""

from typing import Any

from playhead.core.policy import HistoryModel
from playhead.core.values import Outcome, OutcomeKind, ReplayStatus
from playhead.testing.conformance.harness import Call, Lab, Spec
from playhead.testing.conformance.scenarios.registry import scenario


def searching(lab: Lab, words: list[str]) -> Any:
    """Builds an agent that searches for each word, whatever the list holds when it is built."""

    def search(q: str) -> str:
        return f"{q}: {lab.entered(q)}"

    def make() -> Any:
        return lab.harness.build(Spec(turns=[[Call("search", {"q": word})] for word in words], tools=[search]))

    return make


@scenario("S9")
def stops(lab: Lab) -> None:
    """A miss stops the replay although code around the run catches `Exception`; the model is not asked again."""
    words, agents = ["a", "b", "c"], list[Any]()
    build = searching(lab, words)

    def make() -> Any:
        agents.append(build())
        return agents[-1]

    inner = lab.runner(make)

    def run(prompt: str) -> str:
        try:
            return inner(prompt)
        except Exception:  # noqa: BLE001 - what careless code does
            return "sorry"

    baseline = lab.record(run)
    words[1] = "changed"
    result = lab.replay(baseline, run)
    assert lab.live == [], "the live tool was entered"
    assert result.replay.status is ReplayStatus.FAILED
    assert "search" in result.message
    assert "changed" in result.message
    assert result.by[:2] == ["served", "missed"]
    assert len(lab.harness.requests(agents[-1])) == 2, "the model was asked after the stop"


@scenario("S10")
def error_result(lab: Lab) -> None:
    """A miss under ``error_result`` is a tool error that the model reads, and the run goes on."""
    words = ["a", "b"]
    run = lab.runner(searching(lab, words))
    baseline = lab.record(run)
    words[0] = "changed"
    result = lab.replay(baseline, run, policy={"default": {"type": "history", "on_miss": "error_result"}})
    assert lab.live == [], "the live tool was entered"
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert not result.faithful
    assert result.by[:2] == ["missed", "served"]
    kinds = [node.outcome.kind for node in result.calls if node.outcome]
    assert kinds == [OutcomeKind.RESULT_ERROR, OutcomeKind.VALUE]


@scenario("S11")
def passthrough(lab: Lab) -> None:
    """A miss under ``passthrough`` runs the live tool, and the ledger says so."""
    words = ["a", "b"]
    run = lab.runner(searching(lab, words))
    baseline = lab.record(run)
    words[1] = "changed"
    result = lab.replay(baseline, run, policy={"default": {"type": "history", "on_miss": "passthrough"}})
    assert lab.live == ["changed"], lab.live
    assert result.replay.status is ReplayStatus.COMPLETED, result.message
    assert [(row.by, "live" in row.marks) for row in result.rows[:2]] == [("served", False), ("missed", True)]


@scenario("S12")
def static(lab: Lab) -> None:
    """Static answers by exact and subset match, for any call, and as an error, beside another default."""
    run = lab.runner(searching(lab, ["a", "b", "c", "d"]))
    baseline = lab.record(run)
    cases = [
        {"match": {"q": "a"}, "result": {"exact": True}},
        {"match": {"q": "b"}, "match_mode": "subset", "result": None},
        {"match": {"q": "c"}, "error": {"message": "out of order", "status": 503}},
    ]
    policy = {
        "default": {"type": "history"},
        "tools": {lab.tool("search"): {"type": "static", "cases": cases, "on_miss": "error_result"}},
    }
    result = lab.replay(baseline, run, policy=policy)
    assert lab.live == [], "the live tool was entered"
    outcomes = [node.outcome for node in result.calls if node.outcome is not None]
    assert outcomes[0].value == {"exact": True}
    assert (outcomes[1].kind, outcomes[1].value) == (OutcomeKind.VALUE, None)
    assert outcomes[2].kind is OutcomeKind.ERROR
    assert outcomes[2].error is not None
    assert outcomes[2].error.status == 503


class Written:
    """Writes tool results as a model under the llm policy would."""

    default_model: str | None = None

    def __init__(self, value: Any) -> None:
        self.value = value
        self.asked: list[Any] = []

    def check(self, config: Any) -> None: ...

    def write(self, config: Any, request: Any) -> Outcome:
        self.asked.append(request)
        return Outcome(kind=OutcomeKind.VALUE, value=self.value)

    async def write_async(self, config: Any, request: Any) -> Outcome:
        return self.write(config, request)


@scenario("S12-llm")
def generated(lab: Lab) -> None:
    """A result that a model writes; it is told the tool's name, schema and arguments."""
    run = lab.runner(searching(lab, ["a"]))
    baseline = lab.record(run)
    writer = Written("made up")
    result = lab.replay(
        baseline, run, policy={"tools": {lab.tool("search"): {"type": "llm", "model": "x:y"}}}, writer=writer
    )
    assert lab.live == [], "the live tool was entered"
    assert result.by == ["generated"]
    assert "made up" in str(result.session.output)
    (asked,) = writer.asked
    assert (asked.tool, asked.arguments) == (lab.tool("search"), {"q": "a"})
    assert "q" in str(asked.parameters) or not lab.harness.has_models, "the schema is in the requests to the model"


INJECTED = {
    "validation_error": OutcomeKind.INVALID_ARGS,
    "not_found": OutcomeKind.ERROR,
    "rate_limit": OutcomeKind.ERROR,
    "timeout": OutcomeKind.ERROR,
    "empty": OutcomeKind.VALUE,
    "malformed": OutcomeKind.VALUE,
    "partial": OutcomeKind.VALUE,
}


@scenario("S12-inject")
def injected(lab: Lab) -> None:
    """Every injected failure reaches the agent in the framework's own shape, on the chosen call only."""
    run = lab.runner(searching(lab, ["a", "b"]))
    baseline = lab.record(run)
    for kind, expected in INJECTED.items():
        policy = {
            "tools": {lab.tool("search"): {"type": "inject", "kind": kind, "nth": 1, "then": {"type": "history"}}}
        }
        result = lab.replay(baseline, run, policy=policy)
        assert lab.live == [], "the live tool was entered"
        first = result.calls[0].outcome
        assert first is not None
        assert first.kind is expected, f"{kind}: {first}"
        assert result.by[0] == "injected", f"{kind}: {result.by}"
        ended = result.session.status.value
        assert ended in ("completed", "failed"), f"{kind}: {ended}"
        if ended == "completed":
            assert result.by[:2] == ["injected", "served"], f"{kind}: {result.by}"


@scenario("S11-used-up")
def used_up(lab: Lab) -> None:
    """One call more than recorded: the text says that all recorded answers are used."""
    words = ["a", "a"]
    run = lab.runner(searching(lab, words))
    baseline = lab.record(run)
    words.append("a")
    result = lab.replay(baseline, run)
    assert lab.live == [], "the live tool was entered"
    assert result.replay.status is ReplayStatus.FAILED
    assert "all 2 recorded answers" in result.message, result.message


@scenario("S15-diff")
def first_difference(lab: Lab) -> None:
    """Under a recorded model the first request that differs is shown."""
    lab.needs_models()
    system = ["be brief"]

    def make() -> Any:
        return lab.harness.build(Spec(system=system[0]))

    run = lab.runner(make)
    baseline = lab.record(run)
    system[0] = "be thorough"
    result = lab.replay(baseline, run, model=HistoryModel())
    assert result.replay.status is ReplayStatus.FAILED
    assert "be brief" in result.message, result.message
    assert "be thorough" in result.message, result.message
