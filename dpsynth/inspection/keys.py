"""The keys of units: one patient under several keys, and many patients under one.

A key is compared as the schema declares. Whoever has two keys is protected as two patients, and
patients who share one are protected as one. What may be such a key is told from the keys alone, in
tables of their own and in linked ones alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth.inspection import hints
from dpsynth.inspection.causes import bare_text, is_missing_word
from dpsynth.inspection.findings import (
    CROWD,
    DAMAGED,
    LIMITS,
    WORDS,
    WRITTEN,
    Cause,
    Finding,
    Level,
    share_text,
)
from dpsynth.schema import PrivacyUnit
from dpsynth.tables import distinct, texts_of
from dpsynth.tables.unit_keys import NO_KEY, normalised

Ints = npt.NDArray[np.int64]
CROWDED = 100  # times max_rows
AT_END = "set at the end of the schema"
FOR_PACKAGE = "set for the package"

_SCIENTIFIC = re.compile(r"\d([.,]\d+)?[eE]\+\d{2,3}")  # as Excel writes a long number
_SIGNS = re.compile(r"[\W_]+")
_SOURCE = "let the source write keys as text"


def _no_zeros(text: str) -> str:
    return text.lstrip("0") or "0"


def _no_point(text: str) -> str:
    return re.sub(r"(?<=\d)(\.0+|,0)$", "", text)


def _no_inner_zeros(text: str) -> str:
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", text)


def _form(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _all(text: str) -> str:
    return _no_inner_zeros(_no_zeros(_no_point(_form(text).strip().casefold())))


_FOLDS: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("key-case", "upper and lower case", "{case: true}", str.casefold),
    ("key-blanks", "blanks around it", "{trim: true}", str.strip),
    ("key-zeros", "leading zeros", "{leading_zeros: false}", _no_zeros),
    ("key-point", "being written as a number (7 became 7.0)", _SOURCE, _no_point),
    (
        "key-number",
        "being written as a number (007 became 7.0)",
        f"{_SOURCE}, and {{leading_zeros: false}}",
        lambda text: _no_zeros(_no_point(text)),
    ),
    ("key-inner-zeros", "zeros before a number (P007 and P7)", "", _no_inner_zeros),
    ("key-form", "the form of its letters or digits, such as full-width ones", "", _form),
    ("key-several", "several of these: case, blanks, zeros, decimals, forms", "", _all),
)
_LAST = ("key-signs", "blanks, punctuation or accents", "", bare_text)


def near_keys(
    strangers: Counter[str], patients: Iterable[str], where: str = FOR_PACKAGE
) -> tuple[Cause, ...]:
    """Explain keys that would be a patient's if they were compared in another way."""
    known, rest, causes = list(patients), dict(strangers), []
    words = {text: "" for text in rest if is_missing_word(text)}
    if words:
        cells = sum(rest.pop(text) for text in words)
        message = "hold a word for a missing key"
        causes.append(Cause("missing-word", cells, message, hints.MISSING, words))
    for key, what, setting, fold in (*_FOLDS, _LAST):
        folded = Counter(map(fold, known))
        of_fold = {fold(text): text for text in known}
        meant = {}
        for text in rest:
            form = fold(text)
            if form and folded.get(form) == 1:
                meant[text] = of_fold[form]
        if meant:
            cells = sum(rest.pop(text) for text in meant)
            message = f"agree with a patient's key except for {what}"
            causes.append(Cause(key, cells, message, _remedy(setting, where), meant))
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def twin_keys(keys: Mapping[str, int], unit: PrivacyUnit, where: str) -> tuple[Cause, ...]:
    """Explain keys that would be one if they were compared in another way.

    Args:
        keys: as they are compared, with their rows.
        unit: how they are compared.
        where: a setting of keys belongs.

    Returns:
        Causes of the rows, each with its keys and another key of the same patient.
    """
    rest, causes = dict(keys), []
    for key, what, setting, fold in (*_FOLDS, (*_LAST[:3], _without_signs)):
        of_all = list(rest if key == _LAST[0] else keys)  # 7.0 without signs is not 70
        folded = [normalised(fold(text), unit) for text in of_all]
        if len(set(folded)) == len(folded):
            continue
        twins: dict[str, list[str]] = defaultdict(list)
        for text, form in zip(of_all, folded, strict=True):
            twins[form].append(text)
        meant = {
            text: next(other for other in group if other != text)
            for form, group in twins.items()
            if form and len(group) > 1
            for text in group
            if text in rest
        }
        if meant:
            cells = sum(rest.pop(text) for text in meant)
            message = f"hold a key that agrees with another one except for {what}"
            causes.append(Cause(key, cells, message, _remedy(setting, where), meant))
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def _without_signs(text: str) -> str:
    """Return the letters and digits of a key; signs between two digits are one sign.

    >>> _without_signs("P-7 "), _without_signs("1-23") == _without_signs("12-3")
    ('p7', False)
    """
    parts = [bare_text(part) for part in _SIGNS.split(text)]
    joined = ""
    for part in filter(None, parts):
        joined += ("-" if joined[-1:].isdigit() and part[0].isdigit() else "") + part
    return joined


def _remedy(setting: str, where: str) -> str:
    before, brace, rest = setting.partition("{")
    if brace:
        key = f"{{key: {brace}{rest}}}"
        return f"{before}{where}, if no two patients differ by it: dpsynth: {key}"
    return setting or "write the keys alike in the source, in all tables"


class WrittenKeys:
    """How keys are written that the schema compares as one; private.

    Attributes:
        written: the texts of each key, by the text by which it is compared.
        varies: whether one key can be written in several ways.
    """

    def __init__(self, unit: PrivacyUnit) -> None:
        """Take how keys are compared."""
        self._unit = unit
        self.varies = unit.case or not unit.leading_zeros
        self.written: dict[str, set[str]] = {}

    def add(self, cells: pd.Series, units: Ints, compared: Sequence[str]) -> None:
        """Keep how each key of a chunk is written.

        Args:
            cells: of the key's column.
            units: of the rows.
            compared: the keys as they are compared, by the numbers of their units.
        """
        of_text, texts = distinct(texts_of(cells))
        unit_of_text = np.full(len(texts) + 1, NO_KEY, dtype=np.int64)  # the last one is of none
        unit_of_text[of_text] = units
        for text, number in zip(texts, unit_of_text[:-1].tolist(), strict=True):
            if number != NO_KEY:
                written = text.strip() if self._unit.trim else text
                self.written.setdefault(compared[number], set()).add(written)


def written_findings(reads: Iterable[WrittenKeys], place: str, where: str) -> list[Finding]:
    """Judge keys that are written in several ways and compare as one, in all tables together."""
    written: dict[str, set[str]] = {}
    for read in reads:
        for key, texts in read.written.items():
            written.setdefault(key, set()).update(texts)
    several = sum(len(texts) > 1 for texts in written.values())
    if not several:
        return []
    tables = ", in one table or in different ones," if where == FOR_PACKAGE else ""
    return [
        Finding(
            place,
            WRITTEN,
            min(LIMITS[WRITTEN].level(several / len(written), several), Level.WARNING),
            f"{share_text(several, len(written), 'key')} are written in several ways{tables} and "
            "count as one patient",
            several,
            len(written),
            f"if they are two patients under one key, compare keys as they are written: {where}: "
            "dpsynth: {key: {trim: false, case: false, leading_zeros: true}}",
        )
    ]


@dataclass
class FoundKeys:
    """Findings about keys.

    Attributes:
        findings: what was found.
        texts: PRIVATE: by the kind of a finding, the keys that it is about, with their rows.
    """

    findings: list[Finding] = field(default_factory=list)
    texts: dict[str, Counter[str]] = field(default_factory=dict, repr=False)

    def add(self, finding: Finding, texts: Mapping[str, int]) -> None:
        """Take a finding with its keys."""
        self.findings.append(finding)
        self.texts[finding.kind] = Counter(dict(texts))


def key_findings(
    keys: Mapping[str, int], unit: PrivacyUnit, place: str, where: str = AT_END
) -> FoundKeys:
    """Judge keys that may be two keys of one patient, or one key of many.

    Args:
        keys: as they are compared, with their rows.
        unit: how they are compared.
        place: of the findings.
        where: a setting of keys belongs.
    """
    found, total = FoundKeys(), sum(keys.values())
    words = {text: rows for text, rows in keys.items() if is_missing_word(text)}
    if words:
        rows = sum(words.values())
        found.add(
            Finding(
                place,
                WORDS,
                LIMITS[WORDS].level(rows / total, rows),
                f"{share_text(rows, total, 'row')} have a word for a missing value as key; rows "
                "with the same word count as one patient",
                rows,
                total,
                f'add the word to the column of the key: missingValues: ["", "WORD"]; {hints.SHOW}',
            ),
            words,
        )
    damaged = {text: rows for text, rows in keys.items() if _SCIENTIFIC.fullmatch(text)}
    if damaged:
        rows = sum(damaged.values())
        found.add(
            Finding(
                place,
                DAMAGED,
                LIMITS[DAMAGED].level(rows / total, rows),
                f"{share_text(rows, total, 'row')} have a key in scientific notation, such as "
                "1.2E+11: digits are lost, so different patients may have the same key",
                rows,
                total,
                f"{_SOURCE}; a spreadsheet has taken them for numbers: do not open the extract in "
                "it, or give the column the format Text before",
            ),
            damaged,
        )
    rest = {text: rows for text, rows in keys.items() if text not in words | damaged}
    causes = twin_keys(rest, unit, where)
    if causes:
        twins = {text: rest[text] for cause in causes for text in cause.texts}
        rows = sum(twins.values())
        level = LIMITS[WRITTEN].level(rows / total, rows)
        if all(cause.key == _LAST[0] for cause in causes):
            level = min(level, Level.WARNING)
        found.add(
            Finding(
                place,
                WRITTEN,
                level,
                f"{share_text(rows, total, 'row')} have a key that differs from another one only "
                f"in how it is written, {counted(len(twins), 'different key')}; each counts as a "
                "patient, so a patient with two keys is protected as two",
                rows,
                total,
                causes=causes,
            ),
            twins,
        )
    return found


def crowd_findings(
    place: str, many: int, largest: int, patients: int, kept: str, noun: str = "patient"
) -> list[Finding]:
    """Judge keys with far more rows than count.

    Args:
        place: of the finding.
        many: how many keys have at least `CROWDED` times ``max_rows`` rows.
        largest: number of rows of a key.
        patients: how many there are.
        kept: what a fit keeps of each.
        noun: what has a key.
    """
    if not many:
        return []
    return [
        Finding(
            place,
            CROWD,
            LIMITS[CROWD].level(many / patients, many),
            f"{counted(many, noun)} with at least {CROWDED} times max_rows: the largest number of "
            f"rows is {bracket(largest)}; a fit keeps {kept}, by chance",
            many,
            patients,
            "such a key often stands for many people, or for an unknown one: look it up, and list "
            f"it in the key's missingValues; {hints.SHOW}",
        )
    ]


def bracket(count: int) -> str:
    """Say a largest count by its power of ten only: the exact one is about one patient.

    >>> bracket(7), bracket(340), bracket(10_000)
    ('below 10', 'between 100 and 999', 'between 10,000 and 99,999')
    """
    if count < 10:
        return "below 10"
    low = 10 ** (len(str(count)) - 1)
    return f"between {low:,} and {10 * low - 1:,}"
