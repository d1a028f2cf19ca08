"""Model requests as the proxy sees them: recorded calls put in place of denials, overrides, what came back."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from playhead.adapters.claude_agent_sdk import results
from playhead.adapters.claude_agent_sdk.calls import AGENT_TOOLS, Call
from playhead.adapters.claude_agent_sdk.exchange import Answer, Exchange
from playhead.adapters.claude_agent_sdk.results import Result
from playhead.adapters.claude_agent_sdk.run import UNKNOWN_TOOL, Run
from playhead.adapters.claude_agent_sdk.stops import STOP_STATUS, stop_body
from playhead.adapters.claude_agent_sdk.tuning import tuned
from playhead.core.protocol import anthropic_messages as form
from playhead.core.protocol.parts import json_or_text
from playhead.core.protocol.shape import is_list, is_object, obj, objects
from playhead.engine import seam
from playhead.engine.frames import Inside
from playhead.errors import ReplayStop

_REMINDER = "<system-reminder>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request after reading: an answer, or what to send on and who reads what comes back."""

    raw: bytes
    exchange: Exchange
    answer: Answer | None = None


class Wire:
    """Reads the requests of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._frames: dict[str, Any] = {}
        self.seen = 0  # model requests

    def begin(self, raw: bytes, agent_id: str | None) -> Asked:
        """Reads a model request; never raises."""
        self.seen += 1
        run = self._run
        if run.left:
            return Asked(raw=raw, exchange=Exchange(run, None, False), answer=_stopped())
        try:
            return self._begin(raw, agent_id)
        except ReplayStop:
            run.halt()
            return Asked(raw=raw, exchange=Exchange(run, None, False), answer=_stopped())
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            try:
                run.trouble(error, "reading a model request")
            except ReplayStop:
                run.halt()
                return Asked(raw=raw, exchange=Exchange(run, None, False), answer=_stopped())
            return Asked(raw=raw, exchange=Exchange(run, None, False))

    def _begin(self, raw: bytes, agent_id: str | None) -> Asked:
        run = self._run
        body: dict[str, Any] = json.loads(raw)
        frame = self._frame(agent_id, body)
        made = tuned(run.active, self._with_results(body))
        asked = form.read_request(made)
        params = {k: v for k, v in asked.params.items() if k != "metadata"}  # ids of device and session
        run.remember_tools(objects(made.get("tools")))
        with Inside(frame):
            step = run.active.model_call(
                asked.model or "claude",
                request=seam.ModelRequest(
                    messages=form.split(made), to_normal=form.read_raw, tools=asked.tools,
                    tool_choice=asked.tool_choice, params=params, model=asked.model, provider="anthropic",
                    protocol=form.NAME,
                ),
            )  # fmt: skip
        exchange = Exchange(run, step, frame is not run.root)
        answer = step.decide()
        sent = raw if made == body else json.dumps(made, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return Asked(raw=sent, exchange=exchange, answer=None if answer is None else exchange.served(answer, asked))

    # --- whose request ---

    def _frame(self, agent_id: str | None, body: dict[str, Any]) -> Any:
        if agent_id is None:
            return self._run.root
        if agent_id not in self._frames:
            call = self._runs(body)
            self._frames[agent_id] = self._run.root if call is None else self._run.calls.inside(call)
        return self._frames[agent_id]

    def _runs(self, body: dict[str, Any]) -> Call | None:
        """The call that runs the sub-agent which asks: the one whose prompt its conversation begins with."""
        waiting = [c for c in self._run.calls if c.tool in AGENT_TOOLS and c.agent is None]
        first = json.dumps([m for m in objects(body.get("messages"))][:1], ensure_ascii=False)
        for call in waiting:
            prompt = json.dumps(str(obj(call.arguments).get("prompt") or ""), ensure_ascii=False)[1:-1]
            if prompt and prompt in first:
                return call
        return waiting[0] if waiting else None

    # --- results ---

    def _with_results(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with what was recorded in place of denials; tells live calls what Claude gets."""
        made: list[Any] = []
        for message in body.get("messages") or ():
            content = message.get("content") if is_object(message) else None
            if is_object(message) and message.get("role") == "user" and is_list(content):
                made.append({**message, "content": [part for b in content for part in self._block(b)]})
            else:
                made.append(message)
        return {**body, "messages": made}

    def _block(self, block: Any) -> list[Any]:
        call = self._run.calls.get(block.get("tool_use_id")) if is_object(block) else None
        if call is None or block.get("type") != "tool_result":
            return [block]
        if call.given is None and call.step is None and UNKNOWN_TOOL in str(block.get("content")):
            self._unknown(call)
        if call.given is not None:
            return _given(call.given.given, block)
        if call.is_open and call.wire is None:
            call.wire = Result(content=block.get("content"), is_error=block.get("is_error"))
            if call.shown is not None:
                call.observe()
        return [block]

    def _unknown(self, call: Call) -> None:
        """A tool that the program does not have today, so no hook came: the recording may know the call."""
        if self._run.replay is not None:
            self._run.decide_late(call)

    # --- other requests ---

    def beside(self, method: str, path: str) -> Answer | None:
        """The answer to a request that is none to a model, where nothing may be asked."""
        if self._run.stopped() or self._run.left:
            return _stopped()
        if self._run.replay is not None and not self._run.asks_models:
            return Answer(status=404)
        return None

    def span(self, method: str, path: str, raw: bytes) -> Any:
        with Inside(self._run.root):
            inputs = json_or_text(raw.decode("utf-8", "replace")) if raw else None
            return _Span(self._run.active.span(f"{method} {path.partition('?')[0]}", inputs))


def _given(result: Result, denial: dict[str, Any]) -> list[Any]:
    """A recorded result in place of a denial. Programs put reminders into a denial that stand behind a result."""
    made = results.to_wire(result, denial)
    text = denial.get("content")
    _, mark, reminder = text.partition(_REMINDER) if isinstance(text, str) else ("", "", "")
    if not mark or _REMINDER in json.dumps(made["content"]):
        return [made]
    cached = {"cache_control": made.pop("cache_control")} if "cache_control" in made else {}
    return [made, {"type": "text", "text": mark + reminder, **cached}]


class _Span(AbstractContextManager[seam.SpanStep]):
    def __init__(self, step: seam.SpanStep) -> None:
        self._step = step

    def __enter__(self) -> seam.SpanStep:
        return self._step

    def __exit__(self, *_: object) -> None: ...


def _stopped() -> Answer:
    return Answer(status=STOP_STATUS, body=stop_body())
