"""The shipped table of clinical variables: units, plausible ranges, names in nine languages.

`clinical_ranges.csv` has a row for each variable and unit. Its ranges are dpsynth's own and wide
on purpose: a bound should hold for almost every patient, because values beyond it are moved to it.
They are proposals. A person compares them with the protocol or the device before they are used.

The codes are those of LOINC (https://loinc.org, copyright Regenstrief Institute, Inc. and the LOINC
Committee, available under the license at https://loinc.org/license). Names and ranges are not.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dpsynth.draft.entry import CATEGORY, NUMERIC, TEXT, TIME, Entry
from dpsynth.draft.entry import KEY as KEY_KIND
from dpsynth.draft.names import cores, spellings, words
from dpsynth.draft.stems import meaning_of
from dpsynth.draft.units import find_unit

LANGUAGES = ("en", "de", "fr", "es", "nl", "it", "pl", "pt", "sv")
KEY, DROP, CODES = "key", "drop", "codes"  # types of the table that are not types of a column
_NUMBERED = ("identity number", "specimen number", "contact", "address", "staff")
_BRACKET = re.compile(r"(.*\S)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]")
_BASES = {
    "": "",
    "analyser": "wider than what laboratory analysers usually report",
    "convention": "a wide limit by convention",
    "device": "wider than what the usual devices show",
    "lifespan": "the longest human life is 122 years",
    "living": "wider than what is seen in living patients",
    "scale": "the ends of the scale",
}


@dataclass(frozen=True)
class Range:
    """Plausible values of a variable in one unit.

    Attributes:
        ucum: the unit, or an empty text where there is none.
        loinc: the code of the measurement in this unit, or an empty text.
        type: of the column, or `KEY`, `DROP` or `CODES`.
        minimum, maximum, step: in the unit, None where nothing is proposed.
        basis: why these bounds, in words.
    """

    ucum: str
    loinc: str
    type: str
    minimum: float | None
    maximum: float | None
    step: float | None
    basis: str


@dataclass(frozen=True)
class Variable:
    """A clinical variable: its name, its usual role, and a range for each unit."""

    name: str
    role: str
    ranges: tuple[Range, ...]

    @property
    def type(self) -> str:
        """The type of its first range."""
        return self.ranges[0].type

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers with bounds."""
        return self.type in ("integer", "number", "year")

    def range_in(self, unit: str | None) -> Range | None:
        """Return the range in a unit as somebody wrote it.

        Without a unit, only a variable that has a single unit gives its range: a guess between
        mg/dL and mmol/L would be wrong by a factor of twenty.

        >>> creatinine = find("kreatinin").variable
        >>> creatinine.range_in("µmol/l").maximum, creatinine.range_in(None)
        (2650.0, None)
        """
        if not unit:
            return self.ranges[0] if len(self.ranges) == 1 else None
        ucum = find_unit(unit, [one.ucum for one in self.ranges])
        return next((one for one in self.ranges if one.ucum == ucum), None)


@dataclass(frozen=True)
class Match:
    """A variable that a name means, and the unit that the name ends with, if it does.

    A match that is not sure becomes a question: the name may mean it, and something else.
    """

    variable: Variable
    unit: str | None = None
    is_sure: bool = True


def find(name: str) -> Match | None:
    """Find the variable that a column's name or label means.

    The comparison ignores case, accents and separators, a unit at the end, and words such as
    ``lab`` or ``max`` around the noun. A name that the table lacks is read by the stems of its
    words. Nothing is guessed from similar spellings.

    >>> match = find("HbA1c_mmol_mol")
    >>> match.variable.name, match.unit
    ('haemoglobin A1c', 'mmol/mol')
    >>> find("RR_sys").variable.name, find("crp_max").variable.name, find("v17")
    ('systolic blood pressure', 'C-reactive protein', None)
    >>> match = find("PAM min (mmHg)")
    >>> match.variable.name, match.unit
    ('mean arterial pressure', 'mm[Hg]')
    """
    for umlauts in (True, False):
        whole = words(name, umlauts=umlauts)
        for parts in cores(whole):
            match = _match(parts)
            if match is None:
                continue
            bare = parts in (whole, [word for word in whole if not word.isdigit()])
            if bare or match.variable.type not in (KEY, DROP, "date"):
                return match  # but "lab name" is not a person's name
    bracket = _BRACKET.fullmatch(name)
    inner = find(bracket[1]) if bracket is not None else None
    if bracket is not None and inner is not None:
        unit = find_unit(bracket[2], [one.ucum for one in inner.variable.ranges])
        if unit is not None:
            return Match(inner.variable, unit)
    meaning = meaning_of(name)
    if meaning is None:
        return None
    return Match(_by_name()[meaning.variable], is_sure=meaning.is_sure)


def fits(entry: Entry, variable: Variable) -> bool:
    """Tell whether what a document says about a column can be true of a variable."""
    kind = entry.kind
    if variable.type == KEY:
        return not (entry.values or entry.minimum or entry.maximum)
    if variable.name == "date of birth":  # whatever a document says of its cells
        return kind not in ("boolean", "integer", "number", NUMERIC)
    if variable.type == DROP:
        numbered = variable.name in _NUMBERED and not (entry.minimum or entry.maximum)
        numbers = () if numbered else ("integer", "number", NUMERIC)
        return not entry.values and kind not in ("boolean", CATEGORY, *numbers)
    if variable.is_numeric:
        return kind in (None, NUMERIC, "integer", "number", "year") or (
            kind == CATEGORY and bool(entry.values)
        )
    if variable.type == "date":
        return kind in (None, "date", "datetime", TEXT, "string")
    return kind not in ("date", "datetime", "yearmonth", "duration", TIME, KEY_KIND)


def _match(parts: list[str]) -> Match | None:
    """Look a name up: whole, then without a unit at its end."""
    index = _index()
    text = "".join(parts)
    if variable := index.get(text):
        return Match(variable)
    ends = {len("".join(parts[:place])) for place in range(1, len(parts))}
    for end in range(len(text) - 1, 1, -1):
        variable = index.get(text[:end])
        if variable is None or (len(text) - end == 1 and end not in ends):
            continue
        unit = find_unit(text[end:], [one.ucum for one in variable.ranges])
        if unit is not None:
            return Match(variable, unit)
    return None


@cache
def variables() -> tuple[Variable, ...]:
    """Return all variables of the shipped table."""
    rows_of: dict[str, list[dict[str, str]]] = {}
    for row in _rows():
        rows_of.setdefault(row["variable"], []).append(row)
    return tuple(
        Variable(name, rows[0]["role"], tuple(map(_range, rows))) for name, rows in rows_of.items()
    )


@cache
def _by_name() -> dict[str, Variable]:
    """Return the variables by the names of the table."""
    return {variable.name: variable for variable in variables()}


@cache
def _index() -> dict[str, Variable]:
    """Return the variables by the compact form of each of their names."""
    known = _by_name()
    index: dict[str, Variable] = {}
    for row in _rows():
        names = [row["variable"]] if _is_noun(row) else []
        for language in LANGUAGES:
            names += [name for name in row[language].split("|") if name]
        names += [_without_umlauts(name) for name in row["de"].split("|") if name]
        for name in names:
            for spelling in spellings(name):
                index.setdefault(spelling, known[row["variable"]])
    return index


def _without_umlauts(name: str) -> str:
    """Write a German name as in a header that lost its dots: grosse for groesse."""
    for long, short in (("ae", "a"), ("oe", "o"), ("ue", "u")):
        name = name.replace(long, short)
    return name


def _is_noun(row: dict[str, str]) -> bool:
    return row["type"] not in (KEY, DROP)


@cache
def _rows() -> tuple[dict[str, str], ...]:
    file = resources.files("dpsynth.draft").joinpath("clinical_ranges.csv")
    return tuple(csv.DictReader(file.read_text("utf-8").splitlines()))


def _range(row: dict[str, str]) -> Range:
    minimum, maximum, step = (
        float(row[key]) if row[key] else None for key in ("minimum", "maximum", "step")
    )
    basis = _BASES[row["basis"]]
    return Range(row["ucum"], row["loinc"], row["type"], minimum, maximum, step, basis)
