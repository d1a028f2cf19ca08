"""A tool that nobody wrapped runs for real in a replay before anything can stop it: that is refused beforehand."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

import playhead
from playhead.adapters import wire
from playhead.errors import RefusedError
from playhead.testing.servers import Call, ModelServer, Reply

ASKED = {"type": "function", "function": {"name": "pay", "parameters": {"properties": {"to": {"type": "string"}}}}}
paid: list[str] = []


def pay(to: str) -> str:
    paid.append(to)
    return "paid"


def agent(tool: Any, url: str) -> Any:
    @playhead.agent("unwrapped")
    def run(prompt: str) -> str:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            while True:
                asked: Any = client.chat.completions.create(model="m", messages=messages, tools=[ASKED])  # pyright: ignore
                said = asked.choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                for call in said.tool_calls or ():
                    content = tool(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
                if not said.tool_calls:
                    return said.content

    return run


def test_a_tool_that_nothing_saw_is_refused_before_it_runs_and_served_once_it_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".playhead").mkdir()
    monkeypatch.chdir(tmp_path)
    paid.clear()
    offline: Any = {"model_policy": {"type": "history"}}
    wire.install()
    try:
        with ModelServer([Reply(calls=[Call("pay", {"to": "Ann"}, id="c1")]), Reply("done")]) as server:
            url = server.openai_url
            agent(pay, url)("go")
        playhead.flush()
        assert paid == ["Ann"]
        with pytest.raises(RefusedError, match="'pay' ran without being seen"):
            playhead.replay("last", agent=agent(pay, url), **offline)
        assert paid == ["Ann"]
        wrapped = playhead.replay("last", agent=agent(playhead.tool(pay), url), force=True, **offline)
        assert (wrapped.output, wrapped.fidelity.kind.value, paid) == ("done", "faithful", ["Ann"])
        still = playhead.replay("last", agent=agent(pay, url), force=True, **offline)
        assert (still.status.value, still.fidelity.kind.value) == ("failed", "diverged")
        live = playhead.replay(
            "last", agent=agent(pay, url), tool_policy={"tools": {"pay": {"type": "passthrough"}}}, **offline
        )
        assert (live.status.value, paid) == ("completed", ["Ann"] * 3)
    finally:
        wire.uninstall()
