"""Scenarios for frameworks that ask their model over HTTP: the scripted model of a `Spec` on a loopback server.

Subclass `ServedHarness`, give ``form`` and ``make``, and the ways to run what it makes.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from playhead.core.protocol.providers import FORMS, place_of
from playhead.core.totals import BUCKETS
from playhead.testing.conformance.bench import NotApplicable
from playhead.testing.conformance.harness import AdapterHarness, Spec
from playhead.testing.servers import Call, ModelServer, Reply


@dataclass(slots=True)
class Served:
    """An agent of the framework and the server that is its model."""

    spec: Spec
    server: ModelServer
    agent: Any = None
    usage: Mapping[str, Any] | None = None
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    cut_after: int | None = None  # chunks of the answer, before the connection breaks
    asked: Callable[[], Any] | None = None  # is told of a request, which then gets no answer
    released: threading.Event = field(default_factory=threading.Event)


class ServedHarness(AdapterHarness):
    """A harness whose agents have their model on a server each. Close it at the end."""

    form = "openai_chat"
    other_model = "other"
    breaks_after = 2  # chunks of a stream: the next one would end it
    buckets = tuple(name for name in BUCKETS if name != "input_cache_write")  # what chat completions tell of

    def __init__(self) -> None:
        self.made: list[Served] = []

    def close(self) -> None:
        for one in self.made:
            one.released.set()
            one.server.stop()

    def stop(self) -> None:
        self.close()

    @abstractmethod
    def make(self, spec: Spec, url: str, served: Served) -> Any:
        """The framework's agent, asking the model at ``url``."""

    def build(self, spec: Spec) -> Served:
        served = Served(spec, ModelServer(lambda step, body: self.plan(served, body)))
        served.server.start()
        self.made.append(served)
        url = served.server.openai_url if self.form.startswith("openai") else served.server.url
        served.agent = self.make(spec, url, served)
        return served

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Served:
        """The connection breaks, which the client tells in its own words."""
        if "stream" not in self.entries:
            raise NotApplicable("no streams")
        made = self.build(Spec(name=spec.name, model=spec.model, says=lambda _: after))
        made.cut_after = self.breaks_after
        return made

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Served:
        made = self.build(spec)
        made.asked = asked
        return made

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Served:
        made = self.build(spec)
        read, reasoning = usage.get("input_cache_read", 0), usage.get("output_reasoning", 0)
        asked, said = usage["input_uncached"] + read, usage["output_visible"] + reasoning
        made.usage = {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
            "prompt_tokens_details": {"cached_tokens": read},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
        return made

    def requests(self, agent: Served) -> list[bytes]:
        """What the agent's own model was asked; another model may stand on the same server."""
        return [r.raw for r in agent.server.model_requests if self._model(r.path, r.body) == agent.spec.model]

    def _model(self, path: str, body: Any) -> str:
        place = place_of(path.partition("?")[0])
        return str((place.model if place is not None else None) or body.get("model"))

    def plan(self, served: Served, body: dict[str, Any]) -> Reply:
        """Plays the turns of the spec, as far as the request shows that they were played, then says what it saw."""
        spec = served.spec
        if served.asked is not None:
            served.asked()
            served.released.wait(60)
        results = self.results(body)
        turn = self.turn(spec, body, results)
        if turn < len(spec.turns):
            calls = [
                Call(c.tool, c.arguments if c.arguments is not None else {}, c.id or f"made-{turn}-{n}")
                for n, c in enumerate(spec.turns[turn])
            ]
            return Reply(calls=calls, model=spec.model, usage=served.usage)
        return self.last(served, spec.says(results) if spec.says else f"saw {results}")

    def turn(self, spec: Spec, body: dict[str, Any], results: list[Any]) -> int:
        """Which turn comes next; by the results, unless the framework writes them as text."""
        turn, left = 0, len(results)
        while left > 0 and turn < len(spec.turns):
            left -= len(spec.turns[turn])
            turn += 1
        return turn

    def last(self, served: Served, text: str) -> Reply:
        """The answer that ends a run."""
        return Reply(text, model=served.spec.model, usage=served.usage, cut_after=served.cut_after)

    def results(self, body: dict[str, Any]) -> list[Any]:
        """The results of tools since the last thing that a user said, in order."""
        messages = FORMS[self.form].read_request(body).messages
        start = max((n for n, m in enumerate(messages) if m["role"] == "user"), default=0)
        return [p["content"] for m in messages[start:] for p in m["parts"] if p["type"] == "tool_result"]
