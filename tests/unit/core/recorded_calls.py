"""Short ways to write recorded calls and to ask for them, for tests of the tape and of decide."""

from collections.abc import Sequence
from typing import Any

from playhead.core.canonical import NoKeyError
from playhead.core.decide import decide
from playhead.core.keys import call_key
from playhead.core.occurrence import start_ref
from playhead.core.policy import CallView, Decision, ErrorResult, HistoryConfig, Serve, Stop, ToolPolicy
from playhead.core.tape import Tape
from playhead.core.values import ErrorInfo, Node, NodeKind, NoKey, Outcome, OutcomeKind, ToolCall

HISTORY = ToolPolicy()


def history(**settings: Any) -> ToolPolicy:
    return ToolPolicy(default=HistoryConfig(**settings))


def keyed(tool: str, arguments: Any) -> tuple[str | None, NoKey | None]:
    try:
        return call_key(tool, arguments), None
    except NoKeyError as error:
        return None, error.no_key


def call(
    seq: int, tool: str, arguments: Any, value: Any = None, *, outcome: Outcome | None = None, **more: Any
) -> Node:
    key, no_key = keyed(tool, arguments)
    on_node = {name: more.pop(name) for name in ("parent_id", "status", "ended_at", "started_at") if name in more}
    return Node(
        id=f"n{seq}",
        session_id="baseline",
        seq=seq,
        kind=NodeKind.TOOL_CALL,
        name=tool,
        outcome=outcome or Outcome(kind=OutcomeKind.VALUE, value=value),
        call=ToolCall(tool=tool, arguments=arguments, key=key, no_key=no_key, **more),
        **{"started_at": seq, **on_node},
    )


def raised(message: str, class_name: str = "TimeoutError", **more: Any) -> Outcome:
    return Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name=class_name, message=message, **more))


class Replayed:
    """Asks a tape call by call."""

    def __init__(self, nodes: Sequence[Node], policy: ToolPolicy = HISTORY, **more: Any) -> None:
        self.policy = policy
        self.tape = Tape.build(nodes, policy, **more)
        self._number = 0

    def view(self, tool: str, arguments: Any, **more: Any) -> CallView:
        self._number += 1
        key, no_key = keyed(tool, arguments)
        return CallView(
            **{
                "ref": start_ref(self._number),
                "tool": tool,
                "arguments": arguments,
                "key": key,
                "no_key": no_key,
                **more,
            }
        )

    def ask(self, tool: str, arguments: Any, **more: Any) -> Decision:
        view = self.view(tool, arguments, **more)
        self.tape.claim(view)
        return decide(self.policy, view, self.tape)


def value_of(decision: Decision) -> Any:
    assert isinstance(decision, Serve), decision
    return decision.outcome.value


def stopped(decision: Decision) -> Stop:
    assert isinstance(decision, Stop), decision
    return decision


def failed(decision: Decision) -> ErrorResult:
    assert isinstance(decision, ErrorResult), decision
    return decision
