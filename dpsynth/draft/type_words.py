"""Words for types, formats of dates and code systems, in the words of nine languages."""

from __future__ import annotations

import re
from typing import Any

from dpsynth._util.field_reader import TODO
from dpsynth.draft.entry import CATEGORY, TEXT, Entry
from dpsynth.draft.names import compact, words
from dpsynth.draft.stems import meanings
from dpsynth.draft.value_lists import Values, truth_words

_DATE = re.compile(r"[tdjmya]+([./ -])[tdjmya]+\1[tdjmya]+", re.IGNORECASE)
# 08:30, 08.30 and 08h30; a lower-case h after a capital one stands between hours and minutes
_CLOCK = re.compile(
    r"(?<![A-Za-z])(?:(?i:h{1,2})(?P<sign>[:.])(?i:m{1,2})(?P<seconds>(?P=sign)(?i:s{1,2}))?"
    r"|(?:H{1,2}|hh)(?P<letter> ?h ?)(?i:m{1,2}))"
)
_ISO = re.compile(r"(YYYY-MM-DD)T(HH)", re.IGNORECASE)
_LETTERS = re.compile(r"(?:.*[(\[]\s*)?([A-Z])\s?/\s?([A-Z])\s*[)\]]?")


def kind_of(text: str) -> str | None:
    """Return the kind that a type in a dictionary means; None for a word that is not known.

    What stands in brackets is a length or a format.

    >>> kind_of("Ganzzahl"), kind_of("varchar(20)"), kind_of("Datum (TT.MM.JJJJ)"), kind_of("?")
    ('integer', 'text', 'date', None)
    """
    text = _ISO.sub(r"\1 \2", text)
    kind = _kind(re.split(r"[(\[{,;:]", text)[0]) or _kind(text)
    if kind == "date" and _CLOCK.search(text):
        return "datetime"
    if kind is None and _DATE.search(text):
        return "datetime" if _CLOCK.search(text) else "date"
    return kind


def _kind(text: str) -> str | None:
    """Return the kind of a word of the table, in either spelling of its umlauts."""
    known = meanings("type")
    found = known.get(compact(text)) or known.get(compact(text, umlauts=False))
    return min(found) if found else None


def has_clock(text: str) -> bool:
    """Tell whether a date format has a time of day.

    >>> has_clock("TT.MM.JJJJ HH:MM"), has_clock("%d/%m/%Y %H:%M"), has_clock("YYYY-MM-DD")
    (True, True, False)
    """
    text = _ISO.sub(r"\1 \2", text)
    dated = _DATE.search(text) is not None and _CLOCK.search(text) is not None
    return dated or ("%H" in text and "%d" in text)


def date_format(text: str) -> str | None:
    """Return the strptime pattern of a date format in letters, or ``default`` for ISO 8601.

    >>> date_format("Datum (TT.MM.JJJJ)"), date_format("JJ/MM/AAAA"), date_format("YYYY-MM-DD")
    ('%d.%m.%Y', '%d/%m/%Y', 'default')
    >>> date_format("JJ/MM/AAAA HHhMM"), date_format("DD.MM.YYYY HH.MM")
    ('%d/%m/%Y %Hh%M', '%d.%m.%Y %H.%M')
    """
    if re.search(r"%[A-Za-z]", text):
        return text.strip()
    text = _ISO.sub(r"\1 \2", text)
    match = _DATE.search(text)
    if match is None:
        return None
    letters = match[0].upper()
    french = "A" in letters  # jour, mois, année; in German JJ is the year
    parts = [_directive(part, french) for part in letters.split(match[1])]
    if sorted(part[-1].lower() for part in parts) != ["d", "m", "y"]:
        return None
    pattern = match[1].join(parts)
    clock = _CLOCK.search(text[match.end() :])
    if clock is not None:
        sign = clock["sign"] or clock["letter"]
        pattern += f"{_between(text, match, clock)}%H{sign}%M"
        pattern += f"{sign}%S" if clock["seconds"] else ""
    iso = pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
    return "default" if iso else pattern


def truth_letters(text: str) -> Values:
    """Return the two letters of a type or name that says how yes and no are written.

    >>> truth_letters("O/N"), truth_letters("Ventilation (O/N)"), truth_letters("yes/no")
    ((('O', ''), ('N', '')), (('O', ''), ('N', '')), ())
    """
    match = _LETTERS.fullmatch(text.strip())
    values = ((match[1], ""), (match[2], "")) if match is not None else ()
    return values if truth_words(values) is not None else ()


def _between(text: str, day: re.Match[str], clock: re.Match[str]) -> str:
    """Return what stands between a date and its time of day, a blank if it is anything unusual."""
    between = text[day.end() :][: clock.start()]
    return between if between in (" ", "T", "_", "-", "  ", " à ", ", ") else " "


def _directive(letters: str, french: bool) -> str:
    """Return the directive of some equal letters, such as %Y for JJJJ; %? if they mean nothing."""
    if len(set(letters)) != 1:
        return "%?"
    letter = letters[0]
    if letter in "TD" or (letter == "J" and french):
        return "%d"
    if letter == "M":
        return "%m"
    return "%Y" if len(letters) == 4 else "%y"


# National versions that are published as one of dpsynth's code lists, and the others.
_NAMED = {
    ("icd", "10", "gm"): "ICD-10-GM",
    ("icd", "10", "cm"): "ICD-10-CM",
    ("cie", "10", "es"): "ICD-10-CM",  # its Spanish translation
    ("cie", "10", "mc"): "ICD-10-CM",
    ("cie", "9", "mc"): "ICD-9-CM",
    ("icd", "9", "cm"): "ICD-9-CM",
    ("atc",): "ATC",
}
_UNCLEAR = (("icd", "10"), ("cie", "10"), ("cim", "10"), ("icd", "9"), ("cie", "9"), ("cim", "9"))
_SEPARATED = re.compile(
    r"(?:separated|delimited|getrennt|séparés|separados)\s+(?:by|with|durch|mit|par|por|con)\s+"
    r"(?:an?\s+|une?\s+)?['\"«(]?(semicolons?|commas?|pipes?|semikolon|komma|point-virgule|virgule"
    r"|punto\s+y\s+coma|comas?|[;,|/+&])",
    re.IGNORECASE,
)
_ROLLUPS = {"ATC": "level-2"}
_CODED = (None, TEXT, "string", CATEGORY)


def code_system(entry: Entry) -> dict[str, Any] | str | None:
    """Return the code list that a column's label, name or type names; TODO for an unclear one.

    ICD-10 alone, CIE-10 and CIM-10 say no national version, so a person chooses. A column whose
    values the document lists is no such column.

    >>> code_system(Entry("dx", label="Diagnóstico principal CIE-10-ES"))
    {'system': 'ICD-10-CM', 'rollup': 'chapter'}
    >>> code_system(Entry("dp", label="Diagnostic principal (CIM-10)")), code_system(Entry("sex"))
    ('TODO', None)

    Where the document says how several codes of a cell are separated, the draft says so too:

    >>> code_system(Entry("dx", label="ATC codes, separated by ;"))["several"]
    {'separator': ';', 'most': 'TODO'}
    """
    if entry.values or entry.kind not in _CODED:
        return None
    for text in (entry.label, entry.name, entry.remark):
        parts = _split(text)
        for named, system in _NAMED.items():
            if _holds(parts, named):
                codes: dict[str, Any] = {"system": system}
                return codes | {"rollup": _ROLLUPS.get(system, "chapter")} | _several(entry)
        if any(_holds(parts, unclear) for unclear in _UNCLEAR):
            return TODO
    return None


def _several(entry: Entry) -> dict[str, Any]:
    """Return how a label or remark says that several codes of a cell are separated."""
    found = _SEPARATED.search(f"{entry.label} {entry.remark}")
    if found is None:
        return {}
    named = {"comma": ",", "komma": ",", "virgule": ",", "coma": ",", "pipe": "|"}
    separator = found[1] if len(found[1]) == 1 else named.get(found[1].lower().rstrip("s"), ";")
    return {"several": {"separator": separator, "most": TODO}}


def _split(text: str) -> list[str]:
    """Split words, and letters from digits: ICD10GM into ICD, 10 and GM."""
    return [part for word in words(text) for part in re.findall(r"[a-z]+|[0-9]+", word)]


def _holds(parts: list[str], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(tuple(parts[at : at + size]) == wanted for at in range(len(parts) - size + 1))
