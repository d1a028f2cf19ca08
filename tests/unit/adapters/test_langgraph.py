"""The LangGraph adapter's parts: twins, the private channel name, objects as data, what a changed framework says."""

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langchain_core.tools.base import BaseTool as Base
from langgraph._internal._constants import CONFIG_KEY_RUNTIME, CONFIG_KEY_SEND
from langgraph.types import Command, Send
from pydantic import PrivateAttr

from playhead.adapters import langgraph as adapter
from playhead.adapters.langgraph import channel, codec, inputs, objects, tools, twins
from playhead.core.canonical import NoKeyError, render
from playhead.core.values import Native, Outcome, OutcomeKind
from playhead.errors import RecordingError


def test_the_private_names_by_which_tools_write_beside_returning_are_still_the_frameworks() -> None:
    assert channel.SEND == CONFIG_KEY_SEND, "LangGraph renamed its channel-send key: change playhead's channel.SEND"
    assert channel.RUNTIME == CONFIG_KEY_RUNTIME, "LangGraph renamed its runtime key: change playhead's channel.RUNTIME"


def test_writes_are_kept_beside_being_sent_without_those_of_the_framework() -> None:
    sent: list[Any] = []
    kept: list[Any] = []
    config = channel.watched({"configurable": {channel.SEND: sent.extend, "thread_id": "t"}}, kept, [])
    config["configurable"][channel.SEND]([("files", {"a": 1}), ("__resume__", [True])])
    assert kept == [("files", {"a": 1})]
    assert sent == [("files", {"a": 1}), ("__resume__", [True])]
    assert config["configurable"]["thread_id"] == "t"


class Counting(BaseTool):
    name: str = "count"
    description: str = "Counts."
    calls: int = 0
    _private: int = PrivateAttr(default=0)

    def _run(self, by: int) -> int:
        self.calls += by
        self._private += by
        return self.calls


def test_a_twin_is_its_original_in_class_and_state() -> None:
    original = Counting()
    twin = tools.seen(original)
    assert isinstance(twin, Counting)
    assert type(twin).__name__ == "Counting"
    assert twin.invoke({"by": 2}) == 2
    original.name = "renamed"
    assert (original.calls, original._private, twin.name) == (2, 2, "renamed")
    assert tools.seen(twin) is twin
    assert not twins.is_twin(original)


def test_a_framework_without_a_method_that_is_needed_fails_when_it_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Base, "arun")
    with pytest.raises(RecordingError, match=r"has no BaseTool\.arun"):
        adapter.install()
    adapter.uninstall()


def test_installing_twice_and_undoing_leaves_the_framework_as_it_was() -> None:
    before = {name: Base.__dict__[name] for name in ("run", "arun")}
    adapter.install()
    adapter.install()
    wrapped: Any = Base.run
    assert wrapped.__wrapped__ is before["run"]
    adapter.uninstall()
    assert {name: Base.__dict__[name] for name in ("run", "arun")} == before


def test_nothing_of_the_framework_is_imported_for_somebody_who_does_not_use_it() -> None:
    code = (
        "import sys, playhead; playhead.install();"
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('langchain_core', 'langgraph', 'langchain')];"
        "import langchain_core.tools.base as base; assert hasattr(base.BaseTool.run, '__wrapped__');"
        "assert 'langgraph' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


VALUES: list[Any] = [
    (1, "two", [3]), {1: "a", "b": (2,)}, {"lc": "not a tag"}, Document(page_content="p", metadata={"n": (1,)}),
    Command(update={"messages": [HumanMessage("hi")], "n": None}, goto=Send("node", {"k": (1,)})),
    [AIMessage("a", tool_calls=[{"name": "t", "args": {"x": 1}, "id": "i"}])], b"bytes", {"deep": [{"er": {2: 3}}]},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=[str(n) for n in range(len(VALUES))])
def test_objects_come_back_equal_from_their_data(value: Any) -> None:
    stored = objects.encode(value)
    render(stored)
    assert objects.decode(stored) == value


def test_the_call_id_of_a_result_becomes_that_of_the_call_that_gets_it() -> None:
    given = Command(update={"messages": [ToolMessage("x", tool_call_id="old"), ToolMessage("y", tool_call_id="else")]})
    made = objects.decode(objects.encode(given, "old"), "new")
    assert [m.tool_call_id for m in made.update["messages"]] == ["new", "else"]


def test_messages_of_the_state_that_are_given_back_are_those_of_the_run_that_gets_them() -> None:
    before = [HumanMessage("hi", id="h1"), AIMessage("hm", id="a1"), HumanMessage("hi", id="h2")]
    given = Command(update={"messages": [*before, RemoveMessage(id="a1"), AIMessage("changed", id="a1")]})
    now: list[Any] = [HumanMessage("hi", id="h7"), AIMessage("other", id="a7"), HumanMessage("hi", id="h8")]
    stored = objects.encode(given, "c", before)
    made = objects.decode(stored, "c", now).update["messages"]
    assert made == [*now, RemoveMessage(id="a7"), AIMessage("changed", id="a7")]
    assert all(message is not one for message, one in zip(made, now, strict=False))
    assert objects.decode(stored, "c") == given, "a run whose state has no such places gets what was recorded"


def test_an_object_that_nobody_knows_is_refused_not_described() -> None:
    with pytest.raises(NoKeyError):
        objects.encode({"x": object()})


@tool
def anything(x: int) -> Any:
    """Anything."""


def test_an_envelope_of_another_codec_or_version_counts_as_none() -> None:
    for native in (Native(codec="langgraph", version=99, data={"result": {"lc": "tuple", "items": []}}),
                   Native(codec="other", version=1, data={"result": 5})):  # fmt: skip
        answer = Outcome(kind=OutcomeKind.VALUE, value={"plain": True}, native=native)
        assert codec.decode_result(anything, answer, "c") == {"plain": True}


def test_what_a_model_is_shown_is_the_value_where_the_object_has_no_stored_form() -> None:
    class Odd:
        def __str__(self) -> str:
            return "an odd thing"

    outcome = codec.encode_result(anything, Odd(), "c")
    assert (outcome.kind, outcome.value) == (OutcomeKind.VALUE, "an odd thing")
    with pytest.raises(NoKeyError):
        codec.encode_result(anything, Odd(), None)


def test_inputs_with_messages_show_their_prompt_and_come_back_as_messages() -> None:
    given = {"messages": [("system", "be brief"), HumanMessage("hi", id="m1"), AIMessage("yes")], "n": 1}
    kept, refused = inputs.encode(given, {"configurable": {"thread_id": "t", "__pregel": 1}}, None, "astream")
    assert refused == []
    assert kept["messages"][1] == {"role": "user", "content": "hi", "id": "m1"}
    state, options, beside = inputs.decode(kept)
    assert [(m.type, m.content) for m in state["messages"]] == [("system", "be brief"), ("human", "hi"), ("ai", "yes")]
    assert (state["n"], options, beside["graph_entry"]) == (
        1,
        {"config": {"configurable": {"thread_id": "t"}}},
        "astream",
    )


def test_a_run_that_goes_on_from_a_checkpoint_is_not_replayable_by_itself() -> None:
    assert inputs.encode(Command(resume=1), None, None, "invoke")[1] == ["input: the run goes on from a checkpoint"]
    assert inputs.encode({"n": object()}, None, None, "invoke")[1][0].startswith("n: NoKeyError")
