"""Codes that a fit discovers: what one may look like, and those that a fit has found.

A code that is found is published. A column of codes may also hold a name, a date or a remark that
somebody typed there, so only texts of a declared pattern can be found. The pattern is public, and
it is narrow: letters, digits and a few signs, no blanks, at most `MAX_LENGTH` characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from dpsynth._util.short_repr import short_repr

MAX_LENGTH = 20  # characters of a code
MAX_PATTERN = 200  # characters
MAX_VARIABLE = 6  # parts of a pattern that may have several lengths: more are slow to match
MAX_EITHER = 10  # signs for "or"
MOST, EXPECTED = 2000, 1000
MAX_FOUND = 20_000  # of a column
LEAST_DIGITS = 6  # of a number that may be a patient's

PATTERNS = MappingProxyType(
    {
        "ICD-9-CM": r"([0-9]{1,3}|V[0-9]{2}|E[0-9]{3})(\.[0-9]{1,2})?",
        "ICD-10-CM": r"[A-Z][0-9][0-9AB](\.?[0-9A-Z]{1,4})?",
        "ICD-10-GM": r"[A-Z][0-9]{2}(\.[0-9]{1,2})?",
        "ATC": r"[A-Z][0-9]{2}[A-Z]([A-Z]([0-9]{2})?)?",
    }
)
"""Of the published systems, unless a column declares its own."""

# One part of a pattern: a character or a set of them, with how often; or a group, or "or".
_ONE = r"(?:\\\.|[A-Za-z0-9_/:-]|\[[A-Za-z0-9._/:-]+\])"
_PART = re.compile(
    rf"{_ONE}(?P<often>\?|\{{[0-9]{{1,2}}(,[0-9]{{1,2}})?\}})?|\((\?:)?|\)(?P<group>\??)|(?P<either>\|)"
)
_SIGNS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*")
_WORDS = (
    *("Maria", "Johnson", "SCHMIDT", "anna", "Nguyen", "LI", "Meier-Schulz", "unknown"),
    *("1975-03-12", "12.03.1975", "12/03/1975"),
)
_RESERVED = frozenset({"other", "missing"})


@dataclass(frozen=True, repr=False)
class Discovery:
    r"""Which codes of a column a fit may find.

    Attributes:
        pattern: a regular expression that a code fits as a whole.
        most: how many codes are kept at most; of more, those with the largest noisy counts.
        expected: how many different codes occur, about: for the outlook of a plan alone.
        found: by a fit, in ascending order; None before it.

    Example:
        >>> codes = Discovery(r"[A-Z][0-9]{2}(\.[0-9]{1,2})?")
        >>> codes.normalised(" e11.9 "), codes.normalised("Maria")
        ('E11.9', None)
    """

    pattern: str
    most: int = MOST
    expected: int = EXPECTED
    found: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        """Say how many were found."""
        count = "none yet" if self.found is None else f"{len(self.found)} found"
        return short_repr(self, count)

    def normalised(self, text: str) -> str | None:
        """Return the code that a cell is; None if it does not fit the pattern.

        Blanks around it do not matter. If the pattern has no small letters, neither does case.
        """
        text = text.strip()
        if self.pattern == self.pattern.upper():
            text = text.upper()
        if len(text) > MAX_LENGTH or text.lower() in _RESERVED or not _SIGNS.fullmatch(text):
            return None
        return text if self._compiled.fullmatch(text) else None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.ASCII)

    @cached_property
    def known(self) -> frozenset[str]:
        """The codes that were found."""
        return frozenset(self.found or ())


def fits_record_numbers(pattern: str) -> int | None:
    """Return how many digits in a row fit a pattern; None if no number of 6 digits or more does.

    Numbers of patients and stays look so, and they may stand in a column of codes by mistake.

    >>> fits_record_numbers("[0-9]{8}"), fits_record_numbers(PATTERNS["ICD-10-CM"])
    (8, None)
    """
    free = Discovery(pattern)
    sizes = range(LEAST_DIGITS, MAX_LENGTH + 1)
    return next((size for size in sizes if free.normalised(("1234567890" * 2)[:size])), None)


def check_pattern(pattern: str) -> str:
    """Return a pattern that codes, and nothing but codes, can fit.

    Raises:
        ValueError: it cannot be read, or people's names, dates or free text could fit it.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
    place, variable, either = 0, 0, 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            raise ValueError(
                "a pattern of codes has letters, digits, the signs _ / : - and \\. , sets such as "
                "[A-Z], groups in parentheses, | for or, and ?, {3} or {1,4} for how often; "
                "nothing else, because free text could fit it"
            )
        often = part["often"] or ""
        variable += "," in often or "?" in (often, part["group"])
        either += part["either"] is not None
        place = part.end()
    if variable > MAX_VARIABLE or either > MAX_EITHER:
        raise ValueError(
            f"a pattern has at most {MAX_VARIABLE} parts whose length may vary, and {MAX_EITHER} |"
        )
    try:
        compiled = re.compile(pattern, re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError("the pattern cannot be read: check its parentheses and sets") from error
    if compiled.fullmatch(""):
        raise ValueError("the empty text fits the pattern; a code has a character at least")
    free = Discovery(pattern)
    if any(free.normalised(word) is not None for word in _WORDS):
        raise ValueError(
            "names or dates fit the pattern, and a code that is found is published; write it more "
            r"narrowly, such as [A-Z][0-9]{2}(\.[0-9]{1,2})?"
        )
    return pattern
