"""One request after the other on the wire, without a client."""

import json
from typing import Any

from playhead.adapters.wire.beginning import begin
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery


def body(default: Any, *messages: dict[str, Any]) -> bytes:
    parameters = {"type": "object", "properties": {"limit": {"default": default}}}
    tools = [{"type": "function", "function": {"name": "look", "parameters": parameters}}]
    return json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "hi"}, *messages], "tools": tools}
    ).encode()


def test_a_schema_in_which_1_becomes_true_is_another_schema() -> None:
    store = MemoryStore()
    recorder = Recorder(store)
    with seam.session("desk", recorder=recorder):
        for default in (1, True, 1.0):
            begun = begin("/v1/chat/completions", body(default), "openai")
            assert begun is not None
            begun.exchange.began(200, {})
            begun.exchange.body(b'{"choices": [{"message": {"role": "assistant", "content": "ok"}}]}')
    recorder.close()
    (session,) = store.sessions.find(SessionQuery()).items
    nodes = store.sessions.nodes(session.id)
    offered = [node.inputs["tools"][0]["parameters"]["properties"]["limit"]["default"] for node in nodes]
    assert [repr(default) for default in offered] == ["1", "True", "1.0"]
