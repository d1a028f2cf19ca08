"""Secrets out of what is written."""

from collections.abc import Mapping
from typing import NamedTuple

from playhead.core.values import JSON


class Redacted(NamedTuple):
    value: JSON
    pointers: tuple[str, ...]
    refused: tuple[str, ...] = ()


class Redactor:
    def __init__(self, configured: Mapping[str, str] | None = None) -> None:
        self._names = {value: name for name, value in (configured or {}).items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        return ()

    def redact(self, stored: JSON, *, schema: JSON = None, outcome: bool = False) -> Redacted:
        pointers: list[str] = []
        return Redacted(self._walk(stored, "", pointers), tuple(pointers))

    def redact_text(self, text: str) -> str:
        for value, name in sorted(self._names.items(), key=lambda item: -len(item[0])):
            if len(value) >= 6:
                text = text.replace(value, f"[REDACTED:{name}]")
        return text

    def key_view(self, stored: JSON) -> JSON:
        return self._walk(stored, "", [])

    def learn(self, name: str, value: str) -> None:
        self._names.setdefault(value, name)

    def _walk(self, value: JSON, at: str, pointers: list[str]) -> JSON:
        if isinstance(value, str):
            text = self.redact_text(value)
            if text != value:
                pointers.append(at)
            return text
        if isinstance(value, list):
            return [self._walk(item, f"{at}/{place}", pointers) for place, item in enumerate(value)]
        if isinstance(value, dict):
            return {self.redact_text(k): self._walk(v, f"{at}/{k}", pointers) for k, v in value.items()}
        return value
