"""Notes in ``recording.json``: calls of which a recording run could write nothing, and why."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A call without a recording. ``superseded``: an older recording of it was kept, and is served."""

    tool: str
    key: str
    reason: str
    at: str = ""
    superseded: bool = False

    def document(self) -> dict[str, JSON]:
        member = "superseded" if self.superseded else "reason"
        return {"tool": self.tool, "key": self.key, member: self.reason, "at": self.at}


def notes_in(report: Mapping[str, JSON]) -> Iterator[Note]:
    """The notes of a report; what is no note is left out."""
    found: JSON = report.get("not_recorded")
    for each in found if is_list(found) else ():
        if is_object(each):
            superseded = "superseded" in each
            reason = each.get("superseded" if superseded else "reason")
            yield Note(
                tool=str(each.get("tool")), key=str(each.get("key")), reason=str(reason),
                at=str(each.get("at") or report.get("at") or ""), superseded=superseded,
            )  # fmt: skip


def merged_notes(report: dict[str, JSON], before: Mapping[str, JSON], recorded: Collection[str]) -> dict[str, JSON]:
    """A report with the notes of earlier runs that still hold: of keys that this run neither recorded nor noted."""
    mine = list(notes_in(report))
    settled = {*recorded, *(note.key for note in mine)}
    kept = [note for note in notes_in(before) if note.key not in settled]
    return {**report, "not_recorded": [note.document() for note in (*kept, *mine)]}
