"""Why a cell of a column of numbers cannot be read as a number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dpsynth.inspection import hints
from dpsynth.inspection.findings import Cause
from dpsynth.inspection.known_words import is_missing_word
from dpsynth.inspection.suspects import Explanation, Suspects, explained

_LOW = re.compile(r"(<=?|≤|⩽|kleiner( als)?|unter|below|under|less than)\s*(?P<number>[-0-9.,]+)")
_HIGH = re.compile(
    r"(>=?|≥|⩾|größer( als)?|über|above|over|more than|greater than)\s*(?P<number>[-0-9.,]+)"
)
_UNIT = re.compile(
    r"(?P<number>[+-]?[0-9][0-9.,]*)\s*(%|°|(?![oO]\Z)[a-zA-ZµμÄÖÜäöü°][\w%/².³^*·µμ ]{0,19})\.?"
)
_SIGNED = re.compile(r"[+-]?[0-9]*[.,][0-9]+([eE][+-]?[0-9]+)?")
_LIMITED = re.compile(r"(?P<limit>[<>]=?|[≤≥])\s*(?P<number>[0-9].*)")
_EXPONENT = re.compile(r"[0-9.,]+[eE][+-]?[0-9]+")
_GROUPED = {
    ",": re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?"),
    ".": re.compile(r"[+-]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?"),
}
BLANKS = " '\u2019\u00a0\u202f"
_SPACED = re.compile(rf"[+-]?[0-9]{{1,3}}([{BLANKS}][0-9]{{3}})+([.,][0-9]+)?")


def number_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells that are no number, or no whole number where one is declared."""
    sign = suspects.decimal
    other = "." if sign == "," else ","
    limited = suspects.column.forms.is_censored

    def swapped(text: str) -> str | None:
        one_sign = text.count(other) == 1 and _SIGNED.fullmatch(text)
        return text.replace(other, sign) if one_sign else None

    def number(text: str) -> str:
        """Give the number inside a text its declared decimal sign, and no thousands."""
        plain = None if clear else grouped(text)
        return plain or (text if sign in text else text.replace(other, sign))

    def grouped(text: str) -> str | None:
        if limited and (match := _LIMITED.fullmatch(text)) is not None:
            bare = grouped(match["number"])
            return None if bare is None else match["limit"] + bare
        if _SPACED.fullmatch(text):
            bare = re.sub(rf"[{BLANKS}]", "", text)
            return bare if sign in bare else bare.replace(other, sign)
        for mark, pattern in _GROUPED.items():
            if pattern.fullmatch(text):
                point = "." if mark == "," else ","
                return text.replace(mark, "").replace(point, sign)
        return None

    def within(pattern: re.Pattern[str], text: str) -> str | None:
        match = pattern.fullmatch(text.casefold())
        return None if match is None else number(match["number"])

    def unit(text: str) -> str | None:
        match = None if _EXPONENT.fullmatch(text) else _UNIT.fullmatch(text)
        return None if match is None else number(match["number"])

    decimal = Explanation(
        "decimal",
        f"have {other!r} as decimal sign",
        hints.one_decimal(sign) if suspects.sign_is_used else hints.decimal(other),
        swapped,
    )
    thousands = Explanation(
        "thousands",
        "have a separator of thousands",
        hints.thousands(_marks(texts), sign),
        grouped,
    )
    # 1,250 may be either; cells such as 7,5 or 12,34 decide, and so do cells of the table that are
    # read with the declared sign: a table has one.
    clear = any(swapped(text) and not grouped(text) for text in texts)
    plain = [decimal, thousands] if clear else [thousands, decimal]
    limit = "hold a limit of detection, such as"
    return explained(
        suspects,
        texts,
        [
            Explanation(
                "missing-word",
                "hold a word for a missing value",
                hints.MISSING,
                lambda text: "" if is_missing_word(text) else None,
                trusted=True,
            ),
            *plain,
            Explanation(
                "censored-low", f'{limit} "<LIMIT"', hints.LOW, lambda text: within(_LOW, text)
            ),
            Explanation(
                "censored-high", f'{limit} ">LIMIT"', hints.HIGH, lambda text: within(_HIGH, text)
            ),
            Explanation(
                "unit-text",
                "hold a number and its unit",
                "let the source write the number alone, and declare the unit: dpsynth: {ucum: ...}",
                unit,
            ),
            *([_fraction(suspects)] if suspects.column.kind.whole else []),
        ],
    )


def _marks(texts: Iterable[str]) -> set[str]:
    """Return the separators of thousands that occur."""
    marks: set[str] = set()
    for text in texts:
        inner = text.lstrip("<>=≤≥ ")
        if _SPACED.fullmatch(inner):
            marks |= set(inner) & set(BLANKS)
        marks |= {mark for mark, pattern in _GROUPED.items() if pattern.fullmatch(inner)}
    return marks


def _fraction(suspects: Suspects) -> Explanation:
    """Explain numbers that are not whole, by their whole part."""
    point = re.escape(suspects.decimal)
    pattern = re.compile(rf"(?P<whole>[+-]?[0-9]+){point}[0-9]+")

    def whole(text: str) -> str | None:
        match = pattern.fullmatch(text)
        return None if match is None else match["whole"]

    return Explanation("fraction", "are numbers with decimals", hints.FRACTION, whole)
