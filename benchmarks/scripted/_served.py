"""The model of those that have to be asked over HTTP: a server in this process, whose own time is in both figures."""

from functools import cache

from benchmarks.scripted import Shape
from playhead.testing.servers import Call, ModelServer, Reply


@cache
def url(shape: Shape, last: str | None = None) -> str:
    """Where OpenAI's chat completions answer run after run of a shape. ``last`` names a tool that takes the answer."""

    def plan(step: int, body: object) -> Reply:
        asked = shape.asks(step % shape.model_calls)
        if asked:
            return Reply(calls=[Call(tool, arguments, id=key) for key, tool, arguments in asked])
        return Reply("done") if last is None else Reply(calls=[Call(last, {"answer": "done"}, id="last")])

    return ModelServer(plan).start().openai_url
