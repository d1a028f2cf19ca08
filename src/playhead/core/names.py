"""The names that users give to what they keep: experiments, arms, cohorts."""

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def checked_name(name: str) -> str:
    """The name, if it is one.

    Raises:
        ValueError: it is empty, too long, or holds anything but letters, digits and ``. - _``.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("a name has 1 to 64 letters, digits, '.', '-' or '_' and begins with a letter or digit")
    return name
