"""Which request of which model call each tool call answers, what the model saw as the answer, and calls that only
messages show.

Ids are unique inside one response only: a later response may use an id again. So a call belongs to the latest model
call before it that asked for its id and has had no answer yet.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from playhead.core.assemble.draft import Draft, Request
from playhead.core.assemble.kinds import plain_tool, structure
from playhead.core.assemble.records import Record, ToolFacts
from playhead.core.assemble.spelling import same, token
from playhead.core.protocol.parts import calls_of
from playhead.core.values import JSON, NodeKind


class Joined(NamedTuple):
    """``rebuilt`` are tool calls made from messages; ``unanswered`` counts requests without any answer."""

    rebuilt: list[Draft]
    unanswered: int
    by_rule: Counter[str]


def join(drafts: Sequence[Draft], trailing: Sequence[JSON]) -> Joined:
    """Joins the tool calls among ``drafts``, which are in order.

    ``trailing`` are the messages of a dialogue that no model call's request holds.
    """
    for place, draft in enumerate(drafts):
        draft.place = place
    models = [d for d in drafts if d.kind is NodeKind.MODEL_CALL]
    tools = [d for d in drafts if d.kind is NodeKind.TOOL_CALL]
    requests = [r for model in models for r in _asked(model)]
    _read_views(models, trailing)
    _by_id(tools, requests)
    _by_arguments(tools, requests)
    _by_name(tools, requests)
    _by_position(tools, models)
    rebuilt = [_rebuilt(r) for r in requests if r.tool is None and r.answered]
    for tool in tools:
        tool.joined = tool.joined or "unjoined"
    return Joined(
        rebuilt,
        sum(1 for r in requests if r.tool is None and not r.answered),
        Counter(t.joined or "" for t in [*tools, *rebuilt]),
    )


def _asked(model: Draft) -> list[Request]:
    facts = model.record.model
    if facts is None or facts.response is None:
        return []
    model.requests = [
        Request(model=model, index=i, call_id=p["id"], name=p["name"], arguments=p["arguments"])
        for i, p in enumerate(calls_of(facts.response))
    ]
    return model.requests


# --- the model's view -----------------------------------------------------------------------------------------------


def _read_views(models: Sequence[Draft], trailing: Sequence[JSON]) -> None:
    open_requests: list[Request] = []
    before: dict[int, Draft] = {}
    for model in models:
        agent = id(model.agent())
        previous = before.get(agent)
        facts = model.record.model
        if facts is not None and facts.messages is not None:
            if open_requests:
                _answer(open_requests, _new_messages(facts.messages, previous), model)
            before[agent] = model
        open_requests += model.requests
    _answer(open_requests, trailing, None)


def _new_messages(messages: Sequence[JSON], previous: Draft | None) -> Sequence[JSON]:
    """The part of a request that the request before it did not hold."""
    facts = previous.record.model if previous else None
    known = facts.messages if facts else None
    if not known or len(known) > len(messages) or not same(known[-1], messages[len(known) - 1]):
        return messages
    return messages[len(known) :]


def _answer(open_requests: list[Request], messages: Sequence[JSON], model: Draft | None) -> None:
    for message in messages:
        for part in message["parts"]:
            if part["type"] != "tool_result":
                continue
            found = _asked_for(open_requests, part, model)
            if found is not None:
                found.answered, found.view = True, part["content"]
                found.view_is_error = part.get("is_error") is True
                open_requests.remove(found)


def _asked_for(open_requests: Sequence[Request], part: JSON, model: Draft | None) -> Request | None:
    fitting = [r for r in open_requests if same(r.call_id, part["id"])]
    if part.get("name"):
        fitting = [r for r in fitting if plain_tool(r.name) == plain_tool(part["name"])] or fitting
    if model is not None:
        agent = model.agent()
        fitting = [r for r in fitting if r.model.agent() is agent] or fitting
    if not fitting:
        return None
    return next(r for r in fitting if r.model is fitting[-1].model)


# --- joining --------------------------------------------------------------------------------------------------------


def _take(tool: Draft, request: Request, rule: str) -> None:
    request.tool = tool
    tool.request, tool.joined, tool.index, tool.model = request, rule, request.index, request.model


def _by_id(tools: Sequence[Draft], requests: Sequence[Request]) -> None:
    asked: dict[bytes, list[Request]] = {}
    for request in requests:
        asked.setdefault(token(request.call_id), []).append(request)
    for tool in tools:
        facts = tool.record.tool
        if facts is None or facts.call_id is None:
            continue
        fitting = _before(tool, asked.get(token(facts.call_id), ()))
        if not fitting:  # a call that ran again: the last attempt is the one whose answer the model saw
            fitting = [r for r in asked.get(token(facts.call_id), ()) if r.model.place < tool.place]
        if fitting:
            latest = fitting[-1].model
            _take(tool, next(r for r in fitting if r.model is latest), "id")


def _by_arguments(tools: Sequence[Draft], requests: Sequence[Request]) -> None:
    asked: dict[tuple[str, bytes], list[Request]] = {}
    for request in requests:
        asked.setdefault((plain_tool(request.name), token(request.arguments)), []).append(request)
    for tool in tools:
        facts = tool.record.tool
        if tool.joined or facts is None or facts.arguments is None:
            continue
        fitting = _before(tool, asked.get((plain_tool(facts.tool), token(structure(facts.arguments))), ()))
        if fitting:
            _take(tool, min(fitting, key=lambda r, tool=tool: _distance(tool, r.model)), "args")


def _by_name(tools: Sequence[Draft], requests: Sequence[Request]) -> None:
    asked: dict[str, list[Request]] = {}
    for request in requests:
        asked.setdefault(plain_tool(request.name), []).append(request)
    for tool in tools:
        facts = tool.record.tool
        if tool.joined or facts is None or facts.arguments is not None:
            continue
        fitting = _before(tool, asked.get(plain_tool(facts.tool), ()))
        if len(fitting) == 1:
            _take(tool, fitting[0], "name")


def _before(tool: Draft, requests: Iterable[Request]) -> list[Request]:
    """Requests without a call that were made before the tool call, oldest first."""
    return [r for r in requests if r.tool is None and r.model.place < tool.place]


def _distance(tool: Draft, model: Draft) -> int:
    """Steps from a tool call up to the nearest agent_call that also holds the model call."""
    above = [id(a) for a in model.ancestors() if a.kind is NodeKind.AGENT_CALL]
    steps = 0
    for ancestor in tool.ancestors():
        if ancestor.kind is NodeKind.AGENT_CALL:
            if id(ancestor) in above:
                return steps
            steps += 1
    return steps


def _by_position(tools: Sequence[Draft], models: Sequence[Draft]) -> None:
    """Tool calls between a model call whose calls were not captured and the next one of the same agent."""
    waiting = [t for t in tools if not t.joined]
    if not waiting:
        return
    following: dict[int, Draft] = {}
    spans: list[tuple[Draft, int | None]] = []
    for model in reversed(models):
        agent = id(model.agent())
        later = following.get(agent)
        following[agent] = model
        if model.record.model is None or model.record.model.response is None:
            spans.append((model, later.place if later else None))
    for model, end in reversed(spans):
        mine = [t for t in waiting if _within(t, model, end)]
        for index, tool in enumerate(mine):
            tool.joined, tool.index, tool.model = "position", index, model
        waiting = [t for t in waiting if not t.joined]


def _within(tool: Draft, model: Draft, end: int | None) -> bool:
    return model.place < tool.place and (end is None or tool.place < end) and tool.agent() is model.agent()


def _rebuilt(request: Request) -> Draft:
    model = request.model
    record = Record(
        external_id=f"{model.record.external_id}#call:{request.index}",
        parent=model.record.parent,
        kind=NodeKind.TOOL_CALL,
        name=request.name,
        tool=ToolFacts(tool=request.name, call_id=request.call_id),
    )
    draft = Draft(record=record, kind=NodeKind.TOOL_CALL, arrival=model.arrival, parent=model.parent, rebuilt=True)
    _take(draft, request, "id")
    return draft
