"""One reader for every spelling of a time: ISO text, epoch seconds, milliseconds, microseconds, nanoseconds."""

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from playhead.core.assemble.records import RecordError

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?\s*(Z|z|[+-]\d\d:?(?:\d\d)?)?\Z", re.ASCII
)
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,2})?\Z", re.ASCII)
_LATEST = 1 << 63


def parse_time(value: object) -> int | None:
    """Nanoseconds since the epoch; None for nothing and for 0, which sources write for "unknown".

    A bare number's unit is told by its size, so that 1796064679 to 1796064679070864155 mean one second. A time
    without an offset is UTC.

    Raises:
        RecordError: ``bad_time``, when it is none of the known spellings or not between 1970 and 2262.
    """
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        text = str(value)
    elif isinstance(value, str):
        text = value.strip()
    else:
        raise RecordError("bad_time", f"{value!r:.80} is not a time")
    found = _number(text) if _NUMBER.match(text) else _iso(text)
    if found is None or not 0 <= found < _LATEST:
        raise RecordError("bad_time", f"{value!r:.80} is not a time")
    return found or None


def _number(text: str) -> int | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    size = abs(number)
    scale = 10**9 if size < 10**11 else 10**6 if size < 10**14 else 10**3 if size < 10**17 else 1
    return int(number * scale)


def _iso(text: str) -> int | None:
    match = _ISO.match(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp() - _offset(zone)) * 10**9 + int((fraction or "0")[:9].ljust(9, "0"))


def _offset(zone: str | None) -> int:
    if not zone or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds
