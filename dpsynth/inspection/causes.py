"""Likely causes of cells that are not taken as they stand, and a way to try other forms.

Why cells lie outside the bounds: a code for a missing value, or another unit.

Another unit is claimed only if the cells are far from the bound and, converted, lie where the valid
cells are. A long tail begins at the bound, so it is not taken for a unit.

Conversions between units that extracts of hospitals mix up.

Factors of laboratory values follow the molar masses of the substances; the others are exact or
rounded to four digits. They serve for a guess at why cells lie outside the bounds: no value is ever
converted with them.

Words that tables of hospitals use for a missing value or for yes and no; formats of dates.

They are a list from experience with extracts in English, German, French, Spanish and Italian. A
check compares unreadable and unknown cells with it. A fit never reads it: what is missing is what
the schema declares.

The cells of one column that its codec does not take as they stand, and a way to try others.

A cause is claimed by trying: each text is rewritten as the cause would have it, and counts only if
the column's own codec then takes it. So a cause is never claimed for a cell that is valid.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.messages import closest
from dpsynth.encoding.column_codecs import Kind, coder_of
from dpsynth.inspection import hints
from dpsynth.inspection.findings import CLIPPED, UNKNOWN, UNREADABLE, Cause, Finding
from dpsynth.schema import Column, in_units
from dpsynth.schema.relations import SECONDS, WORDS, Interval, converted, plural
from dpsynth.tables import array_of, is_close, read_texts

MIN_TYPO = 5  # letters; shorter codes are too near to each other
MAX_TYPOS = 500  # distinct texts that are compared letter by letter

_ICD10 = re.compile(r"[A-TV-Z][0-9][0-9AB]\.?[0-9A-Z]{0,4}[-+*!]?", re.IGNORECASE)
_ICD9 = re.compile(r"[0-9]{3}\.[0-9]{1,2}|[0-9]{3}|V[0-9]{2}(\.[0-9]{1,2})?", re.IGNORECASE)

Rewrite = Callable[[str], str | None]


def unknown_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells that are no declared category or code."""
    levels = suspects.column.categories or ()
    missing = Explanation(
        "missing-word", "hold a word for a missing value", hints.MISSING, _missing, trusted=True
    )
    repaired = Explanation(
        "encoding",
        "were written in UTF-8 and read in another encoding",
        hints.encoding("utf-8"),
        repaired_text,
    )
    if suspects.column.codes is not None:
        return explained(suspects, texts, [missing, *_codes(suspects)])
    labels = _labels(suspects, texts)
    if not suspects.column.kind.is_text:
        return explained(suspects, texts, [*labels, missing])
    return explained(
        suspects, texts, [repaired, *_spellings(levels), *labels, missing, *_typos(levels)]
    )


def _labels(suspects: Suspects, texts: Counter[str]) -> list[Explanation]:
    """Explain texts that are the declared label of a category, in place of its code."""
    categories = suspects.column.categories or ()
    of_label: dict[str, list[str]] = {}
    for category, label in suspects.column.labels.items():
        if category in categories and label.strip():
            of_label.setdefault(label.strip().casefold(), []).append(category)
    known = {label: found[0] for label, found in of_label.items() if len(found) == 1}
    if not known:
        return []
    declared = {category: suspects.column.labels[category].strip() for category in known.values()}
    written = {*declared.values()}
    found = [text for text in texts if text.casefold() in known]
    can_fold = suspects.column.kind.is_text or suspects.column.kind.is_truth
    case = not can_fold or all(text in written for text in found)
    return [
        Explanation(
            "label",
            "hold the label of a category in place of the category",
            hints.labels(declared, case=case),
            lambda text: known.get(text.casefold()),
        )
    ]


def truth_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells that are neither true nor false."""
    column = suspects.column
    declared = dict.fromkeys(column.true_values, "true")
    declared |= dict.fromkeys(column.false_values, "false")
    word_of = _by(declared, str.casefold)
    words = {word: "true" for word in TRUE_WORDS} | {word: "false" for word in FALSE_WORDS}
    return explained(
        suspects,
        texts,
        [
            Explanation(
                "case",
                "differ from a declared word only by upper and lower case",
                hints.CASE,
                lambda text: declared.get(word_of(text) or ""),
            ),
            Explanation(
                "truth-words",
                "hold other words for true and false",
                f'add to the column: trueValues: ["WORD"] and falseValues: ["WORD"]; {hints.SHOW}',
                lambda text: words.get(text.casefold()),
                trusted=True,
            ),
            Explanation(
                "missing-word", "hold a word for a missing value", hints.MISSING, _missing,
                trusted=True,
            ),
        ],
    )  # fmt: skip


def repaired_text(text: str) -> str | None:
    """Undo the reading of UTF-8 as another encoding; None if that is not what happened.

    >>> repaired_text("mÃ¤nnlich"), repaired_text("männlich"), repaired_text("male")
    ('männlich', None, None)
    """
    if text.isascii():
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _missing(text: str) -> str | None:
    return "" if is_missing_word(text) else None


def _by(levels: Iterable[str], *folds: Callable[[str], str]) -> Rewrite:
    """Look texts up among the levels by a folded form; ambiguous forms are left out."""
    folded: dict[tuple[int, str], str | None] = {}
    for number, fold in enumerate(folds):
        for level in levels:
            form = (number, fold(level))
            folded[form] = None if form in folded or not form[1] else level

    def meant(text: str) -> str | None:
        levels_of_folds = (folded.get((number, fold(text))) for number, fold in enumerate(folds))
        return next((level for level in levels_of_folds if level is not None), None)

    return meant


def _number_form(text: str) -> str:
    """Return a code as a program writes that took it for a number."""
    whole = re.sub(r"\.0+$", "", text)
    return whole.lstrip("0") or "0" if whole.isdigit() else ""


def _spellings(levels: Iterable[str]) -> list[Explanation]:
    """Explain texts that are another way to write a category."""
    return [
        Explanation(
            "case",
            "differ from a category only by upper and lower case",
            hints.CASE,
            _by(levels, str.casefold),
        ),
        Explanation(
            "zeros",
            "are codes that a program took for numbers (007 became 7 or 7.0)",
            f"let the source write the column as text; or {hints.VALUES}; {hints.SHOW}",
            _by(levels, _number_form),
        ),
        Explanation(
            "dots",
            "are declared codes with or without their dot",
            f"{hints.VALUES}; {hints.SHOW}",
            _by(levels, lambda text: text.replace(".", "").casefold()),
        ),
        Explanation(
            "spelling",
            "differ from a category only by accents, blanks or punctuation",
            f"{hints.VALUES}; {hints.SHOW}",
            _by(levels, plain_text, bare_text),
        ),
        Explanation(
            "lost-letters",
            "hold the sign for a letter that was lost in an earlier conversion",
            "export the table again in UTF-8; the letters cannot be restored",
            lambda text: "" if "\ufffd" in text else None,
            trusted=True,
        ),
    ]


def _typos(levels: Iterable[str]) -> list[Explanation]:
    """Explain long words that are nearly a category."""
    long = [level for level in levels if len(level) >= MIN_TYPO and not level.isdigit()]
    tried: set[str] = set()

    def near(text: str) -> str | None:
        if len(text) < MIN_TYPO or any(c.isdigit() for c in text) or len(tried) >= MAX_TYPOS:
            return None
        tried.add(text)
        level = closest(text, long)
        return level if level is not None and _distance_is_one(text, level) else None

    return [
        Explanation(
            "typing",
            "differ from a category by one letter",
            f"{hints.VALUES}; {hints.SHOW}",
            near,
        )
    ]


def _distance_is_one(text: str, level: str) -> bool:
    """Whether one letter was added, left out or changed, or two neighbours swapped.

    >>> [_distance_is_one("surgry", level) for level in ("surgery", "surgical")]
    [True, False]
    """
    one, other = sorted((plain_text(text), plain_text(level)), key=len)
    if len(other) - len(one) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return one[start + 1 :] == other[start + 1 :] or (
        swapped and one[start + 2 :] == other[start + 2 :]
    )


def _codes(suspects: Suspects) -> list[Explanation]:
    """Explain codes of a published system that are written otherwise, or are of another one."""
    assert suspects.column.codes is not None
    system = suspects.column.codes.system

    def dotted(text: str) -> str | None:
        head = 4 if text[:1].upper() == "E" and system.startswith("ICD-9") else 3
        plain = text.replace(".", "").replace(" ", "")
        return f"{plain[:head]}.{plain[head:]}" if len(plain) > head and plain.isalnum() else None

    other = _ICD10 if system.startswith("ICD-9") else _ICD9
    name = "ICD-10-GM" if system.startswith("ICD-9") else "ICD-9-CM"
    or_else = ", or system: ICD-10-CM" if name == "ICD-10-GM" else ""
    return [
        Explanation(
            "dots",
            f"are codes of {system} without their dot, or with it in another place",
            "let the source write codes with their dot",
            dotted,
        ),
        Explanation(
            "code-system",
            f"look like codes of {name[: name.rindex('-')]}, not of {system}",
            f"set in the column, if the source codes in it: dpsynth: {{codes: {{system: {name}, "
            f"rollup: chapter}}}}{or_else}",
            lambda text: "" if other.fullmatch(text) else None,
            trusted=True,
        ),
    ]


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
        if not suspects.column.kind.is_time and not only:
            remedy = "a column of times has one format: let the source write all cells alike"
        noun = "dates" if suspects.column.kind.is_time else "times"
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
    patterns = suspects.column.kind.formats
    return [one for one in patterns if (suspects.kinds(words, format=one) == Kind.VALID).any()]


def gap_causes(interval: Interval, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain gaps that are too short, and gaps that are too long.

    Args:
        interval: the declaration.
        texts: the gaps, in its unit.

    >>> for cause in gap_causes(Interval("admitted", "d", 90), Counter({"-3": 2, "400": 1})):
    ...     print(cause.cells, cause.message)
    2 lie before admitted
    1 lie more than 90 days after admitted
    """
    gaps = {text: float(text) for text in texts}
    short = {text: "" for text, gap in gaps.items() if gap < interval.shortest}
    long = {text: "" for text, gap in gaps.items() if gap > interval.longest}
    side, other = ("before", "after") if interval.before else ("after", "before")
    if interval.shortest:
        less = f"lie less than {plural(interval.shortest, interval.unit)} {side} {interval.base}"
    else:
        less = f"lie {other} {interval.base}"
    sides = [
        (
            "order",
            short,
            less,
            "correct them in the source; or, if they are right, declare the shortest gap in "
            f"{WORDS[interval.unit]}s, less than 0 for the other side: dpsynth: {{shortest: ...}}",
        ),
        (
            "long-gap",
            long,
            f"lie more than {plural(interval.longest, interval.unit)} {side} {interval.base}",
            "compare longest with its source (bounds_basis), and correct the dates in the source",
        ),
    ]
    causes = [
        Cause(key, sum(texts[text] for text in found), message, remedy, found)
        for key, found, message, remedy in sides
        if found
    ]
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def date_of_gap(column: Column, base: Column) -> Column:
    """Return the later date of an interval as a date with bounds, to try formats with.

    Its bounds are those of the date that it leans on, as far apart as the interval allows.
    """
    assert column.interval is not None
    interval, bounds = column.interval, dict[str, Any]()
    gap = max(abs(interval.shortest), abs(interval.longest)) * SECONDS[interval.unit]
    for name, bound, side in (("minimum", base.minimum, -1), ("maximum", base.maximum, 1)):
        value = float(in_units(bound, base.kind))
        own = float(converted(np.array(value), base.kind, column.kind))
        bounds[name] = column.kind.bound(own + side * gap // column.kind.seconds)
    return replace(column, interval=None, **bounds)


MIN_CODES = 3  # cells with the same code
MIN_CODE_SHARE = 0.5  # of the cells beyond the same bound
MIN_CONVERTED = 5  # cells
MIN_CONVERTED_SHARE = 0.8  # of the cells beyond the same bound
FAR = 1.5  # a cell is far from a bound if it is beyond it by this factor
MAX_NEAR = 0.1  # share of the cells beyond a bound that may be near to it
ALIKE = 0.95  # conversions that explain so much of what the best one explains are named too
MARGIN = 0.25  # of the distance between the percentiles
MAX_NAMED = 3
MIN_VALID = 20  # valid cells that show where values lie; with fewer, the bounds count

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def clipped_causes(suspects: Suspects, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain cells below the minimum, and cells above the maximum."""
    column = suspects.column
    if column.minimum is None or column.maximum is None:
        return ()
    low, high = (float(in_units(bound, column.kind)) for bound in (column.minimum, column.maximum))
    words = list(texts)
    counts = np.array([texts[word] for word in words])
    values = read_texts(array_of(words), column, suspects.decimal)
    codes = _clipped_codes(suspects)
    causes = []
    for side, name in ((values < low, "below the minimum"), (values > high, "above the maximum")):
        coded = side & _is_code(values, codes, counts, side)
        if coded.any():
            causes.append(
                Cause(
                    "missing-code",
                    int(counts[coded].sum()),
                    f"{name} are a code that often stands for a missing value",
                    hints.CODE,
                    {words[place]: "" for place in np.flatnonzero(coded)},
                )
            )
        if column.kind.is_plain and column.kind.is_quantity:
            causes += _converted(suspects, words, values, counts, side & ~coded, (low, high), name)
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def _clipped_codes(suspects: Suspects) -> Floats:
    """Return the codes of missing values in the column's unit."""
    if suspects.column.kind.is_plain:
        return np.array(sorted(MISSING_NUMBERS))
    read = suspects.column.kind.read
    assert read is not None  # of dates and times
    return np.array([read(text, None) for text in MISSING_DATES])


def _is_code(values: Floats, codes: Floats, counts: npt.NDArray[np.int64], side: Bools) -> Bools:
    """Tell which values are the one code that most of the cells beyond a bound hold."""
    none = np.zeros(len(values), dtype=bool)
    cells = counts[side].sum()
    best = none
    for code in codes:
        coded = side & is_close(values, np.float64(code))
        if counts[coded].sum() > counts[best].sum():
            best = coded
    count = counts[best].sum()
    return best if count >= max(MIN_CODES, MIN_CODE_SHARE * cells) else none


def _converted(
    suspects: Suspects,
    words: list[str],
    values: Floats,
    counts: npt.NDArray[np.int64],
    side: Bools,
    bounds: tuple[float, float],
    name: str,
) -> list[Cause]:
    """Try other units for the cells beyond a bound; at most one is named."""
    cells = int(counts[side].sum())
    if cells < MIN_CONVERTED or counts[side & _near(values, bounds)].sum() > MAX_NEAR * cells:
        return []
    low, high = _usual(suspects.valid, bounds)
    fits = {}
    for one in conversions_to(suspects.column.ucum):
        converted = values * one.factor + one.offset
        fit = side & (low <= converted) & (converted <= high)
        if counts[fit].sum() >= MIN_CONVERTED_SHARE * cells:
            fits[one] = fit
    most = max((int(counts[fit].sum()) for fit in fits.values()), default=0)
    best = [one for one, fit in fits.items() if counts[fit].sum() >= ALIKE * most]
    if not best:
        return []
    fit = fits[best[0]]
    words_of = " or ".join(f"{one} ({one.example})" for one in best[:MAX_NAMED])
    return [
        Cause(
            "unit",
            int(counts[fit].sum()),
            f"{name} would fit after {words_of}",
            hints.UNIT,
            {words[place]: "" for place in np.flatnonzero(fit)},
        )
    ]


def _near(values: Floats, bounds: tuple[float, float]) -> Bools:
    """Tell which values beyond a bound are near to it, by ratio."""
    low, high = bounds
    with np.errstate(invalid="ignore", divide="ignore"):
        below = (values < low) & ((values <= 0) | (low <= 0) | (values * FAR >= low))
        above = (values > high) & ((high <= 0) | (values <= high * FAR))
    return np.asarray(below | above)


def _usual(valid: Floats, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return where valid cells lie: about between their 1st and 99th percentile, or the bounds."""
    if len(valid) < MIN_VALID:
        return bounds
    low, high = np.quantile(valid, [0.01, 0.99]).tolist()
    margin = MARGIN * (high - low)
    return max(bounds[0], low - margin), min(bounds[1], high + margin)


@dataclass(frozen=True)
class Conversion:
    """``value * factor + offset`` gives the declared unit.

    Attributes:
        factor: of the value.
        offset: added afterwards.
        example: from what to what.
        ucum: declared units to which it leads; empty for any.
    """

    factor: float
    offset: float
    example: str
    ucum: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write the formula.

        >>> str(Conversion(0.0915, 2.15, "HbA1c: mmol/mol to %"))
        'x0.0915 + 2.15'
        """
        shift = f" {'+' if self.offset > 0 else '-'} {abs(self.offset):.4g}" if self.offset else ""
        return f"x{self.factor:.4g}{shift}"


CONVERSIONS = (
    Conversion(100, 0, "metres to centimetres, or a decimal sign in the wrong place"),
    Conversion(0.01, 0, "centimetres to metres, or a lost decimal sign"),
    Conversion(10, 0, "another unit, or a decimal sign in the wrong place"),
    Conversion(0.1, 0, "another unit, or a lost decimal sign"),
    Conversion(1000, 0, "kilograms to grams, litres to millilitres"),
    Conversion(0.001, 0, "grams to kilograms, millilitres to litres"),
    Conversion(0.0113, 0, "creatinine: umol/L to mg/dL", ("mg/dL",)),
    Conversion(88.42, 0, "creatinine: mg/dL to umol/L", ("umol/L",)),
    Conversion(0.0555, 0, "glucose: mg/dL to mmol/L", ("mmol/L",)),
    Conversion(18.02, 0, "glucose: mmol/L to mg/dL", ("mg/dL",)),
    Conversion(0.0259, 0, "cholesterol: mg/dL to mmol/L", ("mmol/L",)),
    Conversion(38.67, 0, "cholesterol: mmol/L to mg/dL", ("mg/dL",)),
    Conversion(0.0585, 0, "bilirubin: umol/L to mg/dL", ("mg/dL",)),
    Conversion(17.1, 0, "bilirubin: mg/dL to umol/L", ("umol/L",)),
    Conversion(0.0915, 2.15, "HbA1c: mmol/mol to %", ("%",)),
    Conversion(10.93, -23.5, "HbA1c: % to mmol/mol", ("mmol/mol",)),
    Conversion(1.611, 0, "haemoglobin: mmol/L to g/dL", ("g/dL",)),
    Conversion(0.6206, 0, "haemoglobin: g/dL to mmol/L", ("mmol/L",)),
    Conversion(5 / 9, -32 * 5 / 9, "Fahrenheit to Celsius", ("Cel",)),
    Conversion(1.8, 32, "Celsius to Fahrenheit", ("[degF]",)),
    Conversion(0.4536, 0, "pounds to kilograms", ("kg",)),
    Conversion(2.205, 0, "kilograms to pounds", ("[lb_av]",)),
    Conversion(2.54, 0, "inches to centimetres", ("cm",)),
    Conversion(0.3937, 0, "centimetres to inches", ("[in_i]",)),
    Conversion(7.501, 0, "kPa to mmHg", ("mm[Hg]",)),
    Conversion(0.1333, 0, "mmHg to kPa", ("kPa",)),
    Conversion(1 / 365.25, 0, "days to years", ("a",)),
    Conversion(1 / 12, 0, "months to years", ("a",)),
)


def conversions_to(ucum: str | None) -> tuple[Conversion, ...]:
    """List the conversions that may lead to a unit; without one, all of them.

    >>> [str(one) for one in conversions_to("cm")][-1], len(conversions_to(None))
    ('x2.54', 28)
    """
    return tuple(one for one in CONVERSIONS if ucum is None or not one.ucum or ucum in one.ucum)


_WORDS = """
    na nan nil none null missing unknown unk unspecified undefined not_available not_applicable
    not_known not_done not_recorded not_reported not_measured not_stated no_data no_answer refused
    declined pending tbd nd nk nr ns
    ka keine_angabe keine_angaben unbekannt unbek nicht_bekannt fehlt fehlend entfällt entfallen
    leer
    nicht_erhoben nicht_erfasst nicht_durchgeführt nicht_gemessen nicht_bestimmt nicht_beurteilbar
    nicht_verfügbar nicht_zutreffend verweigert abgelehnt ohne_angabe nb nv nz oa
    inconnu inconnue non_renseigné non_renseignée non_disponible non_fait manquant refusé
    desconocido desconocida sin_dato sin_datos no_consta no_disponible no_realizado
    sconosciuto non_disponibile non_noto mancante
"""
_FILLED = re.compile(r"[-–—.?*_/\\#!]+")
TRUE_WORDS = frozenset(
    "yes y ja j true t wahr w waar oui o vrai si s sí sì sim tak vero v x positiv pos "
    "positive".split()
)
FALSE_WORDS = frozenset(
    "no n nein nee nej não nao nie false f falsch onwaar non faux falso negativ neg "
    "negative".split()
)
REST_WORDS = frozenset(
    "other others rest misc miscellaneous unknown sonstige sonstiges andere anderes unbekannt "
    "autre autres inconnu otro otra otros otras altro altri altre".split()
)
MISSING_NUMBERS = frozenset(
    {-1.0, -7.0, -8.0, -9.0, 7777.0, 8888.0, 9999.0, 99999.0, 999999.0}
    | {sign * code for sign in (-1.0, 1.0) for code in (77.0, 88.0, 99.0, 777.0, 888.0, 999.0)}
    | {-7777.0, -8888.0, -9999.0, 99.9, 999.9, 99.99, 999.99, -99.9}
)
MISSING_DATES = ("1800-01-01", "1900-01-01", "1970-01-01", "2099-12-31", "2999-12-31", "9999-12-31")
NO_DATE = re.compile(r"0{1,4}[-./ ]0{1,2}[-./ ]0{1,4}( 0{1,2}:0{2}(:0{2})?)?")


def plain_text(text: str) -> str:
    """Return a text without case, accents, blanks and punctuation; umlauts as two letters.

    >>> plain_text("  K. A."), plain_text("Männlich") == plain_text("maennlich")
    ('ka', True)
    """
    text = unicodedata.normalize("NFC", text).casefold()
    for letter, pair in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        text = text.replace(letter, pair)
    return bare_text(text)


def bare_text(text: str) -> str:
    """Return a text without case, accents, blanks and punctuation.

    >>> bare_text("Früher "), bare_text("d'accord")
    ('fruher', 'daccord')
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if letter.isalnum())


_MISSING = frozenset(plain_text(word) for word in _WORDS.split())


def is_missing_word(text: str) -> bool:
    """Whether a text is one that people write where they have no value.

    >>> [is_missing_word(text) for text in ("k.A.", "--", "Unbekannt", "N/A", "5", "male")]
    [True, True, True, True, False, False]
    """
    return bool(_FILLED.fullmatch(text)) or plain_text(text) in _MISSING


MAX_TEXTS = 10_000  # distinct ones of a column that are kept
MIN_SHARE = 0.02  # of a finding's cells; what explains fewer is not named
READ = (Kind.VALID, Kind.CLIPPED)


@dataclass
class Suspects:
    """Texts of one column that are unknown, unreadable or clipped; private.

    Attributes:
        column: its declaration.
        decimal: the declared decimal sign.
        of_kind: how often each distinct trimmed text occurs, by `Kind`.
        valid: some of the valid values of a numeric column, in its unit.
        sign_is_used: whether cells of the table, of any column, are read with the decimal sign.
    """

    column: Column
    decimal: str
    of_kind: dict[Kind, Counter[str]] = field(default_factory=dict)
    valid: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    sign_is_used: bool = False

    @property
    def has_decimals(self) -> bool:
        """Whether a valid value of a column of numbers is not whole, so that its sign was read."""
        if not self.column.kind.has_decimals or self.column.is_categorical:
            return False
        values = self.valid[np.isfinite(self.valid)]
        return bool((values != np.rint(values)).any())

    def add(self, kind: Kind, texts: Iterable[str], counts: Iterable[int]) -> None:
        """Count texts; distinct ones beyond `MAX_TEXTS` are not kept."""
        kept = self.of_kind.setdefault(kind, Counter())
        for text, count in zip(texts, counts, strict=True):
            if text in kept or len(kept) < MAX_TEXTS:
                kept[text] += count

    def kinds(
        self, texts: Sequence[str], *, decimal: str | None = None, **changes: Any
    ) -> npt.NDArray[np.uint8]:
        """Return the `Kind` of texts, with another decimal sign or declaration if one is given."""
        column = replace(self.column, **changes) if changes else self.column
        cells: pd.Series[Any] = pd.Series(list(texts), dtype=object)
        return coder_of(column, decimal or self.decimal).kinds(cells)


_KINDS = {UNREADABLE: Kind.BAD, UNKNOWN: Kind.UNKNOWN, CLIPPED: Kind.CLIPPED}


def texts_of_finding(suspects: Mapping[str, Suspects], finding: Finding) -> Counter[str] | None:
    """Return the cells of a finding, with how often each occurs; None if none are kept.

    None are kept of findings about rows, nor of cells that hold too many codes.
    """
    if finding.kind not in _KINDS:
        return None
    return suspects[finding.place].of_kind.get(_KINDS[finding.kind])


@dataclass(frozen=True)
class Explanation:
    """One thing that texts can be due to.

    Attributes:
        key: of the `Cause`.
        message: of the `Cause`.
        remedy: of the `Cause`.
        rewrite: gives what a text should be, or None if it is not of this cause.
        trusted: whether the codec need not take what `rewrite` gives; it is then no value.
        clipped: whether it is enough that the codec clips it.
    """

    key: str
    message: str
    remedy: str
    rewrite: Callable[[str], str | None]
    trusted: bool = False
    clipped: bool = True


def explained(
    suspects: Suspects, texts: Counter[str], explanations: Sequence[Explanation]
) -> tuple[Cause, ...]:
    """Give each text to the first explanation that fits it; return causes, the largest first."""
    rest, causes = dict(texts), []
    for one in explanations:
        meant = {text: new for text in rest if (new := one.rewrite(text)) is not None}
        if meant and not one.trusted:
            kinds = READ if one.clipped else (Kind.VALID,)
            fits = np.isin(suspects.kinds(list(meant.values())), kinds)
            meant = {text: new for (text, new), fit in zip(meant.items(), fits, strict=True) if fit}
        cells = sum(rest.pop(text) for text in meant)
        if cells and cells >= MIN_SHARE * texts.total():
            causes.append(Cause(one.key, cells, one.message, one.remedy, meant))
    return tuple(sorted(causes, key=lambda cause: -cause.cells))
