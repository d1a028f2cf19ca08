"""The cases of a fuzz set. A set is stored with its arguments, so another version of this library never changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from playhead.core.canonical import NoKeyError, canonical_stored, render
from playhead.core.codec import dump, load
from playhead.core.values import JSON

FORMAT: Final = "playhead.fuzz/1"

Family: TypeAlias = Literal["type_confusion", "constraint", "oversized", "ambiguity", "interface"]
FAMILIES: Final[tuple[Family, ...]] = ("type_confusion", "constraint", "oversized", "interface")
"""The families that `generate` makes. Ambiguity is not made of schemas: `core.probes` asks it of pairs of tools."""

Expectation: TypeAlias = Literal["schema", "semantic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbed:
    """A tool set that was changed.

    Attributes:
        tools: the changed schemas in the order in which they are offered, by the name that each had before.
        names: new name of a tool by its old one.
        parameters: by old tool name, new name of a parameter by its old one.
        texts: whether numbers may be given as text, because types were loosened.
    """

    tools: dict[str, JSON] = field(default_factory=dict[str, JSON])
    names: dict[str, str] = field(default_factory=dict[str, str])
    parameters: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    texts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzCase:
    """One case.

    Attributes:
        tool: as models see it; empty where a whole tool set is changed.
        mutation: what was done: ``number_as_word``, ``enum_synonym``, ``opaque_tool_names`` ...
        pointer: the place in the arguments.
        expectation: ``schema``: the arguments fail validation. ``semantic``: they are valid, and against what the
            description or the recording says.
        arguments: of the bad call; of a good one where ``result`` is set.
        base: what they were made of.
        source: the case of the suite that it starts from, None where no case fits.
        round: the recorded round of that case before which it starts.
        result: what a good call gives: a recorded result that was grown.
        perturbed: the changed tool set.
        query: a user's request that may lead to these arguments, in place of the call itself; ``writer`` wrote it.
    """

    id: str
    tool: str = ""
    family: Family
    mutation: str
    pointer: str = ""
    expectation: Expectation = "schema"
    arguments: JSON = None
    base: JSON = None
    source: str | None = None
    round: int = 0
    result: JSON = None
    perturbed: Perturbed | None = None
    query: str | None = None
    writer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzSet:
    """Cases that belong together, with what they were asked for. ``skipped``: tools without a case, and why."""

    cases: tuple[FuzzCase, ...]
    families: tuple[Family, ...] = FAMILIES
    per_tool: int = 5
    seed: int = 0
    skipped: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        return digest_of(self.json())

    def json(self) -> dict[str, JSON]:
        """The stored form."""
        return {"format": FORMAT, **dump(self)}


def read_set(data: JSON) -> FuzzSet:
    """
    Raises:
        FormatError: no fuzz set.
    """
    held: Mapping[str, Any] = data
    return load(FuzzSet, {name: value for name, value in held.items() if name != "format"})


def digest_of(value: JSON) -> str:
    """A digest of any stored JSON, of what has no canonical form as well."""
    try:
        text = canonical_stored(value)
    except NoKeyError:
        text = render(value)
    return sha256(text).hexdigest()[:32]
