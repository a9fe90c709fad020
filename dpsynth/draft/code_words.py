"""Code systems that a document names, in the words of several countries."""

from __future__ import annotations

import re

from dpsynth._util.field_reader import TODO
from dpsynth.draft.entry import Entry
from dpsynth.draft.names import words

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
_ROLLUPS = {"ATC": "level-2"}
_KINDS = (None, "text", "string", "category")


def code_system(entry: Entry) -> dict[str, str] | str | None:
    """Return the code list that a column's label, name or type names; TODO for an unclear one.

    ICD-10 alone, CIE-10 and CIM-10 say no national version, so a person chooses. A column whose
    values the document lists is no such column.

    >>> code_system(Entry("dx", label="Diagnóstico principal CIE-10-ES"))
    {'system': 'ICD-10-CM', 'rollup': 'chapter'}
    >>> code_system(Entry("dp", label="Diagnostic principal (CIM-10)")), code_system(Entry("sex"))
    ('TODO', None)
    """
    if entry.values or entry.kind not in _KINDS:
        return None
    for text in (entry.label, entry.name, entry.remark):
        parts = _split(text)
        for named, system in _NAMED.items():
            if _holds(parts, named):
                return {"system": system, "rollup": _ROLLUPS.get(system, "chapter")}
        if any(_holds(parts, unclear) for unclear in _UNCLEAR):
            return TODO
    return None


def _split(text: str) -> list[str]:
    """Split words, and letters from digits: ICD10GM into ICD, 10 and GM."""
    return [part for word in words(text) for part in re.findall(r"[a-z]+|[0-9]+", word)]


def _holds(parts: list[str], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    return any(tuple(parts[at : at + size]) == wanted for at in range(len(parts) - size + 1))
