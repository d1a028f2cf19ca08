"""Which field names say that their value is a credential."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

from playhead.core.values import JSON

SECRET_MARK = "x-playhead-secret"
"""Member of a JSON Schema that decides for one field, whatever its name."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_SECRET_WORDS = frozenset(
    form
    for word in ("password", "passwd", "passphrase", "secret", "credential", "authorization", "cookie", "apikey")
    for form in (word, word + "s")
)
_SECRET_PAIRS = frozenset(
    (first, second) for first in ("api", "access", "private") for second in ("key", "keys")
)  # fmt: skip
_PLACES = frozenset({"page", "next", "cursor", "sync", "continuation"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_WORDS = frozenset(
    {"type", "$ref", "$$ref", "anyOf", "oneOf", "allOf", "enum", "const", "description", SECRET_MARK}
)


@lru_cache(maxsize=4096)
def is_credential_name(name: str) -> bool:
    """Whether a value under this name is a secret: ``accessJwt`` and ``DD-API-KEY`` are, ``token_count`` is not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    if not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words)):
        return True
    return words[-1] in ("token", "jwt") and (len(words) == 1 or words[-2] not in _PLACES)


def is_schema_map(name: str, members: JSON) -> bool:
    """Whether the members below `name` are declarations of fields (JSON Schema), so that their names hold no values."""
    if name not in _SCHEMA_MAPS or not isinstance(members, dict):
        return False
    schemas = cast("dict[str, Any]", members).values()
    return all(isinstance(schema, dict | bool) for schema in schemas) and any(
        isinstance(schema, dict) and not _SCHEMA_WORDS.isdisjoint(cast("dict[str, Any]", schema)) for schema in schemas
    )


class SchemaView:
    """One place of a JSON Schema, to look up what it says about the places below."""

    __slots__ = ("_node", "_root")

    def __init__(self, node: Any, root: Any = None) -> None:
        self._root = node if root is None else root
        self._node = node

    @property
    def mark(self) -> bool | None:
        """What the schema decides for this field; None when it says nothing."""
        for node in self._nodes(self._node, 0):
            decided = node.get(SECRET_MARK)
            if isinstance(decided, bool):
                return decided
        return None

    def member(self, name: str) -> "SchemaView | None":
        for node in self._nodes(self._node, 0):
            declared = node.get("properties")
            if isinstance(declared, dict) and name in declared:
                return SchemaView(cast("Any", declared)[name], self._root)
        return self._below("additionalProperties")

    def element(self) -> "SchemaView | None":
        return self._below("items")

    def _below(self, keyword: str) -> "SchemaView | None":
        for node in self._nodes(self._node, 0):
            if isinstance(node.get(keyword), dict):
                return SchemaView(node[keyword], self._root)
        return None

    def _nodes(self, node: Any, depth: int) -> Iterator[dict[str, Any]]:
        """The schema itself and those it is composed of."""
        if not isinstance(node, dict) or depth > 20:
            return
        schema = cast("dict[str, Any]", node)
        yield schema
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            yield from self._nodes(self._at(reference), depth + 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            for branch in cast("list[Any]", branches) if isinstance(branches, list) else ():
                yield from self._nodes(branch, depth + 1)

    def _at(self, reference: str) -> Any:
        found: Any = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
        return found
