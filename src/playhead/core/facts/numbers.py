"""Numerals in a text, with the currency stated beside each."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_SYMBOLS = {
    "us$": "USD", "ca$": "CAD", "c$": "CAD", "a$": "AUD", "au$": "AUD", "nz$": "NZD", "hk$": "HKD", "s$": "SGD",
    "r$": "BRL", "mx$": "MXN", "€": "EUR", "£": "GBP", "¥": "JPY CNY", "₹": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY",
    "₪": "ILS", "₫": "VND", "zł": "PLN", "₴": "UAH", "฿": "THB", "₱": "PHP", "₦": "NGN",
    "$": "USD CAD AUD NZD HKD SGD MXN ARS CLP COP TWD",
}  # fmt: skip
_CODES = (
    "USD", "EUR", "GBP", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "CHF", "SEK", "NOK", "DKK", "ISK", "PLN",
    "CZK", "HUF", "RON", "BGN", "TRY", "ILS", "RUB", "UAH", "BRL", "MXN", "ARS", "CLP", "COP", "PEN", "KRW",
    "VND", "THB", "IDR", "MYR", "SGD", "HKD", "TWD", "PHP", "PKR", "BDT", "LKR", "AED", "SAR", "QAR", "KWD",
    "BHD", "OMR", "JOD", "TND", "EGP", "MAD", "ZAR", "NGN", "KES", "GHS",
)  # fmt: skip
_NAMES = {
    "dollar": "USD CAD AUD NZD HKD SGD", "us dollar": "USD", "buck": "USD", "euro": "EUR", "pound": "GBP",
    "pound sterling": "GBP", "yen": "JPY", "yuan": "CNY", "renminbi": "CNY", "rupee": "INR PKR LKR", "won": "KRW",
    "franc": "CHF", "swiss franc": "CHF", "krona": "SEK ISK", "kronor": "SEK", "krone": "NOK DKK", "kroner": "NOK DKK",
    "zloty": "PLN", "ruble": "RUB", "rouble": "RUB", "lira": "TRY", "shekel": "ILS", "peso": "MXN ARS CLP COP PHP",
    "real": "BRL", "reais": "BRL", "rand": "ZAR", "baht": "THB", "dong": "VND", "naira": "NGN", "dirham": "AED MAD",
}  # fmt: skip
_NEAR = 24  # characters that are looked at beside a numeral
_LONGEST = 80  # digits; what is longer is no number that anybody states
_NO_MINOR = frozenset({"JPY", "KRW", "VND", "CLP", "ISK"})
_THREE_MINOR = frozenset({"KWD", "BHD", "OMR", "JOD", "TND"})

_MARK = "|".join(
    [*(re.escape(s) for s in sorted(_SYMBOLS, key=len, reverse=True)), *_CODES]
    + [rf"{name}s?" for name in sorted(_NAMES, key=len, reverse=True)]
)
_BEFORE = re.compile(rf"(?:(?<![^\W_])|(?=[^\w\s]))({_MARK}) ?[-−+]?$", re.IGNORECASE)
_AFTER = re.compile(rf" ?({_MARK})(?![^\W_])", re.IGNORECASE)
_UNITS = re.compile(
    r"(?:kg|g|mg|lbs?|oz|km|m|cm|mm|mi|ft|gb|mb|kb|tb|ms|s|h|hrs?|min|st|nd|rd|th|x|pts?|pm|am)(?![^\W_])",
    re.IGNORECASE,
)
_GROUPS = {
    ".": re.compile(r"[0-9]{1,3}(?:([,_ ])[0-9]{3})(?:\1[0-9]{3})*(?!\d)|[0-9]+"),
    ",": re.compile(r"[0-9]{1,3}(?:([._ ])[0-9]{3})(?:\1[0-9]{3})*(?!\d)|[0-9]+"),
}

_DIGIT = re.compile(r"[0-9]")
_FRACTIONS = {mark: re.compile(rf"{re.escape(mark)}[0-9]+") for mark in ".,"}
_RUN = re.compile(r"(?:[.,:/_-]?[^\W_])*")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as it stands in a text. ``currencies`` are those that what stands beside it can mean."""

    text: str
    value: Decimal
    currencies: frozenset[str]


def parse_decimal(value: str | float) -> Decimal | None:
    """The number of a fact, None when it is none."""
    if isinstance(value, bool):
        return None
    try:
        number = Decimal(str(value).strip().replace(",", "").replace("_", "").replace(" ", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 100 else None


def minor_unit(currency: str | None) -> Decimal:
    """The smallest amount of a currency."""
    code = (currency or "").upper()
    return Decimal(1) if code in _NO_MINOR else Decimal("0.001") if code in _THREE_MINOR else Decimal("0.01")


def numerals(text: str, *, decimal: str = ".") -> list[Numeral]:
    """Every numeral that is a number by itself: no part of a longer one, of a date or of an identifier."""
    found: list[Numeral] = []
    place = 0
    while True:
        match = _DIGIT.search(text, place)
        if match is None:
            return found
        start = match.start()
        whole = _GROUPS[decimal].match(text, start)
        assert whole is not None
        end = whole.end()
        fraction = _FRACTIONS[decimal].match(text, end)
        end = fraction.end() if fraction else end
        place = end
        if end - start > _LONGEST or _joined(text, start, end):
            place = _end_of_run(text, end)
            continue
        digits = re.sub(r"\D", "", whole.group())
        value = Decimal(f"{digits}.{fraction.group()[1:]}" if fraction else digits)
        before = _BEFORE.search(text[max(0, start - _NEAR) : start])
        if _is_negative(text, start - len(before.group()) if before else start, before):
            value = -value
        found.append(Numeral(text[start:end], value, _currencies(text, before, end)))


def _joined(text: str, start: int, end: int) -> bool:
    """Whether more of a number, date or identifier stands directly before or after."""
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    if re.search(r"\d[.,:/_]$|[^\W_][-_/]$|\w#$", before):
        return True
    if re.search(r"[^\W_]$", before) and not _BEFORE.search(before):
        return True
    if re.match(r"[.,:/_-]\d|[-_/][^\W\d_]", after):
        return True
    return bool(re.match(r"[^\W_]", after)) and not _AFTER.match(after) and not _UNITS.match(after)


def _end_of_run(text: str, end: int) -> int:
    run = _RUN.match(text, end)
    return max(end, run.end()) if run else end


def _is_negative(text: str, start: int, before: re.Match[str] | None) -> bool:
    if before is not None and before.group().rstrip()[-1:] in "-−":
        return True
    return bool(re.search(r"(?:^|[\s(:=])[-−]$", text[max(0, start - 2) : start]))


def _currencies(text: str, before: re.Match[str] | None, end: int) -> frozenset[str]:
    if before is not None:
        return _meant(before.group(1))
    after = _AFTER.match(text, end)
    if after is None or re.match(r" ?\d", text[after.end() : after.end() + 2]):  # it belongs to the number behind it
        return frozenset()
    return _meant(after.group(1))


def _meant(mark: str) -> frozenset[str]:
    low = mark.lower()
    if mark in _SYMBOLS or low in _SYMBOLS:
        return frozenset(_SYMBOLS[low].split())
    if mark.upper() in _CODES and (mark.isupper() or low in {"usd", "eur", "gbp"}):
        return frozenset({mark.upper()})
    name = low if low in _NAMES else low.removesuffix("s")
    return frozenset(_NAMES.get(name, "").split())
