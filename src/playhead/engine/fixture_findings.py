"""What the doctor of fixtures says: one finding per thing that is wrong, or fine."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureCheck:
    """One finding. ``subject`` is a file, a set or a tool."""

    check: str
    level: Literal["pass", "warn", "fail"]
    subject: str
    message: str
    fix: str = ""


def failing(check: str, subject: str, message: str, fix: str) -> FixtureCheck:
    return FixtureCheck(check=check, level="fail", subject=subject, message=message, fix=fix)


def warning(check: str, subject: str, message: str, fix: str) -> FixtureCheck:
    return FixtureCheck(check=check, level="warn", subject=subject, message=message, fix=fix)
