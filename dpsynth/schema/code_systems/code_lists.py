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

ICD-10-CM and ICD-10-GM, diagnosis codes of the United States and of Germany, in two roll-ups.

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

The Anatomical Therapeutic Chemical classification of drugs (ATC), rolled up by its prefixes.

A code such as ``A10BA02`` begins with its groups: ``A``, ``A10``, ``A10B`` and ``A10BA``. The 14
anatomical groups (``level-1``) and the 94 therapeutic groups (``level-2``) are listed here. The
groups of ``level-3`` and ``level-4`` change each year, so a schema lists those that it wants.

Source: WHO Collaborating Centre for Drug Statistics Methodology, Guidelines for ATC classification
and DDD assignment, 2024: codes only; the labels are our own.

>>> AtcGroups.of("level-2").roll_up("a10ba02"), AtcGroups.of("level-1").roll_up("C07AB02")
('A10', 'C')
>>> AtcGroups.of("level-4", ("A10BA", "C07AB")).roll_up("A10BA02")
'A10BA'
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Protocol, Self

from dpsynth._util.messages import plain
from dpsynth.errors import InputError


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


# First and last category of each chapter: of ICD-10-CM, then of ICD-10-GM where it differs.
_ICD10_CHAPTERS = (
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
            for name, title, *ends in _ICD10_CHAPTERS
        ]
        return Icd10(system, rollup, tuple(parts))
    table = files(__package__).joinpath(_FILES[system]).read_text("utf-8")
    blocks = []
    for row in csv.DictReader(table.splitlines()):
        first, _, last = row["block"].partition("-")
        label = f"{row['label']} ({row['block']})"
        blocks.append(_Part(row["block"], label, first, last or first, row["also"]))
    return Icd10(system, rollup, tuple(blocks))


ANATOMICAL = {
    "A": "Alimentary tract and metabolism",
    "B": "Blood and blood-forming organs",
    "C": "Cardiovascular system",
    "D": "Dermatologicals",
    "G": "Genito-urinary system and sex hormones",
    "H": "Systemic hormones, without sex hormones and insulins",
    "J": "Antiinfectives for systemic use",
    "L": "Antineoplastic and immunomodulating agents",
    "M": "Musculo-skeletal system",
    "N": "Nervous system",
    "P": "Antiparasitic products, insecticides and repellents",
    "R": "Respiratory system",
    "S": "Sensory organs",
    "V": "Various",
}
_THERAPEUTIC = {
    "A": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16",
    "B": "01 02 03 05 06",
    "C": "01 02 03 04 05 07 08 09 10",
    "D": "01 02 03 04 05 06 07 08 09 10 11",
    "G": "01 02 03 04",
    "H": "01 02 03 04 05",
    "J": "01 02 04 05 06 07",
    "L": "01 02 03 04",
    "M": "01 02 03 04 05 09",
    "N": "01 02 03 04 05 06 07",
    "P": "01 02 03",
    "R": "01 02 03 05 06 07",
    "S": "01 02 03",
    "V": "01 03 04 06 07 08 09 10 20",
}
LENGTHS = {"level-1": 1, "level-2": 3, "level-3": 4, "level-4": 5}  # characters of a group
_ATC_CODE = re.compile(r"[ABCDGHJLMNPRSV]([0-9]{2}([A-Z]([A-Z]([0-9]{2})?)?)?)?")


@dataclass(frozen=True)
class AtcGroups:
    """ATC codes, rolled up to the groups of one level."""

    rollup: str
    categories: tuple[str, ...]
    system: str = "ATC"

    @classmethod
    def of(cls, rollup: str, groups: tuple[str, ...] = ()) -> AtcGroups:
        """Return the groups of a level; those of levels 3 and 4 are given.

        Raises:
            ValueError: groups are missing, or are not of the level.
        """
        if rollup in ("level-1", "level-2"):
            if groups:
                raise ValueError(f"{rollup} has its groups already; remove groups")
            if rollup == "level-1":
                return cls(rollup, tuple(ANATOMICAL))
            groups = tuple(a + n for a, numbers in _THERAPEUTIC.items() for n in numbers.split())
            return cls(rollup, groups)
        length = LENGTHS[rollup]
        if not groups:
            raise ValueError(f"{rollup} has too many groups; list those you want: groups: [...]")
        if not all(len(group) == length and _ATC_CODE.fullmatch(group) for group in groups):
            raise ValueError(f"groups of {rollup} are codes of {length} characters, like A10BA")
        return cls(rollup, groups)

    @property
    def labels(self) -> Mapping[str, str]:
        """Group to its anatomical group and code."""
        return MappingProxyType(
            {group: f"{ANATOMICAL[group[0]]} ({group})" for group in self.categories}
        )

    def roll_up(self, text: str) -> str | None:
        """Give the group of one code, None for text that is no code or of no listed group.

        Blanks and letter case do not matter. A code that is shorter than the level has no group.
        """
        code = "".join(text.split()).upper()
        if not _ATC_CODE.fullmatch(code):
            return None
        group = code[: LENGTHS[self.rollup]]
        return group if group in self._listed else None

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.categories)
