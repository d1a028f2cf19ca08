"""What an evaluator is and what it is given: the result of a replay, its baseline, and what is known about both."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from playhead.core.canonical import canonical_stored
from playhead.core.protocol.shape import obj, objects
from playhead.core.values import JSON, Fidelity, LedgerRow, Node, NodeKind, OutcomeKind, Session

if TYPE_CHECKING:
    from playhead.core.compare import Comparison

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""The names that an evaluator may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """One version of a registered evaluator. ``source`` is the file as it was registered, and what runs.

    ``digest`` is that of the code: the file and the function in it. A change of code or settings is a new version.
    """

    name: str
    version: int
    digest: str
    entry_point: str
    source: str
    created_at: int
    working_dir: str | None = None
    path: str | None = None  # the file that was read
    env: tuple[str, ...] = ()  # names passed on from the environment
    network: bool = False  # whether it may open connections
    timeout: float | None = None  # seconds
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationContext:
    """What an evaluator is called with. All values are in stored form: plain JSON, typed values tagged.

    ``session`` is the one to judge: the result of a replay, or any stored session. ``baseline`` is there when the
    session is the result of a replay; with it come the replay's ``ledger`` and ``fidelity``.
    """

    session: Session
    nodes: tuple[Node, ...] = ()
    baseline: Session | None = None
    baseline_nodes: tuple[Node, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    fidelity: Fidelity | None = None
    unchanged: bool = False  # the session is a replay that was asked to change nothing
    case: str | None = None
    params: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    ignore: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])  # pointers, per tool
    model_requests: bool = True  # whether model requests count as differences

    @cached_property
    def comparison(self) -> "Comparison | None":
        """Baseline against session, as the replay compared them; None without a baseline."""
        from playhead.core.compare import compare  # a store imports this module, and needs no comparison

        if self.baseline is None:
            return None
        differs = self.baseline.status is not self.session.status
        return compare(
            self.baseline, self.baseline_nodes, self.session, self.nodes,
            ignore=self.ignore, models=self.model_requests, output=self.model_requests or differs,
        )  # fmt: skip

    @property
    def output(self) -> JSON:
        """What the session gave in the end."""
        return self.session.output

    @property
    def tool_calls(self) -> list[Node]:
        """The tool calls of the session in the order in which they started; those of sub-agents too."""
        return tool_calls(self.nodes)

    @property
    def baseline_tool_calls(self) -> list[Node]:
        return tool_calls(self.baseline_nodes)

    @property
    def text(self) -> str:
        """The final answer as text: the output, else the last thing that the model said."""
        return final_text(self.session, self.nodes)


def tool_calls(nodes: Sequence[Node]) -> list[Node]:
    """Tool calls that ran, in start order."""
    return sorted((n for n in nodes if n.call is not None and n.status != "never_ran"), key=lambda n: n.seq)


def final_text(session: Session, nodes: Sequence[Node]) -> str:
    """The output as text; without one the last text of the model."""
    if session.output is not None:
        return as_text(session.output)
    said = texts(nodes)
    return said[-1] if said else ""


def texts(nodes: Sequence[Node]) -> list[str]:
    """Everything that the model said to the user, in order."""
    found: list[str] = []
    for node in sorted(nodes, key=lambda n: n.seq):
        if node.kind is NodeKind.MODEL_CALL and node.outcome is not None and node.outcome.kind is OutcomeKind.VALUE:
            parts = objects(obj(node.outcome.value).get("parts"))
            text = "".join(str(p.get("text") or "") for p in parts if p.get("type") == "text")
            if text.strip():
                found.append(text)
    return found


def as_text(value: JSON) -> str:
    """A stored value as text: a string as it is, the rest as canonical JSON."""
    return value if isinstance(value, str) else canonical_stored(value).decode("utf-8", "replace")


def failed(node: Node) -> bool:
    """Whether a call ended in anything but a value, or in a text that its source knows to be an error."""
    outcome = node.outcome
    return outcome is not None and (outcome.kind is not OutcomeKind.VALUE or outcome.error_hint)


def at(node: Node | str, pointer: str = "") -> dict[str, JSON]:
    """Evidence: a node, and the JSON pointer of a place in its stored form."""
    return {"node": node if isinstance(node, str) else node.id, "pointer": pointer}


def identity(name: str, version: int, params: Mapping[str, Any]) -> str:
    """What verdicts are filed under: ``name@version``, and the parameters' digest where there are some."""
    mark = f"#{hashlib.sha256(canonical_stored(dict(params))).hexdigest()[:8]}" if params else ""
    return f"{name}@{version}{mark}"
