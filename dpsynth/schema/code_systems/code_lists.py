"""Published code lists and their roll-ups: thousands of codes become a few public categories.

ICD-10-CM, ICD-10-GM and ATC have modules of their own. Here is ICD-9-CM, the diagnosis
codes of United States hospitals until September 2015, with two roll-ups:

- ``chapter``: the 17 chapters of the tabular list and its two supplementary classifications
  (V01-V91 and E000-E999), 19 categories;
- ``chapter-diabetes``: the same with category 250, diabetes mellitus, split off its chapter, as
  Strack et al. do in their grouping of diagnoses (doi:10.1155/2014/781670, table 2).

Source: National Center for Health Statistics and Centers for Medicare and Medicaid Services,
ICD-9-CM, Volume 1 (tabular list), edition of 1 October 2011, the last one with new codes.

>>> code_list("ICD-9-CM", "chapter-diabetes").roll_up("250.83")
'diabetes'
>>> code_list("ICD-9-CM", "chapter").roll_up("250.83")
'endocrine'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Protocol, Self

from dpsynth._util.messages import plain
from dpsynth.errors import InputError
from dpsynth.schema.code_systems.atc import AtcGroups
from dpsynth.schema.code_systems.icd10 import icd10


@dataclass(frozen=True)
class Chapter:
    """One range of three-digit categories, both ends included; ``letter`` is "", "V" or "E"."""

    name: str
    label: str
    letter: str
    first: int
    last: int

    @classmethod
    def of(cls, name: str, label: str) -> Self:
        """Read the range off the end of the label, such as "(740-759)" or "(V01-V91)"."""
        letter, first, last = re.findall(r"([VE]?)([0-9]+)(?:-[VE]?([0-9]+))?\)", label)[0]
        return cls(name, label, letter, int(first), int(last or first))


_DIABETES = Chapter.of("diabetes", "Diabetes mellitus (250)")

_CHAPTERS = tuple(
    Chapter.of(name, label)
    for name, label in (
        ("infectious", "Infectious and parasitic diseases (001-139)"),
        ("neoplasm", "Neoplasms (140-239)"),
        ("endocrine", "Endocrine, nutritional, metabolic diseases, immunity disorders (240-279)"),
        ("blood", "Diseases of the blood and blood-forming organs (280-289)"),
        ("mental", "Mental disorders (290-319)"),
        ("nervous", "Diseases of the nervous system and sense organs (320-389)"),
        ("circulatory", "Diseases of the circulatory system (390-459)"),
        ("respiratory", "Diseases of the respiratory system (460-519)"),
        ("digestive", "Diseases of the digestive system (520-579)"),
        ("genitourinary", "Diseases of the genitourinary system (580-629)"),
        ("pregnancy", "Complications of pregnancy, childbirth and the puerperium (630-679)"),
        ("skin", "Diseases of the skin and subcutaneous tissue (680-709)"),
        (
            "musculoskeletal",
            "Diseases of the musculoskeletal system and connective tissue (710-739)",
        ),
        ("congenital", "Congenital anomalies (740-759)"),
        ("perinatal", "Conditions originating in the perinatal period (760-779)"),
        ("symptoms", "Symptoms, signs and ill-defined conditions (780-799)"),
        ("injury", "Injury and poisoning (800-999)"),
        ("external", "External causes of injury and poisoning (E000-E999)"),
        ("supplementary", "Factors influencing health status (V01-V91)"),
    )
)

# A numeric code may have lost its leading zeros ("8" is 008, "38.9" is 038.9) or carry a point
# with nothing behind it; V codes have two digits and E codes three before the point.
_CODE = re.compile(
    r"(?P<number>[0-9]{1,3})(\.[0-9]{0,2})?"
    r"|(?P<v>V)(?P<v_number>[0-9]{2})(\.[0-9]{0,2})?"
    r"|(?P<e>E)(?P<e_number>[0-9]{3})(\.[0-9]?)?"
)


class RollUp(Protocol):
    """A code system, rolled up to a few categories."""

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories, in the order of the system."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Category to what it stands for."""

    def roll_up(self, text: str) -> str | None:
        """Give the category of one code, None for text that is no code of a category."""


@dataclass(frozen=True)
class CodeList:
    """A published coding system, rolled up to ``categories``.

    ``chapters`` are searched in order, so that a part split off a chapter stands before it.
    """

    system: str
    rollup: str
    chapters: tuple[Chapter, ...]
    categories: tuple[str, ...]

    @property
    def labels(self) -> Mapping[str, str]:
        """Category to the chapter's title and range of codes."""
        return MappingProxyType({chapter.name: chapter.label for chapter in self.chapters})

    def roll_up(self, text: str) -> str | None:
        """Give the category of one code, None for text that is no code of the system.

        Spaces around the code and letter case do not matter. A category's own name stands for
        itself, so that a rolled-up table can be read again.
        """
        text = text.strip()
        if text in self.categories:
            return text
        match = _CODE.fullmatch(text.upper())
        if match is None:
            return None
        letter = match["v"] or match["e"] or ""
        number = int(match["number"] or match["v_number"] or match["e_number"])
        for chapter in self.chapters:
            if chapter.letter == letter and chapter.first <= number <= chapter.last:
                return chapter.name
        return None


def _icd9(rollup: str, chapters: tuple[Chapter, ...], *, split: Chapter | None) -> CodeList:
    names = [chapter.name for chapter in chapters]
    if split is not None:
        mother = next(c for c in chapters if c.letter == "" and c.first <= split.first <= c.last)
        names.insert(names.index(mother.name), split.name)
        chapters = (split, *chapters)
    return CodeList("ICD-9-CM", rollup, chapters, tuple(names))


_LISTS = {
    (codes.system, codes.rollup): codes
    for codes in (
        _icd9("chapter", _CHAPTERS, split=None),
        _icd9("chapter-diabetes", _CHAPTERS, split=_DIABETES),
    )
}


_SYSTEMS = {
    "ICD-9-CM": ("chapter", "chapter-diabetes"),
    "ICD-10-CM": ("chapter", "block"),
    "ICD-10-GM": ("chapter", "block"),
    "ATC": ("level-1", "level-2", "level-3", "level-4"),
}


def rollups_of(system: str) -> tuple[str, ...]:
    """Return the roll-ups that are known of a system, none of another."""
    return _SYSTEMS.get(system, ())


@cache
def first_codes(system: str) -> Mapping[str, str]:
    """Return the first code of each named category of a system; none of a system without names.

    >>> first_codes("ICD-9-CM")["diabetes"]
    '250'
    """
    chapters = {
        one.name: one for (of, _), each in _LISTS.items() if of == system for one in each.chapters
    }
    return {
        name: f"{one.letter}{one.first:0{2 if one.letter == 'V' else 3}}"
        for name, one in chapters.items()
    }


@cache
def code_list(system: str, rollup: str, groups: tuple[str, ...] = ()) -> RollUp:
    """Find a code list by the name of its system and of its roll-up.

    Args:
        system: the code system.
        rollup: one of its roll-ups.
        groups: the groups to tell apart, where the roll-up does not list them (ATC).

    Raises:
        InputError: no such list, and the message names those that exist; or other groups.
    """
    if rollup not in _SYSTEMS.get(system, ()):
        known = ", ".join(f"{{system: {s}, rollup: {r}}}" for s in _SYSTEMS for r in _SYSTEMS[s])
        raise InputError(
            f"code list {{system: {plain(system)}, rollup: {plain(rollup)}}} is not known; use one "
            f"of {known}, "
            "or declare the categories in constraints.enum"
        )
    if system == "ATC":
        try:
            return AtcGroups.of(rollup, groups)
        except ValueError as error:
            raise InputError(str(error)) from None
    if groups:
        raise InputError(f"{rollup} of {system} has its groups already; remove groups")
    return _LISTS[system, rollup] if system == "ICD-9-CM" else icd10(system, rollup)
