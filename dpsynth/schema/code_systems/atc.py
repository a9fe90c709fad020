"""The Anatomical Therapeutic Chemical classification of drugs (ATC), rolled up by its prefixes.

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

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

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
_CODE = re.compile(r"[ABCDGHJLMNPRSV]([0-9]{2}([A-Z]([A-Z]([0-9]{2})?)?)?)?")


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
        if not all(len(group) == length and _CODE.fullmatch(group) for group in groups):
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
        if not _CODE.fullmatch(code):
            return None
        group = code[: LENGTHS[self.rollup]]
        return group if group in self._listed else None

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.categories)
