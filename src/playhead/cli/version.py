"""``playhead version``."""

import platform
from importlib.metadata import version as installed

from playhead.cli.output import Result


def version() -> Result:
    """Print the version of playhead."""
    number = installed("playhead")
    return Result(data={"version": number, "python": platform.python_version()}, text=[f"playhead {number}"])
