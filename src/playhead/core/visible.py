"""Hostile text made harmless to read: control and reordering characters are shown, not obeyed."""

import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff"
_UNSAFE = re.compile(f"[{_CONTROLS}{_INVISIBLE}\ud800-\udfff]")


def plain(value: object) -> str:
    """Text that does nothing to a terminal or page but be read."""
    return _UNSAFE.sub(lambda m: m.group().encode("unicode_escape", "surrogatepass").decode(), str(value))


def one_line(value: object) -> str:
    """As `plain`, with line breaks and tabs made visible as well."""
    return plain(value).replace("\n", "\\n").replace("\t", "\\t")
