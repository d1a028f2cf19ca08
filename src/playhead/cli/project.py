"""``playhead init | config``."""

from typing import Any

from playhead.cli.context import Ctx
from playhead.cli.output import Result, Table, to_json

_NEXT = """\
record an agent:

  import playhead

  @playhead.agent("my-agent")
  def run(prompt: str) -> str:
      ...

then run it, and type:

  playhead session list
  playhead replay create last --model-history"""


def init(*, context: Ctx) -> Result:
    """Make a store in this folder and say how to record.

    Doing it again changes nothing. Recordings stay out of version control.
    """
    from pathlib import Path

    from playhead.engine.project import Project, find_project, prepare
    from playhead.store.open import FILE, FOLDER

    found = find_project(url=context.url)
    if found.url_source == "project":
        here = Path.cwd()
        found = Project(root=here, settings=found.settings, url=str(here / FOLDER / FILE), source=found.source)
        prepare(found.folder)
    made = not _exists(found.url)
    found.open_store().close()
    data = {"url": found.url, "folder": str(found.folder), "created": made}
    return Result(data=data, text=[f"{'made' if made else 'there already:'} {found.url}", f"\n{_NEXT}"])


def _exists(url: str) -> bool:
    from playhead.errors import NotFoundError
    from playhead.store.open import open_store

    try:
        open_store(url, create=False).close()
    except NotFoundError:
        return False
    return True


def config(*, context: Ctx) -> Result:
    """Show the settings in force and where each comes from."""
    found = context.project
    rows = [
        _row("store", found.url, found.url_source),
        _row("project folder", str(found.folder), "found upwards" if found.folder.is_dir() else "not made yet"),
    ]
    source = str(found.source) if found.source is not None else None
    for name in type(found.settings).model_fields:
        if name == "url":
            continue
        value = found.settings.model_dump(mode="json", by_alias=True)[name]
        given = source if name in found.settings.model_fields_set and source is not None else "default"
        rows.append(_row(name, value, given))
    shown = [{**row, "value": "" if row["value"] is None else _text(row["value"])} for row in rows]
    return Result(data=rows, items=True, text=[Table(("setting", "value", "source"), shown)])


def _row(name: str, value: Any, source: str) -> dict[str, Any]:
    return {"setting": name, "value": value, "source": source}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)
