"""Settings of a project, and how they are read. Apart from the project, whose lookup most commands start with."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from playhead.core.policy import ToolPolicy
from playhead.errors import ConfigError


class RecordingSettings(BaseModel):
    """``[recording]``: limits of the recorder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size_limit: int | None = Field(default=None, ge=1, description="bytes; larger values are stored as a mark")
    queue_size: int = Field(default=10_000, ge=1)
    queue_wait_ms: int = Field(default=50, ge=0)


class Settings(BaseModel):
    """Every setting of a project."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    project: str = "default"
    secrets: tuple[str, ...] = ()
    tool_policy: ToolPolicy | None = None
    model_endpoints: tuple[str, ...] = ()
    llm_model: str | None = None
    env: tuple[str, ...] = ()
    timeout: float | None = Field(default=None, gt=0)
    busy_timeout: float = Field(default=5.0, gt=0)
    recording: RecordingSettings = RecordingSettings()
    fixtures: dict[str, Any] = Field(default_factory=dict[str, Any])


def parse_settings(table: Mapping[str, Any], source: str) -> Settings:
    """Settings from a table.

    Raises:
        ConfigError: an unknown setting (with near names) or a value that does not fit.
    """
    try:
        return Settings.model_validate(dict(table))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            raise ConfigError(f"{source}: unknown setting {place!r}", hint=_near(problem["loc"])) from None
        raise ConfigError(f"{source}: {place}: {problem['msg']}") from None


def _near(place: Sequence[int | str]) -> str:
    owner = RecordingSettings if len(place) > 1 and place[0] == "recording" else Settings
    names = list(owner.model_fields)
    near = difflib.get_close_matches(str(place[-1]), names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(names)}"
