"""ICD-10-CM and ICD-10-GM, diagnosis codes of the United States and of Germany, in two roll-ups.

- ``chapter``: the 22 chapters of the classification;
- ``block``: the blocks of three-character categories that codes stand in directly, named by their
  range: 285 of ICD-10-CM, 241 of ICD-10-GM.

Sources: National Center for Health Statistics, ICD-10-CM tabular list, April 2026 (in the public
domain), for ICD-10-CM. For ICD-10-GM, the ranges of the systematic list of 2024 of the Federal
Institute for Drugs and Medical Devices; its titles are not copied. Labels are those of ICD-10-CM
where both have a range, else our own. In ICD-10-CM, letters stand
after the digits (C4A after C49), so three categories are listed beside their block.

>>> icd10("ICD-10-GM", "block").roll_up("E11.90 G")
'E10-E14'
>>> icd10("ICD-10-CM", "chapter").roll_up("e1190")
'endocrine'
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType

# First and last category of each chapter: of ICD-10-CM, then of ICD-10-GM where it differs.
_CHAPTERS = (
    ("infectious", "Infectious and parasitic diseases", "A00-B99", "A00-B99"),
    ("neoplasm", "Neoplasms", "C00-D49", "C00-D48"),
    ("blood", "Diseases of the blood and disorders of the immune mechanism", "D50-D89", "D50-D90"),
    ("endocrine", "Endocrine, nutritional and metabolic diseases", "E00-E89", "E00-E90"),
    ("mental", "Mental and behavioral disorders", "F01-F99", "F00-F99"),
    ("nervous", "Diseases of the nervous system", "G00-G99", "G00-G99"),
    ("eye", "Diseases of the eye and adnexa", "H00-H59", "H00-H59"),
    ("ear", "Diseases of the ear and mastoid process", "H60-H95", "H60-H95"),
    ("circulatory", "Diseases of the circulatory system", "I00-I99", "I00-I99"),
    ("respiratory", "Diseases of the respiratory system", "J00-J99", "J00-J99"),
    ("digestive", "Diseases of the digestive system", "K00-K95", "K00-K93"),
    ("skin", "Diseases of the skin and subcutaneous tissue", "L00-L99", "L00-L99"),
    ("musculoskeletal", "Diseases of the musculoskeletal system", "M00-M99", "M00-M99"),
    ("genitourinary", "Diseases of the genitourinary system", "N00-N99", "N00-N99"),
    ("pregnancy", "Pregnancy, childbirth and the puerperium", "O00-O9A", "O00-O99"),
    ("perinatal", "Conditions originating in the perinatal period", "P00-P96", "P00-P96"),
    ("congenital", "Congenital malformations", "Q00-QA0", "Q00-Q99"),
    ("symptoms", "Symptoms and abnormal findings", "R00-R99", "R00-R99"),
    ("injury", "Injury, poisoning, consequences of external causes", "S00-T88", "S00-T98"),
    ("external", "External causes of morbidity", "V00-Y99", "V01-Y84"),
    ("supplementary", "Factors influencing health status", "Z00-Z99", "Z00-Z99"),
    ("special", "Codes for special purposes", "U00-U85", "U00-U99"),
)

# The point may be missing, and a hyphen may stand for what is not specified. In Germany a code may
# carry the marks of the two-code system, the certainty (A, G, V, Z) and the side (R, L, B).
_GRAMMAR = {
    "ICD-10-CM": re.compile(r"(?P<category>[A-Z][0-9A-Z][0-9A-Z])\.?[0-9A-Z]{0,4}-{0,4}"),
    "ICD-10-GM": re.compile(
        r"(?P<category>[A-Z][0-9]{2})\.?[0-9]{0,2}-{0,2}\s*[*+†!#]?(\s*[AGVZRLB]){0,2}"
    ),
}
_FILES = {"ICD-10-CM": "icd10cm.csv", "ICD-10-GM": "icd10gm.csv"}


@dataclass(frozen=True)
class _Part:
    """A chapter or block: its category, its label, its range and what stands in it besides."""

    name: str
    label: str
    first: str
    last: str
    also: str = ""


@dataclass(frozen=True)
class Icd10:
    """ICD-10 of one country, rolled up to chapters or blocks."""

    system: str
    rollup: str
    parts: tuple[_Part, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the chapters, or the ranges of the blocks."""
        return tuple(part.name for part in self.parts)

    @property
    def labels(self) -> Mapping[str, str]:
        """Category to title and range of codes."""
        return MappingProxyType({part.name: part.label for part in self.parts})

    def roll_up(self, text: str) -> str | None:
        """Give the category of one code, None for text that is no code of the system.

        Blanks around the code, letter case, a missing point and trailing marks do not matter. A
        category's own name stands for itself, so that a rolled-up table can be read again.
        """
        text = text.strip()
        if text in self._named:
            return text
        match = _GRAMMAR[self.system].fullmatch(text.upper())
        if match is None:
            return None
        category = match["category"]
        if category in self._single:
            return self._single[category]
        categories = (part.name for part in self.parts if part.first <= category <= part.last)
        return next(categories, None)

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.categories)

    @cached_property
    def _single(self) -> Mapping[str, str]:
        """Categories that are a block of their own, or stand beside a range."""
        single = {part.first: part.name for part in self.parts if part.first == part.last}
        return single | {part.also: part.name for part in self.parts if part.also}


@cache
def icd10(system: str, rollup: str) -> Icd10:
    """Return a roll-up of ``ICD-10-CM`` or ``ICD-10-GM``: ``chapter`` or ``block``."""
    if rollup == "chapter":
        at = 2 if system == "ICD-10-CM" else 3
        parts = [
            _Part(name, f"{title} ({ends[at - 2]})", *ends[at - 2].split("-"))
            for name, title, *ends in _CHAPTERS
        ]
        return Icd10(system, rollup, tuple(parts))
    table = files(__package__).joinpath(_FILES[system]).read_text("utf-8")
    blocks = []
    for row in csv.DictReader(table.splitlines()):
        first, _, last = row["block"].partition("-")
        label = f"{row['label']} ({row['block']})"
        blocks.append(_Part(row["block"], label, first, last or first, row["also"]))
    return Icd10(system, rollup, tuple(blocks))
