"""Why a cell of a column of dates, times of day, or both, cannot be read."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from itertools import product

from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection import hints
from dpsynth.inspection.findings import Cause
from dpsynth.inspection.known_words import (
    CLOCK_FORMATS,
    DATE_FORMATS,
    NO_DATE,
    TIME_ENDINGS,
    is_missing_word,
)
from dpsynth.inspection.suspects import MIN_SHARE, Explanation, Suspects, explained

MAX_TRIED = 2_000  # distinct texts, the most frequent ones, with which formats are compared
MAX_SAMPLE = 50  # of these, with which formats are chosen
_EXCEL_DAYS = range(10_000, 80_000)  # of the years 1927 to 2119
_EXCEL_START = date(1899, 12, 30)


def date_causes(
    suspects: Suspects, texts: Counter[str], *, readable: bool = True
) -> tuple[Cause, ...]:
    """Explain cells that are no date.

    Args:
        suspects: the column.
        texts: the cells.
        readable: whether other cells of the column are read, so that it has two formats.
    """
    words = [
        Explanation(
            "missing-word",
            "hold a word or a date of zeros for a missing value",
            hints.MISSING,
            lambda text: "" if NO_DATE.fullmatch(text) or is_missing_word(text) else None,
            trusted=True,
        ),
        Explanation(
            "excel-days",
            "are day numbers of a spreadsheet",
            "let the source write dates as text, such as 2015-12-31",
            _of_excel,
            clipped=False,
        ),
    ]
    causes = explained(suspects, texts, words)
    rest = Counter(
        {text: n for text, n in texts.items() if not any(text in c.texts for c in causes)}
    )
    formats = _formats(suspects, rest, only=not readable)
    enough = [one for one in formats if one.cells >= MIN_SHARE * texts.total()]
    return tuple(sorted([*causes, *enough], key=lambda cause: -cause.cells))


def _of_excel(text: str) -> str | None:
    """Read a whole number as the day number of a spreadsheet.

    >>> _of_excel("43831"), _of_excel("20200101")
    ('2020-01-01', None)
    """
    if not (text.isascii() and text.isdigit() and int(text) in _EXCEL_DAYS):
        return None
    return (_EXCEL_START + timedelta(days=int(text))).isoformat()


def _formats(suspects: Suspects, texts: Counter[str], *, only: bool) -> list[Cause]:
    """Find the format that reads most of the texts within the bounds, and then the next one."""
    causes: list[Cause] = []
    rest = dict(texts.most_common(MAX_TRIED))
    tried = set(rest)
    patterns = _candidates(suspects, list(rest)[:MAX_SAMPLE])
    while rest and len(causes) < 3:
        best: list[str] = []
        read: set[str] = set()
        cells = 0
        words = list(rest)
        for pattern in patterns:
            valid = suspects.kinds(words, format=pattern) == Kind.VALID
            dates = {word for word, good in zip(words, valid, strict=True) if good}
            count = sum(rest[word] for word in dates)
            if count > cells:
                best, read, cells = [pattern], dates, count
            elif count == cells and count:
                best.append(pattern)
        if not read:
            break
        others = [text for text in texts if text not in tried]
        good = suspects.kinds(others, format=best[0]) == Kind.VALID
        more = {text for text, is_date in zip(others, good, strict=True) if is_date}
        cells += sum(texts[text] for text in more)
        read, tried = read | more, tried | more
        remedy = hints.date_format(best[0], suspects.column.format, only=only)
        if suspects.column.kind.is_clock and not only:
            remedy = "a column of times has one format: let the source write all cells alike"
        noun = "times" if suspects.column.kind.is_clock else "dates"
        causes.append(_format_cause(best, cells, dict.fromkeys(sorted(read), ""), remedy, noun))
        rest = {word: n for word, n in rest.items() if word not in read}
    return causes


def _format_cause(
    patterns: list[str], cells: int, texts: dict[str, str], remedy: str, noun: str
) -> Cause:
    """Word a format, or several that read the same cells."""
    orders = {_order(pattern) for pattern in patterns}
    if len(orders) > 1:
        remedy = f"ask the source whether the day or the month comes first; then {remedy}"
        message = f'are dates that "{patterns[0]}" and "{patterns[1]}" both read'
    else:
        message = f'are {noun} in the format "{patterns[0]}"'
    return Cause("date-format", cells, message, remedy, texts)


def _order(pattern: str) -> str:
    """Return the order of day, month and year in a pattern, such as ``dmy``."""
    return "".join(c.lower() for c in pattern if c in "dmyYbB").replace("b", "m")


def _candidates(suspects: Suspects, words: list[str]) -> list[str]:
    """List the formats, of dates alone and with a time of day, that read any of the words."""
    patterns = [day + ending for ending, day in product(TIME_ENDINGS, DATE_FORMATS)]
    if suspects.column.kind.is_clock:
        patterns = list(CLOCK_FORMATS)
    return [one for one in patterns if (suspects.kinds(words, format=one) == Kind.VALID).any()]
